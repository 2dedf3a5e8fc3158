package lock

import (
	"fmt"
	"testing"
	"time"
)

// TestUnits_Lab lets five processes share one lock, for 25 s over a network and on machines that fail in many ways and then
// for 15 s without faults. What they rely on is never more than there is, or, where the lock is deleted, nobody keeps its
// units over a writer. Without faults everybody gets in, and at the end nothing is left behind.
func TestUnits_Lab(t *testing.T) { playAllUnits(t, *seeds) }

// TestUnits is the beginning of TestUnits_Lab.
func TestUnits(t *testing.T) { playAllUnits(t, (*seeds+15)/16) }

func playAllUnits(t *testing.T, seeds int) {
	for _, kind := range []string{"rw", "semaphore", "capacities", "rw, deleted", "semaphore, deleted"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stats := map[string]int{}
			var worst Moment
			for seed := range seeds {
				worst = max(worst, playUnits(t, kind, seed, stats))
			}
			t.Logf("without faults: longest wait %v; %v", worst, stats)
			if worst > 10*time.Second {
				t.Errorf("somebody waited for %v", worst)
			}
		})
	}
}

func playUnits(t *testing.T, kind string, seed int, stats map[string]int) Moment {
	w := &unitsWorld{timeline: newTimeline(seed, stats)}
	rw := kind[0] == 'r'
	deletes := len(kind) > 10 && kind != "capacities"
	w.deleted = deletes
	terms := modelTerms{
		Terms:    Terms{Lease: time.Second, Call: 200 * ms, Life: 1500 * ms, Margin: 50 * ms, Late: 2500 * ms},
		Capacity: 7,
	}
	if rw {
		terms.Capacity = every
	}
	byName := map[string]*unitsClient{}
	w.redis = &modelUnits{modelTerms: terms, records: map[string]unitsRecord{}, places: map[string]unitsPlace{}}
	w.redis.publish = func(name string, h UnitsNews) {
		for range 1 + w.rng.Intn(4)/3 { // some come twice
			if !w.chance(0.1) {
				k := byName[name]
				w.after(w.delay(), func() { k.hear(h) })
			}
		}
	}
	w.redis.granted = func(name string, units int64) {
		for _, k := range w.clients {
			if rw && k.name != name && units == every && k.c.usable && w.now < k.until {
				k.spanned = w.now
			}
		}
	}
	for i := range 5 {
		k := &unitsClient{w: w, name: fmt.Sprint("c", i), c: UnitsConversation{Terms: terms.Terms, Capacity: terms.Capacity}, n: uint64(1000 * i), rw: rw, inside: map[int]int64{}}
		if kind == "capacities" && i == 0 {
			k.c.Capacity = 4
		}
		w.clients = append(w.clients, k)
		byName[k.name] = k
		var arrive, trouble func()
		arrive = func() {
			if w.now < 33*time.Second && len(k.waiting) < 4 && (w.faults || w.rng.Intn(3) > 0) {
				need := int64(1)
				switch {
				case rw && (i == 4 || i < 2 && w.rng.Intn(10) == 0):
					need = every
				case !rw && i == 4:
					need = 5 + w.rng.Int63n(3)
				case !rw:
					need = 1 + w.rng.Int63n(4)
				}
				hold := time.Duration(w.rng.Intn(30)) * ms
				if w.rng.Intn(20) == 0 {
					hold = time.Duration(w.rng.Intn(1500)) * ms
				}
				k.waiting = append(k.waiting, unitsWaiter{min(need, k.c.Capacity), w.now, hold})
				k.run(k.step)
			}
			if len(k.waiting) > 0 && w.chance(0.1) { // its context has ended
				k.waiting = k.waiting[1:]
				k.run(k.step)
			}
			w.after(time.Duration(w.rng.Intn(60*(1+seed%5)))*ms, arrive)
		}
		trouble = func() {
			if w.chance(0.3) { // the machine is suspended
				k.stopped = w.now + time.Duration(w.rng.Intn(1500))*ms
			}
			if w.chance(0.2) { // the watchdog cancels a hold
				k.run(func() {
					if k.grant > 0 && k.c.usable && w.now < k.until {
						k.lose(k.end - w.now)
						k.step()
					}
				})
			}
			if deletes && i == 0 && w.chance(0.9) {
				clear(w.redis.records)
			}
			w.after(time.Second, trouble)
		}
		arrive()
		trouble()
	}
	for w.now < 40*time.Second && w.why == "" {
		e := w.next()
		if w.faults && w.now > 25*time.Second {
			w.faults = false
			for _, k := range w.clients { // who waits since the bad time is not measured
				for i := range k.waiting {
					k.waiting[i].came = w.now
				}
			}
		}
		e.do()
	}
	if w.why != "" {
		t.Fatalf("seed %d: %s", seed, w.why)
	}
	for _, k := range w.clients {
		if len(k.waiting) > 0 || !k.c.Settled() {
			t.Errorf("seed %d: %s has %d waiting at the end: %+v", seed, k.name, len(k.waiting), k.c)
		}
	}
	if r := w.redis; len(r.line) > 0 || len(r.records) > 0 {
		r.expire(w.now)
		if len(r.line)+len(r.records) > 0 {
			t.Errorf("seed %d: left behind: %v, %v", seed, r.records, r.line)
		}
	}
	return w.worst
}
