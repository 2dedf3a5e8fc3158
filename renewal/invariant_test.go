package renewal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// I1: End, Lose, a refusal and the deadline race for each lease; exactly one
// wins, and Lost is called exactly for the losses.
func TestLease_I1_LeavesActiveOnce(t *testing.T) {
	var notified, ended, lost [500]atomic.Int32
	s := &sender{quiet: true}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		return all(items, renewal.Result{Gone: true, SentAt: time.Now()})
	}
	m := renewal.New(renewal.Config{Sender: s, BatchSize: 8})
	m.Start()
	var wg sync.WaitGroup
	for i := range notified {
		l := m.Add(renewal.Spec{
			Lease:  time.Duration(1+i%3) * time.Millisecond,
			Period: time.Millisecond / 2, SentAt: time.Now(),
			Owner: owner{lost: func(renewal.Cause) {
				notified[i].Add(1)
				if ended[i].Load() > 0 {
					t.Error("Lost after End returned true")
				}
			}},
		})
		for range 2 {
			wg.Go(func() {
				if l.End() {
					ended[i].Add(1)
				}
			})
			wg.Go(func() {
				if l.Lose(renewal.Cause{Reason: renewal.ReasonForced}) {
					lost[i].Add(1)
				}
			})
		}
	}
	wg.Wait()
	m.Stop()
	for i := range notified {
		e, p, n := ended[i].Load(), lost[i].Load(), notified[i].Load()
		if e+n != 1 || p > n {
			t.Errorf("lease %d: ended %d, lost by call %d, notified %d", i, e, p, n)
		}
	}
}

// I2: validity is by the clock while the loop is blocked, and a late
// confirmation or Extend does not bring it back.
func TestLease_I2_NothingBringsValidityBack(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			r := renewed(items)
			time.Sleep(19 * time.Second) // lands half a second after the deadline
			return r
		}
		l := m.Add(spec(1, k))
		blocker := spec(2, k)
		blocker.Period, blocker.Lease = -1, 10*time.Second+blocker.Margin
		blocker.SentAt = begin.Add(time.Second) // lost at 11 s
		blocker.Owner = notifiedBy(blocker, func(renewal.Cause) { time.Sleep(30 * time.Second) })
		m.Add(blocker)

		time.Sleep(28500*time.Millisecond - 1)
		equal(t, "valid before", l.Valid(m.Now()), true)
		time.Sleep(time.Nanosecond)
		equal(t, "valid at the deadline", l.Valid(m.Now()), false)
		equal(t, "remaining", l.Remaining(m.Now()), 0)
		equal(t, "the loop has not noticed", l.State(), renewal.StateActive)
		l.Extend(time.Now(), time.Hour)
		equal(t, "valid after Extend", l.Valid(m.Now()), false)
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "valid after the late answer", l.Valid(m.Now()), false)
		equal(t, "state", l.State(), renewal.StateLost)
		equal(t, "deadline", l.Deadline().Sub(begin), 28500*time.Millisecond)
		time.Sleep(time.Minute)
		equal(t, "reason", one(t, k, "f1").Reason, renewal.ReasonDeadline)
	})
}

func TestLease_I3_DeadlineOnlyMovesForward(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		l.Extend(begin, 10*time.Second)
		equal(t, "shorter", l.Deadline().Sub(begin), 28500*time.Millisecond)
		l.Extend(begin, time.Minute)
		equal(t, "longer", l.Deadline().Sub(begin), 58500*time.Millisecond)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "renewals", l.Renewals(), 1)
		equal(t, "a renewal that reaches less far", l.Deadline().Sub(begin), 58500*time.Millisecond)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		equal(t, "one that reaches further", l.Deadline().Sub(begin), 68500*time.Millisecond)
		equal(t, "End", l.End(), true)
		l.Extend(time.Now(), time.Hour)
		equal(t, "after the end", l.Deadline().Sub(begin), 68500*time.Millisecond)
	})
}

// I3: an extended fixed lease is lost at the new deadline.
func TestLease_I3_ExtendMovesTheNotice(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		sp := spec(1, k)
		sp.Period = 0
		l := m.Add(sp)
		time.Sleep(20 * time.Second)
		l.Extend(time.Now(), 30*time.Second)
		time.Sleep(time.Hour)
		equal(t, "notified", k.when("f1").Sub(begin), 48500*time.Millisecond)
	})
}

// I4: a Sender that never answers, nor minds its context, delays no notice:
// not of what is under way, nor of what waits behind it.
func TestManager_I4_HangingBatchesDelayNoDeadline(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			<-free
			return renewed(items)
		}
		m := renewal.New(renewal.Config{Sender: s, BatchSize: 2, InFlight: 2, Rand: top})
		m.Start()
		begin := time.Now()
		for i := range 10 {
			m.Add(spec(i, k))
		}
		time.Sleep(28500 * time.Millisecond)
		synctest.Wait()
		equal(t, "notified", k.total(), 10)
		equal(t, "first", k.when("f0").Sub(begin), 28500*time.Millisecond)
		equal(t, "under way", one(t, k, "f0").Err, renewal.ErrNoAnswer)
		equal(t, "waiting", one(t, k, "f9").Err, renewal.ErrNoSlot)
		equal(t, "check", m.Check(), "")
		close(free)
		synctest.Wait()
		equal(t, "sends for what is lost", s.count(), 4)
		equal(t, "slots", m.InFlight(), 0)
		equal(t, "shards", m.Shards(), 0)
		m.Stop()
	})
}

func TestLease_I5_NothingIsSentAfterEnd(t *testing.T) {
	s, k := &sender{}, &losses{}
	for name, result := range map[string]renewal.Result{"renewed": {Renewed: true}, "failed": {}, "gone": {Gone: true}} {
		t.Run(name, func(t *testing.T) {
			s.sends = 0
			s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
				result.SentAt, result.Err = time.Now(), errDown
				time.Sleep(time.Second)
				return all(items, result)
			}
			events := 0
			cfg := renewal.Config{
				Sender: s, InFlight: 1, BatchSize: 1,
				OnFailed:  func(*renewal.Lease, int, error) { events++ },
				OnRenewed: func(*renewal.Lease, time.Duration) { events++ },
			}
			bubble(t, cfg, func(t *testing.T, m *renewal.Manager) {
				flying, queued, later := m.Add(spec(1, k)), m.Add(spec(2, k)), m.Add(spec(3, k))
				time.Sleep(10500 * time.Millisecond)
				equal(t, "waiting", m.Waiting(), 2)
				for _, l := range []*renewal.Lease{flying, queued, later} {
					equal(t, "End", l.End(), true)
					equal(t, "End again", l.End(), false)
					equal(t, "Lose after End", l.Lose(renewal.Cause{}), false)
					equal(t, "valid", l.Valid(m.Now()), false)
				}
				equal(t, "waiting after End", m.Waiting(), 0)
				time.Sleep(time.Hour)
				equal(t, "sends", s.count(), 1)
				equal(t, "renewals", flying.Renewals(), 0)
				equal(t, "events", events, 0)
				equal(t, "losses", k.total(), 0)
				equal(t, "shards", m.Shards(), 0)
			})
		})
	}
}

// I5: a slot becomes free while the loop is blocked and the lease that waits
// for it has passed its deadline: it is lost, not sent.
func TestLease_I5_NothingIsSentAfterTheDeadline(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		time.Sleep(20 * time.Second)
		return failed(items)
	}
	bubble(t, renewal.Config{Sender: s, BatchSize: 1, InFlight: 1}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		m.Add(spec(1, k))
		queued := m.Add(spec(2, k))
		blocker := spec(3, k)
		blocker.Period, blocker.Lease = 0, 20*time.Second
		blocker.Owner = notifiedBy(blocker, func(renewal.Cause) { time.Sleep(30 * time.Second) })
		m.Add(blocker)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		equal(t, "state", queued.State(), renewal.StateLost)
		time.Sleep(time.Minute)
		equal(t, "sends", s.count(), 1)
		equal(t, "at", one(t, k, "f2").At.Sub(begin), 28500*time.Millisecond)
		equal(t, "err", one(t, k, "f2").Err, renewal.ErrNoSlot)
	})
}

// I5: StopRenewing takes a lease out of the FIFO too.
func TestLease_I5_StopRenewingWhileWaiting(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		r := renewed(items)
		time.Sleep(time.Second)
		return r
	}
	bubble(t, renewal.Config{Sender: s, BatchSize: 1, InFlight: 1}, func(t *testing.T, m *renewal.Manager) {
		first, queued := m.Add(spec(1, k)), m.Add(spec(2, k))
		time.Sleep(10500 * time.Millisecond)
		equal(t, "waiting", m.Waiting(), 1)
		first.StopRenewing()
		queued.StopRenewing()
		equal(t, "waiting afterwards", m.Waiting(), 0)
		equal(t, "next due", queued.NextDue(), time.Time{})
		time.Sleep(time.Hour)
		equal(t, "sends", s.count(), 1)
		equal(t, "losses", k.total(), 2)
	})
}

func TestManager_I6_InFlightLimit(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		r := renewed(items)
		time.Sleep(100 * time.Millisecond)
		return r
	}
	bubble(t, renewal.Config{Sender: s, BatchSize: 10, InFlight: 3}, func(t *testing.T, m *renewal.Manager) {
		for i := range 200 {
			sp := spec(i, k)
			sp.Shard = []string{"a", "b"}[i%2]
			m.Add(sp)
		}
		time.Sleep(10*time.Second + 50*time.Millisecond)
		equal(t, "in flight", m.InFlight(), 6)
		equal(t, "waiting", m.Waiting(), 140)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		equal(t, "most of a", s.most["a"], 3)
		equal(t, "most of b", s.most["b"], 3)
		equal(t, "sends", s.count(), 200)
		for _, b := range s.sent() {
			equal(t, "batch", len(b.items), 10)
		}
		equal(t, "in flight in the end", m.InFlight(), 0)
	})
}

func TestManager_I6_AHungShardDelaysNoOther(t *testing.T) {
	s, k := &sender{quiet: true}, &losses{}
	s.answer = func(ctx context.Context, shard string, items []renewal.Item) []renewal.Result {
		if shard == "hung" {
			<-ctx.Done()
			return failed(items)
		}
		return renewed(items)
	}
	bubble(t, renewal.Config{Sender: s, BatchSize: 16}, func(t *testing.T, m *renewal.Manager) {
		var good []*renewal.Lease
		for i := range 2000 {
			sp := spec(i, k)
			if sp.Shard = "hung"; i >= 1000 {
				sp.Shard = "good"
			}
			if l := m.Add(sp); i >= 1000 {
				good = append(good, l)
			}
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		equal(t, "losses", k.total(), 1000)
		equal(t, "slots, after the last deadline", m.InFlight(), 0)
		for _, l := range good {
			if l.Renewals() != 30 || !l.Healthy() {
				t.Fatalf("%d renewals of a good lease, want 30", l.Renewals())
			}
		}
	})
}

// I7: the losses of a round are notified before its batches are sent.
func TestManager_I7_LossesComeFirst(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		var order []string
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			order = append(order, "sent")
			return renewed(items)
		}
		m.Add(spec(1, k))
		sp := spec(2, k)
		sp.Period, sp.Margin = 0, 20*time.Second
		sp.Owner = notifiedBy(sp, func(renewal.Cause) { order = append(order, "notified") })
		m.Add(sp)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(order) != 2 || order[0] != "notified" {
			t.Errorf("order %v", order)
		}
	})
}

// I8, and the structures as a whole: random leases on random shards against a
// Sender that renews, fails, refuses, hangs; with every method called at random.
func TestManager_I8_RandomLife_Lab(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, k := &sender{quiet: true}, &losses{}
		var mu sync.Mutex
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return r.IntN(n)
		}
		s.answer = func(ctx context.Context, _ string, items []renewal.Item) []renewal.Result {
			at := time.Now()
			if d := draw(40); d < 10 {
				time.Sleep(time.Duration(d) * 100 * time.Millisecond)
			} else if d == 39 {
				<-ctx.Done()
			}
			out := make([]renewal.Result, len(items))
			for i := range out {
				out[i] = renewal.Result{Renewed: true, SentAt: at}
				switch d := draw(100); {
				case d < 20:
					out[i] = renewal.Result{Err: errDown}
				case d == 99:
					out[i].Gone = true
				}
			}
			return out
		}
		bubble(t, renewal.Config{Sender: s, BatchSize: 7, InFlight: 2, Rand: rand.New(rand.NewPCG(seed, 2)).Float64}, func(t *testing.T, m *renewal.Manager) {
			var leases []*renewal.Lease
			ended := map[int]bool{}
			for step := range 3000 {
				switch d := draw(12); {
				case d < 3 || len(leases) == 0:
					sp := spec(len(leases), k)
					sp.Shard = string(rune('a' + draw(3)))
					sp.Lease = time.Duration(1+draw(30)) * time.Second
					sp.Period = sp.Lease * time.Duration(draw(4)) / 10
					sp.Margin = sp.Lease / 20
					leases = append(leases, m.Add(sp))
				case d < 5:
					i := draw(len(leases))
					ended[i] = leases[i].End() || ended[i]
				case d == 5:
					leases[draw(len(leases))].Hurry()
				case d == 6:
					leases[draw(len(leases))].Extend(time.Now(), time.Duration(draw(40))*time.Second)
				case d == 7 && step%5 == 0:
					leases[draw(len(leases))].StopRenewing()
				case d == 8 && step%5 == 0:
					leases[draw(len(leases))].Lose(renewal.Cause{Reason: renewal.ReasonForced})
				case d == 9 && step%10 == 0:
					m.Restart()
				default:
					time.Sleep(time.Duration(draw(400)) * time.Millisecond)
				}
				synctest.Wait()
				if wrong := m.Check(); wrong != "" {
					t.Fatalf("seed %d step %d: %s", seed, step, wrong)
				}
			}
			now := m.Now()
			for i, l := range leases {
				notified := len(k.get(fmt.Sprintf("f%d", i)))
				switch {
				case ended[i] && (notified != 0 || l.State() != renewal.StateEnded),
					l.State() == renewal.StateLost && notified != 1,
					l.State() == renewal.StateActive && (notified != 0 || !l.Valid(now)):
					t.Fatalf("seed %d lease %d: ended %v, notified %d, %v", seed, i, ended[i], notified, l.State())
				}
			}
			if s.twice {
				t.Error("a lease was in two batches at the same time")
			}
		})
	}
}
