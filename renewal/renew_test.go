package renewal_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

func TestRenewal_ADay(t *testing.T) {
	s, k := &sender{quiet: true}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		l := m.Add(spec(1, k))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		equal(t, "sends", s.count(), 8640)
		equal(t, "renewals", l.Renewals(), 8640)
		equal(t, "losses", k.total(), 0)
		equal(t, "next due", time.Until(l.NextDue()), 10*time.Second)
		equal(t, "remaining", l.Remaining(m.Now()), 28500*time.Millisecond)
		equal(t, "last confirmed", time.Since(l.LastConfirmed()), 0)
	})
}

func TestRenewal_FirstIsJitteredLaterKeepTheRhythm(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s, Rand: func() float64 { return 0.5 }}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			r := renewed(items)
			time.Sleep(300 * time.Millisecond) // a slow answer does not stretch the rhythm
			return r
		}
		l := m.Add(spec(1, k))
		time.Sleep(39100 * time.Millisecond)
		synctest.Wait()
		for i, b := range s.sent() {
			equal(t, "sent", b.at.Sub(begin), 9*time.Second+time.Duration(i)*10*time.Second)
		}
		equal(t, "sends", s.count(), 4)
		equal(t, "deadline counts from the last answered send", l.Deadline().Sub(begin), 29*time.Second+28500*time.Millisecond)
	})
}

func TestRenewal_TenThousandLeases_Lab(t *testing.T) {
	const n = 10_000
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s, Rand: rand.New(rand.NewPCG(1, 2)).Float64}, func(t *testing.T, m *renewal.Manager) {
		for i := range n {
			m.Add(spec(i, k))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// The first period is at least 0.8 of its length, a later one 0.975 or, mostly,
		// the whole: leases that were sent together stay together. So a lease is renewed
		// 60 or 61 times in ten minutes.
		equal(t, "losses", k.total(), 0)
		if got := s.count(); got < 60*n || got > 61*n {
			t.Errorf("%d renewals, want between %d and %d", got, 60*n, 61*n)
		}
		rounds := map[time.Time]int{}
		for _, b := range s.sent() {
			if len(b.items) > renewal.DefaultBatchSize {
				t.Fatalf("a batch of %d", len(b.items))
			}
			rounds[b.at] += len(b.items)
		}
		// The leases began together and are gathered: 2 s of jitter in steps of 250 ms, or
		// of as many as may be under way in parallel, make ten groups for each period.
		if len(rounds) > 61*12 || len(s.sent()) > 61*50 {
			t.Errorf("%d rounds, %d batches: leases that are due together do not travel together", len(rounds), len(s.sent()))
		}
		for at, leases := range rounds {
			if leases > renewal.DefaultBatchSize*renewal.DefaultInFlight {
				t.Fatalf("%d leases together at %v", leases, at)
			}
		}
	})
}

func TestRenewal_GoneIsLostImmediately(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		return all(items, renewal.Result{Gone: true, SentAt: time.Now(), Err: errDown})
	}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		c := one(t, k, "f1")
		equal(t, "reason", c.Reason, renewal.ReasonGone)
		equal(t, "err", c.Err, errDown)
		equal(t, "at", c.At.Sub(begin), 10*time.Second)
		equal(t, "notified", k.when("f1").Sub(begin), 10*time.Second)
		equal(t, "last confirmed", c.LastConfirmed.Sub(begin), 0)
		equal(t, "state", l.State(), renewal.StateLost)
		equal(t, "valid", l.Valid(m.Now()), false)
		equal(t, "End after the loss", l.End(), false)
		time.Sleep(time.Minute)
		equal(t, "sends after the loss", s.count(), 1)
		equal(t, "no lease is left", m.Stats().NextDue.IsZero(), true)
		equal(t, "shards", m.Shards(), 0)
	})
}

func TestRenewal_FailingIsRetriedUntilTheDeadline(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result { return failed(items) }
	var mu sync.Mutex
	var failures []int
	var events []time.Time
	cfg := renewal.Config{Sender: s, OnFailed: func(_ *renewal.Lease, n int, err error) {
		mu.Lock()
		defer mu.Unlock()
		failures, events = append(failures, n), append(events, time.Now())
		equal(t, "event's error", err, errDown)
	}}
	bubble(t, cfg, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(28500*time.Millisecond - 1)
		synctest.Wait()
		equal(t, "valid just before the deadline", l.Valid(m.Now()), true)
		equal(t, "notified before the deadline", k.total(), 0)
		equal(t, "healthy", l.Healthy(), false)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c := one(t, k, "f1")
		equal(t, "notified exactly at", k.when("f1").Sub(begin), 28500*time.Millisecond)
		equal(t, "at", c.At.Sub(begin), 28500*time.Millisecond)
		equal(t, "reason", c.Reason, renewal.ReasonDeadline)
		equal(t, "err", c.Err, errDown)
		for i, n := range failures {
			equal(t, "failures in a row", n, i+1)
		}
		equal(t, "first failure", events[0].Sub(begin), 10*time.Second)
		equal(t, "second failure", events[1].Sub(begin), 12500*time.Millisecond)
		if n := len(failures); n < 10 || n > 40 {
			t.Errorf("%d tries, want many that come closer, not a storm", n)
		}
		sends := s.count()
		time.Sleep(time.Minute)
		equal(t, "sends after the loss", s.count(), sends)
	})
}

func TestRenewal_RecoversAndFindsANewRhythm(t *testing.T) {
	s, k := &sender{}, &losses{}
	var calls atomic.Int32
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		if calls.Add(1) <= 2 {
			return failed(items)
		}
		return renewed(items)
	}
	var mu sync.Mutex
	var margins []time.Duration
	cfg := renewal.Config{
		Sender: s, Rand: func() float64 { return 0 },
		OnRenewed: func(_ *renewal.Lease, margin time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			margins = append(margins, margin)
		},
	}
	bubble(t, cfg, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(28 * time.Second)
		synctest.Wait()
		var at []time.Duration
		for _, b := range s.sent() {
			at = append(at, b.at.Sub(begin))
		}
		// First at 0.8 periods, retries after 0.75 × 2.5 s, then 0.8 periods,
		// because the rhythm begins anew, then full ones.
		want := []time.Duration{8000, 9875, 11750, 19750}
		for i := range want {
			equal(t, "sent", at[i], want[i]*time.Millisecond)
		}
		equal(t, "sends", len(at), len(want))
		equal(t, "next", l.NextDue().Sub(begin), 29750*time.Millisecond)
		equal(t, "failures", l.Failures(), 0)
		equal(t, "healthy", l.Healthy(), true)
		equal(t, "margin", margins[0], 28500*time.Millisecond-11750*time.Millisecond)
	})
}

func TestRenewal_UnusableAnswersAreFailures(t *testing.T) {
	for name, answer := range map[string]func([]renewal.Item) []renewal.Result{
		"no results": func([]renewal.Item) []renewal.Result { return nil },
		"confirmed without a moment": func(items []renewal.Item) []renewal.Result {
			return all(items, renewal.Result{Renewed: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := &sender{}, &losses{}
			s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result { return answer(items) }
			bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
				l := m.Add(spec(1, k))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				equal(t, "failures", l.Failures(), 1)
				equal(t, "remaining", l.Remaining(m.Now()), 18500*time.Millisecond)
				time.Sleep(18500 * time.Millisecond)
				synctest.Wait()
				equal(t, "reason", one(t, k, "f1").Reason, renewal.ReasonDeadline)
			})
		})
	}
}

func TestRenewal_FixedLeaseEndsAtItsDeadline(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		sp := spec(1, k)
		sp.Period = -1
		l := m.Add(sp)
		equal(t, "next due", l.NextDue(), time.Time{})
		equal(t, "hurry", l.Hurry(), false)
		time.Sleep(time.Hour)
		c := one(t, k, "f1")
		equal(t, "notified", k.when("f1").Sub(begin), 28500*time.Millisecond)
		equal(t, "reason", c.Reason, renewal.ReasonFixed)
		equal(t, "err", c.Err, nil)
		equal(t, "sends", s.count(), 0)
	})
}

func TestRenewal_StopRenewing(t *testing.T) {
	for _, inFlight := range []bool{false, true} {
		s, k := &sender{}, &losses{}
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			r := renewed(items)
			time.Sleep(time.Second)
			return r
		}
		bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
			begin := time.Now()
			l := m.Add(spec(1, k))
			end := 28500 * time.Millisecond
			if inFlight {
				time.Sleep(10500 * time.Millisecond)
				end += 10 * time.Second // its answer is still heard
			}
			l.StopRenewing()
			equal(t, "hurry", l.Hurry(), false)
			time.Sleep(2 * time.Second)
			equal(t, "next renewal", l.NextDue(), time.Time{})
			time.Sleep(time.Hour)
			equal(t, "notified", k.when("f1").Sub(begin), end)
			equal(t, "reason", one(t, k, "f1").Reason, renewal.ReasonDeadline)
			if want := map[bool]int{false: 0, true: 1}[inFlight]; s.count() != want {
				t.Errorf("%d sends, want %d", s.count(), want)
			}
			l.StopRenewing() // on a lost lease it does nothing
		})
	}
}

func TestRenewal_Hurry(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		r := renewed(items)
		time.Sleep(time.Second)
		return r
	}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(time.Second)
		equal(t, "hurry", l.Hurry(), true)
		time.Sleep(500 * time.Millisecond)
		equal(t, "sent immediately", s.count(), 1)
		equal(t, "hurry under way", l.Hurry(), true)
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "asked again after the answer", s.sent()[1].at.Sub(begin), 2*time.Second)
		time.Sleep(time.Second)
		equal(t, "sends", s.count(), 2)
		equal(t, "ended", l.End(), true)
		equal(t, "hurry after the end", l.Hurry(), false)
	})
}

// TestBatch_AThousandLeasesInFourCalls: leases that are due together share calls, 256 in
// each, whatever their number; and a round allocates for its batches, not for its leases.
func TestBatch_AThousandLeasesInFourCalls(t *testing.T) {
	s := &counted{}
	bubble(t, renewal.Config{Sender: s, Rand: func() float64 { return 1 }}, func(t *testing.T, m *renewal.Manager) {
		for range 1000 {
			m.Add(renewal.Spec{Lease: 30 * time.Second, Owner: silent, Period: 10 * time.Second, SentAt: time.Now()})
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		equal(t, "calls for a thousand renewals", s.calls.Load(), 4)
		equal(t, "renewals", s.items.Load(), 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		equal(t, "calls for ten thousand more", s.calls.Load(), 44)
		// Timers, workers, and six slices for each batch.
		if each := float64(after.Mallocs-before.Mallocs) / 10_000; each > 0.5 {
			t.Errorf("%.2f allocations for each renewed lease, want less than 0.5", each)
		}
	})
}

// counted renews everything and counts.
type counted struct{ calls, items atomic.Int64 }

func (s *counted) RenewBatch(_ context.Context, _ string, items []renewal.Item, _ time.Time) []renewal.Result {
	s.calls.Add(1)
	s.items.Add(int64(len(items)))
	return renewed(items)
}

// A lease that begins short is made whole soon: the first renewal is due when a twentieth of what is left
// has passed, or after a period if that is sooner, and an outage after it has the whole lease to last.
func TestRenewal_ABriefLeaseIsMadeWholeSoon(t *testing.T) {
	for _, c := range []struct{ age, period, want time.Duration }{
		{0, 10 * time.Second, 90 * time.Millisecond},
		{800 * time.Millisecond, 10 * time.Second, 50 * time.Millisecond},
		{0, 50 * time.Millisecond, 50 * time.Millisecond},
		{1900 * time.Millisecond, 10 * time.Second, 0},
	} {
		s, k := &sender{}, &losses{}
		bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
			brief := spec(1, k)
			brief.First, brief.Period, brief.SentAt = 2*time.Second, c.period, time.Now().Add(-c.age)
			equal(t, "due", time.Until(m.Add(brief).NextDue()), c.want)
		})
	}
}
