package renewal_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// over notes the fields for which End or StopRenewing has returned, and which of them
// were handed to a Sender after that.
type over struct {
	mu     sync.Mutex
	fields map[string]bool
	late   []string
}

func (o *over) note(field string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fields == nil {
		o.fields = map[string]bool{}
	}
	o.fields[field] = true
}

func (o *over) check(items []renewal.Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range items {
		if o.fields[it.Field] {
			o.late = append(o.late, it.Field)
		}
	}
}

// stops are the two ways in which an owner stops the renewal of its lease.
var stops = map[string]func(*renewal.Lease){
	"End":          func(l *renewal.Lease) { l.End() },
	"StopRenewing": func(l *renewal.Lease) { l.StopRenewing() },
}

// I5: a callback takes its time when the next batch is due, and a lease of that batch
// ends meanwhile.
func TestLease_I5_NoCallbackBeforeTheHandOver(t *testing.T) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			var o over
			s, k := &sender{}, &losses{}
			s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
				o.check(items)
				return renewed(items)
			}
			slow := func(*renewal.Lease, time.Duration) { time.Sleep(200 * time.Millisecond) }
			bubble(t, renewal.Config{Sender: s, BatchSize: 1, InFlight: 1, OnRenewed: slow}, func(t *testing.T, m *renewal.Manager) {
				m.Add(spec(1, k))
				next := m.Add(spec(2, k))
				time.Sleep(10*time.Second + 100*time.Millisecond)
				stop(next)
				o.note("f2")
				time.Sleep(time.Second)
				synctest.Wait()
				equal(t, "handed over late", len(o.late), 0)
			})
		})
	}
}

// late is an owner to whom something happens when it is asked for its names: after its
// batch was formed, and before the Sender gets it.
type late struct {
	field string
	lease atomic.Pointer[renewal.Lease]
	asked func(*renewal.Lease)
}

func (*late) Lost(renewal.Cause) {}

func (o *late) Names() (key, field string) {
	o.asked(o.lease.Load())
	return "k" + o.field, o.field
}

// addLate adds a lease of that kind.
func addLate(m *renewal.Manager, sp renewal.Spec, asked func(*renewal.Lease)) *renewal.Lease {
	o := &late{field: fieldOf(sp), asked: asked}
	sp.Owner = o
	l := m.Add(sp)
	o.lease.Store(l)
	return l
}

// I5: a lease whose batch has been formed ends before the batch is handed over. The other
// one of that batch is sent.
func TestLease_I5_CheckedAtTheHandOver(t *testing.T) {
	ends := map[string]func(*renewal.Lease){
		"Lose":         func(l *renewal.Lease) { l.Lose(renewal.Cause{Reason: renewal.ReasonForced}) },
		"the deadline": func(l *renewal.Lease) { time.Sleep(19 * time.Second) },
	}
	for name, stop := range stops {
		ends[name] = stop
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s, k := &sender{}, &losses{}
			bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
				long := spec(1, k)
				long.Lease = time.Hour
				first, second := m.Add(long), addLate(m, spec(2, k), end)
				time.Sleep(10*time.Second + 19*time.Second + time.Millisecond)
				synctest.Wait()
				sent := s.sent()
				if len(sent) == 0 {
					t.Fatal("nothing was sent")
				}
				for _, b := range sent {
					equal(t, "items", len(b.items), 1)
					equal(t, "field", b.items[0].Field, "f1")
				}
				if first.Renewals() == 0 {
					t.Error("the other one was not renewed")
				}
				equal(t, "under way", m.InFlight(), 0)
				second.End()
			})
		})
	}
}

// A batch of which nothing is left is not sent, keeps no slot, and is no failure of the shard.
func TestLease_I5_NothingIsLeftOfABatch(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s, BatchSize: 1, InFlight: 1}, func(t *testing.T, m *renewal.Manager) {
		for i := range 40 {
			addLate(m, spec(i, k), func(l *renewal.Lease) { l.End() })
		}
		stays := m.Add(spec(99, k))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		equal(t, "sends", s.count(), 1)
		equal(t, "renewals of the other one", stays.Renewals(), 1)
		equal(t, "slots", m.InFlight(), 0)
		equal(t, "failed", m.Stats().Failed, 0)
	})
}

// The Sender learns when it was handed the batch: its time limit counts from there.
func TestLease_I5_TheSenderKnowsWhen(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		addLate(m, spec(1, k), func(*renewal.Lease) { time.Sleep(time.Second) })
		begin := time.Now()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		sent := s.sent()
		equal(t, "batches", len(sent), 1)
		equal(t, "handed over", sent[0].handed.Sub(begin), 11*time.Second)
	})
}

// I9: however long a callback takes, the next batch is in time and a loss is reported in time;
// and Stop returns after the last of them.
func TestManager_I9_CallbacksDelayNothing(t *testing.T) {
	s, k := &sender{}, &losses{}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		notified := map[string]int{}
		slow := func(what string) {
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			notified[what]++
		}
		m := renewal.New(renewal.Config{
			Sender: s, BatchSize: 8, InFlight: 1, Rand: top,
			OnRenewed: func(*renewal.Lease, time.Duration) { slow("renewed") },
			OnFailed:  func(*renewal.Lease, int, error) { slow("failed") },
			OnLost:    func(*renewal.Lease) { slow("lost") },
		})
		m.Start()
		begin := time.Now()
		for i := range 32 {
			m.Add(spec(i, k))
		}
		for i := range 4 {
			sp := spec(100+i, k)
			sp.Period, sp.Lease = -1, 11500*time.Millisecond // over when the others are due
			m.Add(sp)
		}
		fixed := spec(200, k)
		fixed.Period, fixed.Lease = -1, 11600*time.Millisecond
		m.Add(fixed)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		synctest.Wait()
		sent := s.sent()
		equal(t, "batches", len(sent), 4)
		for _, b := range sent {
			equal(t, "sent", b.at.Sub(begin), 10*time.Second)
		}
		equal(t, "notified", k.total(), 5)
		equal(t, "notified of the last", k.when("f200").Sub(begin), 10*time.Second+100*time.Millisecond)
		m.Stop()
		equal(t, "renewed", notified["renewed"], 32)
		equal(t, "lost", notified["lost"], 5)
		equal(t, "failed", notified["failed"], 0)
	})
}

// OnLost comes after every Lost of its round, with the cause at hand, and once for each.
func TestManager_I9_LossesAreReportedAfterTheNotice(t *testing.T) {
	s, k := &sender{}, &losses{}
	var mu sync.Mutex
	var reported []renewal.Cause
	tooEarly := false
	onLost := func(l *renewal.Lease) {
		mu.Lock()
		defer mu.Unlock()
		tooEarly = tooEarly || k.total() < 3
		c, lost := l.Lost()
		if lost {
			reported = append(reported, c)
		}
	}
	bubble(t, renewal.Config{Sender: s, OnLost: onLost}, func(t *testing.T, m *renewal.Manager) {
		for i := range 3 {
			sp := spec(i, k)
			sp.Period = -1
			m.Add(sp)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		equal(t, "too early", tooEarly, false)
		equal(t, "reported", len(reported), 3)
		if slices.ContainsFunc(reported, func(c renewal.Cause) bool { return c.Reason != renewal.ReasonFixed }) {
			t.Errorf("causes %v", reported)
		}
	})
}

// unused is an owner that nobody uses when it is asked first. Then somebody does, and hurries the lease.
type unused struct {
	lease atomic.Pointer[renewal.Lease]
	used  atomic.Bool
}

func (*unused) Lost(renewal.Cause) {}

func (o *unused) Names() (key, field string) {
	if !o.used.Swap(true) {
		o.lease.Load().Hurry()
		return "", ""
	}
	return "k", "f"
}

func TestBatch_HurriedWhileItIsPutOff(t *testing.T) {
	bubble(t, renewal.Config{Sender: &sender{}}, func(t *testing.T, m *renewal.Manager) {
		o := &unused{}
		sp := spec(1, &losses{})
		sp.Owner = o
		l := m.Add(sp)
		o.lease.Store(l)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		equal(t, "renewals", l.Renewals(), 1)
		l.End()
	})
}
