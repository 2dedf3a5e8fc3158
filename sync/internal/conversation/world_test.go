package conversation

import (
	"container/heap"
	"fmt"
	"math/rand"
	"time"
)

// This file is the world in which TestConversation plays: processes whose goroutines need units of a lock of any kind, and a
// network that loses, delays, repeats and reorders.

// Untyped, so that they are moments and durations.
const (
	ms     = 1_000_000
	second = 1000 * ms
	hour   = 3600 * second
)

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

type world struct {
	who    []*process // of check: it runs at each step, and makes no garbage
	now    Moment
	seq    int
	q      events
	rng    *rand.Rand
	faults bool
	why    string // what was violated
	stats  map[string]int
	worst  Moment // longest wait without faults

	redis   redis
	mutex   bool
	rw      bool
	deleted bool // somebody deletes the lock: two may believe that they have it, for a while
	all     []*process
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.q, event{w.now.Add(max(d, 0)), w.seq, do})
}

func (w *world) chance(p float64) bool { return w.faults && w.rng.Float64() < p }

func (w *world) delay() time.Duration {
	if w.chance(0.06) {
		return time.Duration(w.rng.Intn(2500)) * ms
	}
	return time.Duration(1+w.rng.Intn(4)) * ms
}

func (w *world) violated(format string, args ...any) {
	if w.why == "" {
		w.why = fmt.Sprintf(format, args...) + fmt.Sprint(" at ", w.now)
	}
}

// publish delivers a message, perhaps twice or Never.
func (w *world) publish(i int, e Event, contended uint64) {
	for range 1 + w.rng.Intn(4)/3 {
		if w.chance(0.1) {
			continue
		}
		k := w.all[i]
		w.after(w.delay(), func() {
			if contended == 0 {
				k.hear(e, false)
				return
			}
			k.run(func() {
				k.contention = k.contention.Notified(contended, &k.c)
				k.step()
			})
		})
	}
	if k := w.all[i]; e.Kind == Called && e.Units == every {
		w.span(k)
	}
}

// span notes that nobody else may keep what it has over the units of k.
func (w *world) span(k *process) {
	for _, o := range w.all {
		if w.rw && o != k && o.c.State == Holding && w.now < o.until {
			o.spanned = w.now
		}
	}
}

type waiter struct {
	need int64
	came Moment
	hold time.Duration
}

// process is a client: its conversation, its goroutines, and the lease that package renewal keeps for it.
type process struct {
	w          *world
	i          int
	c          Conversation
	n          uint64
	contention Contention
	linger     Linger
	waiting    []waiter
	inside     map[int]int64 // units of each
	entries    int
	shut       bool   // of a Mutex: its owner has not handed off
	grant      uint64 // 0: nobody relies on units
	until      Moment // those inside rely on the units until then
	end        Moment // the confirmed lease in Redis is over
	turnEnds   Moment
	fresh      Moment // the last grant: it admits whom it was for
	reacts     Moment // those that were notified of a loss work on until then
	reacting   int64  // with so many units
	spanned    Moment // another one had all since
	stopped    Moment
	wake       int
}

func (k *process) used() (n int64) {
	for _, need := range k.inside {
		n += need
	}
	if k.w.rw && n > 0 && n < every {
		return 1
	}
	return n
}

// turnIsOver reports whether others are to come in.
func (k *process) turnIsOver() bool {
	if k.w.mutex {
		return k.shut
	}
	return k.contention.Waits && k.w.now >= k.turnEnds
}

// demand is that of a gate, or of a Mutex' queue; and when to ask for it again.
func (k *process) demand() (Demand, Moment) {
	u := Use{Used: k.used(), Waiting: len(k.waiting) > 0, Admissions: uint32(k.entries), Idle: k.w.mutex}
	if k.c.State == Holding {
		u.Units = k.c.Units
	}
	u.Readers = k.w.rw && u.Used == 1
	d, at := Demand{Keep: u.Units}, Never
	if k.turnIsOver() {
		d.Keep = u.Used
	}
	k.linger, d.Keep, at = k.linger.Keep(u, d.Keep, k.w.now)
	d.Want = d.Keep
	if len(k.waiting) > 0 {
		want := k.waiting[0].need
		if !k.w.rw {
			want += u.Used
		}
		if want <= k.w.redis.capacity[k.i] { // else somebody of this process has to leave first
			d.Want = max(d.Keep, want)
			d.Again = !k.w.mutex && k.turnIsOver() && d.Want == d.Keep && u.Used < every
		}
	}
	if k.contention.Waits && k.turnEnds > k.w.now {
		at = min(at, k.turnEnds)
	}
	return d, at
}

// run does do, later if the process is stopped.
func (k *process) run(do func()) {
	if d := k.stopped - k.w.now; d > 0 {
		k.w.after(time.Duration(d), func() { k.run(do) })
		return
	}
	do()
}

func (k *process) hear(e Event, contended bool) {
	k.run(func() {
		w := k.w
		last, had, state, place := k.c.lastCommand, k.c.Units, k.c.State, k.c.InLine
		at, _ := k.c.sentLog.find(e.N)
		var f Effect
		k.c, f = k.c.Handle(e, w.now)
		g := k.c.Grant
		if e.Kind <= Waits && e.N == k.c.lastCommand.N || e.Kind == Called {
			k.contention = k.contention.Answered(e.N, contended)
		}
		if f == Granted || k.c.Units > had && !k.contention.Waits || place && !k.c.InLine {
			k.turnEnds, k.fresh = w.now+ms, w.now
		}
		switch {
		case f == Granted:
			k.grant, k.until, k.end, k.shut, k.spanned = g.Record, g.Until(k.c.Margin), g.Sent.Add(g.Lease), false, 0
			w.stats["granted"]++
			if e.Kind == Called {
				w.stats["entered by a call"]++
			}
			k.keep(w.now.Add(k.c.Call / 20))
		case f == Vanished:
			k.lose(0)
		case f == Missing:
			w.stats["missing"]++
		case f == GivenUp:
			w.stats["given up"]++
		case state == Holding && k.c.State == Holding && w.now < k.until:
			if e.Kind == Has && last.Have > 0 && e.N == last.N && k.spanned > 0 && at > k.spanned {
				w.violated("c%d kept its units over another's", k.i)
			}
			k.until, k.end = max(k.until, g.Until(k.c.Margin)), max(k.end, g.Sent.Add(g.Lease))
			if k.c.Units > had {
				w.stats["grown"]++
			}
		}
		k.step()
	})
}

// lose notifies those inside, who react for a while, at most until the lease that Redis has confirmed is over.
func (k *process) lose(left time.Duration) {
	w, grant := k.w, k.grant
	w.stats["loss"]++
	k.reacting, k.inside, k.grant = k.used(), map[int]int64{}, 0
	k.c, _ = k.c.Handle(Event{Kind: Ended, N: grant, Lease: left}, w.now)
	if left <= 0 || k.reacting == 0 {
		k.c, _ = k.c.Handle(Event{Kind: Exited, N: grant}, w.now)
		k.reacting = 0
		return
	}
	k.reacts = w.now + Moment(w.rng.Int63n(int64(left)))
	if w.rng.Intn(2) == 0 {
		w.after(k.reacts.Sub(w.now), func() { k.hear(Event{Kind: Exited, N: grant}, false) })
	} else {
		w.after(left, func() { k.hear(Event{Kind: Tick}, false) })
	}
}

// keep renews the lease at the moment at, and every third of it after that, while somebody uses it.
func (k *process) keep(at Moment) {
	w, grant := k.w, k.grant
	still := func() bool { return k.grant == grant && k.c.State == Holding }
	w.after(k.until.Sub(w.now), func() { k.run(func() { k.expire(grant) }) })
	w.after(at.Sub(w.now), func() {
		k.run(func() {
			if !still() || w.now >= k.until {
				return
			}
			sent, last, units := w.now, k.c.lastCommand.N, k.c.Units
			k.keep(sent.Add(k.c.Lease / 3))
			if w.chance(0.05) || k.used() == 0 && len(k.waiting) == 0 {
				return
			}
			w.after(w.delay(), func() {
				renewed, contended := w.redis.renew(k.i, grant, units, w.now)
				if w.chance(0.08) {
					return
				}
				w.after(w.delay(), func() {
					k.run(func() {
						switch {
						case !still():
						case !renewed && k.c.lastCommand.N == last: // otherwise the answer to what was sent since says so
							k.lose(0)
							k.step()
						case renewed && w.now < k.until:
							if k.spanned > 0 && sent > k.spanned {
								w.violated("c%d renewed its units over another's", k.i)
							}
							k.until, k.end = max(k.until, sent.Add(k.c.Lease-k.c.Margin)), max(k.end, sent.Add(k.c.Lease))
							w.stats["renewed"]++
							if k.c.lastCommand.N == last && !k.c.unanswered {
								k.contention = k.contention.Answered(last, contended)
								if w.chance(0.1) { // a failover has lost that it gave some back
									k.c, _ = k.c.Handle(Event{Kind: Surplus}, w.now)
								}
							}
							k.step()
						}
					})
				})
			})
		})
	})
}

// expire notifies owners whose lease was not renewed in time.
func (k *process) expire(grant uint64) {
	if k.grant > 0 && k.grant == grant && k.c.State == Holding && k.w.now >= k.until {
		k.lose(max(k.end.Sub(k.w.now), 0))
		k.step()
	}
}

// admit lets in who may come in.
func (k *process) admit() {
	w := k.w
	for len(k.waiting) > 0 && k.c.State == Holding && w.now < k.until {
		first, used := k.waiting[0], k.used()
		suffices := used+first.need <= k.c.Units
		if w.rw {
			suffices = k.c.Units >= first.need && used < every && (first.need == 1 || used == 0)
		}
		if !suffices || k.turnIsOver() && k.fresh != w.now {
			return
		}
		k.waiting = k.waiting[1:]
		k.entries++
		id := k.entries
		k.inside[id] = first.need
		if !w.faults {
			w.worst = max(w.worst, w.now-first.came)
		}
		w.stats["entered"]++
		w.after(first.hold, func() {
			k.run(func() {
				if k.inside[id] > 0 {
					delete(k.inside, id)
					k.shut = w.mutex && w.rng.Intn(2) == 0 // else a hand-off
					k.step()
				}
			})
		})
	}
}

func (k *process) step() {
	w := k.w
	if k.grant > 0 && k.c.State == Holding && w.now >= k.until {
		k.expire(k.grant)
		return
	}
	k.admit()
	for range 4 {
		k.n += uint64(1 + w.rng.Intn(3)) // other keys of this client
		d, at := k.demand()
		c, s, until := k.c.Next(d, k.n, w.now)
		k.c = c
		if s.N == 0 {
			k.wake++
			g := k.wake
			if until = min(until, at); until < Never {
				w.after(max(until.Sub(w.now), ms), func() {
					if k.wake == g {
						k.hear(Event{Kind: Tick}, false)
					}
				})
			}
			break
		}
		if s.Keep == 0 {
			k.grant = 0
		}
		k.send(s)
	}
	w.check()
}

// check searches for units that two clients rely on.
func (w *world) check() {
	sum, least, who := int64(0), int64(every), w.who[:0]
	for _, k := range w.all {
		n := int64(0)
		if k.c.State == Holding && w.now < k.until {
			n = k.c.Units
		}
		if k.reacts > w.now {
			if k.c.State == Holding && k.reacting > 0 {
				w.violated("c%d may use %d, and an owner that was notified reacts until %v", k.i, k.c.Units, k.reacts)
			}
			n = max(n, k.reacting)
		}
		if n > 0 {
			sum, least = sum+n, min(least, w.redis.capacity[k.i])
			who = append(who, k)
		}
		if used := k.used(); used > 0 && w.now < k.until && used > k.c.Units {
			w.violated("c%d uses %d of %d", k.i, used, k.c.Units)
		}
	}
	if sum > least && !w.deleted {
		text := ""
		for _, k := range who {
			text += fmt.Sprintf(" c%d: %v, %d units until %v, %d react until %v;", k.i, k.c.State, k.c.Units, k.until, k.reacting, k.reacts)
		}
		w.violated("%d units of %d:%s", sum, least, text)
	}
	w.who = who
}

func (k *process) send(s Command) {
	w := k.w
	w.stats["sent"]++
	if w.mutex {
		w.stats[fmt.Sprintf("%v/%d %d %d", s.InLine, s.Have, s.Keep, s.Want)]++
	}
	w.after(60*ms, func() { k.hear(Event{Kind: Silence, N: s.N, After: 20 * ms}, false) })
	if w.chance(0.02) { // Never sent, and known not to be
		w.after(ms, func() { k.hear(Event{Kind: Failed, N: s.N, After: 20 * ms}, false) })
		return
	}
	if w.chance(0.05) {
		return
	}
	w.after(w.delay(), func() {
		e, contended := w.redis.state(k.i, s, w.now, w.publish)
		if e.Units == every && s.Have < every {
			w.span(k)
		}
		if e.Kind == Failed {
			w.stats["void"]++
			e.After = 20 * ms
		}
		if !w.chance(0.08) {
			w.after(w.delay(), func() { k.hear(e, contended) })
		}
	})
}

// pop goes to the moment of the next event.
func pop(w *world) event {
	e := heap.Pop(&w.q).(event)
	w.now = e.at
	return e
}
