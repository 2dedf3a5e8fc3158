package watchdog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/watchdog"
)

// world is a process with holds and the Redis beside it. The zero value of each hook is
// a world without trouble.
type world struct {
	mu    sync.Mutex
	holds map[uint64]*watchdog.Facts
	told  map[uint64]bool // by Changes
	stats watchdog.RenewalStats
	alive map[uint64]bool      // renewed every RenewalTime, as seen at each check
	due   map[uint64]time.Time // of renewals that the test makes itself

	status   func(context.Context, watchdog.Facts) watchdog.Status
	ping     func(context.Context) error
	delivery func(context.Context) error
	act      func(action string, id uint64, f watchdog.Finding) bool
	onEach   func()
	absent   map[uint64]bool // holds that do not belong to the set when they are next looked up, for a moment

	asked   map[uint64]int
	askedAt []time.Time
	pings   int
	actions []string
	events  []string
	looks   map[uint64][]time.Time
	late    []time.Duration
}

func newWorld() *world {
	return &world{
		holds: map[uint64]*watchdog.Facts{}, told: map[uint64]bool{}, alive: map[uint64]bool{}, due: map[uint64]time.Time{},
		absent: map[uint64]bool{}, asked: map[uint64]int{}, looks: map[uint64][]time.Time{},
	}
}

// hold is a healthy, renewed hold that was taken just now.
func hold(id uint64) watchdog.Facts {
	now := time.Now()
	return watchdog.Facts{
		ID: id, Key: fmt.Sprint("key", id), Class: "class", Since: now,
		Lease: 30 * time.Second, RenewalTime: 10 * time.Second, Period: 5 * time.Second, AlertThreshold: 2,
		LastConfirmed: now, Deadline: now.Add(28500 * time.Millisecond), Reachable: true, CallSite: "main.go:7",
	}
}

// add lists a hold whose renewal works.
func (w *world) add(f watchdog.Facts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds[f.ID], w.alive[f.ID] = &f, !f.Fixed
}

// change edits a hold; its renewal continues as alive says.
func (w *world) change(id uint64, alive bool, edit func(*watchdog.Facts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current(id)
	w.alive[id] = alive
	edit(w.holds[id])
}

// do changes the world while the Watchdog looks at it.
func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// answer sets what Redis says about holds from now on.
func (w *world) answer(status func(context.Context, watchdog.Facts) watchdog.Status) {
	w.do(func() { w.status = status })
}

func (w *world) end(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holds, id)
}

// current returns the hold with the renewals that have happened by now.
func (w *world) current(id uint64) watchdog.Facts {
	f := w.holds[id]
	for now := time.Now(); w.alive[id] && now.Sub(f.LastConfirmed) >= f.RenewalTime; {
		f.LastConfirmed = f.LastConfirmed.Add(f.RenewalTime)
		f.Deadline = f.LastConfirmed.Add(f.Lease * 19 / 20)
	}
	if f.NextRenewal = f.LastConfirmed.Add(f.RenewalTime); f.Fixed || w.due[id] != (time.Time{}) {
		f.NextRenewal = w.due[id]
	}
	return *f
}

func (w *world) Changes() (came, went []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.holds {
		if !w.told[id] {
			came = append(came, id)
			w.told[id] = true
		}
	}
	for id := range w.told {
		if w.holds[id] == nil {
			went = append(went, id)
			delete(w.told, id)
		}
	}
	if w.onEach != nil {
		w.onEach()
	}
	return came, went
}

func (w *world) Lookup(id uint64) (watchdog.Facts, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds[id] == nil || w.absent[id] {
		delete(w.absent, id)
		return watchdog.Facts{}, false
	}
	return w.current(id), true
}

func (w *world) LookupAll(facts []watchdog.Facts) {
	for i := range facts {
		facts[i], _ = w.Lookup(facts[i].ID)
	}
}

func (w *world) Renewals() watchdog.RenewalStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// good is Redis' answer about a hold without trouble.
func good() watchdog.Status {
	return watchdog.Status{Answered: true, Present: true, Count: 1, Fields: 1, TTL: 20 * time.Second}
}

func (w *world) Status(ctx context.Context, holds []watchdog.Facts) []watchdog.Status {
	answers := make([]watchdog.Status, len(holds))
	for i, f := range holds {
		w.mu.Lock()
		w.asked[f.ID]++
		w.askedAt = append(w.askedAt, time.Now())
		status := w.status
		w.mu.Unlock()
		answers[i] = good()
		if status != nil {
			answers[i] = status(ctx, f)
		}
	}
	return answers
}

func (w *world) Ping(ctx context.Context) error {
	w.mu.Lock()
	w.pings++
	ping := w.ping
	w.mu.Unlock()
	if ping != nil {
		return ping(ctx)
	}
	return nil
}

func (w *world) ProbeDelivery(ctx context.Context) error {
	w.mu.Lock()
	delivery := w.delivery
	w.mu.Unlock()
	if delivery != nil {
		return delivery(ctx)
	}
	return nil
}

func (w *world) Act(id uint64, action string, f watchdog.Finding) bool {
	w.mu.Lock()
	w.actions = append(w.actions, fmt.Sprintf("%s %d %s", action, id, f))
	act := w.act
	w.mu.Unlock()
	return act == nil || act(action, id, f)
}

// config reports everything into the world.
func (w *world) config() watchdog.Config {
	note := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, fmt.Sprintf(format, args...))
	}
	return watchdog.Config{
		Source: w, Prober: w, Actor: w, Period: 5 * time.Second, HolderScanEvery: -1,
		OnVerdict: func(f watchdog.Facts, v watchdog.Verdict) {
			if v.Check == watchdog.Holder {
				w.mu.Lock()
				w.looks[f.ID] = append(w.looks[f.ID], v.At)
				w.mu.Unlock()
			}
			if v.Health == watchdog.Unhealthy {
				note("found %d %s", f.ID, v.Finding)
			}
		},
		OnAlert: func(f watchdog.Facts, c watchdog.Check, n int) { note("alert %d %s %d", f.ID, c, n) },
		OnClear: func(f watchdog.Facts, c watchdog.Check) { note("clear %d %s", f.ID, c) },
		OnRecovery: func(f watchdog.Facts, v watchdog.Verdict, action string, o watchdog.RecoveryOutcome) {
			note("%s %d %s %s", o, f.ID, action, v.Finding)
		},
		OnSelfLate: func(late time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.late = append(w.late, late)
		},
	}
}

// count returns how often the event happened; a prefix counts all that begin with it.
func (w *world) count(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, list := range [][]string{w.events, w.actions} {
		for _, e := range list {
			if len(e) >= len(prefix) && e[:len(prefix)] == prefix {
				n++
			}
		}
	}
	return n
}

// want fails unless the event happened exactly n times.
func (w *world) want(t *testing.T, n int, event string) {
	t.Helper()
	if got := w.count(event); got != n {
		w.mu.Lock()
		defer w.mu.Unlock()
		t.Errorf("%q happened %d times, want %d; events %q, actions %q", event, got, n, w.events, w.actions)
	}
}

// run starts a Watchdog on the world in a virtual-time bubble and stops it at the end.
func run(t *testing.T, edit func(*world, *watchdog.Config), body func(t *testing.T, w *world, d *watchdog.Watchdog)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		cfg := w.config()
		if edit != nil {
			edit(w, &cfg)
		}
		d := watchdog.New(cfg)
		d.Start()
		defer d.Stop()
		body(t, w, d)
	})
}

// pass lets virtual time go by and everything that it wakes come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
