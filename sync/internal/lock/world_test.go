package lock

import (
	"container/heap"
	"fmt"
	"math/rand"
	"slices"
	"time"
)

// This file is the world in which TestConversation plays: a Redis that does what the script of a statement does, the
// renewals of package renewal, and a network that loses, delays, repeats and reorders.

const ms = time.Millisecond

type modelPlace struct {
	n     uint64
	alive Moment
}

type modelRedis struct {
	holder  string // of the unit; "": free
	n       uint64 // its number
	ends    Moment
	places  map[string]modelPlace
	line    []string // clients, the first one first
	publish func(client string, h News)
	Terms
}

func (r *modelRedis) leave(client string) {
	delete(r.places, client)
	r.line = slices.DeleteFunc(r.line, func(c string) bool { return c == client })
}

func (r *modelRedis) grant(client string, n uint64, now Moment) {
	r.leave(client)
	r.holder, r.n, r.ends = client, n, now+r.Call
}

func (r *modelRedis) expire(now Moment) {
	for _, c := range slices.Clone(r.line) {
		if now > r.places[c].alive {
			r.leave(c)
		}
	}
	if now >= r.ends {
		r.holder = ""
	}
}

// state is the script, in the order of docs/internals/protocol.md.
func (r *modelRedis) state(client string, s Statement, now Moment) News {
	r.expire(now)
	place, inLine := r.places[client]
	own := r.holder == client
	mine := own && r.n >= s.Since
	switch {
	case own && r.n >= s.N, inLine && place.n >= s.N:
		return News{Word: Failed, N: s.N} // void
	case s.Have == Unit && !mine:
		return News{Word: Lost, N: s.N}
	case s.Have == Place && !mine && !inLine:
		return News{Word: HasNot, N: s.N}
	}
	if mine && s.Keep == 0 {
		r.holder, mine = "", false
	}
	switch {
	case s.Want == 0:
		r.leave(client)
	case mine && s.Have == Unit:
		r.ends = max(r.ends, now+r.Lease)
	case mine: // called
	case r.holder == "" && len(r.line) == 0:
		r.grant(client, s.N, now)
	default:
		if !inLine {
			r.line = append(r.line, client)
		}
		r.places[client] = modelPlace{s.N, now + r.Life}
	}
	if r.holder == "" && len(r.line) > 0 {
		first := r.line[0]
		r.grant(first, r.places[first].n, now)
		if first != client {
			r.publish(first, News{Word: Called, N: r.n, Lease: r.Call})
		}
	}
	switch ahead := slices.Index(r.line, client); {
	case s.Want == 0:
		return News{Word: HasNot, N: s.N}
	case ahead < 0:
		return News{Word: Has, N: s.N, Unit: r.n, Lease: r.ends - now}
	case ahead < 2:
		return News{Word: Waits, N: s.N, Lease: min(100*ms, r.ends-now+ms)}
	default:
		return News{Word: Waits, N: s.N, Lease: 100 * ms * time.Duration(ahead)}
	}
}

// renew is the script of a renewal: it names exactly the unit.
func (r *modelRedis) renew(client string, unit uint64, now Moment) bool {
	r.expire(now)
	if r.holder != client || r.n != unit {
		return false
	}
	r.ends = max(r.ends, now+r.Lease)
	return true
}

type event struct {
	at  Moment
	seq int
	do  func()
}
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

// timeline is one random history: what happens in it, and when.
type timeline struct {
	now    Moment
	seq    int
	q      events
	rng    *rand.Rand
	faults bool
	why    string // what was violated
	stats  map[string]int
	worst  Moment // longest wait without faults
}

func newTimeline(seed int, stats map[string]int) timeline {
	return timeline{rng: rand.New(rand.NewSource(int64(seed))), faults: true, stats: stats}
}

func (w *timeline) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.q, event{w.now + max(d, 0), w.seq, do})
}

// next goes to the moment of the next event.
func (w *timeline) next() event {
	e := heap.Pop(&w.q).(event)
	w.now = e.at
	return e
}

func (w *timeline) chance(p float64) bool { return w.faults && w.rng.Float64() < p }

func (w *timeline) delay() time.Duration {
	if w.chance(0.06) {
		return time.Duration(w.rng.Intn(2500)) * ms
	}
	return time.Duration(1+w.rng.Intn(4)) * ms
}

type world struct {
	timeline
	redis   *modelRedis
	clients []*client
}

// client is a process with its conversation, its owner and the lease that package renewal keeps for that.
type client struct {
	w       *world
	name    string
	c       Conversation
	n       uint64
	waiting []Moment
	inside  bool
	unit    uint64
	until   Moment // the owner relies on the lock until then
	end     Moment // the confirmed lease in Redis is over
	reacts  Moment // an owner that was notified of a loss works on until then
	stopped Moment
	wake    int
	owner   int // counts owners
}

func (k *client) demand() Demand {
	switch {
	case k.inside:
		return Owned
	case len(k.waiting) == 0:
		return Quiet
	}
	return Pending
}

// run does do, later if the process is stopped.
func (k *client) run(do func()) {
	if d := k.stopped - k.w.now; d > 0 {
		k.w.after(d, func() { k.run(do) })
		return
	}
	do()
}

func (k *client) hear(h News) {
	k.run(func() {
		var e Event
		k.c, e = k.c.Heard(h, k.w.now)
		switch {
		case e == Granted:
			k.unit = k.c.Grant.Unit
			k.until, k.end = k.c.Grant.Until(k.c.Margin), k.c.Grant.Sent+k.c.Grant.Lease
			if len(k.waiting) > 0 {
				k.enter()
				k.keep(k.w.now + k.c.Call/20)
			}
			if h.Word == Called {
				k.w.stats["entered by a call"]++
			}
		case e == Vanished && k.inside:
			k.lose(0)
		case e == Missing:
			k.w.stats["missing"]++
		case e == GivenUp:
			k.w.stats["given up"]++
		}
		k.step()
	})
}

// lose notifies the owner, who reacts for a while, at most until the lease that Redis has confirmed is over.
func (k *client) lose(left time.Duration) {
	w := k.w
	w.stats["loss"]++
	k.inside = false
	k.owner++
	k.c, _ = k.c.Heard(News{Word: Ended, N: k.unit, Lease: left}, w.now)
	if left <= 0 {
		return
	}
	k.reacts = w.now + time.Duration(w.rng.Int63n(int64(left)))
	unit := k.unit
	if w.rng.Intn(2) == 0 {
		w.after(k.reacts-w.now, func() { k.hear(News{Word: Exited, N: unit}) })
	} else {
		w.after(left, func() { k.hear(News{Word: Clock}) })
	}
}

// keep renews the lease at the moment at, and every third of it after that.
func (k *client) keep(at Moment) {
	w, unit, g := k.w, k.unit, k.owner
	still := func() bool { return k.inside && k.owner == g }
	w.after(max(k.until-w.now, 0), func() { k.run(func() { k.expire(unit) }) })
	w.after(at-w.now, func() {
		k.run(func() {
			if !still() || w.now >= k.until {
				return
			}
			sent := w.now
			k.keep(sent + k.c.Lease/3)
			if w.chance(0.05) {
				return
			}
			w.after(w.delay(), func() {
				renewed := w.redis.renew(k.name, unit, w.now)
				if w.chance(0.08) {
					return
				}
				w.after(w.delay(), func() {
					k.run(func() {
						switch {
						case k.unit != unit || !k.inside:
						case !renewed:
							k.lose(0)
							k.step()
						case w.now < k.until:
							k.until = max(k.until, sent+k.c.Lease-k.c.Margin)
							k.end = max(k.end, sent+k.c.Lease)
							w.stats["renewed"]++
						}
					})
				})
			})
		})
	})
}

// expire notifies the owner whose lease was not renewed in time.
func (k *client) expire(unit uint64) {
	if k.inside && k.unit == unit && k.w.now >= k.until {
		k.lose(k.end - k.w.now)
		k.step()
	}
}

func (k *client) enter() {
	w := k.w
	d := w.now - k.waiting[0]
	k.waiting = k.waiting[1:]
	if !w.faults {
		w.worst = max(w.worst, d)
	}
	w.stats["entered"]++
	k.inside = true
	k.owner++
	g := k.owner
	hold := time.Duration(w.rng.Intn(30)) * ms
	if w.rng.Intn(20) == 0 {
		hold = time.Duration(w.rng.Intn(1500)) * ms
	}
	w.after(hold, func() {
		k.run(func() {
			if !k.inside || k.owner != g {
				return
			}
			if w.now >= k.until {
				k.expire(k.unit)
				return
			}
			k.inside = false
			if len(k.waiting) > 0 && w.rng.Intn(2) == 0 { // a hand-off
				k.enter()
				k.keep(w.now + k.c.Lease/6)
			}
			k.step()
		})
	})
}

func (k *client) step() {
	w := k.w
	for range 4 {
		k.n += uint64(1 + w.rng.Intn(3)) // other keys of this client
		c, s, until := k.c.Next(k.demand(), k.n, w.now)
		k.c = c
		if s == nil {
			k.wake++
			g := k.wake
			if until < never {
				w.after(max(until-w.now, ms), func() {
					if k.wake == g {
						k.hear(News{Word: Clock})
					}
				})
			}
			break
		}
		k.send(*s)
	}
	w.check()
}

// check searches for two owners: an owner that relies on the lock, or one that was notified of a loss and works on.
func (w *world) check() {
	owners, k := "", 0
	for _, o := range w.clients {
		if o.inside && w.now < o.until {
			owners, k = owners+" "+o.name, k+1
		}
		if o.reacts > w.now {
			owners, k = owners+" "+o.name+" (notified)", k+1
		}
	}
	if k > 1 && w.why == "" {
		w.why = fmt.Sprintf("two owners at %v:%s", w.now, owners)
	}
}

func (k *client) send(s Statement) {
	w := k.w
	w.stats[fmt.Sprintf("%v %d %d", s.Have, s.Keep, s.Want)]++
	w.after(60*ms, func() { k.hear(News{Word: Silence, N: s.N, Lease: 20 * ms}) })
	if w.chance(0.02) { // never sent, and known not to be
		w.after(ms, func() { k.hear(News{Word: Failed, N: s.N, Lease: 20 * ms}) })
		return
	}
	if w.chance(0.05) {
		return
	}
	w.after(w.delay(), func() {
		h := w.redis.state(k.name, s, w.now)
		if h.Word == Failed {
			w.stats["void"]++
		}
		if !w.chance(0.08) {
			w.after(w.delay(), func() { k.hear(h) })
		}
	})
}
