package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// hooked is an Observer that calls f in one of its methods.
type hooked struct {
	method string
	f      func()
}

func (o hooked) call(method string) {
	if o.method == method {
		o.f()
	}
}

func (o hooked) Acquired(string, observe.Outcome, time.Duration) {
	o.call("Acquired")
}

func (o hooked) Released(string, observe.Outcome, time.Duration) { o.call("Released") }

func (o hooked) Renewed(string, observe.Outcome, time.Duration) { o.call("Renewed") }

func (o hooked) Lost(string, observe.LossReason) { o.call("Lost") }

func (o hooked) Command(string, string, time.Duration) { o.call("Command") }

func (o hooked) Checked(string, string) { o.call("Checked") }

func (o hooked) Called(string, string) { o.call("Called") }

func (o hooked) Subscription(bool) { o.call("Subscription") }

func (o hooked) EventRaised(observe.EventKind, bool) { o.call("EventRaised") }

// callbacks are the places where a Manager runs a program's code on goroutines of its own,
// or while a lock operation is under way.
var callbacks = []string{"OnEvent", "Acquired", "Released", "Renewed", "Lost", "Command", "Checked", "Called", "Subscription", "EventRaised"}

// callingBack returns a configuration in which callback calls f, and everything happens
// that calls it.
func callingBack(callback string, f func()) anteroom.Config {
	cfg := anteroom.Config{Observer: hooks(hooked{method: callback, f: f}), Defaults: anteroom.LockConfig{LeaseTime: 2 * time.Second, WatchdogPeriod: time.Second}}
	if callback == "OnEvent" {
		cfg.OnEvent = func(observe.Event) { f() }
	}
	return cfg
}

// eventful lets a Manager do all that its callbacks are about.
func eventful(s *embedded, m *anteroom.Manager) {
	go func() {
		if h, err := m.Mutex("lost").Acquire(bg); err == nil {
			s.Del("lost")
			<-h.Context().Done()
			_ = h.Release(bg)
		}
	}()
	if h, err := m.Mutex("k").Acquire(bg); err == nil {
		time.Sleep(3 * time.Second)
		_ = h.Release(bg)
	}
	callIn(s, m)
}

// callIn has m wait for a lock that another process holds, and calls it.
func callIn(s *embedded, m *anteroom.Manager) {
	s.HSet("called", "other:1700000000000000", "1")
	s.SetTTL("called", time.Hour)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if h, err := m.Mutex("called").Acquire(bg); err == nil {
			_ = h.Release(bg)
		}
	}()
	s.settle()
	if at := s.spots("called"); len(at) == 1 { // as the release does that frees it
		field := at[0].client + ":" + strconv.FormatUint(at[0].n, 10)
		s.Del("called")
		s.Del(lineOf("called"))
		s.HSet("called", field, "1")
		s.SetTTL("called", 2*time.Second)
		s.Publish("anteroom:client:"+at[0].client, fmt.Sprintf("called %s %d 1 0 0 called", at[0].word, at[0].n))
	}
	<-done
}

// A callback that does not return keeps Close no longer than its context says.
func TestClose_EndsWithItsContextWhateverACallbackDoes(t *testing.T) {
	for _, callback := range callbacks {
		t.Run(callback, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				until, called := make(chan struct{}), make(chan struct{})
				var once sync.Once
				m, _ := manager(t, s.client(), callingBack(callback, func() {
					once.Do(func() { close(called) })
					<-until
				}))
				go eventful(s, m)
				<-called
				ctx, cancel := context.WithTimeout(bg, 2*time.Second)
				defer cancel()
				start := time.Now()
				closed := make(chan error, 1)
				go func() { closed <- m.Close(ctx) }()
				time.Sleep(2500 * time.Millisecond)
				select {
				case err := <-closed:
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v", err)
					}
				default:
					t.Errorf("Close has not returned after %v", time.Since(start))
				}
				close(until)
				if err := m.Close(bg); err != nil && !errors.Is(err, anteroom.ErrClosed) { // ends when the callback does
					t.Error(err)
				}
				time.Sleep(time.Minute) // what carries late releases ends by itself
			})
		})
	}
}

// Close that a callback calls does not wait for that callback.
func TestClose_InsideACallback(t *testing.T) {
	for _, callback := range callbacks {
		t.Run(callback, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				var m *anteroom.Manager
				var once sync.Once
				made, returned := make(chan struct{}), make(chan error, 1)
				m, _ = manager(t, s.client(), callingBack(callback, func() {
					once.Do(func() {
						<-made
						returned <- m.Close(bg)
					})
				}))
				close(made)
				eventful(s, m)
				synctest.Wait()
				select {
				case err := <-returned:
					if !errors.Is(err, anteroom.ErrInUse) || !strings.Contains(err.Error(), "callback") {
						t.Errorf("%v", err)
					}
				default:
					t.Fatal("Close has not returned")
				}
				ctx, cancel := context.WithTimeout(bg, 10*time.Second)
				defer cancel()
				ok(t, m.Close(ctx)) // the one that the callback began
			})
		})
	}
}

// A deadline of a context counts for what a Close inside a callback has begun, its
// cancelling does not: the callback is over long before that.
func TestClose_InsideACallbackKeepsTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var m *anteroom.Manager
		m, _ = manager(t, s.client(), anteroom.Config{OnEvent: func(e observe.Event) {
			if e.Kind == observe.EventLost {
				ctx, cancel := context.WithTimeout(bg, 3*time.Second)
				defer cancel()
				_ = m.Close(ctx)
			}
		}})
		h, fixed := acquire(t, m.Mutex("k")), acquire(t, m.Mutex("fixed"), anteroom.Lease(time.Second))
		<-fixed.Context().Done()
		_ = fixed.Release(bg)
		time.Sleep(2 * time.Second)
		if err := h.Err(); err != nil {
			t.Fatalf("given up before the deadline: %v", err)
		}
		time.Sleep(2 * time.Second)
		outcome(t, h.Err(), observe.OutcomeLost, anteroom.ErrLost, anteroom.ErrClosed)
		_ = h.Release(bg)
	})
}

// Nothing is held and nothing is under way: an ended context is no reason to complain.
func TestClose_WithAnEndedContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		synctest.Wait()
		ctx, cancel := context.WithCancel(bg)
		cancel()
		ok(t, m.Close(ctx))
	})
}

// A Close that gives a hold up leaves no goroutine behind when it returns, however short it
// is after the last command.
func TestClose_UnderAHoldLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		defer runtime.KeepAlive(h)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		outcome(t, m.Close(ctx), observe.OutcomeFailed, anteroom.ErrClosed)
	})
}

// Who waits for Close learns what it waits for, once.
func TestClose_SaysWhatItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, rec := manager(t, s.client(), anteroom.Config{Logger: j.logger(), RecordCallSites: true})
		var holds []*anteroom.Hold
		for _, key := range []string{"anna", "berta"} {
			holds = append(holds, acquire(t, mutex(t, m, anteroom.LockConfig{Key: key, Name: "orders"})))
		}
		holds = append(holds, acquire(t, m.Mutex("carla")))
		closed := make(chan error, 1)
		go func() { closed <- m.Close(bg) }()
		time.Sleep(4900 * time.Millisecond)
		if ev := rec.of(observe.EventClosing); len(ev) != 0 {
			t.Fatalf("too early: %+v", ev)
		}
		time.Sleep(time.Minute)
		ev, lines := rec.of(observe.EventClosing), j.lines(observe.EventClosing)
		if len(ev) != 1 || len(lines) != 1 {
			t.Fatalf("%d events, %d records", len(ev), len(lines))
		}
		const text = "Close has waited for 5s for 3 holds: 2 of class orders, 1 of class default"
		if ev[0].Text != text || attrs(lines[0])["text"] != text || !strings.Contains(ev[0].CallSite, "helpers_test.go") {
			t.Errorf("%+v\n%s", ev[0], lines[0])
		}
		for _, h := range holds {
			ok(t, h.Release(bg))
		}
		ok(t, <-closed)
	})
}

// waitBy lets a caller of Lock or Acquire wait for mu, on a goroutine of its own. in is closed where Lock has come in;
// ended has what Acquire returned.
func waitBy(how string, mu *anteroom.Mutex) (in <-chan struct{}, ended <-chan error) {
	entered, returned := make(chan struct{}), make(chan error, 1)
	go func() {
		if how == "Acquire" {
			_, err := mu.Acquire(bg)
			returned <- err
			return
		}
		// It parks like Lock, but for its limit, so that the test can end.
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		if anteroom.LockUntil(ctx, mu) {
			close(entered)
			mu.Unlock()
		}
	}()
	return entered, returned
}

// An end of turn is under way when Close begins, and Redis lets the turn continue: a Lock that
// is parked does not come in, an Acquire is notified, and the lock is released.
func TestClose_BesideTheEndOfATurn(t *testing.T) {
	for _, how := range []string{"Lock", "Acquire"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				held := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
				m, _ := manager(t, held, anteroom.Config{})
				mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: 1})
				first := acquire(t, mu)
				second := make(chan *anteroom.Hold, 1)
				go func() { h, _ := mu.Acquire(bg); second <- h }()
				synctest.Wait()
				in, ended := waitBy(how, mu)
				synctest.Wait()
				ok(t, first.Release(bg)) // the second has used up the turn's only hand-off
				h := <-second
				time.Sleep(1100 * time.Millisecond) // nobody has said for a second that nobody waits: it asks
				held.armed.Store(true)
				released := make(chan error, 1)
				go func() { released <- h.Release(bg) }()
				<-held.at // Redis has let the turn continue
				closed := make(chan error, 1)
				go func() { closed <- m.Close(bg) }()
				synctest.Wait()
				close(held.let)
				synctest.Wait()
				select {
				case <-in:
					t.Error("a parked Lock came in after Close had begun")
				default:
				}
				ok(t, <-released)
				err := <-closed
				if how == "Acquire" {
					if err := <-ended; !errors.Is(err, anteroom.ErrClosed) {
						t.Errorf("the Acquire that waited: %v", err)
					}
					ok(t, err)
				} else if !errors.Is(err, anteroom.ErrClosed) || !strings.Contains(err.Error(), "parked") {
					t.Errorf("Close does not name the caller that stays parked: %v", err)
				}
				if s.Exists("k") {
					t.Error("not released")
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// A release that is under way when Close gives up waiting still has what it needs: here Redis
// lets the turn continue, and the lock is released after that.
func TestClose_WithAnEndedContextBesideTheEndOfATurn(t *testing.T) {
	for _, how := range []string{"Lock", "Acquire"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				held := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
				m, _ := manager(t, held, anteroom.Config{})
				mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffTime: time.Millisecond})
				h := acquire(t, mu)
				in, ended := waitBy(how, mu)
				time.Sleep(1100 * time.Millisecond) // nobody has said for a second that nobody waits: it asks
				held.armed.Store(true)
				released := make(chan error, 1)
				go func() { released <- h.Release(bg) }()
				<-held.at // Redis has let the turn continue
				ctx, cancel := context.WithCancel(bg)
				cancel()
				closed := make(chan error, 1)
				go func() { closed <- m.Close(ctx) }()
				synctest.Wait()
				close(held.let)
				outcome(t, <-closed, observe.OutcomeFailed, anteroom.ErrClosed)
				ok(t, <-released)
				if s.settle(); s.Exists("k") {
					t.Errorf("left in Redis: %v", s.holders("k"))
				}
				select {
				case <-in:
					t.Error("a parked Lock came in after Close had begun")
				case err := <-ended:
					if how != "Acquire" || !errors.Is(err, anteroom.ErrClosed) {
						t.Errorf("who waited: %v", err)
					}
				default:
					if how == "Acquire" {
						t.Error("an Acquire was not ended by Close")
					}
				}
				time.Sleep(2 * time.Hour) // a Lock's limit ends
			})
		})
	}
}
