package lock

import (
	"fmt"
	"maps"
	"slices"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// This file is the world in which TestUnits_Lab plays: a Redis that does what the script of a statement about units does, and
// processes whose goroutines need units.

const every = lettucecompat.AllUnits

type unitsRecord struct {
	n         uint64
	units     int64
	ends      Moment
	contended bool
	capacity  int64
}

type unitsPlace struct {
	n        uint64
	have     int64 // while its client waits
	want     int64
	capacity int64
	alive    Moment
}

// modelTerms are those of all clients.
type modelTerms struct {
	Terms
	Capacity int64
}

type modelUnits struct {
	modelTerms
	records   map[string]unitsRecord
	places    map[string]unitsPlace
	line      []string
	announced bool // all holders know that the first place waits
	publish   func(client string, h UnitsNews)
	granted   func(client string, units int64)
}

func (r *modelUnits) leave(client string) {
	delete(r.places, client)
	r.line = slices.DeleteFunc(r.line, func(c string) bool { return c == client })
}

func (r *modelUnits) expire(now Moment) {
	for c, q := range r.records {
		if now >= q.ends {
			delete(r.records, c)
		}
	}
	for _, c := range slices.Clone(r.line) {
		if now > r.places[c].alive {
			r.leave(c)
		}
	}
}

// suffices reports whether a client may have want units in all.
func (r *modelUnits) suffices(client string, capacity, want int64) bool {
	for c, q := range r.records {
		if c != client {
			capacity, want = min(capacity, q.capacity), want+q.units
		}
	}
	return want <= capacity
}

func (r *modelUnits) give(client string, p unitsPlace, contended bool, now Moment) unitsRecord {
	q := r.records[client]
	if q.units < p.have {
		p.n-- // deleted: its next statement finds that they are lost
	}
	q.n, q.units, q.ends, q.contended, q.capacity = p.n, max(p.want, q.units), max(q.ends, now+r.Call), contended, p.capacity
	r.records[client] = q
	if !contended {
		r.announced = false
	}
	r.leave(client)
	r.granted(client, q.units)
	return q
}

// state is the script.
func (r *modelUnits) state(client string, s UnitsStatement, capacity int64, now Moment) UnitsNews {
	r.expire(now)
	q, had := r.records[client]
	p, waited := r.places[client]
	switch {
	case had && q.n >= s.N, waited && p.n >= s.N:
		return UnitsNews{Word: Failed, N: s.N} // void
	case s.Place && !had && !waited:
		return UnitsNews{Word: HasNot, N: s.N}
	case s.Have > 0 && (q.units < s.Have || q.n < s.Since):
		return UnitsNews{Word: Lost, N: s.N}
	}
	q.n, q.capacity, q.units = s.N, capacity, min(q.units, s.Keep)
	if s.Have > 0 {
		q.ends = max(q.ends, now+r.Lease)
	}
	if q.units > 0 {
		r.records[client] = q
	} else {
		delete(r.records, client)
	}
	waits := s.Want > q.units || s.Again
	switch {
	case waits && !waited:
		r.line = append(r.line, client)
		fallthrough
	case waits:
		r.places[client] = unitsPlace{s.N, q.units, s.Want, capacity, now + r.Life}
	default:
		r.leave(client)
	}
	for len(r.line) > 0 && r.suffices(r.line[0], r.places[r.line[0]].capacity, r.places[r.line[0]].want) {
		c := r.line[0]
		n := r.places[c].n
		q := r.give(c, r.places[c], len(r.line) > 1, now)
		if c != client {
			r.publish(c, UnitsNews{Word: Called, N: n, Units: q.units, Lease: r.Call, Contended: q.contended})
		}
	}
	if len(r.line) > 0 {
		for _, c := range slices.Sorted(maps.Keys(r.records)) {
			o := r.records[c]
			if !o.contended && c != r.line[0] {
				o.contended = true
				r.records[c] = o
				if c != client && !r.announced {
					r.publish(c, UnitsNews{Word: Retry, N: o.n}) // stands for the message that another client waits
				}
			}
		}
		r.announced = true
	}
	q = r.records[client]
	h := UnitsNews{N: s.N, Units: q.units, Contended: q.contended, Lease: q.ends - now, Word: Has}
	switch ahead := slices.Index(r.line, client); {
	case ahead >= 0:
		next := never
		for _, o := range r.records {
			next = min(next, o.ends-now+ms)
		}
		h.Word, h.After = Waits, 300*ms
		if ahead < 2 {
			h.After = min(100*ms, next)
		}
	case q.units == 0:
		h.Word = HasNot
	}
	return h
}

type unitsWorld struct {
	timeline
	redis   *modelUnits
	clients []*unitsClient
	deleted bool // somebody deletes the lock: two may believe that they have it, for a while
	mutate  func(UnitsStatement) UnitsStatement
}

type unitsWaiter struct {
	need int64
	came Moment
	hold time.Duration
}

// unitsClient is a process: its conversation, its goroutines, and the lease that package renewal keeps for it.
type unitsClient struct {
	w        *unitsWorld
	name     string
	c        UnitsConversation
	n        uint64
	rw       bool
	waiting  []unitsWaiter
	inside   map[int]int64 // units of each
	entries  int
	until    Moment // those inside rely on the units until then
	end      Moment // the confirmed lease in Redis is over
	grant    uint64
	turnEnds Moment
	fresh    Moment // the last grant: it admits whom it was for
	reacts   Moment // those that were notified of a loss work on until then
	reacting int64  // with so many units
	spanned  Moment // another one had all since, though this one has its units: its next answer must say so
	stopped  Moment
	wake     int
}

func (k *unitsClient) used() (n int64) {
	for _, need := range k.inside {
		n += need
	}
	if k.rw && n > 0 && n < every {
		return 1
	}
	return n
}

// demand is that of a queue.Gate.
func (k *unitsClient) demand() *queue.Demand {
	d := &queue.Demand{Used: k.used(), Waiting: len(k.waiting), Contended: k.c.Contended, TurnEnds: k.turnEnds, Admissions: uint32(k.entries)}
	if k.c.usable {
		d.Units = k.c.Units
	}
	d.Keep = d.Units
	if k.rw && d.Used == 1 {
		d.Readers = int64(len(k.inside))
	}
	if k.over() {
		d.Keep = d.Used
	}
	d.Want = d.Keep
	if len(k.waiting) > 0 {
		want := k.waiting[0].need
		if !k.rw {
			want += d.Used
		}
		d.Want = max(d.Keep, want)
		d.Again = k.over() && d.Want == d.Keep && d.Used < every
	}
	return d
}

// over reports whether the turn is.
func (k *unitsClient) over() bool { return k.c.Contended && k.w.now >= k.turnEnds }

func (k *unitsClient) run(do func()) {
	if d := k.stopped - k.w.now; d > 0 {
		k.w.after(d, func() { k.run(do) })
		return
	}
	do()
}

func (k *unitsClient) hear(h UnitsNews) {
	k.run(func() {
		w := k.w
		if h.Word == Retry && h.N > 0 {
			k.c = k.c.NoteContended(h.N)
			k.step()
			return
		}
		sent, had, contended := k.c.said, k.c.Units, k.c.Contended
		var at Moment
		for _, s := range k.c.sent {
			if s.n == h.N {
				at = s.at
			}
		}
		var e Event
		k.c, e = k.c.Heard(h, w.now)
		g := k.c.Grant
		if k.c.Units > had && (had == 0 || !contended) {
			k.turnEnds = w.now + ms
			k.fresh = w.now
		}
		switch {
		case e == Granted:
			k.grant, k.until, k.end = g.Unit, g.Until(k.c.Margin), g.Sent+g.Lease
			k.spanned = 0
			w.stats["granted"]++
			if h.Word == Called {
				w.stats["entered by a call"]++
			}
			k.keep(w.now + k.c.Call/20)
		case e == Vanished:
			k.lose(0)
		case e == Missing:
			w.stats["missing"]++
		case e == GivenUp:
			w.stats["given up"]++
		case k.c.usable && k.grant == g.Unit && w.now < k.until:
			if h.Word == Has && sent.Have > 0 && h.N == sent.N && k.spanned > 0 && at > k.spanned && w.why == "" {
				w.why = fmt.Sprintf("%s kept its units over another's, at %v", k.name, w.now)
			}
			k.until, k.end = max(k.until, g.Until(k.c.Margin)), max(k.end, g.Sent+g.Lease)
			if k.c.Units > had {
				w.stats["grown"]++
			}
		}
		k.step()
	})
}

// lose notifies those inside, who react for a while, at most until the lease that Redis has confirmed is over.
func (k *unitsClient) lose(left time.Duration) {
	w := k.w
	w.stats["loss"]++
	k.reacting, k.inside = k.used(), map[int]int64{}
	k.c, _ = k.c.Heard(UnitsNews{Word: Ended, N: k.grant, Lease: left}, w.now)
	grant := k.grant
	k.grant = 0
	if left <= 0 || k.reacting == 0 {
		k.c, _ = k.c.Heard(UnitsNews{Word: Exited, N: grant}, w.now)
		k.reacting = 0
		return
	}
	k.reacts = w.now + time.Duration(w.rng.Int63n(int64(left)))
	w.after(k.reacts-w.now, func() { k.hear(UnitsNews{Word: Exited, N: grant}) })
}

// keep asks for a renewal at the moment at, and every third of a lease after that.
func (k *unitsClient) keep(at Moment) {
	w, grant := k.w, k.grant
	w.after(k.until-w.now, func() { k.run(func() { k.expire(grant) }) })
	w.after(at-w.now, func() {
		k.run(func() {
			if k.grant != grant || !k.c.usable || w.now >= k.until {
				return
			}
			if k.used() > 0 || len(k.waiting) > 0 {
				w.stats["renewal"]++
				k.c, _ = k.c.Heard(UnitsNews{Word: Retry}, w.now)
				k.step()
			}
			k.keep(w.now + k.c.Lease/3)
		})
	})
}

func (k *unitsClient) expire(grant uint64) {
	if k.grant == grant && k.c.usable && k.w.now >= k.until {
		k.lose(max(k.end-k.w.now, 0))
		k.step()
	}
}

// admit lets in who may come in.
func (k *unitsClient) admit() {
	w := k.w
	for len(k.waiting) > 0 && k.c.usable && w.now < k.until {
		first, used := k.waiting[0], k.used()
		suffices := used+first.need <= k.c.Units
		if k.rw {
			suffices = k.c.Units >= first.need && used < every && (first.need == 1 || used == 0)
		}
		if !suffices || k.over() && k.fresh != w.now {
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
					k.step()
				}
			})
		})
	}
}

func (k *unitsClient) step() {
	w := k.w
	if k.grant > 0 && k.c.usable && w.now >= k.until {
		k.expire(k.grant)
		return
	}
	k.admit()
	for range 4 {
		k.n += uint64(1 + w.rng.Intn(3))
		c, s, until := k.c.Next(k.demand(), k.n, w.now)
		k.c = c
		if s == nil {
			k.wake++
			g := k.wake
			if until < never {
				w.after(max(until-w.now, ms), func() {
					if k.wake == g {
						k.hear(UnitsNews{Word: Clock})
					}
				})
			}
			break
		}
		k.send(*s)
	}
	w.check()
}

// check searches for units that two clients rely on.
func (w *unitsWorld) check() {
	sum, least := int64(0), int64(every)
	for _, k := range w.clients {
		n := int64(0)
		if k.c.usable && w.now < k.until {
			n = k.c.Units
		}
		if k.reacts > w.now {
			if k.c.usable && k.reacting > 0 {
				w.why = fmt.Sprintf("%s may use %d at %v, and an owner that was notified reacts until %v", k.name, k.c.Units, w.now, k.reacts)
			}
			n = max(n, k.reacting)
		}
		if n > 0 {
			sum, least = sum+n, min(least, k.c.Capacity)
			if sum > least && w.why == "" && !w.deleted {
				for _, k := range w.clients {
					w.why += fmt.Sprintf("%s has %d (until %v), %d react until %v; ", k.name, k.c.Units, k.until, k.reacting, k.reacts)
				}
				w.why += fmt.Sprintf("at %v these are %d units of %d", w.now, sum, least)
			}
		}
		if used := k.used(); used > 0 && w.now < k.until && used > k.c.Units {
			w.why = fmt.Sprintf("%s uses %d of %d at %v", k.name, used, k.c.Units, w.now)
		}
	}
}

func (k *unitsClient) send(s UnitsStatement) {
	w := k.w
	w.stats["sent"]++
	w.after(60*ms, func() { k.hear(UnitsNews{Word: Silence, N: s.N, After: 20 * ms}) })
	if w.chance(0.02) { // never sent, and known not to be
		w.after(ms, func() { k.hear(UnitsNews{Word: Failed, N: s.N, After: 20 * ms}) })
		return
	}
	if w.chance(0.05) {
		return
	}
	if w.mutate != nil {
		s = w.mutate(s)
	}
	w.after(w.delay(), func() {
		h := w.redis.state(k.name, s, k.c.Capacity, w.now)
		if h.Word == Failed {
			w.stats["void"]++
			h.After = 20 * ms
		}
		if !w.chance(0.08) {
			w.after(w.delay(), func() { k.hear(h) })
		}
	})
}
