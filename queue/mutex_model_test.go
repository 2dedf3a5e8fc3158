package queue_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/seeds"
	"github.com/anteroom/anteroom/queue"
)

// mutexModel says what the Synchronizer of a Mutex must do in the plainest way: slices, no links, no channels, one
// goroutine. It settles after each step, as a bubble does: a waiter whose goroutine is in Park checks immediately, one that
// has only entered checks when its Park begins. So every order of unpark and check occurs.
type mutexModel struct {
	fair                      bool
	unit, over, lost, lingers bool
	grant                     uint64
	admissions                int
	owner                     *guest
	line                      []*guest
	given                     []*guest // admitted before they ran, and not run yet
	now                       time.Duration
	stated                    mutexNeed
}

// mutexNeed is what the server must be told: whether the unit is kept, or wanted, by one that only tries, and whether it
// is to be given back.
type mutexNeed struct{ keep, want, try, back bool }

// guest is a waiter of the model, beside the party that it models.
type guest struct {
	*party
	kind     queue.Kind
	since    time.Duration
	queued   bool // it has been in the line, so since is set
	waits    bool // its goroutine is in Park
	woken    bool
	owed     bool
	ended    bool        // its context has ended
	err      error       // what Park must return
	order    queue.Order // with err
	came     bool        // it was admitted
	out      bool        // and has left
	count    int         // entries beyond the first
	grant    uint64      // of its last admission
	handOffs int
}

func (g *guest) try() bool  { return g.kind.IsTry() }
func (g *guest) lock() bool { return !g.kind.CanNotify() }

func (m *mutexModel) need() (n mutexNeed) {
	if m.lost {
		return n
	}
	n.keep = m.unit && (!m.over || m.owner != nil)
	n.want = n.keep || len(m.line) > 0
	n.try = len(m.line) > 0 && m.line[0].try()
	n.back = m.unit && m.over && m.owner == nil
	return n
}

// settle ends a transition: a unit that nobody owns is offered, and what must be stated is compared.
func (m *mutexModel) settle() queue.Order {
	if m.unit && m.owner == nil && !m.over {
		switch {
		case len(m.line) == 0:
			m.over = !m.lingers
		case m.fair || slices.ContainsFunc(m.line, func(g *guest) bool { return g.owed }):
			m.given = append(m.given, m.line[0])
			m.admit(m.line[0])
		default:
			m.line[0].woken = true
		}
	}
	before := m.stated
	m.stated = m.need()
	switch {
	case m.stated.back && before.back:
	case m.stated.back:
		return queue.GiveBack
	case m.stated != before:
		return queue.Restate
	}
	return queue.Nothing
}

func remove(list []*guest, g *guest) []*guest {
	return slices.DeleteFunc(list, func(other *guest) bool { return other == g })
}

func (m *mutexModel) fail(chosen func(*guest) bool, err error) queue.Order {
	for _, g := range slices.Clone(m.line) {
		if chosen(g) {
			m.line = remove(m.line, g)
			g.err = err
		}
	}
	return m.settle()
}

func (m *mutexModel) admit(g *guest) {
	m.line = remove(m.line, g)
	m.owner, m.lingers = g, false
	g.came, g.out, g.grant, g.handOffs, g.count = true, false, m.grant, m.admissions, 0
	m.admissions++
}

func (m *mutexModel) leave() {
	m.owner, m.lost = nil, false
}

func (m *mutexModel) giveUp(g *guest) queue.Order {
	if slices.Contains(m.line, g) {
		m.line = remove(m.line, g)
	} else if m.owner == g {
		m.leave()
	}
	return m.settle()
}

// run lets every waiter check that was unparked or whose context ended, until nothing moves.
func (m *mutexModel) run() {
	for m.check() {
	}
}

func (m *mutexModel) check() bool {
	for _, g := range m.given {
		if g.waits {
			m.given = remove(m.given, g)
			g.waits = false
			if g.ended {
				g.order, g.err = m.giveUp(g), errGiveUp
			}
			return true
		}
	}
	for _, g := range m.line {
		if !g.waits || (!g.woken && !g.ended) {
			continue
		}
		g.woken = false
		switch {
		case g.ended:
			g.order, g.err = m.giveUp(g), errGiveUp
		case m.unit && m.owner == nil && !m.over && m.line[0] == g:
			g.waits = false
			m.admit(g)
			m.settle()
		case m.now-g.since > queue.StarvationThreshold:
			g.owed = true
		}
		return true
	}
	return false
}

func (m *mutexModel) enter(g *guest, first bool) (string, queue.Order) {
	switch {
	case m.unit && m.owner == nil && !m.over && (len(m.line) == 0 || !g.try()):
		m.admit(g)
		return "in", m.settle()
	case g.try() && (len(m.line) > 0 || m.unit || m.lost):
		return "refused", m.settle()
	}
	if !g.queued {
		g.since, g.queued = m.now, true
	}
	g.owed = first || g.try()
	at := len(m.line)
	if first {
		at = 0
		if len(m.line) > 0 && m.line[0].try() { // I10
			at = 1
		}
	}
	m.line = slices.Insert(m.line, at, g)
	return "queued", m.settle()
}

func (m *mutexModel) exit(g *guest, next queue.Next) (queue.Exit, queue.Order) {
	switch {
	case g.out:
		return queue.Stale, queue.Nothing
	case g.count > 0:
		g.count--
		return queue.Nested, queue.Nothing
	case g != m.owner: // it was lost
		g.out = true
		return queue.WasLost, queue.Nothing
	}
	g.out = true
	if m.lost {
		m.leave()
		return queue.WasLost, m.settle()
	}
	m.over = next == queue.EndTurn
	m.lingers = next == queue.Linger && len(m.line) == 0
	m.leave()
	order := m.settle()
	switch {
	case order == queue.GiveBack:
		return queue.Final, order
	case m.lingers:
		return queue.Kept, order
	}
	return queue.HandedOff, order
}

func (m *mutexModel) lose(grant uint64) (who *guest, order queue.Order) {
	if grant != m.grant || !m.unit || m.stated.back {
		return nil, queue.Nothing
	}
	who = m.owner
	if who != nil && !who.lock() {
		m.owner = nil
	}
	m.unit, m.over, m.lingers, m.lost = false, false, false, m.owner != nil
	return who, m.settle()
}

// trial runs one random history on the model and on a Synchronizer, and compares everything visible after each step.
type trial struct {
	*fixture
	rng    *rand.Rand
	m      *mutexModel
	guests []*guest
	grants uint64
}

// intN draws a number below n.
func (r *trial) intN(n int) int { return r.rng.IntN(n) }

func (r *trial) step() {
	pause := time.Duration(r.intN(3)) * queue.StarvationThreshold * 2 / 3
	time.Sleep(pause)
	r.m.now += pause
	switch r.intN(13) {
	case 0, 1, 2:
		r.enter()
	case 3, 4:
		if g := r.pick(r.mustStillWait); g != nil {
			r.startWait(g)
		}
	case 5:
		if g := r.pick(func(g *guest) bool {
			return !g.ended && (slices.Contains(r.m.line, g) || slices.Contains(r.m.given, g))
		}); g != nil {
			r.note("end the context of %d", g.w.Goroutine)
			g.ended = true
			g.cancel(errGiveUp)
		}
	case 6:
		r.answer()
	case 7, 8, 9:
		r.exit()
	case 10:
		if r.intN(3) == 0 {
			grant := r.grants - min(r.grants, uint64(r.intN(2)))
			r.note("lose %d", grant)
			who, want := r.m.lose(grant)
			w, order := r.s.Lose(grant)
			must(r.fixture, "Lose", order, want)
			must(r.fixture, "who lost", w != nil, who != nil)
			must(r.fixture, "who lost", w == nil || w == who.w.Stay, true)
		}
	case 11:
		r.reenter()
	case 12:
		r.rare()
	}
	r.m.run()
	synctest.Wait()
	r.compare()
}

func (r *trial) enter() {
	kind, id := queue.Kind(r.intN(8)), uint64(len(r.guests)+1)
	g := &guest{kind: kind}
	entered, order := r.m.enter(g, false)
	r.note("enter %d %v", id, kind)
	g.party = r.fixture.enter(kind, id)
	r.guests = append(r.guests, g)
	must(r.fixture, "Acquire", g.entered(), entered)
	must(r.fixture, "Acquire's order", g.party.order, order)
	if entered == "queued" && r.intN(2) == 0 {
		r.startWait(g)
	}
}

// exit is of the owner or, seldom, of one that has left.
func (r *trial) exit() {
	g := r.m.owner
	if g == nil || r.intN(5) == 0 {
		g = r.pick(func(g *guest) bool { return g.came && g != r.m.owner && g.err == nil && !slices.Contains(r.m.given, g) })
	}
	if g == nil || slices.Contains(r.m.given, g) {
		return
	}
	next := []queue.Next{queue.HandOff, queue.HandOff, queue.Linger, queue.EndTurn}[r.intN(4)]
	r.note("exit %d %d", g.w.Goroutine, next)
	exit, order := r.m.exit(g, next)
	r.mustExit(g.w.Stay, next, exit, order)
}

// mustStillWait reports whether the guest is queued, or was, and its Park has not begun.
func (r *trial) mustStillWait(g *guest) bool {
	return g.done == nil && (g.err != nil || slices.Contains(r.m.line, g) || slices.Contains(r.m.given, g))
}

func (r *trial) startWait(g *guest) {
	r.note("wait %d", g.w.Goroutine)
	g.waits = true
	g.wait()
}

// answer is what Redis says, mostly something that the state allows.
func (r *trial) answer() {
	m := r.m
	switch n := r.intN(5); {
	case m.unit && m.over && n < 3:
		r.note("released")
		m.unit, m.over = false, false
		r.m.settle() // nobody is ordered to state what the caller states
		r.released()
	case n == 0:
		r.note("refused")
		must(r.fixture, "Refuse", r.s.Refuse(errRefused), m.fail((*guest).try, errRefused))
	case n == 1:
		r.note("end linger")
		want := queue.Nothing
		if m.lingers {
			m.lingers = false
			want = m.settle()
		}
		must(r.fixture, "EndLinger", r.s.EndLinger(), want)
	default:
		r.grants++
		r.note("granted %d", r.grants)
		want := !m.unit && !m.lost && len(m.line) > 0
		if want {
			m.grant, m.unit, m.admissions = r.grants, true, 0
			m.line[0].owed = true // I14
			m.settle()
		}
		must(r.fixture, "Granted", r.s.Granted(r.grants), want)
	}
}

func (r *trial) reenter() {
	g := r.m.owner
	if g == nil || r.intN(5) == 0 {
		g = r.pick(func(g *guest) bool { return g.came && g.err == nil })
	}
	if g == nil || slices.Contains(r.m.given, g) {
		return
	}
	allowLost := r.intN(2) == 0
	r.note("reenter %d allowLost=%v", g.w.Goroutine, allowLost)
	want := queue.ErrNotOwner
	switch {
	case g != r.m.owner:
	case r.m.lost && !allowLost:
		want = queue.ErrWasLost
	default:
		want = nil
		g.count++
	}
	must(r.fixture, "Reenter", r.s.Reenter(g.w.Stay, allowLost), want)
}

// rare does what programs seldom do: close, or enter again after a stay that has ended.
func (r *trial) rare() {
	if r.intN(4) == 0 {
		r.note("fail")
		want := r.m.fail(func(g *guest) bool { return g.kind.IsRefusable() }, errClosed)
		must(r.fixture, "Fail", r.s.Fail(errClosed), want)
		return
	}
	if g := r.pick(func(g *guest) bool {
		return g.came && g != r.m.owner && g.count == 0 && g.err == nil && g.refused == nil && !slices.Contains(r.m.given, g)
	}); g != nil {
		r.note("enter %d again", g.w.Goroutine)
		g.came = false
		entered, order := r.m.enter(g, true)
		g.again(entered, order)
	}
}

func (r *trial) pick(may func(*guest) bool) *guest {
	var some []*guest
	for _, g := range r.guests {
		if may(g) {
			some = append(some, g)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[r.intN(len(some))]
}

func (r *trial) note(format string, args ...any) {
	r.t.Logf(format, args...)
}

// compare checks everything that is visible from outside.
func (r *trial) compare() {
	m, x := r.m, r.fixture
	d, n := x.s.Demand(), m.need()
	owner := d.Owner.Goroutine
	want := uint64(0)
	if m.owner != nil {
		want = m.owner.w.Goroutine
	}
	got := [...]bool{d.Units == 1, d.Used == 1, d.Keep == 1, d.Want == 1, d.Try, d.Over, d.Lingers, d.Lost, d.Again, d.Idle}
	if exp := [...]bool{m.unit, m.owner != nil && !m.lost, n.keep, n.want, n.try, m.over, m.lingers, m.lost, false, false}; got != exp {
		x.t.Fatalf("Demand: %v, want %v; %+v", got, exp, d)
	}
	must(x, "the owner", owner, want)
	must(x, "the grant", d.Grant, m.grant*b2u(m.unit || m.lost))
	must(x, "Len", d.Waiting, len(m.line))
	for i, info := range x.s.Waiting() {
		must(x, "a waiter's place", info.Goroutine, m.line[i].w.Goroutine)
		if info.Kind.IsTry() && (i > 0 || d.State() != queue.Acquiring) {
			x.t.Fatalf("I10: a Try kind at place %d; %v", i, x.s)
		}
	}
	for _, g := range r.guests {
		switch {
		case g.err != nil && g.done != nil:
			g.mustHaveLeft(g.err, g.order)
		case slices.Contains(m.line, g):
			if g.done != nil {
				g.mustWait()
			}
		case g.came:
			if g.done != nil {
				g.mustBeIn()
			}
			if g == m.owner && (g.w.Grant != g.grant || g.w.HandOffs != g.handOffs) {
				x.t.Fatalf("waiter %d was admitted with %d/%d, want %d/%d", g.w.Goroutine, g.w.Grant, g.w.HandOffs, g.grant, g.handOffs)
			}
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// finish lets every guest be admitted and exit, so that the history also shows that nobody is stuck.
func (r *trial) finish() {
	for _, g := range r.guests {
		if r.mustStillWait(g) {
			r.startWait(g)
		}
	}
	r.note("drain")
	r.drain()
	for _, g := range r.guests {
		if g.done != nil && !g.over() {
			r.t.Fatalf("waiter %d is stuck: %v", g.w.Goroutine, r.s)
		}
	}
}

// Arrival, cancellation, hand-off, loss, budget, re-entry, entering again, lingering and closing, in any order and at any
// moment.
func TestMutex_RandomHistoriesAgreeWithTheModel(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			seeds.Each(t, 100, func(t *testing.T, rng *rand.Rand) {
				synctest.Test(t, func(t *testing.T) {
					r := &trial{fixture: &fixture{t, newMutex(fair), fair}, rng: rng, m: &mutexModel{fair: fair}}
					time.Sleep(time.Nanosecond) // a wait that begins at 0 has no beginning
					r.m.now = 1
					for range r.intN(480) {
						r.step()
					}
					r.finish()
				})
			})
		})
	}
}
