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

// gateModel says what a Gate must do in the plainest way: slices, one goroutine, no word. Everybody who was woken has
// checked before the next step, so a Gate that is not fair differs from a fair one only in whom readers pass.
type gateModel struct {
	all                           int64
	fair                          bool
	now, deadline, turnEnds       time.Duration
	units, admissions             int64
	contended, over               bool
	line, inside                  []*guestOf
	keep, want                    int64
	again, try, idle, mustRestate bool
}

// guestOf is a visitor of the model.
type guestOf struct {
	*visitor
	need    int64
	kind    queue.Kind
	owed    bool
	joined  bool // by the word
	lost    bool // inside, and relies on units that are gone
	failure error
}

func (m *gateModel) whole(g *guestOf) bool { return m.all > 0 && g.need == m.all }
func (m *gateModel) lost() bool {
	return slices.ContainsFunc(m.inside, func(g *guestOf) bool { return g.lost })
}
func (m *gateModel) writes() bool { return slices.ContainsFunc(m.inside, m.whole) }

func (m *gateModel) used() (units int64) {
	for _, g := range m.inside {
		switch {
		case m.lost():
			return 0
		case m.all > 0:
			units = max(units, g.need)
		default:
			units += g.need
		}
	}
	return units
}

func (m *gateModel) with(g *guestOf) int64 {
	if m.all == 0 {
		return m.used() + g.need
	}
	return g.need
}

func (m *gateModel) barred(g *guestOf) bool {
	return m.writes() || m.whole(g) && len(m.inside) > 0
}

func (m *gateModel) suffices(g *guestOf) bool { return !m.barred(g) && m.with(g) <= m.units }

func (m *gateModel) admits() bool {
	m.over = m.over || m.units > 0 && m.contended && m.now >= m.turnEnds
	return !m.over && !m.lost() && m.now < m.deadline
}

func (m *gateModel) open() bool {
	return m.all > 0 && m.units > 0 && !m.over && !m.lost() && !m.writes() && len(m.line) == 0 && m.admissions > 1
}

func (m *gateModel) admit(g *guestOf) {
	m.inside = append(m.inside, g)
	m.admissions++
}

func (m *gateModel) pass(together bool) {
	if !m.admits() {
		return
	}
	together = together && slices.ContainsFunc(m.line, func(g *guestOf) bool { return !m.whole(g) })
	for _, g := range slices.Clone(m.line) {
		if together && !m.fair && m.whole(g) && !g.owed {
			continue
		}
		if !m.suffices(g) {
			return
		}
		m.line = drop(m.line, g)
		m.admit(g)
		together = m.all > 0 && !m.whole(g)
	}
}

func drop(list []*guestOf, g *guestOf) []*guestOf {
	return slices.DeleteFunc(list, func(other *guestOf) bool { return other == g })
}

// settle passes on and notes whether what must be stated has changed.
func (m *gateModel) settle(together bool) {
	m.pass(together)
	keep, again, try := m.units, false, false
	if m.over {
		keep = m.used()
	}
	want := keep
	if len(m.line) > 0 {
		head := m.line[0]
		want, try = max(keep, m.with(head)), head.kind.IsTry()
		again = m.over && want == keep && !m.writes()
	}
	idle := m.used() == 0 && len(m.line) == 0 && m.units > 0 && m.admissions == 1
	if m.lost() {
		keep, want, again, try, idle = 0, 0, false, false, false
	}
	m.mustRestate = keep != m.keep || want != m.want || again != m.again || try != m.try || idle != m.idle
	m.keep, m.want, m.again, m.try, m.idle = keep, want, again, try, idle
}

func (m *gateModel) enter(g *guestOf) string {
	result := "in"
	switch free := m.admits() && len(m.line) == 0; {
	case free && m.suffices(g):
		m.admit(g)
	case g.kind.IsTry() && (len(m.line) > 0 || m.over || m.lost() || m.barred(g) || m.suffices(g)):
		result = "refused"
	default:
		result = "queued"
		g.owed = g.w.First || g.kind.IsTry()
		at := len(m.line)
		if g.w.First {
			at = 0
			if len(m.line) > 0 && m.line[0].kind.IsTry() {
				at = 1
			}
		}
		m.line = slices.Insert(m.line, at, g)
	}
	m.settle(false)
	return result
}

func (m *gateModel) exit(g *guestOf) {
	wrote := m.whole(g) && slices.Contains(m.inside, g)
	m.inside = drop(m.inside, g)
	m.settle(wrote)
}

func (m *gateModel) renewed(contended bool) {
	m.contended, m.over = contended, m.over && contended
	m.admits()
	m.settle(false)
}

func (m *gateModel) lose() {
	if m.units == 0 {
		return
	}
	m.inside = slices.DeleteFunc(m.inside, func(g *guestOf) bool { return g.kind.CanNotify() })
	for _, g := range m.inside {
		g.lost = true
	}
	m.units, m.contended, m.over = 0, false, false
	m.settle(false)
}

// gateTrial runs one random history on the model and on a Gate, and compares everything visible after each step.
type gateTrial struct {
	*gateFixture
	rng    *rand.Rand
	m      *gateModel
	guests []*guestOf
	orders int // Restates of this step
}

func (r *gateTrial) order(o queue.Order) {
	if o == queue.Restate {
		r.orders++
	}
}

func (r *gateTrial) pick(list []*guestOf) *guestOf {
	if len(list) == 0 {
		return nil
	}
	return list[r.rng.IntN(len(list))]
}

func (r *gateTrial) note(format string, args ...any) { r.t.Logf(format, args...) }

func (r *gateTrial) step() {
	pause := time.Duration(r.rng.IntN(4)) * handOff / 3
	time.Sleep(pause)
	r.m.now = r.now()
	r.orders = 0
	switch r.rng.IntN(16) {
	case 0, 1, 2, 3:
		r.enterNew()
	case 4, 5:
		r.join()
	case 6, 7, 8:
		r.exit()
	case 9:
		if g := r.pick(r.m.line); g != nil {
			r.note("%d gives up", g.w.Goroutine)
			r.m.line = drop(r.m.line, g)
			g.failure = errGiveUp
			r.m.settle(false)
			g.giveUp()
			r.order(g.later)
			g.later = queue.Nothing
		}
	case 10, 11:
		r.granted()
	case 12:
		contended, deadline := r.rng.IntN(2) == 0, r.m.now+time.Duration(r.rng.IntN(6))*handOff
		r.note("renewed contended=%v until %v", contended, deadline)
		r.m.deadline = deadline
		r.m.renewed(contended)
		r.order(r.g.Renewed(contended, deadline))
	case 13:
		r.note("contended")
		r.m.renewed(true)
		r.order(r.g.Contended())
	case 14:
		r.shrink()
	default:
		r.rare()
	}
	r.compare()
}

func (r *gateTrial) enterNew() {
	r.ids++
	kind := []queue.Kind{lock, hold, queue.Try | hold, queue.Try | lock}[r.rng.IntN(4)]
	need := int64(1 + r.rng.IntN(3))
	if r.all > 0 {
		need = []int64{1, 1, all}[r.rng.IntN(3)]
	}
	r.enterOne(&guestOf{need: need, kind: kind}, &queue.Waiter{Stay: &queue.Stay{Need: int32(need), Kind: kind, Goroutine: r.ids}})
}

func (r *gateTrial) enterOne(g *guestOf, w *queue.Waiter) {
	r.note("enter %d need=%d %v first=%v", w.Goroutine, w.Need, w.Kind, w.First)
	g.visitor = &visitor{w: w} // the model reads First
	result := r.m.enter(g)
	g.visitor = r.enterAs(w)
	r.order(g.order)
	r.must("Enter", entered(g.in, g.refused), result)
	if result == "queued" {
		r.guests = append(r.guests, g)
		g.wait()
	}
}

// join comes in by the word, or as who does not.
func (r *gateTrial) join() {
	if r.all == 0 {
		return
	}
	until := r.m.deadline
	if r.m.contended {
		until = min(until, r.m.turnEnds)
	}
	may := r.m.open() && r.m.now < until
	r.note("join: %v", may)
	r.mustJoin(may)
	r.ids++
	g := &guestOf{need: 1, kind: lock, joined: may, visitor: &visitor{w: &queue.Waiter{Stay: &queue.Stay{Goroutine: r.ids}}}}
	if may {
		r.m.admit(g)
	} else {
		r.enterOne(g, &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: lock, Goroutine: r.ids}})
	}
}

func (r *gateTrial) exit() {
	g := r.pick(r.m.inside)
	if g == nil {
		return
	}
	reader := func(g *guestOf) bool { return r.all > 0 && !r.m.whole(g) && !g.kind.CanNotify() }
	again := !g.joined && r.rng.IntN(6) == 0
	r.note("exit %d, again=%v", g.w.Goroutine, again)
	switch {
	case reader(g) && !again:
		open := r.m.open()
		r.m.inside = drop(r.m.inside, g)
		if !open && !slices.ContainsFunc(r.m.inside, reader) { // else nobody checks
			r.m.settle(false)
		}
		r.order(r.g.ReleaseShared(1))
	case r.all == 0 && !g.kind.CanNotify() && !again && r.rng.IntN(2) == 0:
		r.m.exit(g)
		r.order(r.g.ReleaseShared(g.need))
	default:
		r.m.exit(g)
		r.order(r.g.Exit(g.w))
		r.must("a second Exit", r.g.Exit(g.w), queue.Nothing)
	}
	if again {
		r.compare()
		r.orders = 0
		g.w.Again()
		r.enterOne(&guestOf{need: g.need, kind: g.kind}, g.w)
	}
}

func (r *gateTrial) granted() {
	units := int64(1 + r.rng.IntN(8))
	if r.all > 0 {
		units = []int64{1, all}[r.rng.IntN(2)]
	}
	m := r.m
	if units < max(m.units, m.used()) || m.lost() {
		return // Redis never gives less
	}
	contended, deadline := r.rng.IntN(3) == 0, m.now+time.Duration(1+r.rng.IntN(8))*handOff
	r.note("granted %d contended=%v until %v", units, contended, deadline)
	if m.units == 0 || !m.contended {
		m.turnEnds, m.admissions = m.now+handOff, 0
	}
	m.units, m.deadline, m.contended, m.over = units, deadline, false, false
	if len(m.line) > 0 {
		m.line[0].owed = true
	}
	m.pass(false)
	m.renewed(contended)
	r.order(r.g.Granted(units, contended, deadline))
}

func (r *gateTrial) shrink() {
	keep := r.m.units
	if r.rng.IntN(2) == 0 {
		keep = r.m.used()
	} else if keep > 0 {
		keep--
	}
	ok := r.m.used() <= keep
	r.note("shrink to %d: %v", keep, ok)
	if ok && keep < r.m.units {
		r.m.units = keep
		if keep == 0 {
			r.m.contended, r.m.over = false, false
		}
	}
	r.m.settle(false)
	r.must("Shrink", r.g.Shrink(keep), ok)
	r.m.mustRestate = false // the caller states it
}

func (r *gateTrial) rare() {
	switch r.rng.IntN(4) {
	case 0:
		r.note("lose")
		r.m.lose()
		r.order(r.g.Lose())
	case 1:
		if i := slices.IndexFunc(r.m.inside, r.m.whole); i >= 0 {
			g := r.m.inside[i]
			r.note("downgrade %d", g.w.Goroutine)
			g.need = 1
			r.m.settle(true)
			r.order(r.g.Downgrade(g.w.Stay))
		}
	case 2:
		r.note("refuse")
		r.fail((*guestOf).isTry, errRefused)
		r.order(r.g.Refuse(errRefused))
	default:
		r.note("fail")
		r.fail((*guestOf).isRefusable, errClosed)
		r.order(r.g.Fail(errClosed))
	}
}

func (g *guestOf) isTry() bool       { return g.kind.IsTry() }
func (g *guestOf) isRefusable() bool { return g.kind.IsRefusable() }

func (r *gateTrial) fail(fails func(*guestOf) bool, err error) {
	for _, g := range slices.Clone(r.m.line) {
		if fails(g) {
			r.m.line = drop(r.m.line, g)
			g.failure = err
		}
	}
	r.m.settle(false)
}

// compare checks everything that is visible from outside.
func (r *gateTrial) compare() {
	r.t.Helper()
	synctest.Wait()
	m := r.m
	waiting := make([]*visitor, 0, len(m.line))
	for _, g := range m.line {
		waiting = append(waiting, g.visitor)
		g.mustWait()
	}
	r.lined(waiting...)
	for _, g := range r.guests {
		switch {
		case g.failure != nil:
			g.mustHaveLeft(g.failure)
		case !slices.Contains(m.line, g):
			g.mustBeIn()
			r.order(g.later)
			g.later = queue.Nothing
		}
	}
	d := r.g.Demand()
	got := [...]any{d.Units, d.Used, d.Keep, d.Want, d.Again, d.Try, d.Idle, d.Contended, d.Lost, d.Waiting, int64(d.Admissions)}
	want := [...]any{m.units, m.used(), m.keep, m.want, m.again, m.try, m.idle, m.contended, m.lost(), len(m.line), m.admissions}
	if got != want {
		r.t.Fatalf("Demand: %v, want %v", got, want)
	}
	if m.mustRestate && r.orders == 0 || !m.mustRestate && m.fair && r.orders > 0 || r.orders > 1 && m.fair {
		r.t.Fatalf("%d orders, changed=%v; %+v", r.orders, m.mustRestate, d)
	}
	m.mustRestate = false
}

// Every transition, in any order and at any moment.
func TestShared_RandomHistoriesAgreeWithTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		all  int32
		fair bool
	}{"fair": {all, true}, "non-fair": {all, false}, "semaphore": {0, false}} {
		t.Run(name, func(t *testing.T) {
			seeds.Each(t, 100, func(t *testing.T, rng *rand.Rand) {
				inGate(t, c.all, c.fair, func(x *gateFixture) {
					r := &gateTrial{gateFixture: x, rng: rng, m: &gateModel{all: int64(c.all), fair: c.fair}}
					for range rng.IntN(300) {
						r.step()
					}
					r.finish()
				})
			})
		})
	}
}

// finish grants all that is asked for and lets everybody exit, so that the history also shows that nobody is stuck.
func (r *gateTrial) finish() {
	r.note("finish")
	for len(r.m.line)+len(r.m.inside) > 0 {
		r.m.now = r.now()
		for len(r.m.inside) > 0 {
			r.orders = 0
			r.exit()
			r.compare()
		}
		if len(r.m.line) > 0 {
			r.orders = 0
			r.m.deadline = forever
			units := max(r.m.units, r.m.with(r.m.line[0]))
			if r.m.units == 0 || !r.m.contended {
				r.m.turnEnds, r.m.admissions = r.m.now+handOff, 0
			}
			r.m.units, r.m.contended, r.m.over = units, false, false
			r.m.line[0].owed = true
			r.m.pass(false)
			r.m.renewed(false)
			r.order(r.g.Granted(units, false, forever))
			r.compare()
		}
	}
}
