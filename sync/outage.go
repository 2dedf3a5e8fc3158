package anteroom

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// troubles says when acquiring meets trouble, and when it does so no more: once for each
// trouble, however many keys and callers meet it.
//
//	an answer is missing, or is one that passes    ──► unavailable   ┐ of a server
//	an answer that a person must change, of a server ──► misconfigured ┘ ──► available
//	an answer that a person must change, of a key    ──► misconfigured ──► available
//
// The trouble of a server is over when an attempt was answered and none has failed for
// outageQuiet and a CommandTimeout, so that a server that fails now and then is one outage, not hundreds. A
// Cluster has one for each node: the others work meanwhile.
type troubles struct {
	p    *reports
	some atomic.Bool // there is trouble, which spares all others the mutex

	mu      sync.Mutex
	stopped bool                // guarded by mu
	servers map[string]*outage  // by shard, guarded by mu
	keys    map[string]*refusal // guarded by mu
}

// outage is the trouble of one server.
type outage struct {
	said     map[EventKind]bool
	failed   time.Time   // when an attempt has failed last
	answered time.Time   // when one was answered first after that
	over     *time.Timer // runs from then on; nil before
}

// refusal is the trouble of one key.
type refusal struct {
	lasts bool
	said  time.Time
}

const (
	// outageQuiet and a Config.CommandTimeout are longer than two tries of one driver are apart.
	outageQuiet = 3 * time.Second
	// outageForgotten: a server that nobody has failed to ask for so long, such as one that a
	// failover has replaced, is in no trouble that anybody meets.
	outageForgotten = time.Minute
	// maxTroubles bounds the servers and the keys that are told apart. Further servers count
	// as one, and of further keys nothing is said for refusalAgain.
	maxTroubles  = 64
	refusalAgain = time.Minute
)

// shardOf names the server of the key, "" for the only one, and where it is not known yet.
func (e *entry) shardOf() string {
	shard := e.m.wire.Shard(e.key)
	if strings.HasPrefix(shard, "slot-") {
		return ""
	}
	return shard
}

// met notes that an attempt for e has failed with err, for good or not, at the server shard.
func (o *troubles) met(e *entry, shard string, err error, forGood bool) {
	if ev := o.note(e, shard, err, forGood); ev.Kind != "" {
		o.p.event(context.Background(), ev)
	}
}

// note is met without the raising, which calls the program; the Kind is "" where nothing is
// to be said.
func (o *troubles) note(e *entry, shard string, err error, forGood bool) (ev Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return ev
	}
	o.some.Store(true)
	now := time.Now()
	if forGood && !aboutServer(err) {
		return o.refusedLocked(e, err, now)
	}
	if o.servers[shard] == nil && len(o.servers) >= maxTroubles {
		shard = ""
	}
	out := o.servers[shard]
	if out == nil {
		out = &outage{said: map[EventKind]bool{}}
		o.servers[shard] = out
	}
	out.failed = now
	if out.over != nil {
		out.over.Stop()
		out.over = nil
	}
	kind, text := EventUnavailable, "acquiring meets errors and is retried"
	if forGood {
		kind, text = EventMisconfigured, misconfigured(err)
	}
	if out.said[kind] {
		return ev
	}
	out.said[kind] = true
	return Event{Kind: kind, At: now, Err: err, Text: text + onServer(shard)}
}

// refusedLocked notes that the server refuses e's key until a person changes something.
func (o *troubles) refusedLocked(e *entry, err error, now time.Time) (ev Event) {
	r := o.keys[e.key]
	if r == nil {
		if len(o.keys) >= maxTroubles {
			for key, old := range o.keys {
				if now.Sub(old.said) >= refusalAgain {
					delete(o.keys, key)
				}
			}
		}
		if len(o.keys) >= maxTroubles {
			return ev
		}
		r = &refusal{}
		o.keys[e.key] = r
	}
	if r.lasts || !r.said.IsZero() && now.Sub(r.said) < refusalAgain {
		return ev
	}
	r.lasts, r.said = true, now
	return Event{Kind: EventMisconfigured, At: now, Key: e.key, Class: e.cfg.Name, Err: err, Text: misconfigured(err)}
}

// answered notes that an attempt for e was answered as it should be, by the server shard.
// before is the server at which its driver has failed, where it has.
func (o *troubles) answered(e *entry, shard string, before *string) {
	if o.isOver(e.key, shard, before) {
		o.p.event(context.Background(), Event{Kind: EventAvailable, Key: e.key, Class: e.cfg.Name, Text: "acquiring is not refused any more"})
	}
}

// isOver notes an answer. It tells whether that ends a refusal of the key.
func (o *troubles) isOver(key, shard string, before *string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for name, out := range o.servers {
		if out.over != nil || o.stopped {
			continue
		}
		if name == shard || before != nil && name == *before || now.Sub(out.failed) > outageForgotten {
			out.answered = now
			out.over = time.AfterFunc(outageQuiet+o.p.m.cfg.CommandTimeout, func() { o.end(name, out, now) })
		}
	}
	o.some.Store(len(o.servers)+len(o.keys) > 0)
	r := o.keys[key]
	if r == nil || !r.lasts {
		return false
	}
	r.lasts = false
	return true
}

// end ends an outage, unless an attempt has failed since it was answered.
func (o *troubles) end(shard string, out *outage, answered time.Time) {
	o.mu.Lock()
	over := !o.stopped && o.servers[shard] == out && out.over != nil && out.answered.Equal(answered)
	if over {
		delete(o.servers, shard)
		o.some.Store(len(o.servers)+len(o.keys) > 0)
	}
	o.mu.Unlock()
	if !over {
		return
	}
	o.p.event(context.Background(), Event{Kind: EventAvailable, Since: answered, Text: "acquiring gets answers again" + onServer(shard)})
}

// stop ends the timers. Nothing is raised any more.
func (o *troubles) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	for _, out := range o.servers {
		if out.over != nil {
			out.over.Stop()
		}
	}
}

func onServer(shard string) string {
	if shard == "" {
		return ""
	}
	return ", at " + shard
}

func misconfigured(err error) string {
	return "acquiring is refused until a person changes something: " + remedy(err)
}
