package lock

import (
	"flag"
	"fmt"
	"hash/maphash"
	"testing"
	"time"
)

// TestEveryOrder plays every order of what two processes and their network may do, as deep as the limit goes:
// statements and renewals land at any time, or never; answers, calls and silences are heard at any time; owners come,
// go, and are notified of a loss; a process may be stopped. Time goes in ticks of 100 ms: L is 4, K is 2, and the
// margin a tenth of either. With a ticket that has the lock at first, the first process may take it from that. What it has taken
// and nobody has entered is given back only by a release that names it, which returns it to the ticket.

var states = flag.Int("states", 30_000, "how many states TestEveryOrder visits")

const (
	tick    = 100 * ms
	most    = 4 // statements of the first client; the second one, which represents all others, has 2
	horizon = 5 * tick
	ticket  = 3 // the holder
)

type flight struct {
	client int8 // 0: none
	landed bool
	renews bool // a renewal of the unit s.N, which was sent at sent
	sent   Moment
	s      Statement
	h      News
}

type process struct {
	c       Conversation
	n       uint64
	demand  Demand
	unit    uint64
	until   Moment // its owner relies on the lock until then
	end     Moment // the confirmed lease is over
	reacts  Moment // an owner that was notified of its loss works on until then
	renewed bool   // there is one renewal of each owner
}

type all struct {
	now    Moment
	holder int8
	n      uint64
	ends   Moment
	place  [2]uint64
	first  int8
	p      [2]process
	f      [2 * most]flight
	called [2]News // the last one, heard at any time, or again
	taken  uint64  // the unit that was taken from the ticket, until somebody enters
	spent  bool    // it was given back by a statement that does not name it
}

// script is Redis' side. The line is in any order, and a place is live; who states is called first or last.
func (a *all) script(i int, s Statement) News {
	if a.now >= a.ends {
		a.holder = 0
	}
	own := a.holder == int8(i+1)
	mine := own && a.n >= s.Since
	switch {
	case own && a.n >= s.N, a.place[i] >= s.N:
		return News{Word: Failed, N: s.N} // void
	case s.Have == Unit && !mine:
		return News{Word: Lost, N: s.N}
	case s.Have == Place && !mine && a.place[i] == 0:
		return News{Word: HasNot, N: s.N}
	}
	if mine && s.Keep == 0 {
		a.holder, mine = 0, false
		if a.n == a.taken {
			a.spent = s.Have != Unit
			a.holder = ticket
		}
	}
	other := 1 - i
	switch {
	case s.Want == 2 && (a.holder != ticket || a.place[i] != s.Since):
		return News{Word: Failed, N: s.N}
	case s.Want == 2:
		a.place[i], a.holder, a.n, a.taken = 0, int8(i+1), s.N, s.N
		return News{Word: Has, N: s.N, Unit: s.N, Lease: a.ends - a.now}
	case s.Want == 0:
		a.place[i] = 0
	case mine && s.Have == Unit:
		a.ends = max(a.ends, a.now+4*tick)
	case mine:
	case a.holder == 0 && a.place[other] == 0:
		a.place[i], a.holder, a.n, a.ends = 0, int8(i+1), s.N, a.now+2*tick
	default:
		if a.place[i] == 0 && a.place[other] > 0 {
			a.first = int8(other)
		} else if a.place[other] == 0 {
			a.first = int8(i)
		}
		a.place[i] = s.N
	}
	if k := int(a.first); a.holder == 0 && a.place[0]+a.place[1] > 0 {
		if a.place[k] == 0 {
			k = 1 - k
		}
		a.holder, a.n, a.ends, a.place[k] = int8(k+1), a.place[k], a.now+2*tick, 0
		a.called[k] = News{Word: Called, N: a.n, Lease: 2 * tick}
	}
	switch {
	case a.holder == int8(i+1) && s.Want == 1 && a.place[i] == 0:
		return News{Word: Has, N: s.N, Unit: a.n, Lease: a.ends - a.now}
	case s.Want == 1:
		return News{Word: Waits, N: s.N, Lease: tick}
	}
	return News{Word: HasNot, N: s.N}
}

// renew is Redis' side of a renewal.
func (a *all) renew(i int, unit uint64) News {
	if a.now >= a.ends {
		a.holder = 0
	}
	if a.holder != int8(i+1) || a.n != unit {
		return News{Word: Lost}
	}
	a.ends = max(a.ends, a.now+4*tick)
	return News{Word: Has, Lease: 4 * tick}
}

func (a *all) hear(i int, h News) {
	p := &a.p[i]
	c, e := p.c.Heard(h, a.now)
	p.c = c
	switch {
	case e == Granted && p.demand != Quiet:
		g := p.c.Grant
		if p.demand == OutOfTurn && g.Unit == a.taken {
			a.taken = 0
		}
		p.demand, p.unit, p.until, p.end, p.renewed = Owned, g.Unit, g.Until(p.c.Margin), g.Sent+g.Lease, false
	case e == Vanished:
		p.demand = Pending
	case h.Word == Exited:
		p.reacts = 0
	}
	a.speak(i)
}

// lose notifies the owner: its lease may last for left.
func (a *all) lose(i int, left time.Duration) {
	p := &a.p[i]
	p.c, _ = p.c.Heard(News{Word: Ended, N: p.unit, Lease: left}, a.now)
	p.demand = Pending
	if left > 0 {
		p.reacts = a.now + left
	}
	a.speak(i)
}

// speak sends what is to be sent. A process that is stopped hears later, or its statement lands later.
func (a *all) speak(i int) {
	for p := &a.p[i]; p.n < uint64(most-2*i); {
		w := p.demand
		if w < Owned && a.taken != 0 && (p.c.releasing == a.taken || p.c.entered && p.c.Grant.Unit == a.taken) { // see quietUntilLocked
			w = Quiet
		}
		c, s, _ := p.c.Next(w, p.n+1, a.now)
		if p.c = c; s == nil {
			return
		}
		p.n++
		a.send(flight{client: int8(i + 1), s: *s})
	}
}

func (a *all) send(f flight) {
	for k := range a.f {
		if a.f[k].client == 0 {
			a.f[k] = f
			return
		}
	}
}

func (a *all) owners() (k int) {
	for _, p := range a.p {
		if p.demand == Owned && a.now < p.until {
			k++
		}
		if a.now < p.reacts {
			k++
		}
	}
	return k
}

// next calls yield with each state that may follow.
func (a all) next(yield func(all)) {
	if a.now < horizon {
		b := a
		b.now += tick
		for i := range b.p {
			if p := &b.p[i]; p.demand == Owned && b.now >= p.until {
				b.lose(i, max(0, p.end-b.now))
			}
			b.hear(i, News{Word: Clock})
		}
		yield(b)
	}
	for i := range a.p {
		p := a.p[i]
		hear := func(h News) {
			b := a
			b.hear(i, h)
			yield(b)
		}
		if p.c.unconfirmed && i == 0 {
			hear(News{Word: Silence, N: p.c.last, Lease: tick})
		}
		if a.called[i].N > 0 {
			hear(a.called[i])
		}
		if p.reacts > a.now {
			hear(News{Word: Exited, N: p.unit})
		}
		demand := func(w Demand) {
			b := a
			b.p[i].demand = w
			b.speak(i)
			yield(b)
		}
		switch {
		case p.demand == Quiet:
			demand(Pending)
			if i == 0 {
				demand(OutOfTurn)
			}
		case p.demand < Owned && !p.c.entered:
			demand(Quiet)
		case p.demand == Owned:
			demand(Quiet)
			demand(Pending)                  // the last owner has exited, and somebody waits: a turn
			if i == 0 && p.unit != a.taken { // nobody owns that
				b := a
				b.lose(i, max(0, p.end-b.now)) // cancelled by the watchdog
				yield(b)
				if !p.renewed {
					b := a
					b.p[i].renewed = true
					b.send(flight{client: int8(i + 1), renews: true, sent: a.now, s: Statement{N: p.unit}})
					yield(b)
				}
			}
		}
	}
	for k, f := range a.f {
		if f.client == 0 {
			break
		}
		b, i := a, int(f.client-1)
		switch {
		case !f.landed && f.renews:
			b.f[k].h, b.f[k].landed = b.renew(i, f.s.N), true
		case !f.landed:
			b.f[k].h, b.f[k].landed = b.script(i, f.s), true
		default:
			copy(b.f[k:], b.f[k+1:])
			b.f[len(b.f)-1] = flight{}
			p := &b.p[i]
			switch {
			case !f.renews:
				b.hear(i, f.h)
			case p.demand != Owned || p.unit != f.s.N:
			case f.h.Word == Lost:
				b.lose(i, 0)
			case b.now < p.until:
				p.until, p.end = max(p.until, f.sent+f.h.Lease-min(p.c.Margin, f.h.Lease/10)), max(p.end, f.sent+f.h.Lease)
			}
		}
		yield(b)
	}
}

func TestEveryOrder(t *testing.T) {
	limit := *states
	if testing.Short() {
		limit /= 10
	}
	t.Run("free", func(t *testing.T) { t.Parallel(); everyOrder(t, limit, all{}) })
	t.Run("a ticket has it", func(t *testing.T) { t.Parallel(); everyOrder(t, limit, all{holder: ticket, ends: 2 * horizon}) })
}

func everyOrder(t *testing.T, limit int, start all) {
	terms := Terms{Lease: 4 * tick, Call: 2 * tick, Life: 9 * tick, Margin: time.Second, Late: 2 * tick}
	start.p[0].c.Terms, start.p[1].c.Terms = terms, terms
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	level := []all{start}
	depth := 0
	for ; len(level) > 0 && len(seen) < limit; depth++ {
		var deeper []all
		for _, a := range level {
			a.next(func(b all) {
				if h := maphash.Comparable(seed, b); len(seen) < limit {
					if _, ok := seen[h]; !ok {
						seen[h] = struct{}{}
						deeper = append(deeper, b)
						if b.spent {
							t.Fatalf("the ticket is spent, after %d steps: %s", depth+1, fmt.Sprintf("%+v", b))
						}
						if b.owners() > 1 {
							t.Fatalf("two owners, after %d steps: %s", depth+1, fmt.Sprintf("%+v", b))
						}
					}
				}
			})
		}
		level = deeper
	}
	t.Logf("%d states, %d steps deep", len(seen), depth)
}
