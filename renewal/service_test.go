package renewal_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/headcount"
	"github.com/anteroom/anteroom/renewal"
)

func TestLease_Size(t *testing.T) {
	if renewal.LeaseSize > 128 {
		t.Errorf("a lease takes %d bytes, want at most 128", renewal.LeaseSize)
	}
}

// Ten thousand leases need no goroutine of their own.
func TestManager_OneGoroutine(t *testing.T) {
	s, k := &sender{quiet: true}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		synctest.Wait()
		before := headcount.Bubble()
		for i := range 10_000 {
			m.Add(spec(i, k))
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		equal(t, "sends", s.count(), 10_000)
		if more := headcount.Bubble() - before; more > 0 {
			t.Errorf("%d goroutines more", more)
		}
	})
}

// One key makes every batch it is in fail, by time-out: it is alone soon
// enough that only its own lease is lost.
func TestBatch_APoisonedKeyTakesNoOtherDown(t *testing.T) {
	for name, hang := range map[string]time.Duration{"fails": 0, "hangs": time.Second} {
		t.Run(name, func(t *testing.T) {
			s, k := &sender{}, &losses{}
			s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
				for _, it := range items {
					if it.Field == "f77" {
						time.Sleep(hang)
						return failed(items)
					}
				}
				return renewed(items)
			}
			bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
				begin := time.Now()
				for i := range 256 {
					m.Add(spec(i, k))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				equal(t, "losses", k.total(), 1)
				equal(t, "notified", k.when("f77").Sub(begin), 28500*time.Millisecond)
				var sizes []int
				for _, b := range s.sent() {
					for _, it := range b.items {
						if it.Field == "f77" {
							sizes = append(sizes, len(b.items))
						}
					}
				}
				want := []int{256, 16, 1, 1}
				for i := range want {
					equal(t, "size of its batch", sizes[i], want[i])
				}
			})
		})
	}
}

// An outage does not turn every lease into a command of its own, and all of
// them are renewed when it ends.
func TestBatch_AnOutageKeepsBatchesLarge_Lab(t *testing.T) {
	const n = 20_000
	s, k := &sender{}, &losses{}
	var down atomic.Bool
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		at := time.Now()
		time.Sleep(time.Millisecond)
		if down.Load() {
			return failed(items)
		}
		return all(items, renewal.Result{Renewed: true, SentAt: at})
	}
	bubble(t, renewal.Config{Sender: s, Rand: rand.New(rand.NewPCG(5, 5)).Float64}, func(t *testing.T, m *renewal.Manager) {
		for i := range n {
			m.Add(spec(i, k))
		}
		time.Sleep(time.Minute)
		down.Store(true)
		before, items := len(s.sent()), s.count()
		time.Sleep(15 * time.Second)
		down.Store(false)
		perBatch := float64(s.count()-items) / float64(len(s.sent())-before)
		t.Logf("%.1f leases in a batch during the outage", perBatch)
		if perBatch < 10 {
			t.Errorf("%.1f leases in a batch during the outage", perBatch)
		}
		time.Sleep(time.Minute)
		equal(t, "losses", k.total(), 0)
	})
}

func TestLose_IsReportedByTheLoop(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		var mu sync.Mutex
		sp := spec(1, k)
		inner := sp.Owner
		sp.Owner = notifiedBy(sp, func(c renewal.Cause) {
			mu.Lock() // the caller of Lose may hold what Lost needs
			defer mu.Unlock()
			inner.Lost(c)
		})
		l := m.Add(sp)
		if l.Owner() == nil {
			t.Error("the lease does not know its owner")
		}
		synctest.Wait() // the loop sleeps
		mu.Lock()
		equal(t, "lose", l.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog, Err: errDown}), true)
		equal(t, "valid immediately", l.Valid(m.Now()), false)
		mu.Unlock()
		synctest.Wait()
		c := one(t, k, "f1")
		equal(t, "reason", c.Reason, renewal.ReasonWatchdog)
		equal(t, "err", c.Err, errDown)
		equal(t, "at", c.At, time.Now())
		equal(t, "lose again", l.Lose(renewal.Cause{}), false)
	})
}

func TestClockJump_EveryLeaseIsCheckedImmediately(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, -time.Minute, 900 * time.Millisecond} {
		s, k := &sender{}, &losses{}
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var offset time.Duration
			var jumps []time.Duration
			m := renewal.New(renewal.Config{Sender: s, Rand: top, OnJump: func(d time.Duration) { jumps = append(jumps, d) }})
			m.SetWall(func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Round(0).Add(offset)
			})
			m.Start()
			defer m.Stop()
			for i := range 100 {
				m.Add(spec(i, k))
			}
			sp := spec(100, k)
			sp.Period = 0
			m.Add(sp) // a fixed lease is not sent
			time.Sleep(5500 * time.Millisecond)
			mu.Lock()
			offset = jump
			mu.Unlock()
			equal(t, "before the next round", s.count(), 0)
			time.Sleep(time.Second)
			synctest.Wait()
			if jump.Abs() < time.Second {
				equal(t, "sends", s.count(), 0)
				equal(t, "jumps", len(jumps), 0)
				return
			}
			equal(t, "sends", s.count(), 100)
			if len(jumps) != 1 || jumps[0] != jump {
				t.Errorf("jumps %v, want once %v", jumps, jump)
			}
			equal(t, "check", m.Check(), "")
		})
	}
}

func TestClockJump_WithNoLeaseLeft(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var offset time.Duration
		m := renewal.New(renewal.Config{Sender: s, Rand: top})
		m.SetWall(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Round(0).Add(offset)
		})
		m.Start()
		defer m.Stop()
		l := m.Add(spec(1, k))
		synctest.Wait()
		l.End()
		mu.Lock()
		offset = time.Hour
		mu.Unlock()
		time.Sleep(time.Minute)
		m.Add(spec(2, k))
		time.Sleep(5 * time.Second)
		equal(t, "a jump while idle makes nobody suspect", s.count(), 0)
	})
}

// A Lost that blocks stalls the loop. Restart cures it: what is due is sent,
// what is lost is notified, the old loop does nothing when it comes back.
func TestRestart_OfAStalledLoop(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s, k := &sender{}, &losses{}
		bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
			begin := time.Now()
			free := make(chan struct{})
			blocker := spec(0, k)
			blocker.Owner = notifiedBy(blocker, func(renewal.Cause) { <-free })
			m.Add(blocker).Lose(renewal.Cause{Reason: renewal.ReasonForced})
			synctest.Wait()
			l, other := m.Add(spec(1, k)), m.Add(spec(2, k))
			time.Sleep(10 * time.Second)
			other.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog})
			time.Sleep(5 * time.Second)
			equal(t, "sends while stalled", s.count(), 0)
			st := m.Stats()
			equal(t, "last round", time.Since(st.LastRound), 15*time.Second)
			equal(t, "overdue", time.Since(st.NextDue), 5*time.Second)
			equal(t, "notified while stalled", k.total(), 0)
			if restart {
				m.Restart()
				synctest.Wait()
				equal(t, "renewals after the restart", l.Renewals(), 1)
				equal(t, "notified after the restart", k.when("f2").Sub(begin), 15*time.Second)
			}
			close(free)
			time.Sleep(10*time.Second - 1)
			synctest.Wait()
			equal(t, "renewals", l.Renewals(), 1)
			equal(t, "notified once", len(k.get("f2")), 1)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			equal(t, "the loop lives", l.Renewals(), 2)
		})
	}
}

// After a Restart the old loop comes back while the new one is in a Lost. It
// notifies nobody: two loops in parallel would break the order of the notices.
func TestRestart_TheOldLoopTellsNobody(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		lose := func(i int, wait chan struct{}) {
			sp := spec(i, k)
			notify := sp.Owner
			sp.Owner = notifiedBy(sp, func(c renewal.Cause) {
				notify.Lost(c)
				<-wait
			})
			m.Add(sp).Lose(renewal.Cause{Reason: renewal.ReasonForced})
			synctest.Wait()
		}
		a, b, c := make(chan struct{}), make(chan struct{}), make(chan struct{})
		close(c)
		lose(1, a)
		m.Restart()
		lose(2, b)
		lose(3, c)
		close(a)
		synctest.Wait()
		equal(t, "notified while the new loop is busy", len(k.get("f3")), 0)
		close(b)
		synctest.Wait()
		equal(t, "notified", k.total(), 3)
	})
}

// While Stop waits for a batch that ignores its context, no new batch begins,
// and the deadlines are still guarded.
func TestStop_GuardsWhileItWaits(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			time.Sleep(15 * time.Second)
			return failed(items)
		}
		m := renewal.New(renewal.Config{Sender: s, Rand: top})
		m.Start()
		m.Add(spec(1, k))
		later, fixed := spec(2, k), spec(3, k)
		later.Period, fixed.Period = 12*time.Second, 0
		fixed.Lease = 20 * time.Second
		m.Add(later)
		m.Add(fixed)
		time.Sleep(11 * time.Second)
		m.Stop()
		equal(t, "stopped after the batch", time.Since(begin), 25*time.Second)
		equal(t, "sends", s.count(), 1)
		equal(t, "notified", k.when("f3").Sub(begin), 18500*time.Millisecond)
		m.Start()
		m.Stop()
	})
}

func TestStop_NotifiesOfWhatWasConcluded(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		s.answer = func(ctx context.Context, _ string, items []renewal.Item) []renewal.Result {
			<-ctx.Done()
			if items[0].Field == "f2" {
				return all(items, renewal.Result{Gone: true, SentAt: time.Now()})
			}
			return failed(items)
		}
		events := 0
		m := renewal.New(renewal.Config{Sender: s, Rand: top, BatchSize: 1, InFlight: 2, OnFailed: func(*renewal.Lease, int, error) { events++ }})
		m.Stop() // before Start it does nothing
		m.Start()
		m.Start() // and so does a second Start
		failing, gone, queued, forced := m.Add(spec(1, k)), m.Add(spec(2, k)), m.Add(spec(3, k)), m.Add(spec(4, k))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		forced.Lose(renewal.Cause{Reason: renewal.ReasonClosed})
		m.Stop()
		equal(t, "an answer at the stop counts", one(t, k, "f2").Reason, renewal.ReasonGone)
		equal(t, "concluded before the stop", one(t, k, "f4").Reason, renewal.ReasonClosed)
		equal(t, "state", gone.State(), renewal.StateLost)
		equal(t, "our own cancellation is no failure", failing.Failures()+events, 0)
		m.Stop()

		time.Sleep(time.Hour)
		equal(t, "nobody is notified while stopped", k.total(), 2)
		equal(t, "the clock still shows it", queued.Valid(m.Now()), false)
		equal(t, "check", m.Check(), "")
	})
}

func TestStop_ThenStartContinues(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		hang := true
		s.answer = func(ctx context.Context, _ string, items []renewal.Item) []renewal.Result {
			if hang {
				<-ctx.Done()
				return failed(items)
			}
			return renewed(items)
		}
		m := renewal.New(renewal.Config{Sender: s, Rand: top, BatchSize: 1, InFlight: 2})
		late := spec(9, k)
		late.Period, late.Lease = 0, 12*time.Second
		m.Add(late)
		var leases []*renewal.Lease
		for i := range 6 {
			leases = append(leases, m.Add(spec(i, k)))
		}
		m.Start()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		m.Stop() // two are under way, four wait
		hang = false
		time.Sleep(time.Second)
		m.Start()
		synctest.Wait()
		for _, l := range leases {
			equal(t, "renewals", l.Renewals(), 1)
		}
		equal(t, "passed while stopped", one(t, k, "f9").Reason, renewal.ReasonFixed)
		equal(t, "check", m.Check(), "")
		m.Stop()
	})
}

func TestStartStop_Stress(t *testing.T) {
	s, k := &sender{quiet: true}, &losses{}
	m := renewal.New(renewal.Config{Sender: s, BatchSize: 3})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for i := range 200 {
				switch r.IntN(6) {
				case 0:
					m.Start()
				case 1:
					m.Stop()
				case 2:
					m.Restart()
				default:
					sp := spec(g*1000+i, k)
					sp.Period, sp.Lease, sp.Margin = time.Millisecond, 3*time.Millisecond, 0
					l := m.Add(sp)
					l.Hurry()
					_ = m.Stats()
					if r.IntN(2) == 0 {
						l.End()
					}
				}
			}
		})
	}
	wg.Wait()
	m.Stop()
	equal(t, "check", m.Check(), "")
	equal(t, "two batches in parallel", s.twice, false)
	equal(t, "in flight", m.InFlight(), 0)
}

func TestStats_WindowForgets(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		equal(t, "rate of nothing", m.Stats().SuccessRate(), 1)
		var calls atomic.Int32
		s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
			if calls.Add(1) == 1 {
				return failed(items)
			}
			return renewed(items)
		}
		l := m.Add(spec(1, k))
		time.Sleep(12500 * time.Millisecond)
		synctest.Wait()
		st := m.Stats()
		equal(t, "answered", st.Answered, 1)
		equal(t, "failed", st.Failed, 1)
		equal(t, "rate", st.SuccessRate(), 0.5)
		equal(t, "next due", st.NextDue, l.NextDue())
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "failures of the last minute", m.Stats().Failed, 0)
		if since := time.Since(m.Stats().LastRound); since > time.Second {
			t.Errorf("the last round was %v ago", since)
		}
		l.End()
		time.Sleep(time.Hour) // nothing is sent that would overwrite what is old
		equal(t, "answers of the last minute", m.Stats().Answered, 0)
	})
}

// A loss that is concluded after the deadline, as in a process that was stopped, says
// that nothing could be relied on from the deadline on.
func TestLease_LostSinceTheDeadlineAtTheLatest(t *testing.T) {
	k := &losses{}
	bubble(t, renewal.Config{Sender: &sender{answer: func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		return failed(items)
	}}}, func(t *testing.T, m *renewal.Manager) {
		blocker := spec(0, k)
		blocker.Lease = 20 * time.Second
		blocker.Owner = notifiedBy(blocker, func(renewal.Cause) { time.Sleep(30 * time.Second) }) // the loop is stopped
		m.Add(blocker)
		l := m.Add(spec(1, k))
		time.Sleep(40 * time.Second)
		deadline := l.Deadline()
		if !time.Now().After(deadline) || !l.Lose(renewal.Cause{Reason: renewal.ReasonWatchdog, At: time.Now()}) {
			t.Fatal("the loop did not stop")
		}
		time.Sleep(time.Minute)
		equal(t, "since", one(t, k, "f1").At, deadline)
	})
}
