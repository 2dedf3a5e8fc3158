package anteroom

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// A goroutine that finds a loss has ended the contexts of all Holds when it returns, also where the goroutine that concludes losses
// has begun to end them, and was not run further.
func TestAHoldsContextHasEndedForAnyCaller(t *testing.T) {
	ctx := context.Background()
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(ctx) }()
	mu := m.Mutex("k")
	outer, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := mu.Acquire(outer.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, two := outer.Context().(*holdContext).Context, inner.Context().(*holdContext).Context
	end := outer.t.ctx.end
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	outer.t.ctx.end = func(cause error) {
		if !first.Swap(true) {
			close(begun)
			<-goOn // as if it were descheduled here
			defer close(done)
		}
		end(cause)
	}
	outer.t.owner.Held().Lease().Lose(renewal.Cause{Reason: renewal.ReasonForced})
	<-begun
	if inner.Err() == nil {
		t.Error("the loss is not seen")
	}
	if one.Err() == nil || two.Err() == nil {
		t.Error("Err has reported the loss, and a context has not ended")
	}
	close(goOn)
	<-done
	cause := context.Cause(one)
	outer.t.end(errors.New("another"))
	if !errors.Is(cause, ErrLost) || context.Cause(one) != cause || context.Cause(two) != cause { //nolint:errorlint // identity is meant
		t.Errorf("the causes are %v and %v, want the first one, %v", context.Cause(one), context.Cause(two), cause)
	}
	_, _ = inner.Release(ctx), outer.Release(ctx)
}

// The owner hears of a loss before the queue moves on, so before anybody else can get the lock.
func TestALossIsNotifiedBeforeTheQueueMovesOn(t *testing.T) {
	ctx := context.Background()
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(ctx) }()
	h, err := m.Mutex("k").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := h.Context().Done()
	q, end := h.t.key().Queue(), h.t.ctx.end
	var state queue.State
	h.t.ctx.end = func(cause error) {
		state = q.Word().State()
		end(cause)
	}
	h.t.owner.Held().Lease().Lose(renewal.Cause{Reason: renewal.ReasonForced})
	<-ended
	if state != queue.Owned {
		t.Errorf("when the owner was notified, the queue was %v, want %v", state, queue.Owned)
	}
	_ = h.Release(ctx)
}

// A context that belongs to a hold is asked after the deadline, before anybody has reported it.
func TestHold_ItsContextComparesWithTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := insideServer(t, Config{})
		defer func() { _ = m.Close(context.Background()) }()
		h, err := m.Mutex("k").Acquire(context.Background(), Lease(200*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		m.leases.Stop() // nobody notifies
		ctx := h.Context()
		time.Sleep(time.Until(h.Deadline()) - time.Nanosecond)
		if err := ctx.Err(); err != nil {
			t.Errorf("before the deadline: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if ctx.Err() == nil {
			t.Error("the context of a lock that is over has not ended")
		}
		_ = h.Release(context.Background())
	})
}

// A loss is concluded and not reported yet when the owner releases. The release can't be sent as one, and nothing must stay.
func TestALossConcludedBesideTheReleaseLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		reason renewal.Reason
		opts   []AcquireOption
	}{
		"cancelled by the watchdog":       {renewal.ReasonWatchdog, nil},
		"a fixed lease, which has passed": {renewal.ReasonDeadline, []AcquireOption{Lease(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				m, s := insideServer(t, Config{})
				defer func() { _ = m.Close(ctx) }()
				h, err := m.Mutex("k").Acquire(ctx, c.opts...)
				if err != nil {
					t.Fatal(err)
				}
				until := make(chan struct{})
				HoldUpNotices(m, until)
				synctest.Wait()
				if !h.t.owner.Held().Lease().Lose(renewal.Cause{Reason: c.reason}) {
					t.Fatal("not lost")
				}
				if err := h.Release(ctx); !errors.Is(err, ErrLost) {
					t.Errorf("release: %v", err)
				}
				close(until)
				time.Sleep(5 * time.Second)
				if s.Exists("k") {
					t.Error("left in Redis")
				}
				NothingLeft(t, m)
			})
		})
	}
}

// A grant whose lease has ended, because its turn is being ended or its release is under way, is not among those that
// the watchdog visits: it would put its next visit off for a period.
func TestWatched_AGrantBetweenTwoLeasesIsNotListed(t *testing.T) {
	m := insideManager(t, Config{})
	mu := m.Mutex("k")
	mu.Lock()
	g := mu.find().Held()
	found := func() watchdog.Facts {
		facts := []watchdog.Facts{{ID: g.Number()}}
		(&services{m: m}).LookupAll(facts)
		return facts[0]
	}
	if f := found(); f.ID != g.Number() || f.Lost {
		t.Errorf("held: %+v", f)
	}
	g.Lease().End()
	if f := found(); f.ID != 0 {
		t.Errorf("without a lease: %+v", f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Close(ctx)
}
