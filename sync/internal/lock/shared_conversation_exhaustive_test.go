package lock

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// TestUnitsEveryOrder plays, as TestEveryOrder does for a Mutex, every order of what two processes that share two units and
// their network may do, as deep as the limit goes.

type unitsFlight struct {
	client int8 // 0: none
	landed bool
	s      UnitsStatement
	h      UnitsNews
}

type unitsProcess struct {
	c        UnitsConversation
	n        uint64
	used     int64
	need     int64 // of the first waiter
	grant    uint64
	until    Moment // those inside rely on the units until then
	end      Moment // the confirmed lease is over
	reacts   Moment // those that were notified of their loss work on until then
	reacting int64
	renewals int
}

type unitsAll struct {
	now       Moment
	record    [2]unitsRecord
	place     [2]unitsPlace
	first     int8
	p         [2]unitsProcess
	f         [2 * most]unitsFlight
	called    [2]UnitsNews
	contended [2]uint64
}

// script is Redis' side. The line is in any order, and a place is live.
func (a *unitsAll) script(i int, s UnitsStatement) UnitsNews {
	for j := range a.record {
		if a.now >= a.record[j].ends {
			a.record[j] = unitsRecord{}
		}
	}
	q, other := &a.record[i], 1-i
	switch {
	case q.n >= s.N, a.place[i].n >= s.N:
		return UnitsNews{Word: Failed, N: s.N, After: tick} // void
	case s.Place && q.units == 0 && a.place[i].n == 0:
		return UnitsNews{Word: HasNot, N: s.N}
	case s.Have > 0 && (q.units < s.Have || q.n < s.Since):
		return UnitsNews{Word: Lost, N: s.N}
	}
	q.n, q.units = s.N, min(q.units, s.Keep)
	if s.Have > 0 {
		q.ends = max(q.ends, a.now+4*tick)
	}
	waited := a.place[i].n > 0
	a.place[i] = unitsPlace{}
	if s.Want > q.units || s.Again {
		switch {
		case !waited && a.place[other].n > 0:
			a.first = int8(other)
		case a.place[other].n == 0:
			a.first = int8(i)
		}
		a.place[i] = unitsPlace{n: s.N, want: s.Want}
	}
	if q.units == 0 {
		*q = unitsRecord{}
	}
	for range 2 {
		k := int(a.first)
		if a.place[k].n == 0 {
			k = 1 - k
		}
		p := a.place[k]
		if p.n == 0 {
			break
		}
		if p.want+a.record[1-k].units > 2 {
			if !a.record[1-k].contended && a.record[1-k].units > 0 {
				a.record[1-k].contended, a.contended[1-k] = true, a.record[1-k].n
			}
			break
		}
		r := &a.record[k]
		r.n, r.units, r.ends = p.n, max(p.want, r.units), max(r.ends, a.now+2*tick)
		a.place[k] = unitsPlace{}
		r.contended = a.place[1-k].n > 0
		if k != i {
			a.called[k] = UnitsNews{Word: Called, N: r.n, Units: r.units, Lease: 2 * tick, Contended: r.contended}
		}
	}
	h := UnitsNews{Word: Has, N: s.N, Units: q.units, Lease: q.ends - a.now, Contended: q.contended}
	switch {
	case a.place[i].n > 0:
		h.Word, h.After = Waits, tick
	case q.units == 0:
		h = UnitsNews{Word: HasNot, N: s.N}
	}
	return h
}

func (a *unitsAll) hear(i int, h UnitsNews) {
	p := &a.p[i]
	var e Event
	p.c, e = p.c.Heard(h, a.now)
	g := p.c.Grant
	switch {
	case e == Granted:
		p.grant, p.until, p.end, p.renewals = g.Unit, g.Until(p.c.Margin), g.Sent+g.Lease, 0
	case e == Vanished:
		a.lose(i, 0)
		return
	case h.Word == Exited:
		p.reacts = 0
	case p.c.usable && a.now < p.until:
		p.until, p.end = max(p.until, g.Until(p.c.Margin)), max(p.end, g.Sent+g.Lease)
	}
	a.speak(i)
}

// lose notifies those inside: their lease may last for left.
func (a *unitsAll) lose(i int, left time.Duration) {
	p := &a.p[i]
	p.c, _ = p.c.Heard(UnitsNews{Word: Ended, N: p.grant, Lease: left}, a.now)
	if left > 0 && p.used > 0 {
		p.reacts, p.reacting = a.now+left, p.used
	}
	p.used, p.grant = 0, 0
	a.speak(i)
}

func (a *unitsAll) speak(i int) {
	p := &a.p[i]
	if p.need > 0 && p.c.usable && a.now < p.until && p.used+p.need <= p.c.Units {
		p.used, p.need = p.used+p.need, 0
	}
	for p.n < uint64(most-i) {
		d := queue.Demand{Used: p.used, Idle: true}
		if p.c.usable {
			d.Keep = p.c.Units
			if p.c.Contended {
				d.Keep = p.used
			}
		}
		if p.need > 0 {
			d.Waiting, d.Want = 1, max(d.Keep, p.used+p.need)
		}
		c, s, _ := p.c.Next(&d, p.n+1, a.now)
		if p.c = c; s == nil {
			return
		}
		p.n++
		for k := range a.f {
			if a.f[k].client == 0 {
				a.f[k] = unitsFlight{client: int8(i + 1), s: *s}
				break
			}
		}
	}
}

// relied counts the units that are relied on.
func (a *unitsAll) relied() (n int64) {
	for _, p := range a.p {
		k := int64(0)
		if p.grant > 0 && p.c.usable && a.now < p.until {
			k = p.c.Units
		}
		if a.now < p.reacts {
			k = max(k, p.reacting)
		}
		n += k
	}
	return n
}

// next calls yield with each state that may follow.
func (a unitsAll) next(yield func(unitsAll)) {
	if a.now < horizon {
		b := a
		b.now += tick
		for i := range b.p {
			if p := &b.p[i]; p.grant > 0 && b.now >= p.until {
				b.lose(i, max(0, p.end-b.now))
			}
			b.hear(i, UnitsNews{Word: Clock})
		}
		yield(b)
	}
	for i := range a.p {
		p := a.p[i]
		hear := func(h UnitsNews) {
			b := a
			b.hear(i, h)
			yield(b)
		}
		if p.c.unconfirmed && i == 0 {
			hear(UnitsNews{Word: Silence, N: p.c.last, After: tick})
		}
		if a.called[i].N > 0 {
			hear(a.called[i])
		}
		if a.contended[i] > 0 {
			b := a
			b.p[i].c = b.p[i].c.NoteContended(a.contended[i])
			b.contended[i] = 0
			b.speak(i)
			yield(b)
		}
		if p.reacts > a.now {
			hear(UnitsNews{Word: Exited, N: p.c.ended})
		}
		change := func(do func(p *unitsProcess)) {
			b := a
			do(&b.p[i])
			b.speak(i)
			yield(b)
		}
		if p.need == 0 {
			for need := int64(1 + i); need <= 2; need++ {
				if p.used+need <= 2 {
					change(func(p *unitsProcess) { p.need = need })
				}
			}
		} else {
			change(func(p *unitsProcess) { p.need = 0 })
		}
		if p.used > 0 {
			change(func(p *unitsProcess) { p.used = 0 })
		}
		if p.used == 2 {
			change(func(p *unitsProcess) { p.used = 1 })
		}
		if i == 0 && p.grant > 0 && p.used > 0 {
			b := a
			b.lose(i, max(0, p.end-b.now)) // cancelled by the watchdog
			yield(b)
			if p.renewals == 0 {
				b := a
				b.p[i].renewals++
				b.hear(i, UnitsNews{Word: Retry})
				yield(b)
			}
		}
	}
	for k, f := range a.f {
		if f.client == 0 {
			break
		}
		b, i := a, int(f.client-1)
		if !f.landed {
			b.f[k].h, b.f[k].landed = b.script(i, f.s), true
		} else {
			copy(b.f[k:], b.f[k+1:])
			b.f[len(b.f)-1] = unitsFlight{}
			b.hear(i, f.h)
		}
		yield(b)
	}
}

func TestUnitsEveryOrder(t *testing.T) {
	limit := *states
	if testing.Short() {
		limit /= 10
	}
	terms := modelTerms{
		Terms:    Terms{Lease: 4 * tick, Call: 2 * tick, Life: 9 * tick, Margin: time.Second, Late: 2 * tick},
		Capacity: 2,
	}
	var start unitsAll
	for i := range start.p {
		start.p[i].c.Terms, start.p[i].c.Capacity = terms.Terms, terms.Capacity
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	level := []unitsAll{start}
	depth := 0
	for ; len(level) > 0 && len(seen) < limit; depth++ {
		var deeper []unitsAll
		for _, a := range level {
			a.next(func(b unitsAll) {
				if h := maphash.Comparable(seed, b); len(seen) < limit {
					if _, ok := seen[h]; !ok {
						seen[h] = struct{}{}
						deeper = append(deeper, b)
						if b.relied() > 2 {
							t.Fatalf("more than two units, after %d steps: %s", depth+1, fmt.Sprintf("%+v", b))
						}
					}
				}
			})
		}
		level = deeper
	}
	t.Logf("%d states, %d steps deep", len(seen), depth)
}
