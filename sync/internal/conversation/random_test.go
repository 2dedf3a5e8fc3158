package conversation

import (
	"flag"
	"math/rand"
	"testing"
	"time"
)

var seeds = flag.Int("seeds", 80, "how many random worlds TestConversation_Lab plays of each kind")

// TestConversation_Lab lets processes share one lock, for 25 s over a network and on machines that fail in many ways and then
// for 15 s without faults. What they rely on is never more than there is, or, where the lock is deleted, nobody keeps its
// units over a writer. Without faults everybody gets in, and at the end nothing is left behind.
func TestConversation_Lab(t *testing.T) { playAll(t, *seeds) }

// TestConversation is the beginning of TestConversation_Lab.
func TestConversation(t *testing.T) { playAll(t, (*seeds+19)/20) }

func playAll(t *testing.T, seeds int) {
	for _, kind := range []string{"mutex", "rw", "semaphore", "capacities", "mutex, deleted", "rw, deleted", "semaphore, deleted"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stats := map[string]int{}
			var worst, idle Moment
			for seed := range seeds {
				w := playRandom(t, kind, seed, stats, &idle)
				worst = max(worst, w.worst)
			}
			t.Logf("without faults: longest wait %v, longest time free beside a place %v; %v", worst, idle, stats)
			if worst > 10*second {
				t.Errorf("somebody waited for %v", worst)
			}
			if idle > 600*ms && kind == "mutex" { // the last of four confirms after 300 ms
				t.Errorf("free beside a place for %v, want at most 600ms", idle)
			}
		})
	}
}

func playRandom(t *testing.T, kind string, seed int, stats map[string]int, idle *Moment) *world {
	w := &world{rng: rand.New(rand.NewSource(int64(seed))), faults: true, stats: stats, mutex: kind[0] == 'm', rw: kind[0] == 'r', deleted: kind[len(kind)-1] == 'd'}
	terms := Terms{Lease: second, Call: 200 * ms, Life: 1500 * ms, Margin: 50 * ms, Late: 2500 * ms}
	w.redis = redis{Terms: terms, document: w.mutex}
	count, most, pause := clients, 4, 60*(1+seed%5)
	if w.mutex {
		count, most, pause = 4, 3, 200*(1+seed%5)
	}
	for i := range count {
		switch {
		case w.mutex:
			w.redis.capacity[i] = 1
		case w.rw:
			w.redis.capacity[i] = every
		case kind == "capacities" && i == 0:
			w.redis.capacity[i] = 4
		default:
			w.redis.capacity[i] = 7
		}
		k := &process{w: w, i: i, c: Conversation{Terms: &terms}, n: uint64(1000*i + 1), inside: map[int]int64{}}
		w.all = append(w.all, k)
		var arrive, trouble func()
		arrive = func() {
			if w.now < 33*second && len(k.waiting) < most && (w.faults || w.rng.Intn(3) > 0) {
				need := int64(1)
				switch {
				case w.mutex:
				case w.rw && (i == 4 || i < 2 && w.rng.Intn(10) == 0):
					need = every
				case !w.rw && i == 4:
					need = 5 + w.rng.Int63n(3)
				case !w.rw:
					need = 1 + w.rng.Int63n(4)
				}
				hold := time.Duration(w.rng.Intn(30)) * ms
				if w.rng.Intn(20) == 0 {
					hold = time.Duration(w.rng.Intn(1500)) * ms
				}
				k.waiting = append(k.waiting, waiter{need, w.now, hold})
				k.run(k.step)
			}
			if len(k.waiting) > 0 && w.chance(0.1) { // its context has ended
				k.waiting = k.waiting[1:]
				k.run(k.step)
			}
			w.after(time.Duration(w.rng.Intn(pause))*ms, arrive)
		}
		trouble = func() {
			if w.chance(0.3) { // the machine is suspended
				k.stopped = w.now + Moment(w.rng.Intn(1500))*ms
			}
			if w.chance(0.2) { // the watchdog cancels a hold
				k.run(func() {
					if k.grant > 0 && k.c.State == Holding && w.now < k.until {
						k.lose(k.end.Sub(w.now))
						k.step()
					}
				})
			}
			if w.deleted && i == 0 && w.chance(0.9) {
				w.redis.records = [clients]record{}
			}
			w.after(second, trouble)
		}
		arrive()
		trouble()
	}
	freeAt := Never
	for w.now < 40*second && w.why == "" {
		e := pop(w)
		if w.faults && w.now > 25*second {
			w.faults = false
			for _, k := range w.all { // who waits since the bad time is not measured
				for i := range k.waiting {
					k.waiting[i].came = w.now
				}
			}
		}
		e.do()
		free := w.redis.line[0] > 0
		for _, q := range w.redis.records {
			free = free && (q.units == 0 || w.now >= q.ends)
		}
		switch {
		case !free:
			freeAt = Never
		case freeAt == Never:
			freeAt = w.now
		case !w.faults:
			*idle = max(*idle, w.now-freeAt)
		}
	}
	if w.why != "" {
		t.Fatalf("seed %d: %s", seed, w.why)
	}
	w.redis.expire(w.now)
	for _, k := range w.all {
		if len(k.waiting) > 0 || k.c.State != Idle {
			t.Errorf("seed %d: c%d has %d waiting at the end: %+v", seed, k.i, len(k.waiting), k.c)
		}
		if q := w.redis.records[k.i]; q.units > 0 || w.redis.line[0] > 0 {
			t.Errorf("seed %d: left behind: %+v, %v", seed, q, w.redis.line)
		}
	}
	return w
}
