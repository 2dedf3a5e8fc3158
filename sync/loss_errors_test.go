package anteroom_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// outcome fails the test unless err is an *Error with that outcome and one of wants.
func outcome(t *testing.T, err error, o observe.Outcome, wants ...error) {
	t.Helper()
	e, isError := errors.AsType[*anteroom.Error](err)
	if !isError || e.Outcome != o {
		t.Fatalf("%v (%T), want the outcome %v", err, err, o)
	}
	for _, want := range wants {
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
}

// docs/guarantees.md §2: an acquire whose answer comes after its own deadline is not a
// grant, and what it left in Redis is removed.
func TestAnAnswerAfterTheDeadlineIsNoGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 300 * time.Millisecond})
		ok(t, acquire(t, mu).Release(bg))
		s.net.Delay(280 * time.Millisecond) // more than the lease less its margin
		ctx, cancel := context.WithTimeout(bg, 2*time.Second)
		defer cancel()
		if h, err := mu.Acquire(ctx); err == nil {
			t.Fatalf("granted: %v left", h.TTL())
		}
		s.net.Heal()
		h := acquire(t, mu)
		if !h.Held() {
			t.Fatal(h.Err())
		}
		ok(t, h.Release(bg))
		s.nothingLeft(t, "k", 2*time.Second)
	})
}

// What each loss says of itself, to people and to errors.Is.
func TestALossSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		mine := s.network()
		m, _ := manager(t, s.clientOver(mine), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		warm := acquire(t, m.Mutex("warm")) // the own channel is subscribed
		synctest.Wait()
		said := func(h *anteroom.Hold, text string, wants ...error) {
			t.Helper()
			<-h.Context().Done()
			cause := context.Cause(h.Context())
			outcome(t, cause, observe.OutcomeLost, append(wants, anteroom.ErrLost)...)
			for _, err := range []error{cause, h.Err(), h.Extend(bg, time.Second), h.Release(bg)} {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%v, want it to say %q", err, text)
				}
			}
		}
		gone := acquire(t, m.Mutex("gone"))
		s.Del("gone")
		said(gone, "Redis no longer has it")
		forced := acquire(t, m.Mutex("forced"))
		must[[]string](t)(other.ForceRelease(bg, "forced"))
		said(forced, "released by force")
		late := acquire(t, m.Mutex("late"))
		mine.BlackHole()
		said(late, "its lease ended without a confirmed renewal")
		mine.Heal()
		_ = warm.Release(bg)
		closed := acquire(t, m.Mutex("closed"))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"closed" is still held`) {
			t.Fatal(err)
		}
		said(closed, "the manager was closed", anteroom.ErrClosed)
		time.Sleep(time.Minute) // what carried the late release ends by itself
	})
}

// A context that carries a hold enters again only where that is right.
func TestEnteringAgainIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, err := mu.Acquire(ctx)
		outcome(t, err, observe.OutcomeCancelled, anteroom.ErrNotAcquired, context.Canceled)
		_, err = mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true}).Acquire(h.Context())
		outcome(t, err, observe.OutcomeMistake, anteroom.ErrConfig)
		var inner []*anteroom.Hold
		for range 254 {
			inner = append(inner, must[*anteroom.Hold](t)(mu.Acquire(h.Context())))
		}
		_, err = mu.Acquire(h.Context())
		outcome(t, err, observe.OutcomeFailed, anteroom.ErrReentryLimit)
		for _, h := range inner {
			ok(t, h.Release(bg))
		}
		if !h.Held() {
			t.Fatal(h.Err())
		}
		// Lost: the inner hold cannot be had, and a nested release says so.
		one := must[*anteroom.Hold](t)(mu.Acquire(h.Context()))
		s.Del("k")
		<-h.Context().Done()
		_, err = mu.Acquire(h.Context())
		outcome(t, err, observe.OutcomeLost, anteroom.ErrLost)
		outcome(t, one.Release(bg), observe.OutcomeLost, anteroom.ErrLost)
		outcome(t, h.Release(bg), observe.OutcomeLost, anteroom.ErrLost)
		// Released: its context queues like anybody else.
		h = acquire(t, mu)
		values := h.Context()
		ok(t, h.Release(bg))
		_, err = mu.Acquire(values)
		outcome(t, err, observe.OutcomeCancelled, anteroom.ErrNotAcquired)
	})
}

// Lock, too, enters again only with the same configuration, and TryLock not into a
// lock that is lost.
func TestLockingAgainIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		mu.Lock()
		func() {
			defer func() {
				err, _ := recover().(error)
				outcome(t, err, observe.OutcomeMistake, anteroom.ErrConfig)
			}()
			mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true}).Lock()
		}()
		if mu.Holds() != 1 || !mu.TryLockFor(0) || mu.Holds() != 2 {
			t.Fatalf("%d holds", mu.Holds())
		}
		mu.Unlock()
		s.Del("k")
		time.Sleep(15 * time.Second) // found by the renewal
		if mu.Held() || mu.TryLock() || mu.TryLockFor(time.Second) || mu.Holds() != 1 {
			t.Fatalf("held %v, %d holds", mu.Held(), mu.Holds())
		}
		mu.Unlock()
	})
}

// Extend without a usable answer: the deadline stays, and the error says whether Redis
// may have heard it.
func TestExtendWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"), anteroom.Lease(10*time.Second))
		deadline := h.Deadline()
		s.net.BlackHole()
		outcome(t, h.Extend(bg, 20*time.Second), observe.OutcomeUnknown, anteroom.ErrUnknown, anteroom.ErrUnavailable)
		s.net.Refuse()
		s.net.CloseAll()
		outcome(t, h.Extend(bg, 20*time.Second), observe.OutcomeUnavailable, anteroom.ErrUnavailable)
		if h.Deadline() != deadline || !h.Held() {
			t.Fatalf("deadline moved by %v, held %v", h.Deadline().Sub(deadline), h.Held())
		}
		s.net.Heal()
		ok(t, h.Extend(bg, 20*time.Second))
		ok(t, h.Release(bg))
	})
}

// Release's context bounds how long the caller waits, never whether it is sent.
func TestReleaseIsSentAlthoughItsCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		var wg sync.WaitGroup
		for i := range 8 { // so many connections are open and idle then
			wg.Go(func() { ok(t, acquire(t, m.Mutex(strconv.Itoa(i))).Release(bg)) })
		}
		wg.Wait()
		h := acquire(t, m.Mutex("k"))
		synctest.Wait()
		s.net.HoldReplies()
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		outcome(t, h.Release(ctx), observe.OutcomeUnknown, anteroom.ErrUnknown, context.DeadlineExceeded)
		if d := time.Since(start); d != 50*time.Millisecond {
			t.Fatalf("the caller was kept for %v", d)
		}
		synctest.Wait()
		if s.Exists("k") {
			t.Fatal("the release was not sent")
		}
		s.net.Heal()
	})
}

// A release that could not be sent at all is not unknown, and is repeated until it is
// confirmed.
func TestAReleaseThatCannotBeSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		time.Sleep(time.Second) // it is renewed for the first time
		s.net.Refuse()
		s.net.CloseAll()
		for { // until the client has dropped its dead connections
			if _, err := m.Inspect(bg, "k"); !errors.Is(err, anteroom.ErrUnknown) {
				break
			}
		}
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		outcome(t, h.Release(ctx), observe.OutcomeUnavailable, anteroom.ErrUnavailable)
		if !s.Exists("k") {
			t.Fatal("the fault did not do what the test wants")
		}
		s.net.Heal()
		s.nothingLeft(t, "k", 5*time.Second)
	})
}

// A second Close waits for the first one, within its own context.
func TestASecondCloseIsFreeWhenItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		first := make(chan error, 1)
		go func() { first <- m.Close(bg) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		outcome(t, m.Close(ctx), observe.OutcomeFailed, anteroom.ErrInUse, context.DeadlineExceeded)
		ok(t, h.Release(bg))
		ok(t, <-first)
		ok(t, m.Close(bg))
	})
}

// Do: its caller's end reaches the function, whatever ended it, and an acquire that
// fails comes back as it is.
func TestDoPassesItsCallersEndOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(bg)
		err := mu.Do(ctx, func(inner context.Context) error {
			cancel(stop)
			<-inner.Done()
			return context.Cause(inner)
		})
		if err != stop { //nolint:errorlint // nothing is to be joined to it
			t.Fatal(err)
		}
		err = mu.Do(ctx, func(context.Context) error { t.Error("called"); return nil })
		outcome(t, err, observe.OutcomeCancelled, anteroom.ErrNotAcquired, context.Canceled)
		if s.Exists("k") {
			t.Fatal("still locked")
		}
	})
}

// Inspect and ForceRelease in an outage: the first changes nothing, so nothing is
// unknown about it.
func TestInspectWithoutRedis(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		s.net.BlackHole()
		_, err := m.Inspect(bg, "k")
		outcome(t, err, observe.OutcomeUnknown, anteroom.ErrUnavailable)
		_, err = m.ForceRelease(bg, "k")
		outcome(t, err, observe.OutcomeUnknown, anteroom.ErrUnknown, anteroom.ErrUnavailable)
		s.net.Heal()
	})
}

// Events that nobody takes are dropped and counted, and no lock waits for them.
func TestEventsAreDroppedRatherThanWaitedFor_Lab(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		obs := &dropped{}
		slow := make(chan struct{})
		m, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(obs), OnEvent: func(observe.Event) { <-slow }})
		const holds = 1100 // more than wait for the callback
		var all []*anteroom.Hold
		for range holds {
			all = append(all, acquire(t, m.Mutex(strings.Repeat("k", len(all)+1))))
		}
		s.FlushAll()
		for _, h := range all {
			<-h.Context().Done() // notified, although no event is taken
		}
		synctest.Wait()
		if n := obs.n.Load(); n < holds-1024-1 {
			t.Errorf("%d events were dropped", n)
		}
		close(slow)
	})
}

// dropped counts events that were dropped.
type dropped struct {
	n atomic.Int64
}

func (d *dropped) EventRaised(_ observe.EventKind, dropped bool) {
	if dropped {
		d.n.Add(1)
	}
}

// A loss that is concluded and not reported yet, because the report of others is under way,
// has its true reason and moment in every answer: a caller that trusts Since trusts that the
// work before it was protected.
func TestALossThatIsNotNotifiedYetSaysWhyAndSinceWhen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		first, asked, released := acquire(t, m.Mutex("first")), acquire(t, m.Mutex("asked")), acquire(t, m.Mutex("released"))
		time.Sleep(time.Second) // all are renewed for the first time
		until := make(chan struct{})
		anteroom.HoldUpNotices(m, until)
		synctest.Wait() // the own channel is subscribed
		for _, h := range []*anteroom.Hold{first, asked, released} {
			time.Sleep(time.Second)
			must[[]string](t)(m.ForceRelease(bg, h.Key()))
			synctest.Wait()
		}
		if ev := rec.of(observe.EventLost); len(ev) > 0 {
			t.Fatalf("reported already: %+v", ev)
		}
		time.Sleep(time.Second)
		for what, err := range map[string]error{
			"Err": asked.Err(), "the cause": context.Cause(asked.Context()), "Release": released.Release(bg),
		} {
			outcome(t, err, observe.OutcomeLost, anteroom.ErrLost)
			e, _ := errors.AsType[*anteroom.Error](err)
			if ago := time.Since(e.Since); ago < time.Second || ago > 2*time.Second || !strings.Contains(err.Error(), "released by force") {
				t.Errorf("%s: %v, since %v ago", what, err, ago)
			}
		}
		close(until)
		synctest.Wait()
		if ev := rec.of(observe.EventLost); len(ev) != 3 {
			t.Fatalf("%+v", ev)
		}
		_ = first.Release(bg)
		_ = asked.Release(bg)
	})
}

// The words of Snapshot while Redis hangs: who waits, how, and for what.
func TestSnapshotWhileRedisHangs(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		lost := m.Mutex("lost")
		lost.Lock()
		defer lost.Unlock()
		s.Del("lost")
		time.Sleep(15 * time.Second) // found by the renewal
		releasing := acquire(t, m.Mutex("releasing"))
		s.net.BlackHole()
		var wg sync.WaitGroup
		for _, ask := range []func(*anteroom.Mutex){
			func(mu *anteroom.Mutex) { _, _ = mu.TryAcquire(bg) },
			func(mu *anteroom.Mutex) { mu.TryLock() },
			func(mu *anteroom.Mutex) { mu.TryLockFor(time.Second) },
			func(mu *anteroom.Mutex) {
				ctx, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				_, _ = mu.Acquire(ctx)
			},
		} {
			wg.Go(func() { ask(m.Mutex("acquiring")) })
			synctest.Wait() // in this order
		}
		wg.Go(func() { _ = releasing.Release(bg) })
		synctest.Wait()
		var states, kinds []string
		for _, state := range m.Snapshot() {
			states = append(states, state.Key+" "+state.Status)
			for _, w := range state.Waiters {
				kinds = append(kinds, w.Kind)
			}
		}
		if got := strings.Join(states, ", "); got != "acquiring acquiring, lost lost, releasing releasing" {
			t.Errorf("states: %s", got)
		}
		if got := strings.Join(kinds, " "); got != "try lock hold" {
			t.Errorf("waiters: %s", got)
		}
		s.net.Heal()
		wg.Wait()
	})
}

// The head of the queue leaves while its attempt has no answer, and the next one wants
// another lease: the open field is given up and removed, and is never in the way.
func TestTheNextHeadWantsAnotherLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		var wg sync.WaitGroup
		for i := range 8 { // so many connections are open and idle then
			wg.Go(func() { ok(t, acquire(t, m.Mutex(strconv.Itoa(i))).Release(bg)) })
		}
		wg.Wait()
		synctest.Wait()
		s.net.HoldReplies() // Redis grants, the answer hangs
		ctx, cancel := context.WithTimeout(bg, 1500*time.Millisecond)
		defer cancel()
		first := make(chan error, 1)
		go func() { _, err := mu.Acquire(ctx); first <- err }()
		synctest.Wait()
		next := make(chan *anteroom.Hold, 1)
		go func() { next <- acquire(t, mu, anteroom.Lease(5*time.Second)) }()
		err := <-first
		if !errors.Is(err, anteroom.ErrUnavailable) || !s.Exists("k") {
			t.Fatalf("%v; in Redis: %v", err, s.Exists("k"))
		}
		time.Sleep(1500 * time.Millisecond) // a try for the next one
		s.net.Heal()
		start := time.Now()
		h := <-next
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("waited %v behind our own leftover", d)
		}
		time.Sleep(time.Second) // what is cleaned up is cleaned up
		if fields, _ := s.HKeys("k"); len(fields) != 1 || fields[0] != h.Holder() || s.TTL("k") > 5*time.Second {
			t.Errorf("in Redis: %v for %v, want %s", fields, s.TTL("k"), h.Holder())
		}
		ok(t, h.Release(bg))
		s.nothingLeft(t, "k", time.Minute)
	})
}

// While reporting is stopped, which nothing of a user's can cause, the watchdog
// restarts it: renewals continue, and what was lost is notified.
func TestTellingThatStandsStillIsRestarted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		first, kept := acquire(t, m.Mutex("first")), acquire(t, m.Mutex("kept"))
		time.Sleep(time.Second) // both are renewed for the first time
		outer := acquire(t, m.Mutex("nested"), anteroom.Lease(time.Second))
		inner := must[*anteroom.Hold](t)(m.Mutex("nested").Acquire(outer.Context()))
		until := make(chan struct{})
		anteroom.HoldUpNotices(m, until)
		synctest.Wait()
		must[[]string](t)(other.ForceRelease(bg, "first")) // nobody is notified any more
		time.Sleep(950 * time.Millisecond)                 // the deadline of the fixed lease
		if ev := rec.of(observe.EventLost); len(ev) > 0 {
			t.Fatalf("reported already: %+v", ev)
		}
		// Not reported, not even concluded, and yet an inner release does not say that all is well.
		outcome(t, inner.Release(bg), observe.OutcomeLost, anteroom.ErrLost)
		ok(t, outer.Release(bg)) // Redis still has the field, which is what counts in the end
		time.Sleep(2 * time.Minute)
		if !kept.Held() || s.TTL("kept") < 15*time.Second {
			t.Errorf("held %v, TTL %v: %+v", kept.Held(), s.TTL("kept"), rec.events)
		}
		ok(t, kept.Release(bg))
		close(until)
		_ = first.Release(bg)
	})
}

// Close gives a hold up, and its release comes before it was notified: it is sent once, and
// says that the lock was not held to the end.
func TestAReleaseBeforeCloseHasReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		first, h := acquire(t, m.Mutex("first")), acquire(t, m.Mutex("k"))
		until := make(chan struct{})
		anteroom.HoldUpNotices(m, until)
		synctest.Wait()
		must[[]string](t)(other.ForceRelease(bg, "first"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- m.Close(ctx) }()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		outcome(t, h.Err(), observe.OutcomeLost, anteroom.ErrLost, anteroom.ErrClosed)
		outcome(t, h.Release(bg), observe.OutcomeLost, anteroom.ErrLost, anteroom.ErrClosed)
		synctest.Wait()
		if s.Exists("k") {
			t.Error("the release was not sent")
		}
		close(until)
		if err := <-closed; err == nil {
			t.Error("Close names nothing that it gave up")
		}
		_ = first.Release(bg)
		time.Sleep(time.Minute) // what carried the late release ends by itself
	})
}

// A long key is cut where people read it.
func TestALongKeyIsCutInErrors(t *testing.T) {
	e := &anteroom.Error{Op: "acquire", Key: strings.Repeat("k", 1000), Err: anteroom.ErrNotAcquired}
	if text := e.Error(); len(text) > 200 || !strings.Contains(text, "(1000 bytes)") {
		t.Fatal(text)
	}
}
