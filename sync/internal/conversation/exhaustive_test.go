package conversation

import (
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEveryOrder plays every order of what two processes and their network may do, as deep as the limit goes: commands and
// renewals land at any time, or never; answers, calls and silences are heard at any time; owners come, go, and are notified of
// a loss; a process may be stopped. Time goes in ticks of 100 ms: a lease is 4, that of a call 2, and the margin a tenth of
// either. With a ticket that has the lock at first, the first process may take it from that. What it has taken and nobody has
// entered goes back to the ticket.

var states = flag.Int("states", 30_000, "how many states TestEveryOrder visits of each kind")

const (
	tick    = 100 * ms
	most    = 4 // commands of the first process; the second one, which represents all others, has fewer
	horizon = 5 * tick
)

// flight is a command or a renewal on its way, or once it has landed its answer.
type flight struct {
	client  int8 // counted from 1; 0: none
	landed  bool
	renews  bool // a renewal of the grant cmd.Since with cmd.Have units, sent at the moment sent
	sent    Moment
	cmd     Command
	answer  Event
	waiting bool // another client waits, says the answer
}

// proc is a process. It is a plain value.
type proc struct {
	c          Conversation
	n          uint64
	contention Contention
	used       int64
	need       int64 // of the first waiter
	seizes     bool  // it takes what it needs
	shut       bool  // nobody comes in before the next grant: a turn
	grant      uint64
	until      Moment // those inside rely on the units until then
	end        Moment // the confirmed lease is over
	reacts     Moment // those that were notified of their loss work on until then
	reacting   int64
	renewed    bool // there is one renewal of each grant
}

// relies reports whether goroutines of p may rely on its units.
func (p *proc) relies(now Moment) bool { return p.grant > 0 && p.c.State == Holding && now < p.until }

// situation is all that there is: it is compared, so it is a plain value, too.
type situation struct {
	now    Moment
	mutex  bool
	redis  redis
	p      [2]proc
	f      [2 * most]flight
	called [2]Event // the last one, heard at any time, or again
	named  [2]uint64
}

func (a *situation) hear(i int, e Event, waiting bool) {
	p := &a.p[i]
	var f Effect
	p.c, f = p.c.Handle(e, a.now)
	if e.Kind <= Waits && e.N == p.c.lastCommand.N || e.Kind == Called {
		p.contention = p.contention.Answered(e.N, waiting)
	}
	g := p.c.Grant
	switch {
	case f == Granted:
		p.grant, p.until, p.end, p.renewed, p.shut = g.Record, g.Until(p.c.Margin), g.Sent.Add(g.Lease), false, false
	case f == Vanished:
		a.lose(i, 0)
		return
	case e.Kind == Exited:
		p.reacts = 0
	case p.relies(a.now):
		p.until, p.end = max(p.until, g.Until(p.c.Margin)), max(p.end, g.Sent.Add(g.Lease))
	}
	a.send(i)
}

// lose notifies those inside: their lease may last for left.
func (a *situation) lose(i int, left time.Duration) {
	p := &a.p[i]
	p.c, _ = p.c.Handle(Event{Kind: Ended, N: p.grant, Lease: left}, a.now)
	if left > 0 && p.used > 0 {
		p.reacts, p.reacting = a.now.Add(left), p.used
	}
	p.used, p.grant = 0, 0
	a.send(i)
}

// left is what the confirmed lease of p still has.
func (a *situation) left(p *proc) time.Duration { return max(0, p.end.Sub(a.now)) }

// send lets the waiter of a process in, if it may come in, and sends what the process has to send.
func (a *situation) send(i int) {
	p := &a.p[i]
	seized := p.grant == a.redis.seized
	if p.need > 0 && p.relies(a.now) && p.used+p.need <= p.c.Units && !p.shut && (p.seizes || !seized) {
		p.used, p.need, p.seizes = p.used+p.need, 0, false
		if seized {
			a.redis.seized = 0
		}
	}
	for p.n < uint64(most-i) {
		d := Demand{Keep: p.used}
		if p.need > 0 && !a.mutex && p.c.State == Holding && !p.contention.Waits {
			d.Keep = p.c.Units
		}
		d.Want = d.Keep
		if p.need > 0 && p.used+p.need <= a.redis.capacity[i] {
			d.Want, d.Seize = max(d.Keep, p.used+p.need), p.seizes
		}
		c, cmd, _ := p.c.Next(d, p.n+1, a.now)
		if p.c = c; cmd.N == 0 {
			return
		}
		p.n++
		a.add(flight{client: int8(i + 1), cmd: cmd})
	}
}

func (a *situation) add(f flight) {
	if k := slices.IndexFunc(a.f[:], func(o flight) bool { return o.client == 0 }); k >= 0 {
		a.f[k] = f
	}
}

// relied counts the units that are relied on.
func (a *situation) relied() (n int64) {
	for _, p := range a.p {
		k := int64(0)
		if p.relies(a.now) && (p.grant != a.redis.seized || p.used > 0) {
			k = p.c.Units
		}
		if a.now < p.reacts {
			k = max(k, p.reacting)
		}
		n += k
	}
	return n
}

// step is what leads from one situation to the next.
type step struct {
	process int8
	what    string
	event   Event
	cmd     Command
}

func (s step) String() string {
	text := fmt.Sprintf("c%d %s", s.process+1, s.what)
	if s.cmd.N > 0 {
		text += fmt.Sprintf(" %v", s.cmd)
	}
	if s.event != (Event{}) {
		text += fmt.Sprintf(" %v", s.event)
	}
	return text
}

// follow is called with each situation that may come next.
type follow func(step, situation)

func (a situation) next(yield follow) {
	if a.now < horizon {
		b := a
		b.now += tick
		for i := range b.p {
			if p := &b.p[i]; p.grant > 0 && p.c.State == Holding && b.now >= p.until {
				b.lose(i, b.left(p))
			}
			b.hear(i, Event{Kind: Tick}, false)
		}
		yield(step{what: "time"}, b)
	}
	for i := range a.p {
		a.nextMessage(i, yield)
		a.nextOwner(i, yield)
	}
	for k, f := range a.f {
		if f.client > 0 {
			a.nextFlight(k, yield)
		}
	}
}

// nextMessage lets process i hear what is no answer.
func (a situation) nextMessage(i int, yield follow) {
	p := a.p[i]
	hear := func(e Event) {
		b := a
		b.hear(i, e, false)
		yield(step{process: int8(i), what: "hears", event: e}, b)
	}
	if p.c.unanswered && i == 0 {
		hear(Event{Kind: Silence, N: p.c.lastCommand.N, After: tick})
	}
	if a.called[i].N > 0 {
		hear(a.called[i])
	}
	if p.reacts > a.now {
		hear(Event{Kind: Exited, N: p.c.lostGrant})
	}
	if n := a.named[i]; n > 0 {
		b := a
		b.named[i] = 0
		b.p[i].contention = p.contention.Notified(n, &p.c)
		b.send(i)
		yield(step{process: int8(i), what: "hears that another waits"}, b)
	}
}

// nextOwner lets goroutines of process i come and go, be notified, and be renewed.
func (a situation) nextOwner(i int, yield follow) {
	p := a.p[i]
	change := func(what string, do func(p *proc)) {
		b := a
		do(&b.p[i])
		b.send(i)
		yield(step{process: int8(i), what: what}, b)
	}
	if p.need > 0 {
		change("gives up", func(p *proc) { p.need, p.seizes = 0, false })
	}
	for need := min(int64(1+i), a.redis.capacity[i]); p.need == 0 && need <= 2; need++ {
		if p.used+need > a.redis.capacity[i] {
			break
		}
		change(fmt.Sprint("needs ", need), func(p *proc) { p.need = need })
		if i == 0 && a.mutex {
			change("seizes", func(p *proc) { p.need, p.seizes = need, true })
		}
	}
	if p.used > 0 {
		change("exits", func(p *proc) { p.used = 0 })
	}
	if p.used > 0 && a.mutex {
		change("exits, and the next one waits", func(p *proc) { p.used, p.need, p.shut = 0, 1, true })
	}
	if p.used == 2 {
		change("one exits", func(p *proc) { p.used = 1 })
	}
	if i > 0 || p.used == 0 || !p.relies(a.now) {
		return
	}
	b := a
	b.lose(i, b.left(&p))
	yield(step{process: int8(i), what: "is canceled by the watchdog"}, b)
	if !p.renewed {
		b := a
		b.p[i].renewed = true
		b.add(flight{client: int8(i + 1), renews: true, sent: a.now, cmd: Command{N: p.c.lastCommand.N, Since: p.grant, Have: p.c.Units}})
		yield(step{process: int8(i), what: "sends a renewal"}, b)
	}
}

// nextFlight lets the flight k land, or its answer be heard.
func (a situation) nextFlight(k int, yield follow) {
	f, i := a.f[k], int(a.f[k].client-1)
	if !f.landed {
		a.land(&a.f[k])
		yield(step{process: int8(i), what: "is answered", cmd: f.cmd, event: a.f[k].answer}, a)
		return
	}
	copy(a.f[k:], a.f[k+1:])
	a.f[len(a.f)-1] = flight{}
	p := &a.p[i]
	switch {
	case !f.renews:
		a.hear(i, f.answer, f.waiting)
	case p.grant != f.cmd.Since || p.c.State != Holding:
	case f.answer.Kind != Lost && a.now < p.until:
		p.until, p.end = max(p.until, f.sent.Add(p.c.Lease-min(p.c.Margin, p.c.Lease/10))), max(p.end, f.sent.Add(p.c.Lease))
	case f.answer.Kind == Lost && p.c.lastCommand.N == f.cmd.N: // otherwise the answer to what was sent since says so
		a.lose(i, 0)
	}
	yield(step{process: int8(i), what: "hears the answer", event: f.answer}, a)
}

func (a *situation) land(f *flight) {
	f.landed = true
	i := int(f.client - 1)
	if f.renews {
		var renewed bool
		if renewed, f.waiting = a.redis.renew(i, f.cmd.Since, f.cmd.Have, a.now); !renewed {
			f.answer.Kind = Lost
		}
		return
	}
	f.answer, f.waiting = a.redis.state(i, f.cmd, a.now, func(j int, e Event, named uint64) {
		if named > 0 {
			a.named[j] = named
		} else {
			a.called[j] = e
		}
	})
	f.answer.After = tick
}

// reached is a situation, and how it came about.
type reached struct {
	situation
	step
	from *reached
}

func (r *reached) String() string {
	var steps []string
	for ; r.from != nil; r = r.from {
		steps = append(steps, r.step.String())
	}
	slices.Reverse(steps)
	return strings.Join(steps, "\n")
}

func TestEveryOrder(t *testing.T) {
	limit := *states
	if testing.Short() {
		limit /= 10
	}
	for kind, start := range map[string]situation{
		"a mutex":                {mutex: true, redis: redis{document: true, capacity: [clients]int64{1, 1}}},
		"a mutex, with a ticket": {mutex: true, redis: redis{document: true, capacity: [clients]int64{1, 1}, ticket: 2 * horizon}},
		"two units":              {redis: redis{capacity: [clients]int64{2, 2}}},
	} {
		t.Run(kind, func(t *testing.T) { everyOrder(t, limit, start) })
	}
}

func everyOrder(t *testing.T, limit int, start situation) {
	start.redis.Terms = Terms{Lease: 4 * tick, Call: 2 * tick, Life: 9 * tick, Margin: second, Late: 2 * tick}
	terms := start.redis.Terms
	start.p[0].c.Terms, start.p[1].c.Terms = &terms, &terms
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	level := []*reached{{situation: start}}
	depth := 0
	for ; len(level) > 0 && len(seen) < limit; depth++ {
		var deeper []*reached
		for _, from := range level {
			from.next(func(s step, b situation) {
				h := maphash.Comparable(seed, b)
				if _, known := seen[h]; known || len(seen) >= limit {
					return
				}
				seen[h] = struct{}{}
				to := &reached{b, s, from}
				deeper = append(deeper, to)
				switch {
				case b.redis.spent:
					t.Fatalf("the ticket is spent, after\n%v", to)
				case b.relied() > start.redis.capacity[0]:
					t.Fatalf("more is relied on than there is, after\n%v", to)
				}
			})
		}
		level = deeper
	}
	t.Logf("%d states, %d steps deep", len(seen), depth)
}
