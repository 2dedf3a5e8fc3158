package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// ordered notes in which order commands fail and are answered. Its ReleaseFailed is slow.
type ordered struct {
	*reporter
	mu    sync.Mutex
	order []string
}

func (r *ordered) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = append(r.order, s)
}

func (r *ordered) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

func (r *ordered) Failed(*Key, string, error) { r.note("failed") }
func (r *ordered) Answered(*Key, *string)     { r.note("answered") }
func (r *ordered) ReleaseFailed(*Held, error) {
	r.note("release failed")
	time.Sleep(150 * time.Millisecond)
}

// once lets a command through do, when it is armed.
type once struct {
	mu sync.Mutex
	do func(next func() error) error
}

func (h *once) arm(do func(next func() error) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.do = do
}

func (h *once) armed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.do != nil
}

func (*once) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*once) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *once) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.mu.Lock()
		do := h.do
		if cmd.Name() == "evalsha" {
			h.do = nil
		} else {
			do = nil
		}
		h.mu.Unlock()
		if do == nil {
			return next(ctx, cmd)
		}
		return do(func() error { return next(ctx, cmd) })
	}
}

// Who is on the way out while a loss is concluded, and whose units are not yet stated, is notified by the release. The loss is reported
// once.
func TestGiveBack_ALossBesideAReleaseIsReportedOnce(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, h := client(), &holdUp{}
	c.AddHook(h)
	p := newShares(t, c, 2, longLease)
	s, last := p.mustTake(t, 1), p.mustTake(t, 1)
	g := s.g
	eventually(t, "the call lease was renewed", func() bool { return g.lease.Renewals() > 0 })
	leavesNothing(t, p, newShares(t, client(), 2, longLease), g)
	end := h.hold(&h.sends)
	defer end()
	exits := make(chan ExitResult, 2)
	for left, s := range []*Owner{last, s} {
		go func() { exits <- s.Exit(context.Background()) }()
		eventually(t, "it is out", func() bool { return len(g.Owners()) == 1-left })
	}
	g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	eventually(t, "the loss is reported", func() bool { return p.rep.reported() > 0 })
	end()
	for range 2 {
		<-exits
	}
	eventually(t, "all is given back", func() bool { return p.unsettled.Load() == 0 && p.flying.Load() == 0 })
	if n := p.rep.reported(); n != 1 {
		t.Errorf("the loss of a grant was reported %d times", n)
	}
}

func (r *reporter) reported() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.losses)
}

// That a command has failed is reported before the next one is answered: otherwise an outage is reported that is over, and nothing ends it.
func TestGiveBack_AFailureIsReportedBeforeTheNextAnswer(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			t.Parallel()
			_, client := fresh(t)
			c, h := client(), &once{}
			c.AddHook(h)
			p := newParty(t, c, longLease)
			if shared {
				p = newShares(t, c, 2, longLease)
			}
			rep := &ordered{reporter: p.rep}
			p.Locks.cfg.Reporter = rep
			var o *Owner
			if shared {
				o = p.mustTake(t, 1)
				leavesNothing(t, p, newShares(t, client(), 2, longLease), o.g)
			} else {
				o = p.mustAcquire(t, "k")
			}
			eventually(t, "the call lease was renewed", func() bool { return o.g.lease.Renewals() > 0 })
			before := len(rep.seen())
			h.arm(func(next func() error) error { _ = next(); return errCut })
			o.Exit(context.Background())
			eventually(t, "the next one is answered", func() bool { return slices.Contains(rep.seen()[before:], "answered") })
			if seen := rep.seen()[before:]; seen[0] != "failed" {
				t.Errorf("%q", seen)
			}
		})
	}
}

// Where an answer shows how a release ended, it was not given up: also if the hold was lost and was to be left to a ticket.
func TestGiveBack_ARepetitionThatFindsItIsNotGivenUp(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, h := client(), &once{}
	c.AddHook(h)
	p := newParty(t, c, longLease)
	o := p.mustAcquire(t, "k")
	g, k := o.g, o.g.k
	eventually(t, "the call lease was renewed", func() bool { return g.lease.Renewals() > 0 })
	k.refs.Add(1)
	defer k.Done()
	o.Bequeath("party-x:5", time.Minute)
	exits(t, o, false, queue.Final)
	h.arm(func(func() error) error { return &net.OpError{Op: "dial", Err: errCut} }) // it was certainly not sent
	g.release(g.endLease(o, p.leases.Now()+time.Hour))
	o.abandon()
	eventually(t, "all is given back", func() bool { return p.unsettled.Load() == 0 && p.flying.Load() == 0 })
	p.rep.mu.Lock()
	defer p.rep.mu.Unlock()
	if len(p.rep.losses) != 1 || p.rep.givenUp != 0 {
		t.Errorf("%d losses, given up: %d", len(p.rep.losses), p.rep.givenUp)
	}
}

// besideARenewal acquires k and calls during while a renewal of the conversation is on its way, which goes on as do says.
func besideARenewal(t *testing.T, change func(*Settings), do func(next func() error) error, during func(p *party, o *Owner, rdb *redis.Client, rep *ordered, open func())) {
	t.Helper()
	_, client := fresh(t)
	c, h := client(), &once{}
	c.AddHook(h)
	p := newParty(t, c, func(s *Settings) { longLease(s); s.Timeout = pace.Hang; change(s) })
	rep := &ordered{reporter: p.rep}
	p.Locks.cfg.Reporter = rep
	k := p.Key("k", p.set)
	defer k.Done()
	h.arm(func(next func() error) error { // the call of an earlier command, which is not believed: something may be left
		k.handle(conversation.Event{Kind: conversation.Called, N: 1, Record: 1, Units: 1, Lease: time.Second})
		return next()
	})
	o := p.mustAcquire(t, "k")
	eventually(t, "the call lease was renewed", func() bool { return o.g.lease.Renewals() > 0 })
	opened := make(chan struct{})
	h.arm(func(next func() error) error { <-opened; return do(next) })
	k.sendAsync()
	eventually(t, "it is on its way", func() bool { return !h.armed() })
	during(p, o, client(), rep, func() { close(opened) })
}

// A lock that is released while a renewal is on its way, and which that finds gone, is lost, and the key goes on.
func TestGiveBack_BesideARenewalThatFindsItGone(t *testing.T) {
	t.Parallel()
	besideARenewal(t, func(*Settings) {}, func(next func() error) error { return next() }, func(p *party, o *Owner, rdb *redis.Client, _ *ordered, open func()) {
		rdb.Del(t.Context(), "k")
		exited := make(chan ExitResult, 1)
		go func() { exited <- o.Exit(context.Background()) }()
		eventually(t, "it is on its way out", func() bool { return o.g.lease.State() == renewal.StateEnded })
		open()
		if r := <-exited; r.Lost == nil || r.Lost.Reason != renewal.ReasonGone {
			t.Errorf("%+v", r)
		}
		mustRelease(t, p.mustAcquire(t, "k"))
		eventually(t, "the loss is reported", func() bool { return p.rep.reported() == 1 })
	})
}

// That a renewal has no answer is no failure of the release, which is sent after it. An Unlock waits for that.
func TestGiveBack_BesideARenewalWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, minHold := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprint(minHold), func(t *testing.T) {
			t.Parallel()
			besideARenewal(t, func(s *Settings) { s.MinHold = minHold }, func(next func() error) error { _ = next(); return errCut }, func(p *party, o *Owner, rdb *redis.Client, rep *ordered, open func()) {
				ctx, end := context.WithCancelCause(context.Background())
				end(errors.New("the first answer is enough"))
				exited := make(chan ExitResult, 1)
				go func() { exited <- o.Exit(ctx) }()
				eventually(t, "it is on its way out", func() bool { return o.g.lease.State() == renewal.StateEnded })
				open()
				if r := <-exited; r.Err != nil || r.Lost != nil {
					t.Errorf("%+v", r)
				}
				if seen := strings.Join(rep.seen(), ", "); strings.Contains(seen, "release failed") {
					t.Error(seen)
				}
				eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
			})
		})
	}
}

// What was stated before, without an answer, is given up with the rest: nothing has shown that it is free.
func TestGiveBack_GivenUpWithWhatWasBefore(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, longLease)
	s := p.mustTake(t, 1)
	k := s.g.k
	k.mu.Lock()
	first := &giving{g: s.g, n: 1, failure: ReleaseResult{Err: errCut, Unknown: true}}
	second := &giving{g: s.g, n: 2, failure: first.failure, before: first}
	k.freeing = second
	n := k.freedLocked(nil, conversation.Event{Kind: conversation.Tick}, conversation.GivenUp, nil)
	k.mu.Unlock()
	if a, b := k.resultOf(first, ReleaseResult{}), k.resultOf(second, ReleaseResult{}); a.Err == nil || b.Err == nil || !n.givenUp {
		t.Errorf("the first: %+v, the second: %+v, %+v", a, b, n)
	}
	mustGive(t, s)
}

// A permit that is released while others are notified of the loss is lost with them, and nothing is given back of it.
func TestGiveBack_WhileOthersAreNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	if err := k.Enter(t.Context(), queue.Refusable, 1, 2); err != nil {
		t.Fatal(err)
	}
	left := make(chan *Held, 1)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}, Holder: notify(func(*Loss) { left <- k.Leave(1, 2) })})
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	s.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	if g := <-left; g != s.g {
		t.Errorf("%v is lost", g)
	}
	k.mu.Lock()
	if k.u.next != nil {
		t.Error("something is to be given back of a lost grant")
	}
	k.mu.Unlock()
	s.Exit(t.Context())
}

// A ticket gets nothing from who leaves after the deadline: that is why such a release is lost, and not that the ticket is not there.
func TestGiveBack_ALateDetachIsOfTheDeadline(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newParty(t, client(), func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	})
	o := p.mustAcquire(t, "k")
	g, k := o.g, o.g.k
	k.refs.Add(1)
	defer k.Done()
	o.Bequeath("party-x:5", time.Minute)
	exits(t, o, false, queue.Final)
	b := g.endLease(o, p.leases.Now()+time.Hour)
	k.mu.Lock()
	k.q.Shrink(0)
	k.freeing = b
	cmd := k.nextLocked()
	k.mu.Unlock()
	rdb.Del(t.Context(), "k")
	time.Sleep(time.Until(g.lease.Deadline()))
	k.send(cmd)
	if r := k.resultOf(b, ReleaseResult{}); r.Lost == nil || r.Lost.Reason != renewal.ReasonDeadline {
		t.Errorf("%+v", r)
	}
	p.unregister(g, nil)
	o.abandon()
}

// closing notes what a Close would have to wait for while it is reported that a release was given up.
type closing struct {
	*reporter
	flying chan int64
	of     *party
}

func (r *closing) ReleaseGivenUp(*Held) { r.flying <- r.of.flying.Load() }

// A Close waits until it is reported that a release was given up, which no command shows.
func TestGiveBack_ACloseWaitsForTheReport_Lab(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &faults{}
	c.AddHook(f)
	p := newParty(t, c, func(s *Settings) {
		s.Lease = stretchedBy(Lease{For: 300 * time.Millisecond, Period: 100 * time.Millisecond, Margin: 30 * time.Millisecond})
	})
	rep := &closing{reporter: p.rep, flying: make(chan int64, 1), of: p}
	p.Locks.cfg.Reporter = rep
	o := p.mustAcquire(t, "k")
	f.lose.Store(1000)
	o.Exit(context.Background())
	if n := <-rep.flying; n == 0 {
		t.Error("a Close has nothing to wait for")
	}
	f.lose.Store(0)
}
