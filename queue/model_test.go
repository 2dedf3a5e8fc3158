package queue_test

import (
	"math"
	"slices"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// model says what a Synchronizer must do in the plainest way: slices, one goroutine, no word. It settles after each step, as
// a bubble does. A waiter whose goroutine is in Park checks immediately; one of a Mutex may be there later than it has
// entered, and checks then, so that every order of unpark and check occurs.
type model struct {
	queue.Policy
	now, deadline, turnEnds  time.Duration
	units, admissions        int64
	grant                    uint64
	contended, over, lingers bool
	line, inside             []*guest
	given                    []*guest // admitted before they ran, and not run yet
	stated                   need
	of                       int64 // of a Semaphore: the capacity that the units count with
}

// need is what the server must be told.
type need struct {
	keep, want                     int64
	again, try, idle, back, barred bool
	keepOf, wantOf                 int64
}

// guest is a party of the model.
type guest struct {
	*party
	need   int64
	of     int64 // the capacity of a Semaphore with which it counts
	kind   queue.Kind
	since  time.Duration // when it was first in the line
	waits  bool          // its goroutine is in Park
	woken  bool
	owed   bool
	joined bool        // by the word
	ended  bool        // its context has ended
	lost   bool        // inside, and relies on units that are gone
	err    error       // what Park must return
	order  queue.Order // with err, of a Mutex
	came   bool        // it was admitted
	out    bool        // and has left
	count  int         // entries beyond the first

	grant    uint64 // of its last admission
	handOffs int64
}

func (g *guest) try() bool       { return g.kind.IsTry() }
func (g *guest) lock() bool      { return !g.kind.CanNotify() }
func (g *guest) refusable() bool { return g.kind.IsRefusable() }

func (m *model) alone(g *guest) bool  { return g.need == int64(m.All) }
func (m *model) reader(g *guest) bool { return m.All > 0 && !m.alone(g) && g.lock() } // whom nobody knows by name
func (m *model) lost() bool {
	return slices.ContainsFunc(m.inside, func(g *guest) bool { return g.lost })
}
func (m *model) writes() bool { return slices.ContainsFunc(m.inside, m.alone) }

func (m *model) used() (units int64) {
	for _, g := range m.inside {
		switch {
		case m.lost():
			return 0
		case m.All > 0:
			units = max(units, g.need)
		default:
			units += g.need
		}
	}
	return units
}

func (m *model) with(g *guest) int64 {
	if m.All == 0 {
		return m.used() + g.need
	}
	return g.need
}

func (m *model) barred(g *guest) bool   { return m.writes() || m.alone(g) && len(m.inside) > 0 }
func (m *model) suffices(g *guest) bool { return !m.barred(g) && m.with(g) <= m.units && m.of <= g.of }

// least is the least capacity of those inside.
func (m *model) least() int64 {
	least := int64(math.MaxInt64)
	for _, g := range m.inside {
		least = min(least, g.of)
	}
	return least
}

func (m *model) admits() bool {
	m.over = m.over || m.units > 0 && m.contended && m.now >= m.turnEnds
	return m.units > 0 && !m.over && !m.lost() && m.now < m.deadline
}

// open reports whether newcomers join by the word. Only readers do so in a way that shows.
func (m *model) open() bool {
	return m.All > 1 && m.units > 0 && !m.over && !m.lost() && !m.writes() && len(m.line) == 0 && m.admissions > 1
}

func (m *model) admit(g *guest) {
	m.line, m.lingers = drop(m.line, g), false
	m.inside = append(m.inside, g)
	g.came, g.out, g.waits, g.count, g.grant, g.handOffs = true, false, false, 0, m.grant, m.admissions
	m.admissions++
}

// pass admits who may come in now. Of a Mutex that is not fair, and where nobody is owed, the head is woken instead.
func (m *model) pass(together bool) {
	if !m.admits() {
		return
	}
	together = together && slices.ContainsFunc(m.line, func(g *guest) bool { return !m.alone(g) })
	for _, g := range slices.Clone(m.line) {
		switch {
		case together && !m.Fair && m.alone(g) && !g.owed:
			continue
		case !m.suffices(g):
			return
		case m.Returns && !m.Fair && !slices.ContainsFunc(m.line, func(g *guest) bool { return g.owed }):
			g.woken = true
			return
		case !g.waits:
			m.given = append(m.given, g)
		}
		m.admit(g)
		together = m.All > 0 && !m.alone(g)
	}
}

func drop(list []*guest, g *guest) []*guest {
	return slices.DeleteFunc(list, func(other *guest) bool { return other == g })
}

// settle ends a transition: it passes on, and compares what must be stated.
func (m *model) settle(together bool) queue.Order {
	m.pass(together)
	used := m.used()
	m.over = m.over || m.Returns && m.units > 0 && used == 0 && len(m.line) == 0 && !m.lingers
	n := need{keep: m.units}
	if m.over {
		n.keep = used
	}
	if m.All == 0 {
		if n.keepOf = m.least(); len(m.inside) == 0 {
			n.keepOf = m.of
		}
		n.wantOf = n.keepOf
		if len(m.line) > 0 {
			switch least, of := m.least(), min(m.least(), m.line[0].of); {
			case m.with(m.line[0]) > of:
				n.barred = true
			case m.of > of && least > of: // what nobody uses would have to fit, too
				n.keep, n.keepOf, n.wantOf = used, min(least, m.of), of
			default:
				n.keepOf, n.wantOf = of, of
			}
		}
	}
	n.want = n.keep
	if len(m.line) > 0 {
		head := m.line[0]
		n.want, n.try = max(n.keep, m.with(head)), head.try()
		n.again = m.over && n.want == n.keep && !m.writes()
	}
	n.idle = !m.Returns && used == 0 && len(m.line) == 0 && m.units > 0 && m.admissions == 1
	n.back = m.Returns && m.units > 0 && used == 0 && m.over
	if m.lost() {
		n = need{}
	}
	before := m.stated
	m.stated = n
	switch {
	case n == before, n.back && before.back:
		return queue.Nothing
	case n.back:
		return queue.GiveBack
	}
	return queue.Restate
}

func (m *model) enter(g *guest, first bool) (string, queue.Order) {
	// A waiter of a Mutex that was woken has not run yet: a newcomer passes it, but for a try.
	heir := len(m.line) > 0 && m.line[0].woken && !slices.ContainsFunc(m.line, func(g *guest) bool { return g.owed })
	switch free := m.admits() && (len(m.line) == 0 || heir && !g.try()); {
	case free && m.suffices(g):
		m.admit(g)
		return "in", m.settle(false)
	case g.try() && (len(m.line) > 0 || m.over || m.lost() || m.barred(g) || m.suffices(g)):
		return "refused", m.settle(false)
	}
	if g.since == 0 {
		g.since = m.now
	}
	g.owed = first
	at := len(m.line)
	if first {
		at = 0
		if len(m.line) > 0 && m.line[0].try() { // I10
			at = 1
		}
	}
	m.line = slices.Insert(m.line, at, g)
	return "queued", m.settle(false)
}

// leave takes g off those inside, if it is.
func (m *model) leave(g *guest) (wrote bool) {
	wrote = m.alone(g) && slices.Contains(m.inside, g)
	m.inside, g.lost = drop(m.inside, g), false
	return wrote
}

func (m *model) exit(g *guest, next queue.Next) (queue.Exit, queue.Order) {
	switch {
	case g.out:
		return queue.Stale, queue.Nothing
	case g.count > 0:
		g.count--
		return queue.Nested, queue.Nothing
	}
	g.out = true
	lost := m.lost() || !slices.Contains(m.inside, g)
	wrote := m.leave(g)
	if lost {
		return queue.WasLost, m.settle(wrote)
	}
	m.over = m.over || next == queue.EndTurn
	m.lingers = next == queue.Linger && m.Returns && len(m.line) == 0 && !m.over
	switch order := m.settle(wrote); {
	case order == queue.GiveBack:
		return queue.Final, order
	case m.lingers:
		return queue.Kept, order
	default:
		return queue.HandedOff, order
	}
}

func (m *model) giveUp(g *guest) queue.Order {
	g.waits, g.err, g.out = false, errGiveUp, true
	if slices.Contains(m.line, g) {
		m.line = drop(m.line, g)
		return m.settle(false)
	}
	return m.settle(m.leave(g))
}

// run lets every waiter check that was woken, admitted or whose context ended, until nothing moves.
func (m *model) run() {
	for m.check() {
	}
}

func (m *model) check() bool {
	for _, g := range slices.Concat(m.given, m.line) {
		admitted := slices.Contains(m.given, g)
		if !g.waits || !admitted && !g.woken && !g.ended {
			continue
		}
		m.given, g.woken = drop(m.given, g), false
		switch {
		case g.ended:
			g.order = m.giveUp(g)
		case admitted:
			g.waits = false
		case m.admits() && m.suffices(g) && m.line[0] == g:
			g.waits = false
			m.admit(g)
			m.settle(false)
		case m.now-g.since > queue.StarvationThreshold:
			g.owed = true
		}
		return true
	}
	return false
}

func (m *model) granted(grant uint64, units int64, contended bool, deadline time.Duration) (bool, queue.Order) {
	if m.Returns && (m.units > 0 || m.lost() || len(m.line) == 0) {
		return false, queue.Nothing
	}
	if m.units == 0 || !m.contended {
		m.turnEnds, m.admissions = m.now+m.Turn, 0
	}
	m.grant, m.units, m.deadline, m.contended, m.over = grant, units, deadline, false, false
	if len(m.line) > 0 {
		m.line[0].owed = true // I14
	}
	m.pass(false)
	return true, m.renewed(contended)
}

func (m *model) renewed(contended bool) queue.Order {
	m.contended, m.over = contended, m.over && contended
	m.admits()
	return m.settle(false)
}

func (m *model) lose(grant uint64) (who *guest, order queue.Order) {
	if grant != m.grant || m.units == 0 || m.stated.back {
		return nil, queue.Nothing
	}
	if i := slices.IndexFunc(m.inside, m.alone); i >= 0 {
		who = m.inside[i]
	}
	m.inside = slices.DeleteFunc(m.inside, func(g *guest) bool { return !g.lock() })
	for _, g := range m.inside {
		g.lost = true
	}
	m.units, m.contended, m.over, m.lingers, m.of = 0, false, false, false, 0
	return who, m.settle(false)
}

func (m *model) fail(fails func(*guest) bool, err error) queue.Order {
	for _, g := range slices.Clone(m.line) {
		if fails(g) {
			m.line = drop(m.line, g)
			g.err, g.waits, g.out = err, false, true
		}
	}
	return m.settle(false)
}

func (m *model) shrink(keep int64) bool {
	ok := m.used() <= keep
	if ok && keep < m.units {
		if m.units = keep; keep == 0 {
			m.contended, m.over, m.lingers, m.of = false, false, false, 0
		}
	}
	m.settle(false) // nobody is ordered to state what the caller states
	return ok
}
