package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// What once went wrong around a loss, an outage and a release of units.

// A release of units that were never a grant does not find the grant before lost.
func TestShared_UnitsThatWereNoGrantAreNotLost(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p := newShares(t, c, 0, func(s *Settings) { s.Timeout = pace.Scale(1500 * time.Millisecond) })
	rdb := client()
	k := p.Key("k", p.set) // keeps the key, as a waiter would
	defer k.Done()
	mustGive(t, p.mustTake(t, writes))
	eventually(t, "it listens", p.wire.Listening)
	eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	end := f.hold(&f.answers)
	got := make(chan error, 1)
	go func() { _, err := p.take(t.Context(), writes, queue.Try); got <- err }()
	eventually(t, "the units are its", func() bool { return rdb.Exists(t.Context(), "k").Val() == 1 })
	time.Sleep(1200 * time.Millisecond)
	rdb.Del(t.Context(), "k")
	end()
	if err := <-got; !errors.Is(err, errLate) {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond)
	p.rep.mu.Lock()
	n := len(p.rep.losses)
	p.rep.mu.Unlock()
	if n > 0 {
		t.Errorf("%d losses are reported, of a grant that was released", n)
	}
}

// Anybody can say that a lock was deleted on purpose. That makes no later loss a forced one: not if it names a record
// before the present one, or none that there can be, nor once an answer has shown that the units are there.
func TestShared_AForcedReleaseIsOfOneRecord(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]struct {
		n      func(k *Key, g *Held) uint64
		before bool // the message comes before the loss, and a renewal between the two
		want   renewal.Reason
	}{
		"the present record":   {func(k *Key, _ *Held) uint64 { return k.conv.LastCommand().N }, false, renewal.ReasonForced},
		"one that was renewed": {func(k *Key, _ *Held) uint64 { return k.conv.LastCommand().N }, true, renewal.ReasonGone},
		"an earlier grant":     {func(_ *Key, g *Held) uint64 { return g.n - 1 }, false, renewal.ReasonGone},
		"one to come":          {func(*Key, *Held) uint64 { return lettucecompat.LastNumber }, false, renewal.ReasonGone},
	} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			rdb, c, f := client(), client(), &holdUp{}
			c.AddHook(f)
			p := newShares(t, c, 0, nil)
			k := p.Key("k", p.set)
			defer k.Done()
			s := p.mustTake(t, 1)
			defer s.Exit(context.Background())
			eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
			k.mu.Lock()
			n := m.n(k, s.g)
			k.mu.Unlock()
			message := lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: "k", N: n}
			if m.before {
				renewals := s.g.lease.Renewals()
				p.Heard(message)
				eventually(t, "it was renewed", func() bool { return s.g.lease.Renewals() > renewals })
				gone(t, rdb, s.g)
			} else { // no renewal finds it gone before the message comes
				end := f.hold(&f.commands)
				gone(t, rdb, s.g)
				p.Heard(message)
				end()
			}
			eventually(t, "it is lost", func() bool { return s.Loss() != nil })
			if l := s.Loss(); l.Reason != m.want {
				t.Errorf("lost: %v, want %v", l.Reason, m.want)
			}
		})
	}
}

// A loss that was concluded before an exit, and is notified after it, counts that owner: its release says so. So it does
// where the owner had a limit of its own, which was not over.
func TestShared_S4_ALossThatAnExitOvertakes(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"unlimited": 0, "limited": time.Hour} {
		t.Run(name, func(t *testing.T) {
			_, client := fresh(t)
			p := newShares(t, client(), 2, nil)
			s, other := p.mustTake(t, 1), p.mustTake(t, 1)
			if limit > 0 {
				s.bound(&Lease{For: limit, Period: -1})
			}
			eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
			open := busyLoop(t, p)
			s.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
			if r := s.Exit(t.Context()); r.Lost == nil {
				t.Errorf("%+v", r)
			}
			open()
			eventually(t, "the loss is reported", func() bool {
				p.rep.mu.Lock()
				defer p.rep.mu.Unlock()
				return len(p.rep.losses) == 2
			})
			p.rep.mu.Lock()
			if shares := p.rep.losses[1].Of; len(shares) != 2 {
				t.Errorf("%d have lost their units, and 2 are told so", len(shares))
			}
			p.rep.mu.Unlock()
			other.Exit(t.Context())
		})
	}
}

// The same where the loss is concluded in the middle of an exit that leaves the units to others.
func TestShared_S4_ALossInTheMiddleOfAnExit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, nil)
	s, other := p.mustTake(t, 1), p.mustTake(t, 1)
	g, k := s.g, s.g.k
	eventually(t, "the call lease was renewed", func() bool { return g.lease.Renewals() > 0 })
	open := busyLoop(t, p)
	g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog}) // Exit has just found the lease valid
	r := k.giveBack(context.Background(), giving{g: g, by: of(s)}, 0, func() {
		delete(g.u.owners, s)
		k.q.Leave(&s.Stay)
	})
	if r.Lost == nil {
		t.Errorf("%+v", r)
	}
	open()
	eventually(t, "the loss is notified", func() bool { return g.Loss() != nil })
	if n := len(g.Loss().Of); n != 2 {
		t.Errorf("%d have lost their units, and 2 are told so", n)
	}
	other.Exit(t.Context())
}

// Who exits after a limit of its own, before anybody has noticed that, as a process that was stopped, has lost its units, and
// its loss is reported.
func TestShared_AnExitAfterItsOwnLimit(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 2, nil)
	s, other := p.mustTake(t, 1), p.mustTake(t, 1)
	limit := stretchedBy(Lease{For: 300 * time.Millisecond, Period: -1, Margin: 10 * time.Millisecond})
	s.bound(&limit)
	s.g.k.mu.Lock()
	s.Share().timer.Stop()
	s.g.k.mu.Unlock()
	time.Sleep(limit.For + 10*time.Millisecond)
	if r := s.Exit(t.Context()); r.Lost == nil || r.Lost.Reason != renewal.ReasonFixed {
		t.Errorf("%+v", r)
	}
	p.rep.mu.Lock()
	if l := p.rep.losses; len(l) != 1 || len(l[0].Of) != 1 || l[0].Of[0] != s || l[0].Reason != renewal.ReasonFixed {
		t.Errorf("%+v is reported", l)
	}
	p.rep.mu.Unlock()
	if l := other.Err(); l != nil {
		t.Error(l)
	}
	other.Exit(t.Context())
}

// leavesNothing has another client ask and give up, so that who leaves g keeps nothing for later.
func leavesNothing(t *testing.T, p, other *party, g *Held) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := other.take(ctx, 2, 0)
		waits <- err
	}()
	eventually(t, "the turn is over", func() bool { return g.k.q.Demand().Contended && p.now() > g.k.q.Demand().TurnEnds })
	stop()
	<-waits
}

// A release that finds nothing says why: the lease was over, or a message has said that the lock was forced.
func TestShared_AReleaseThatFindsNothing(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct {
		end  func(t *testing.T, rdb *redis.Client, g *Held)
		want renewal.Reason
	}{
		"removed": {gone, renewal.ReasonGone},
		"forced": {func(t *testing.T, rdb *redis.Client, g *Held) {
			gone(t, rdb, g)
			g.k.mu.Lock()
			g.k.u.deleted = g.k.u.lastShown
			g.k.mu.Unlock()
		}, renewal.ReasonForced},
		"over": {func(_ *testing.T, _ *redis.Client, g *Held) {
			time.Sleep(time.Until(g.lease.Deadline().Add(g.k.set.Lease.Margin + 50*time.Millisecond)))
		}, renewal.ReasonDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := fresh(t)
			rdb, c, h := client(), client(), &holdUp{}
			c.AddHook(h)
			p := newShares(t, c, 0, brief)
			time.Sleep(3 * linger)
			s := p.mustTake(t, writes)
			eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
			open := h.hold(&h.sends)
			defer open()
			result := make(chan ExitResult, 1)
			go func() { result <- s.Exit(context.Background()) }()
			eventually(t, "the release is on its way", func() bool { return s.g.lease.State() == renewal.StateEnded })
			v.end(t, rdb, s.g)
			open()
			switch r := <-result; {
			case v.want == renewal.ReasonDeadline && r.Err != nil: // its first answer did not come in time
			case r.Lost == nil || r.Lost.Reason != v.want:
				t.Errorf("%+v, want %v", r, v.want)
			}
		})
	}
}

// A process that was stopped, and learns from a question that its units are gone, has lost them at the deadline.
func TestShared_AQuestionAfterTheDeadline(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, brief)
	s := p.mustTake(t, writes) // whom no other command renews
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	open := busyLoop(t, p)
	eventually(t, "it is not there", func() bool { // a renewal that was sent before may come late, and a question renews
		time.Sleep(time.Until(s.g.lease.Deadline().Add(p.set.Lease.Margin + 50*time.Millisecond)))
		return !p.Missing(t.Context(), []*lettucecompat.Tracked{{Query: lettucecompat.Query{Key: "k", Field: s.g.Field()}, Owner: s.g}})
	})
	open()
	eventually(t, "it is lost", func() bool { return s.Loss() != nil })
	if l := s.Loss(); l.Reason != renewal.ReasonDeadline {
		t.Errorf("%v, %s", l.Reason, l.By)
	}
	s.Exit(t.Context())
}

// The release of some units finds that all are gone: so it says, and its owner counts beside those who are notified.
func TestShared_S4_AReleaseOfSomeUnitsFindsTheLoss(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, h := client(), client(), &holdUp{}
	c.AddHook(h)
	p, q := newShares(t, c, 2, nil), newShares(t, client(), 2, nil)
	s, last := p.mustTake(t, 1), p.mustTake(t, 1)
	g := s.g
	eventually(t, "the call lease was renewed", func() bool { return g.lease.Renewals() > 0 })
	leavesNothing(t, p, q, g)
	open := h.hold(&h.sends)
	defer open()
	result := make(chan ExitResult, 1)
	go func() { result <- s.Exit(context.Background()) }()
	eventually(t, "the release is on its way", func() bool {
		g.k.mu.Lock()
		defer g.k.mu.Unlock()
		return g.k.freeing != nil
	})
	rdb.Del(t.Context(), "k")
	open()
	if r := <-result; r.Lost == nil {
		t.Errorf("%+v", r)
	}
	eventually(t, "the loss is reported", func() bool {
		p.rep.mu.Lock()
		defer p.rep.mu.Unlock()
		return len(p.rep.losses) > 0
	})
	p.rep.mu.Lock()
	if n := len(p.rep.losses[0].Of); len(p.rep.losses) != 1 || n != 2 {
		t.Errorf("%d losses, the first of %d", len(p.rep.losses), n)
	}
	p.rep.mu.Unlock()
	last.Exit(t.Context())
}

// A renewal under way finds the loss while the last owners are on their way out: they are notified by their releases, and count.
func TestShared_S4_ALossBesideARelease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb, c, f := client(), client(), &holdUp{}
	c.AddHook(f)
	p := newShares(t, c, 2, nil)
	s, last := p.mustTake(t, 1), p.mustTake(t, 1)
	g := s.g
	eventually(t, "the call lease was renewed", func() bool { return g.lease.Renewals() > 0 })
	leavesNothing(t, p, newShares(t, client(), 2, nil), g)
	rdb.Del(t.Context(), "k")
	end := f.hold(&f.answers)
	defer end()
	go p.Missing(context.Background(), []*lettucecompat.Tracked{{Query: lettucecompat.Query{Key: "k", Field: g.Field()}, Owner: g}})
	eventually(t, "the answer is there", func() bool { return f.held.Load() > 0 })
	exits := make(chan ExitResult, 2)
	for left, s := range []*Owner{last, s} {
		go func() { exits <- s.Exit(context.Background()) }()
		eventually(t, "it is out", func() bool { return len(g.Owners()) == 1-left })
	}
	end()
	for range 2 {
		r := <-exits
		eventually(t, "the loss is notified", func() bool { return g.Loss() != nil })
		if l := g.Loss(); l == nil || r.Lost == nil || len(l.Of) != 2 {
			t.Errorf("the release: %+v, the loss: %+v", r, l)
		}
	}
}

// A message that the lock was deleted may come before the answer that gives the units.
func TestShared_AForcedReleaseBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p := newShares(t, c, 0, func(s *Settings) { s.Timeout = pace.Hang }) // the answer that is held up stays one
	rdb := client()
	k := p.Key("k", p.set)
	defer k.Done()
	mustGive(t, p.mustTake(t, writes))
	eventually(t, "it listens", p.wire.Listening)
	eventually(t, "it is free", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	end := f.hold(&f.answers)
	got := make(chan *Owner, 1)
	go func() { got <- p.mustTake(t, writes) }()
	eventually(t, "the units are its", func() bool { return rdb.Exists(t.Context(), "k").Val() == 1 })
	rdb.Del(t.Context(), "k")
	k.mu.Lock()
	n := k.conv.LastCommand().N
	k.mu.Unlock()
	p.Heard(lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: "k", N: n})
	end()
	s := <-got
	eventually(t, "it is lost", func() bool { return s.Loss() != nil })
	if l := s.Loss(); l.Reason != renewal.ReasonForced {
		t.Errorf("lost: %v", l.Reason)
	}
	s.Exit(context.Background())
}

// gone makes a renewal find that the units are gone.
func gone(t *testing.T, rdb *redis.Client, g *Held) {
	rdb.Del(t.Context(), "k")
	g.lease.Hurry()
}

// A reader with a Hold exits while others are notified of the loss, beside one that nobody knows: nothing waits for that one.
func TestShared_AnExitWhileOthersAreNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}})
	exited := make(chan struct{})
	s.Holder = notify(func(l *Loss) {
		go func() { s.Exit(context.Background()); close(exited) }()
		time.Sleep(20 * time.Millisecond) // as if this goroutine had lost its processor
	})
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Enter(t.Context(), 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	gone(t, rdb, s.g)
	select {
	case <-exited:
	case <-time.After(pace.Hang):
		t.Error("Exit does not return")
	}
	locked := make(chan struct{})
	go func() { k.mu.Lock(); defer k.mu.Unlock(); close(locked) }()
	select {
	case <-locked:
	case <-time.After(pace.Hang):
		t.Error("Key.mu is held, and with it the loop of the renewals")
	}
	k.Leave(1, 0)
	k.Done()
}

// A writer that comes in while others are notified of the loss of the grant before has a grant of its own, and is notified of its loss.
func TestShared_AGrantWhileOthersAreNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p, q, r := newShares(t, client(), 0, nil), newShares(t, client(), 0, nil), newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	other := q.mustTake(t, 1)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}})
	w := withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: queue.Refusable}})
	notices := make(chan *Loss, 1)
	w.Holder = notify(func(l *Loss) { notices <- l })
	in := make(chan error, 1)
	s.Holder = notify(func(l *Loss) {
		go s.Exit(context.Background())
		time.Sleep(50 * time.Millisecond) // as if this goroutine had lost its processor
	})
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	go func() { in <- k.Acquire(context.Background(), w, nil) }()
	eventually(t, "the writer waits in line", func() bool { return k.Units().InLine })
	gone(t, rdb, s.g)
	if err := <-in; err != nil {
		t.Fatal(err)
	}
	t.Logf("the writer is in: %v, grant %v after that of the reader", w.Err(), w.g.n-s.g.n)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	o, err := r.take(ctx, writes, 0)
	if err != nil {
		t.Logf("nobody else comes in beside the writer: %v", err)
		w.Exit(t.Context())
		other.Exit(t.Context())
		return
	}
	select {
	case l := <-notices:
		t.Logf("notified: %v", l.Reason)
	case <-time.After(pace.Hang):
		t.Errorf("another client writes, and the writer, which has not exited, was not notified: %v", w.Err().Reason)
	}
	mustGive(t, o)
	w.Exit(t.Context())
	other.Exit(t.Context())
}

// A call while the owners are being notified gives nothing: the conversation has yet to hear that the grant has ended.
func TestShared_S4_ACallWhileTheyAreNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	rdb := client()
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}})
	units := make(chan int64, 1)
	s.Holder = notify(func(*Loss) {
		k.mu.Lock()
		n := k.conv.LastCommand().N
		k.mu.Unlock()
		k.handle(conversation.Event{Kind: conversation.Called, N: n, Record: n, Units: writes, Lease: time.Second})
		units <- k.q.Demand().Units
	})
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	gone(t, rdb, s.g)
	if n := <-units; n != 0 {
		t.Errorf("the queue admits others by %d units of a grant that is lost", n)
	}
	s.Exit(t.Context())
	mustGive(t, p.mustTake(t, writes))
}

// What is held against a writer by Lock that has exited does not strike the next.
func TestShared_ARevokedWriterHasExited(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	w := withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: queue.NoNotify}, Holder: notify(func(*Loss) {})})
	if err := k.Acquire(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	next := make(chan *Owner, 1)
	go func() { next <- p.mustTake(t, writes) }()
	eventually(t, "the next one waits", func() bool { return k.q.Demand().Waiting == 1 })
	mustGive(t, w)
	n := <-next
	w.Revoke("watchdog") // the watchdog has looked it up before the exit
	time.Sleep(50 * time.Millisecond)
	if l := n.Err(); l != nil {
		t.Errorf("the next writer has lost the lock: %v", l.Reason)
	}
	n.Exit(t.Context())
}

// Whose units stay with the process does not wait for a command without an answer, whether or not anybody knows it by name.
func TestShared_AnExitBesideAShrink(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"a Hold": true, "Weighted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := fresh(t)
			c, f := client(), &holdUp{}
			c.AddHook(f)
			p := newShares(t, c, 10, long)
			k := p.Key("k", p.set)
			defer k.Done()
			a, d := p.mustTake(t, 2), p.mustTake(t, 2)
			exit := func() { k.Leave(2, 10) }
			if named {
				b := p.mustTake(t, 2)
				exit = func() { mustGive(t, b) }
			} else if err := k.Enter(t.Context(), queue.Refusable, 2, 10); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the call lease was renewed", func() bool { return a.g.lease.Renewals() > 0 })
			time.Sleep(50 * time.Millisecond)
			end := f.hold(&f.commands)
			defer end()
			mustGive(t, a)
			eventually(t, "a shrink is under way", func() bool { return f.held.Load() > 0 })
			k.sendAsync() // as one that comes or leaves
			begin := time.Now()
			exit()
			if took := time.Since(begin); !pace.Within(took, p.set.Timeout) {
				t.Errorf("after %v, though the units stay with the process", took)
			}
			end()
			d.Exit(t.Context())
		})
	}
}

// A Hold of as many permits as an RWMutex has units is no writer.
func TestShared_ManyPermitsDoNotWrite(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	for capacity, want := range map[int64]bool{0: true, writes: false} {
		p := newShares(t, client(), capacity, long)
		s := p.mustTake(t, writes)
		if s.whole() != want {
			t.Errorf("capacity %d: writes %v", capacity, !want)
		}
		mustGive(t, s)
	}
}

// Since when a process that was stopped cannot rely on units of its own limit: since that, and not since it looks.
func TestShared_AnOwnLimitIsSince(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, long)
	s := p.mustTake(t, 1)
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	s.Share().until.Store(int64(s.g.k.l.now() - time.Millisecond)) // the timer has not run yet
	if l := s.Err(); l == nil || !l.At.Equal(l.Deadline) {
		t.Errorf("%+v", l)
	}
	s.Exit(t.Context())
}

// Who leaves after a limit of its own returns when the units have gone back, as everybody does.
func TestShared_AnExitAfterItsOwnLimitWaits(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c, f := client(), &holdUp{}
	c.AddHook(f)
	p, q := newShares(t, c, 0, long), newShares(t, client(), 0, long)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}})
	k := p.Key("k", p.set)
	defer k.Done()
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	in := make(chan struct{})
	go func() { defer close(in); mustGive(t, q.mustTake(t, writes)) }()
	awaitTurnOver(t, k)
	s.bound(&Lease{For: time.Minute, Margin: time.Minute}) // is over
	eventually(t, "it has ended", func() bool { return s.Loss() != nil })
	end := f.hold(&f.commands)
	defer end()
	out := make(chan ExitResult, 1)
	go func() { out <- s.Exit(context.Background()) }()
	eventually(t, "the units go back", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.freeing != nil
	})
	var r ExitResult
	select {
	case r = <-out:
		t.Error("it has returned before")
	case <-time.After(20 * time.Millisecond):
		end()
		r = <-out
	}
	if r.Lost == nil {
		t.Errorf("%+v", r)
	}
	<-in
}

// A share that has ended by itself is not notified again when its process loses the units.
func TestShared_ALimitedShareIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	notices := make(chan *Loss, 9)
	s := withUnits(&Owner{Stay: queue.Stay{Need: 1, Kind: queue.Refusable}, Holder: notify(func(l *Loss) { notices <- l })})
	if err := k.Acquire(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return s.g.lease.Renewals() > 0 })
	s.bound(&Lease{For: time.Second, Margin: 900 * time.Millisecond})
	first := <-notices
	s.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	select {
	case second := <-notices:
		t.Errorf("notified of %v, and then of %v", first.Reason, second.Reason)
	case <-time.After(200 * time.Millisecond):
	}
	s.Exit(t.Context())
}

// Nobody is admitted in vain between a loss and what is made of it.
func TestShared_AWaiterSleepsWhileOthersAreNotified(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	v := withUnits(&Owner{Stay: queue.Stay{Need: writes, Kind: queue.Refusable}})
	var before, after uint32
	v.Holder = notify(func(*Loss) {
		before = k.q.Demand().Admissions
		go v.Exit(context.Background())
		time.Sleep(20 * time.Millisecond) // many owners, or other grants that are lost at the same moment
		after = k.q.Demand().Admissions
	})
	if err := k.Acquire(t.Context(), v, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call lease was renewed", func() bool { return v.g.lease.Renewals() > 0 })
	got := make(chan *Owner, 1)
	go func() { got <- p.mustTake(t, writes) }()
	eventually(t, "it waits", func() bool { return k.q.Demand().Waiting == 1 })
	v.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	mustGive(t, <-got)
	if n := after - before; n > 3 {
		t.Errorf("%d admissions in 20 ms, none of which counts", n)
	}
}

// A reader that was admitted, and finds that the grant is lost, leaves: that it was the last is noticed.
func TestShared_TheLastOneLeavesAgain(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	v := p.mustTake(t, writes)
	eventually(t, "the call lease was renewed", func() bool { return v.g.lease.Renewals() > 0 })
	w := &queue.Waiter{Stay: &queue.Stay{Kind: queue.NoNotify, Need: 1}}
	_, _, _ = k.q.Acquire(w)
	k.sendAsync()
	go v.Exit(context.Background())
	if _, err := k.q.Park(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	v.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
	eventually(t, "it is lost", k.u.lossy.Load)
	k.leaveUnits(k.l.now(), 1, 0) // as enter does
	k.sendAsync()
	if k.u.lossy.Load() {
		t.Error("the key counts as one with somebody inside who has lost it")
	}
	begin := time.Now()
	if err := k.Enter(t.Context(), 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > beforeTheLease {
		t.Errorf("in after %v, though nobody was inside", d)
	}
	k.Leave(1, 0)
}

// Who was notified of a loss, and has not left, costs those nothing who come after it.
func TestShared_ALossIsOverWhenOthersHaveCome(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newShares(t, client(), 0, longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	late := p.mustTake(t, 1)
	client().Del(t.Context(), "k")
	late.g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone})
	eventually(t, "it is lost", k.u.lossy.Load)
	if err := k.Enter(t.Context(), 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	k.sendAsync()
	if k.u.lossy.Load() {
		t.Error("the key counts as one with somebody inside who has lost it")
	}
	k.Leave(1, 0)
	if r := late.Exit(t.Context()); r.Lost == nil {
		t.Errorf("%+v", r)
	}
}
