package renewal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/seeds"
	"github.com/anteroom/anteroom/renewal"
)

// lives is the simplest Manager there is: a list of leases, the moment at which each is
// due and at which it is over. The real one runs beside it, with a Sender whose
// batches are answered one by one, in any order and with anything.
type lives struct {
	m   *renewal.Manager
	rng *rand.Rand

	mu      sync.Mutex
	leases  []*modelLease
	batches []*modelBatch // under way
	flying  map[string]int
	wrong   string // what the Sender has found
	quit    chan struct{}
}

const (
	modelBatchSize = 3
	modelInFlight  = 2
)

type modelLease struct {
	real         *renewal.Lease
	spec         renewal.Spec
	state        renewal.State
	deadline     time.Time
	due          time.Time // zero: never
	added        time.Time
	flying       bool
	again        bool
	stopped      bool
	reason       renewal.Reason
	notified     []renewal.Cause
	notifiedAt   time.Time
	lastDeadline time.Time // as seen
}

type modelBatch struct {
	shard  string
	items  []*modelLease
	sentAt time.Time
	answer chan []renewal.Result
}

func (v *lives) complain(format string, args ...any) {
	if v.wrong == "" {
		v.wrong = fmt.Sprintf(format, args...)
	}
}

// RenewBatch is the Sender: it checks that each lease of the batch may be sent now.
func (v *lives) RenewBatch(_ context.Context, shard string, items []renewal.Item, _ time.Time) []renewal.Result {
	v.mu.Lock()
	now := time.Now()
	b := &modelBatch{shard: shard, sentAt: now, answer: make(chan []renewal.Result, 1)}
	for _, it := range items {
		l := v.leases[slices.IndexFunc(v.leases, func(l *modelLease) bool { return fieldOf(l.spec) == it.Field })]
		switch early := l.due.Sub(now); {
		case l.state != renewal.StateActive:
			v.complain("%s is sent, and %v", it.Field, l.state)
		case !now.Before(l.deadline):
			v.complain("%s is sent %v after its deadline", it.Field, now.Sub(l.deadline))
		case l.flying:
			v.complain("%s is in two batches", it.Field)
		case l.due.IsZero():
			v.complain("%s is sent, and fixed or stopped", it.Field)
		case early > min(l.spec.Period/20, 250*time.Millisecond):
			v.complain("%s is sent %v early", it.Field, early)
		case l.spec.Shard != shard:
			v.complain("%s is sent to %q", it.Field, shard)
		}
		l.flying = true
		b.items = append(b.items, l)
	}
	v.flying[shard]++
	if len(items) > modelBatchSize || v.flying[shard] > modelInFlight {
		v.complain("%d leases in a batch, %d batches under way", len(items), v.flying[shard])
	}
	v.batches = append(v.batches, b)
	v.mu.Unlock()
	select {
	case results := <-b.answer:
		return results
	case <-v.quit:
		return nil
	}
}

func (v *lives) add(t *testing.T) {
	lease := time.Duration(1+v.rng.IntN(30)) * time.Second
	l := &modelLease{added: time.Now()}
	l.spec = renewal.Spec{
		Lease:  lease,
		Shard:  string(rune('a' + v.rng.IntN(2))),
		Period: lease * time.Duration(v.rng.IntN(4)) / 10,
		Margin: lease / 20,
		// Sometimes so late that it is over when it comes.
		SentAt: time.Now().Add(-time.Duration(v.rng.IntN(12)) * lease / 10),
		Owner: owner{fmt.Sprintf("f%d", len(v.leases)), func(c renewal.Cause) {
			v.mu.Lock()
			defer v.mu.Unlock()
			l.notified, l.notifiedAt = append(l.notified, c), time.Now()
		}},
	}
	l.deadline = l.spec.SentAt.Add(lease - l.spec.Margin)
	if l.spec.Period > 0 {
		l.due = l.spec.SentAt.Add(l.spec.Period)
	}
	t.Logf("add %s: lease %v, period %v, age %v", fieldOf(l.spec), lease, l.spec.Period, time.Since(l.spec.SentAt))
	v.mu.Lock()
	v.leases = append(v.leases, l)
	v.mu.Unlock()
	l.real = v.m.Add(l.spec)
}

// conclude ends an active lease in the model and reports whether it was active.
func (v *lives) conclude(l *modelLease, to renewal.State, why renewal.Reason) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.state != renewal.StateActive {
		return false
	}
	l.state, l.reason = to, why
	return true
}

// act calls one method of a lease, and its model.
func (v *lives) act(t *testing.T, l *modelLease) {
	now, active := time.Now(), l.state == renewal.StateActive
	var got, want bool
	what := ""
	switch v.rng.IntN(8) {
	case 0, 1:
		what, want = "end", v.conclude(l, renewal.StateEnded, renewal.Reason(""))
		got = l.real.End()
	case 2:
		what, want = "lose", v.conclude(l, renewal.StateLost, renewal.ReasonForced)
		got = l.real.Lose(renewal.Cause{Reason: renewal.ReasonForced})
	case 3:
		what = "stop renewing"
		l.stopped, l.due = true, time.Time{}
		l.real.StopRenewing()
	case 4, 5:
		what = "extend"
		d := time.Duration(v.rng.IntN(40)) * time.Second
		if to := now.Add(d - l.spec.Margin); active && to.After(l.deadline) {
			l.deadline = to
		}
		l.real.Extend(now, d)
	default:
		what, want = "hurry", active && l.spec.Period > 0 && !l.stopped
		if want && l.flying {
			l.again = true
		} else if want && now.Before(l.due) {
			l.due = now
		}
		got = l.real.Hurry()
	}
	t.Logf("%s %s", what, fieldOf(l.spec))
	if got != want {
		t.Fatalf("%s %s: %v, want %v", what, fieldOf(l.spec), got, want)
	}
}

// answer answers one of the batches under way.
func (v *lives) answer(t *testing.T) {
	v.mu.Lock()
	i := v.rng.IntN(len(v.batches))
	b := v.batches[i]
	v.batches = slices.Delete(v.batches, i, i+1)
	v.flying[b.shard]--
	now := time.Now()
	var results []renewal.Result
	mood := v.rng.IntN(3) // all renewed, all failed, mixed
	for _, l := range b.items {
		r := renewal.Result{Renewed: true, SentAt: b.sentAt}
		kind := mood
		if mood == 2 {
			kind = v.rng.IntN(4)
		}
		switch kind {
		case 1:
			r = renewal.Result{Err: errDown}
		case 2:
			r.Gone = true
		case 3:
			r.SentAt = time.Time{} // not usable
		}
		results = append(results, r)
		v.land(l, r, now)
	}
	t.Logf("answer %v", results)
	if len(results) > 0 && mood == 1 && v.rng.IntN(2) > 0 {
		results = results[:v.rng.IntN(len(results))] // what is missing has failed
	}
	v.mu.Unlock()
	b.answer <- results
}

// land is what one result means. An answer after the deadline means nothing.
func (v *lives) land(l *modelLease, r renewal.Result, now time.Time) {
	l.flying = false
	again := l.again
	l.again = false
	if l.state != renewal.StateActive || !now.Before(l.deadline) {
		return
	}
	switch {
	case r.Gone:
		l.state, l.reason = renewal.StateLost, renewal.ReasonGone
		return
	case !r.Renewed || r.SentAt.IsZero():
		l.due = now.Add(max(min(l.spec.Period, l.deadline.Sub(now))/4, 10*time.Millisecond))
	default:
		if to := r.SentAt.Add(l.spec.Lease - l.spec.Margin); to.After(l.deadline) {
			l.deadline = to
		}
		l.due = r.SentAt.Add(l.spec.Period)
		if again {
			l.due = now
		}
	}
	if l.stopped {
		l.due = time.Time{}
	}
}

// check compares everything that can be seen once nothing moves any more.
func (v *lives) check(t *testing.T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.wrong != "" {
		t.Fatal(v.wrong)
	}
	if wrong := v.m.Check(); wrong != "" {
		t.Fatal(wrong)
	}
	for _, l := range v.leases {
		name := fieldOf(l.spec)
		if l.state == renewal.StateActive && !now.Before(l.deadline) {
			l.state, l.reason = renewal.StateLost, renewal.ReasonDeadline
			if l.spec.Period <= 0 {
				l.reason = renewal.ReasonFixed
			}
		}
		if got := l.real.State(); got != l.state {
			t.Fatalf("%s is %v, want %v", name, got, l.state)
		}
		if valid := l.real.Valid(v.m.Now()); valid != (l.state == renewal.StateActive) {
			t.Fatalf("%s valid: %v, and %v", name, valid, l.state)
		}
		if seen := l.real.Deadline(); !seen.Equal(l.deadline) || seen.Before(l.lastDeadline) {
			t.Fatalf("I3: the deadline of %s is %v off, and moved by %v", name, seen.Sub(l.deadline), seen.Sub(l.lastDeadline))
		}
		l.lastDeadline = l.deadline
		v.checkNotified(t, l)
		late := l.state == renewal.StateActive && !l.due.IsZero() && !now.Before(l.due) && !l.flying
		if late && v.flying[l.spec.Shard] < modelInFlight {
			t.Fatalf("%s has been due for %v, and there is a free slot", name, now.Sub(l.due))
		}
	}
}

// checkNotified: once for a loss and never otherwise; for the deadline neither before it nor after.
func (v *lives) checkNotified(t *testing.T, l *modelLease) {
	name := fieldOf(l.spec)
	if l.state != renewal.StateLost {
		if len(l.notified) > 0 {
			t.Fatalf("I1: %s is notified of a loss, and %v", name, l.state)
		}
		return
	}
	if len(l.notified) != 1 {
		t.Fatalf("I1: %s is notified %d times", name, len(l.notified))
	}
	c := l.notified[0]
	if c.Reason != l.reason {
		t.Fatalf("%s is lost by %v, want %v", name, c.Reason, l.reason)
	}
	if c.Reason != renewal.ReasonDeadline && c.Reason != renewal.ReasonFixed {
		return
	}
	if at := l.deadline; !c.At.Equal(at) || !l.notifiedAt.Equal(at) && !(l.notifiedAt.Equal(l.added) && at.Before(l.added)) {
		t.Fatalf("%s is notified %v after its deadline, since %v after it", name, l.notifiedAt.Sub(at), c.At.Sub(at))
	}
}

func (v *lives) step(t *testing.T) {
	switch d := v.rng.IntN(20); {
	case d < 4 || len(v.leases) == 0:
		v.add(t)
	case d < 9:
		v.act(t, v.leases[v.rng.IntN(len(v.leases))])
	case d < 14 && len(v.batches) > 0:
		v.answer(t)
	case d == 14:
		t.Log("restart")
		v.m.Restart()
	default:
		d := time.Duration(v.rng.IntN(10_000)) * time.Millisecond
		t.Logf("%v pass", d)
		v.mu.Lock()   // what was read up to here is read before the Sender writes it
		v.mu.Unlock() //nolint:staticcheck // the empty section is meant
		time.Sleep(d)
	}
	synctest.Wait()
	v.check(t)
}

// Add, End, Lose, StopRenewing, Extend, Hurry, Restart and answers of all kinds, in any
// order: what is due is sent, what is over is notified, each once and in its moment.
func TestManager_I1toI8_RandomLivesAgreeWithTheModel(t *testing.T) {
	seeds.Each(t, 100, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			v := &lives{rng: rng, flying: map[string]int{}, quit: make(chan struct{})}
			v.m = renewal.New(renewal.Config{Sender: v, BatchSize: modelBatchSize, InFlight: modelInFlight, Rand: top})
			v.m.Start()
			defer v.m.Stop()
			defer close(v.quit)
			for range v.rng.IntN(120) {
				v.step(t)
			}
		})
	})
}
