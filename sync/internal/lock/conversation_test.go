package lock

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var seeds = flag.Int("seeds", 80, "how many random worlds TestConversation plays")

// TestConversation lets four processes speak with one Redis, for 25 s over a network and on machines that fail in many
// ways and then for 15 s without faults. There are never two owners. Without faults everybody gets in, and at the end
// nothing is left behind.
func TestConversation(t *testing.T) {
	stats := map[string]int{}
	var worst, idle Moment
	for seed := range *seeds {
		w := &world{timeline: newTimeline(seed, stats)}
		terms := Terms{Lease: time.Second, Call: 200 * ms, Life: 1500 * ms, Margin: 50 * ms, Late: 2500 * ms}
		w.redis = &modelRedis{places: map[string]modelPlace{}, Terms: terms}
		byName := map[string]*client{}
		w.redis.publish = func(name string, h News) {
			for range 1 + w.rng.Intn(4)/3 { // some come twice
				if !w.chance(0.1) {
					k := byName[name]
					w.after(w.delay(), func() { k.hear(h) })
				}
			}
		}
		for i := range 4 {
			k := &client{w: w, name: fmt.Sprint("c", i), c: Conversation{Terms: terms}, n: uint64(1000 * i)}
			w.clients = append(w.clients, k)
			byName[k.name] = k
			var arrive, trouble func()
			arrive = func() {
				if w.now < 33*time.Second && len(k.waiting) < 3 && (w.faults || w.rng.Intn(3) > 0) {
					k.waiting = append(k.waiting, w.now)
					k.run(k.step)
				}
				if len(k.waiting) > 0 && w.chance(0.1) { // its context has ended
					k.waiting = k.waiting[1:]
					k.run(k.step)
				}
				w.after(time.Duration(w.rng.Intn(200*(1+seed%5)))*ms, arrive)
			}
			trouble = func() {
				if w.chance(0.3) { // the machine is suspended
					k.stopped = w.now + time.Duration(w.rng.Intn(1500))*ms
				}
				if w.chance(0.2) { // the watchdog cancels the hold
					k.run(func() {
						if k.inside && w.now < k.until {
							k.lose(k.end - w.now)
							k.step()
						}
					})
				}
				w.after(time.Second, trouble)
			}
			arrive()
			trouble()
		}
		freeAt := never
		for w.now < 40*time.Second && w.why == "" {
			e := w.next()
			if w.faults && w.now > 25*time.Second {
				w.faults = false
				for _, k := range w.clients { // who waits since the bad time is not measured
					for i := range k.waiting {
						k.waiting[i] = w.now
					}
				}
			}
			e.do()
			switch r := w.redis; {
			case r.holder != "" && w.now < r.ends || len(r.line) == 0:
				freeAt = never
			case freeAt == never:
				freeAt = w.now
			case !w.faults:
				idle = max(idle, w.now-freeAt)
			}
		}
		if w.why != "" {
			t.Fatalf("seed %d: %s", seed, w.why)
		}
		worst = max(worst, w.worst)
		for _, k := range w.clients {
			if len(k.waiting) > 0 || !k.c.Settled() {
				t.Errorf("seed %d: %s has %d waiting at the end: %+v", seed, k.name, len(k.waiting), k.c)
			}
		}
		if r := w.redis; r.holder != "" && w.now < r.ends || len(r.line) > 0 {
			t.Errorf("seed %d: left behind: %s, %v", seed, r.holder, r.line)
		}
	}
	t.Logf("without faults: longest wait %v, longest time free beside a place %v; %v", worst, idle, stats)
	if idle > 600*ms {
		t.Errorf("the lock was free beside a place for %v, want at most 600ms: the last of four confirms after 300ms", idle)
	}
}
