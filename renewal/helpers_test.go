package renewal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("down")

// batch is one call that the fake Sender got.
type batch struct {
	at     time.Time
	shard  string
	items  []renewal.Item
	handed time.Time
}

// sender is a Sender under the test's control. answer decides one batch; nil
// renews everything immediately.
type sender struct {
	answer func(ctx context.Context, shard string, items []renewal.Item) []renewal.Result
	quiet  bool // do not keep the batches

	mu      sync.Mutex
	batches []batch
	sends   int            // items
	flying  map[string]int // by shard
	most    map[string]int
	twice   bool // an item was in two batches at the same time
	inside  map[string]bool
}

func (s *sender) RenewBatch(ctx context.Context, shard string, items []renewal.Item, handed time.Time) []renewal.Result {
	s.mu.Lock()
	if s.flying == nil {
		s.flying, s.most, s.inside = map[string]int{}, map[string]int{}, map[string]bool{}
	}
	s.sends += len(items)
	s.flying[shard]++
	s.most[shard] = max(s.most[shard], s.flying[shard])
	if !s.quiet {
		s.batches = append(s.batches, batch{time.Now(), shard, slices.Clone(items), handed})
	}
	for _, it := range items {
		s.twice = s.twice || s.inside[it.Field]
		s.inside[it.Field] = true
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flying[shard]--
		for _, it := range items {
			s.inside[it.Field] = false
		}
	}()
	if s.answer != nil {
		return s.answer(ctx, shard, items)
	}
	return all(items, renewal.Result{Renewed: true, SentAt: time.Now()})
}

// sent returns the batches so far.
func (s *sender) sent() []batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]batch(nil), s.batches...)
}

func (s *sender) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// all answers every item alike.
func all(items []renewal.Item, r renewal.Result) []renewal.Result {
	out := make([]renewal.Result, len(items))
	for i := range out {
		out[i] = r
	}
	return out
}

func renewed(items []renewal.Item) []renewal.Result {
	return all(items, renewal.Result{Renewed: true, SentAt: time.Now()})
}

func failed(items []renewal.Item) []renewal.Result {
	return all(items, renewal.Result{SentAt: time.Now(), Err: errDown})
}

// losses collects what the holders learn, with the moment of that.
type losses struct {
	mu       sync.Mutex
	notified map[string][]renewal.Cause
	at       map[string]time.Time
}

func (k *losses) of(field string) func(renewal.Cause) {
	return func(c renewal.Cause) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.notified == nil {
			k.notified, k.at = map[string][]renewal.Cause{}, map[string]time.Time{}
		}
		k.notified[field] = append(k.notified[field], c)
		k.at[field] = time.Now()
	}
}

func (k *losses) get(field string) []renewal.Cause {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.notified[field]
}

func (k *losses) when(field string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at[field]
}

func (k *losses) total() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, c := range k.notified {
		n += len(c)
	}
	return n
}

// top pins the jitter to its upper end: the first renewal is due after exactly
// one period, a retry after the full pause.
func top() float64 { return 1 }

// start makes a running Manager inside the bubble, stopped when f returns.
func bubble(t *testing.T, cfg renewal.Config, f func(t *testing.T, m *renewal.Manager)) {
	t.Helper()
	if cfg.Rand == nil {
		cfg.Rand = top
	}
	synctest.Test(t, func(t *testing.T) {
		m := renewal.New(cfg)
		m.Start()
		defer m.Stop()
		f(t, m)
		synctest.Wait()
		if wrong := m.Check(); wrong != "" {
			t.Errorf("afterwards %s", wrong)
		}
	})
}

// owner is notified of a loss by a call of lost.
type owner struct {
	field string
	lost  func(renewal.Cause)
}

func (o owner) Lost(c renewal.Cause)       { o.lost(c) }
func (o owner) Names() (key, field string) { return "k" + o.field, o.field }

// silent is an owner whom nobody asks and who does nothing.
var silent = owner{lost: func(renewal.Cause) {}}

// notifiedBy returns the owner of sp with another way of being notified.
func notifiedBy(sp renewal.Spec, lost func(renewal.Cause)) owner {
	return owner{fieldOf(sp), lost}
}

func fieldOf(sp renewal.Spec) string {
	_, field := sp.Owner.Names()
	return field
}

// spec is the usual lease: 30 s, renewed every 10 s, 1.5 s margin.
func spec(i int, k *losses) renewal.Spec {
	field := fmt.Sprintf("f%d", i)
	return renewal.Spec{
		Lease: 30 * time.Second, Period: 10 * time.Second, Margin: 1500 * time.Millisecond,
		SentAt: time.Now(), Owner: owner{field, k.of(field)},
	}
}

func one(t *testing.T, k *losses, field string) renewal.Cause {
	t.Helper()
	got := k.get(field)
	if len(got) != 1 {
		t.Fatalf("%s was notified %d times (%v), want once", field, len(got), got)
	}
	return got[0]
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
