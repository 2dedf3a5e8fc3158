package report

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// troubles says when acquiring meets trouble, and when it meets it no more: once for each
// trouble, however many callers there are.
//
//	an answer is missing, or is one that passes      ──► unavailable   ┐
//	an answer that a person must change, of a server ──► misconfigured ┴──► available
//	an answer that a person must change, of a key    ──► misconfigured ──► available
//
// A trouble ends when an attempt was answered and none has failed for outageQuiet and a
// CommandTimeout, so that a server that fails now and then is one outage, not hundreds. A
// Cluster has one for each node: the others work meanwhile.
type troubles struct {
	p    *Reports
	some atomic.Bool // there is trouble, which spares all others the mutex

	mu      sync.Mutex
	stopped bool                 // nothing is raised any more; guarded by mu
	all     map[subject]*trouble // guarded by mu
}

// subject is what is in trouble: a server, or one key.
type subject struct{ shard, key string }

type trouble struct {
	class    string // of a key
	said     map[observe.EventKind]bool
	failed   time.Time   // when an attempt has failed last
	answered time.Time   // when one was answered first after that
	quiet    *time.Timer // runs from then on; nil before
}

const (
	// outageQuiet and a Config.CommandTimeout are longer than two statements of one key are apart.
	outageQuiet = 3 * time.Second
	// outageForgotten: what has failed nobody for so long is no trouble that anybody meets,
	// such as a server that a failover has replaced.
	outageForgotten = time.Minute
	// maxTroubles bounds the keys that are told apart. Of a further key nothing is said.
	maxTroubles = 64
)

// shown names a server, "" for the only one, and where it is not known yet.
func shown(shard string) string {
	if strings.HasPrefix(shard, "slot-") {
		return ""
	}
	return shard
}

// Failed notes that a statement for k has failed with err at the server shard.
func (p *Reports) Failed(k *lock.Key, shard string, err error) {
	if !p.cfg.Closing() {
		p.troubles.met(k.Name(), k.Settings().Class, shown(shard), err)
	}
}

// Answered notes that one for k was answered as it should be. before is the server at which the one before it has failed,
// where it has.
func (p *Reports) Answered(k *lock.Key, before *string) {
	if p.troubles.some.Load() {
		p.troubles.answered(k.Name(), shown(p.wire.Shard(k.Name())), before)
	}
}

// met notes a failure at the server shard.
func (o *troubles) met(key, class, shard string, err error) {
	of, ev := subject{shard: shard}, observe.Event{Kind: observe.EventUnavailable, Err: err, Text: "acquire is failing; retrying"}
	if lettucecompat.Permanent(err) && !lettucecompat.Uncertain(err) {
		ev.Kind, ev.Text = observe.EventMisconfigured, "acquiring is refused until a person changes something"
		if remedy := Remedy(err); remedy != "" {
			ev.Text += ": " + remedy
		}
		if !aboutServer(err) {
			of, ev.Key, ev.Class = subject{key: key}, key, class
		}
	}
	if o.isNews(of, &ev) {
		ev.Text += onServer(of.shard)
		o.p.event(context.Background(), ev)
	}
}

// isNews notes a failure. It reports whether ev has not been said of this trouble.
func (o *troubles) isNews(of subject, ev *observe.Event) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return false
	}
	o.some.Store(true)
	now := time.Now()
	t := o.all[of]
	if t == nil {
		if len(o.all) >= maxTroubles {
			maps.DeleteFunc(o.all, func(of subject, t *trouble) bool { return of.key != "" && now.Sub(t.failed) > outageForgotten })
		}
		if len(o.all) >= maxTroubles && of.key != "" {
			return false
		}
		t = &trouble{class: ev.Class, said: map[observe.EventKind]bool{}}
		o.all[of] = t
	}
	t.failed = now
	if t.quiet != nil {
		t.quiet.Stop()
		t.quiet = nil
	}
	said := t.said[ev.Kind]
	t.said[ev.Kind] = true
	return !said
}

// answered notes an answer of the server shard, for key.
func (o *troubles) answered(key, shard string, before *string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.some.Store(len(o.all) > 0)
	now := time.Now()
	for of, t := range o.all {
		here := of.key == key
		if of.key == "" {
			here = of.shard == shard || before != nil && of.shard == shown(*before) || now.Sub(t.failed) > outageForgotten
		}
		if here && t.quiet == nil && !o.stopped {
			t.answered = now
			t.quiet = time.AfterFunc(outageQuiet+o.p.cfg.CommandTimeout, func() { o.end(of, t, now) })
		}
	}
}

// end ends t, unless an attempt has failed since t was answered.
func (o *troubles) end(of subject, t *trouble, answered time.Time) {
	o.mu.Lock()
	ended := !o.stopped && o.all[of] == t && t.quiet != nil && t.answered.Equal(answered)
	if ended {
		o.p.batches.Add(1) // Close waits for what is raised
		defer o.p.batches.Done()
		delete(o.all, of)
		o.some.Store(len(o.all) > 0)
	}
	o.mu.Unlock()
	if ended {
		o.p.event(context.Background(), observe.Event{
			Kind: observe.EventAvailable, Key: of.key, Class: t.class, Since: answered, Text: "acquire is answered again" + onServer(of.shard),
		})
	}
}

// stop ends the timers. Nothing is raised any more.
func (o *troubles) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
	for _, t := range o.all {
		if t.quiet != nil {
			t.quiet.Stop()
		}
	}
}

func onServer(shard string) string {
	if shard == "" {
		return ""
	}
	return ", at " + shard
}
