package report

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// troubles says when locks meet trouble, and when they meet it no more: once for each
// trouble, however many callers and holders there are.
//
//	an answer is missing, or is one that passes      ──► unavailable   ┐
//	an answer that a person must change, of a server ──► misconfigured ┴──► available
//	an answer that a person must change, of a key    ──► misconfigured ──► available
//
// Commands meet it, renewals that fail for the second time, and a row of PINGs. A trouble
// ends when an attempt was answered and none has failed for outageQuiet and a CommandTimeout,
// so that a server that fails now and then is one outage, not hundreds. A PING ends what no
// command has observed. A Cluster has one trouble for each node: the others work meanwhile.
type troubles struct {
	p    *Reports
	some atomic.Bool // there is trouble, which spares all others the mutex

	mu      sync.Mutex
	stopped bool                 // nothing is raised any more; guarded by mu
	all     map[subject]*trouble // guarded by mu
	over    time.Time            // when the last trouble of a server ended; guarded by mu
}

// subject is what is in trouble: a server, or one key.
type subject struct{ shard, key string }

type trouble struct {
	class    string // of a key
	stated   bool   // a command has observed it
	said     map[observe.EventKind]bool
	failed   time.Time   // when an attempt has failed last
	answered time.Time   // when one was answered first after that
	quiet    *time.Timer // runs from then on; nil before
}

const (
	// outageQuiet and a Config.CommandTimeout are longer than two commands of one key are apart.
	outageQuiet = 3 * time.Second
	// outageForgotten: what has failed nobody for so long is no trouble that anybody meets,
	// such as a server that a failover has replaced.
	outageForgotten = time.Minute
	// maxTroubles bounds the keys that are reported apart. Of a further key nothing is said.
	maxTroubles = 64
)

// shown names a server, "" for the only one, and where it is not known yet.
func shown(shard string) string {
	if strings.HasPrefix(shard, "slot-") {
		return ""
	}
	return shard
}

// Failed notes that a command for k has failed with err at the server shard.
func (p *Reports) Failed(k *lock.Key, shard string, err error) {
	if !p.cfg.Closing() {
		p.troubles.observed(k.Name(), k.Settings().Class, shown(shard), err, true)
	}
}

// isOutage reports whether err is no answer, or one that passes.
func isOutage(err error) bool {
	return err != nil && !lettucecompat.Permanent(err) && !errors.Is(err, lettucecompat.ErrReplicas)
}

// Answered notes that one for k was answered as it should be. before is the server at which the one before it has failed,
// where it has.
func (p *Reports) Answered(k *lock.Key, before *string) {
	if p.troubles.some.Load() {
		p.troubles.answered(k.Name(), shown(p.wire.Shard(k.Name())), before)
	}
}

// observed notes a failure at the server shard, of a command or not.
func (o *troubles) observed(key, class, shard string, err error, stated bool) {
	of, ev := subject{shard: shard}, observe.Event{Kind: observe.EventUnavailable, Err: err, Text: unavailableText(shard, err)}
	if lettucecompat.Permanent(err) && !lettucecompat.Uncertain(err) {
		what := cmp.Or(Remedy(err), "acquiring is refused until a person changes something")
		ev.Kind, ev.Text = observe.EventMisconfigured, what+At(shard)
		if !aboutServer(err) {
			of, ev.Key, ev.Class, ev.Text = subject{key: key}, key, class, what
		}
	}
	if o.isNews(of, &ev, stated) {
		o.p.event(context.Background(), ev)
	}
}

// outage reports whether a server is in trouble, or was that short a time ago.
func (o *troubles) outage(ago time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.over) < ago {
		return true
	}
	for of := range o.all {
		if of.key == "" {
			return true
		}
	}
	return false
}

// isNews notes a failure. It reports whether ev has not been said of this trouble.
func (o *troubles) isNews(of subject, ev *observe.Event, stated bool) bool {
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
	t.failed, t.stated = now, t.stated || stated
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
		if here {
			o.calm(of, t, now)
		}
	}
}

// pinged notes that a PING was answered, by any server of a Cluster.
func (o *troubles) pinged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for of, t := range o.all {
		if of.key == "" && !t.stated && (of.shard == "" || now.Sub(t.failed) > outageForgotten) {
			o.calm(of, t, now)
		}
	}
}

// calm has t end after a while in which nothing fails. The caller has mu.
func (o *troubles) calm(of subject, t *trouble, now time.Time) {
	if t.quiet == nil && !o.stopped {
		t.answered = now
		t.quiet = time.AfterFunc(outageQuiet+o.p.cfg.CommandTimeout, func() { o.end(of, t, now) })
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
		if of.key == "" {
			o.over = time.Now()
		}
	}
	o.mu.Unlock()
	if ended {
		o.p.event(context.Background(), observe.Event{
			Kind: observe.EventAvailable, Key: of.key, Class: t.class, Since: answered, Text: "Redis answers again" + At(of.shard),
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
