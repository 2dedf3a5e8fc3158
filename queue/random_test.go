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

// trial runs one random history on the model and on a Synchronizer, and compares everything visible after each step.
type trial struct {
	*fixture
	rng    *rand.Rand
	m      *model
	guests []*guest
	grants uint64
	before need          // what was stated before the step
	orders []queue.Order // of the step
	stated bool          // the step states what is needed itself
}

func (r *trial) note(format string, args ...any) { r.t.Logf(format, args...) }

// order compares an order. Of an RWMutex that is not fair it is not said which of several transitions of a step has it.
func (r *trial) order(what string, got, want queue.Order) {
	r.t.Helper()
	if r.orders = append(r.orders, got); r.p.Fair || r.p.All < 2 {
		must(r.fixture, what+"'s order", got, want)
	}
}

func (r *trial) pick(may func(*guest) bool) *guest {
	some := slices.DeleteFunc(slices.Clone(r.guests), func(g *guest) bool { return !may(g) })
	if len(some) == 0 {
		return nil
	}
	return some[r.rng.IntN(len(some))]
}

func (r *trial) step() {
	pause := time.Duration(r.rng.IntN(3)) * queue.StarvationThreshold * 2 / 3
	if !r.p.Returns {
		pause = time.Duration(r.rng.IntN(4)) * handOff / 3
	}
	time.Sleep(pause)
	r.m.now = r.now()
	r.before, r.orders, r.stated = r.m.stated, nil, false
	switch r.rng.IntN(16) {
	case 0, 1, 2, 3:
		r.enterNew()
	case 4:
		r.join()
	case 5, 6:
		if g := r.pick(r.mayWait); g != nil {
			r.startWait(g)
		}
	case 7:
		r.endContext()
	case 8, 9, 10:
		r.exit()
	case 11, 12:
		r.answer()
	case 13:
		r.shrink()
	case 14:
		r.reenter()
	default:
		r.rare()
	}
	r.m.run()
	synctest.Wait()
	r.compare()
}

func (r *trial) enterNew() {
	r.ids++
	g := &guest{kind: []queue.Kind{lock, hold, queue.Try | hold, queue.Try | lock, 0}[r.rng.IntN(5)], need: 1}
	switch {
	case r.p.All == 0:
		g.need, g.of = int64(1+r.rng.IntN(3)), []int64{8, 8, 5, 3}[r.rng.IntN(4)]
	case r.p.All > 1:
		g.need = []int64{1, 1, all}[r.rng.IntN(3)]
	}
	r.enterOne(g, &queue.Waiter{Stay: &queue.Stay{Need: int32(g.need), Kind: g.kind, Goroutine: r.ids}, Of: g.of})
}

func (r *trial) enterOne(g *guest, w *queue.Waiter) {
	r.note("enter %d need=%d of=%d %v first=%v", w.Goroutine, w.Need, w.Of, w.Kind, w.First)
	result, order := r.m.enter(g, w.First)
	g.party = r.enterAs(w)
	must(r.fixture, "Acquire", g.entered(), result)
	r.order("Acquire", g.party.order, order)
	if !slices.Contains(r.guests, g) {
		r.guests = append(r.guests, g)
	}
	if result == "queued" && (!r.p.Returns || r.rng.IntN(2) == 0) {
		r.startWait(g)
	}
}

// join comes in by the word, or as who does not.
func (r *trial) join() {
	if r.p.All < 2 {
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
	g := &guest{need: 1, kind: lock, joined: may}
	w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: lock, Goroutine: r.ids}}
	if !may {
		r.enterOne(g, w)
		return
	}
	g.party = &party{x: r.fixture, w: w}
	r.m.admit(g)
	r.guests = append(r.guests, g)
}

// mayWait reports whether the guest is queued, or was, and its Park has not begun.
func (r *trial) mayWait(g *guest) bool {
	return g.done == nil && !g.in && (g.err != nil || slices.Contains(r.m.line, g) || slices.Contains(r.m.given, g))
}

func (r *trial) startWait(g *guest) {
	r.note("wait %d", g.w.Goroutine)
	g.waits = g.err == nil
	r.m.run()
	g.wait()
}

func (r *trial) endContext() {
	g := r.pick(func(g *guest) bool {
		return !g.ended && (slices.Contains(r.m.line, g) || slices.Contains(r.m.given, g))
	})
	if g == nil {
		return
	}
	r.note("end the context of %d", g.w.Goroutine)
	g.ended = true
	g.cancel(errGiveUp)
}

// exit is of somebody inside or, seldom, of one that has left.
func (r *trial) exit() {
	g := r.pick(func(g *guest) bool { return slices.Contains(r.m.inside, g) && !slices.Contains(r.m.given, g) })
	if g == nil || r.rng.IntN(5) == 0 {
		g = r.pick(func(g *guest) bool {
			return g.came && g.err == nil && !slices.Contains(r.m.inside, g) && !slices.Contains(r.m.line, g) && !r.m.reader(g) && !g.joined
		})
	}
	if g == nil {
		return
	}
	next := queue.HandOff
	if r.p.Returns {
		next = []queue.Next{queue.HandOff, queue.HandOff, queue.Linger, queue.EndTurn}[r.rng.IntN(4)]
	}
	r.note("exit %d %v", g.w.Goroutine, next)
	switch unnamed := slices.Contains(r.m.inside, g) && g.count == 0 && r.rng.IntN(2) == 0; {
	case r.m.reader(g) && (g.joined || unnamed):
		open := r.m.open()
		r.m.leave(g)
		g.out = true
		want := queue.Nothing
		if !open && !slices.ContainsFunc(r.m.inside, r.m.reader) { // else nobody checks
			want = r.m.settle(false)
		}
		r.order("ReleaseShared", r.s.ReleaseShared(0, 1, 0), want)
		r.guests = drop(r.guests, g) // its Stay does not know
	case r.p.All == 0 && g.lock() && slices.Contains(r.m.inside, g):
		g.out = true
		r.m.leave(g)
		r.order("ReleaseShared", r.s.ReleaseShared(0, g.need, g.of), r.m.settle(false))
		r.guests = drop(r.guests, g)
	default:
		want, order := r.m.exit(g, next)
		exit, got := r.s.Release(g.w.Stay, next)
		must(r.fixture, "Release", exit, want)
		r.order("Release", got, order)
	}
}

// answer is what Redis says, mostly something that the state allows.
func (r *trial) answer() {
	m := r.m
	contended, deadline := !r.p.Returns && r.rng.IntN(3) == 0, m.now+time.Duration(1+r.rng.IntN(8))*handOff
	switch n := r.rng.IntN(6); {
	case m.Returns && m.units > 0 && m.over && n < 3:
		r.shrink()
	case n == 0:
		r.note("refused")
		r.order("Refuse", r.s.Refuse(errRefused), m.fail((*guest).try, errRefused))
	case m.Returns && n == 1:
		r.note("end linger")
		want := queue.Nothing
		if m.lingers {
			m.lingers = false
			want = m.settle(false)
		}
		r.order("EndLinger", r.s.EndLinger(), want)
	case !m.Returns && n == 1:
		r.note("renewed contended=%v until %v", contended, deadline)
		m.deadline = deadline
		r.order("Renewed", r.s.Renewed(contended, deadline), m.renewed(contended))
	case !m.Returns && n == 2:
		r.note("contended")
		r.order("Contended", r.s.Contended(), m.renewed(true))
	default:
		units := int64(1 + r.rng.IntN(8))
		switch {
		case m.Returns:
			units, deadline = 1, queue.Forever
		case m.All > 0:
			units = []int64{1, all}[r.rng.IntN(2)]
		}
		if !m.Returns && (units < max(m.units, m.used()) || m.lost()) {
			return // Redis never gives less
		}
		if of := []int64{8, m.stated.keepOf, m.stated.wantOf}[r.rng.IntN(3)]; m.All == 0 {
			if of < units {
				return // nor more than there are
			}
			r.note("counts with %d", of)
			ok := of <= m.least()
			must(r.fixture, "CountsWith", r.s.CountsWith(of), ok)
			if !ok {
				return
			}
			m.of = of
		}
		if m.units == 0 || m.Returns {
			r.grants++
		}
		r.note("granted %d contended=%v until %v", units, contended, deadline)
		taken, want := m.granted(r.grants, units, contended, deadline)
		got, order := r.s.Synchronizer.Granted(r.grants, units, contended, deadline)
		must(r.fixture, "Granted", got, taken)
		r.order("Granted", order, want)
	}
}

func (r *trial) shrink() {
	keep := r.m.units
	switch {
	case r.p.Returns && !r.m.stated.back:
		return
	case r.p.Returns:
		keep = 0
	case r.rng.IntN(2) == 0:
		keep = r.m.used()
	case keep > 0:
		keep--
	}
	ok := r.m.shrink(keep)
	r.note("shrink to %d: %v", keep, ok)
	must(r.fixture, "Shrink", r.s.Shrink(keep), ok)
	r.stated = true
}

func (r *trial) reenter() {
	g := r.pick(func(g *guest) bool {
		return g.came && g.err == nil && !slices.Contains(r.m.given, g) && !slices.Contains(r.m.line, g) && !g.joined &&
			!(r.p.All == 0 && g.lock())
	})
	if g == nil || g.count == 200 {
		return
	}
	allowLost := r.rng.IntN(2) == 0
	r.note("reenter %d allowLost=%v", g.w.Goroutine, allowLost)
	var want error
	switch {
	case !slices.Contains(r.m.inside, g):
		want = queue.ErrNotOwner
	case r.m.lost() && !allowLost:
		want = queue.ErrWasLost
	default:
		g.count++
	}
	must(r.fixture, "Reenter", r.s.Reenter(g.w.Stay, allowLost), want)
}

// rare does what programs seldom do: close, downgrade, or enter again after a stay that has ended; and what servers do.
func (r *trial) rare() {
	switch r.rng.IntN(4) {
	case 0:
		grant := r.grants - min(r.grants, uint64(r.rng.IntN(2)))
		r.note("lose %d", grant)
		who, want := r.m.lose(grant)
		w, order := r.s.Lose(grant)
		r.order("Lose", order, want)
		must(r.fixture, "who lost", w != nil, who != nil)
		must(r.fixture, "who lost", w == nil || w == who.w.Stay, true)
	case 1:
		r.note("fail")
		r.order("Fail", r.s.Fail(errClosed), r.m.fail((*guest).refusable, errClosed))
	case 2:
		if g := r.pick(func(g *guest) bool { return r.p.All > 1 && r.m.alone(g) && slices.Contains(r.m.inside, g) }); g != nil {
			r.note("downgrade %d", g.w.Goroutine)
			g.need = 1
			r.order("Downgrade", r.s.Downgrade(g.w.Stay), r.m.settle(true))
		}
	default:
		g := r.pick(func(g *guest) bool {
			return g.came && g.out && g.count == 0 && g.err == nil && g.refused == nil && !slices.Contains(r.m.given, g) && !g.joined
		})
		if g != nil {
			g.came = false
			g.w.Again()
			r.enterOne(g, g.w)
		}
	}
}

// compare checks everything that is visible from outside.
func (r *trial) compare() {
	r.t.Helper()
	m, x, d := r.m, r.fixture, r.s.Demand()
	for _, g := range r.guests {
		switch {
		case g.err != nil && g.done != nil && r.p.Returns:
			g.mustHaveLeft(g.err, g.order)
		case g.err != nil && g.done != nil:
			g.mustHaveLeft(g.err)
		case slices.Contains(m.line, g):
			if g.done != nil {
				g.mustWait()
			}
		case g.came && g.done != nil:
			g.mustBeIn()
		}
		if g.done != nil && g.over() && g.leftWith != queue.Nothing {
			r.orders = append(r.orders, g.leftWith)
			g.leftWith = queue.Nothing
			g.order = queue.Nothing
		}
		if slices.Contains(m.inside, g) && !g.joined && (g.w.Grant != g.grant || int64(g.w.HandOffs) != g.handOffs && (m.Fair || m.All < 2)) {
			x.t.Fatalf("waiter %d was admitted with %d/%d, want %d/%d", g.w.Goroutine, g.w.Grant, g.w.HandOffs, g.grant, g.handOffs)
		}
	}
	n, grant, owner := m.stated, m.grant, uint64(0)
	if m.units == 0 && !m.lost() {
		grant = 0
	}
	if i := slices.IndexFunc(m.inside, m.alone); i >= 0 {
		owner = m.inside[i].w.Goroutine
	}
	got := [...]any{d.Units, d.Used, d.Keep, d.Want, d.Again, d.Try, d.Idle, d.Contended, d.Over, d.Lingers, d.Lost, d.Waiting, int64(d.Admissions), d.Grant, d.Owner.Goroutine, d.KeepOf, d.WantOf, d.Barred}
	want := [...]any{m.units, m.used(), n.keep, n.want, n.again, n.try, n.idle, m.contended, m.over, m.lingers, m.lost(), len(m.line), m.admissions, grant, owner, n.keepOf, n.wantOf, n.barred}
	if got != want {
		x.t.Fatalf("Demand: %v, want %v", got, want)
	}
	for i, info := range x.s.Waiting(-1) {
		must(x, "a waiter's place", info.Goroutine, m.line[i].w.Goroutine)
	}
	if changed := n != r.before && !(n.back && r.before.back); !r.stated && changed && len(r.orders) == 0 {
		x.t.Fatalf("no order, though %+v has become %+v", r.before, n)
	}
}

// Arrival, cancellation, hand-off, loss, re-entry, turns, lingering, shrinking, downgrades and closing, in any order and at
// any moment.
func TestQueue_RandomHistoriesAgreeWithTheModel(t *testing.T) {
	for name, policy := range map[string]func() queue.Policy{
		"Mutex, fair":       func() queue.Policy { return mutexPolicy(true) },
		"Mutex, non-fair":   func() queue.Policy { return mutexPolicy(false) },
		"RWMutex, fair":     func() queue.Policy { return sharedPolicy(all, true) },
		"RWMutex, non-fair": func() queue.Policy { return sharedPolicy(all, false) },
		"Semaphore":         func() queue.Policy { return sharedPolicy(0, false) },
	} {
		t.Run(name, func(t *testing.T) {
			seeds.Each(t, 60, func(t *testing.T, rng *rand.Rand) {
				inside(t, policy, func(x *fixture) {
					r := &trial{fixture: x, rng: rng, m: &model{Policy: x.p}}
					for range rng.IntN(300) {
						r.step()
					}
					r.finish()
				})
			})
		})
	}
}

// finish shows that nobody is stuck: of a Mutex everybody comes in and leaves, of others all give up.
func (r *trial) finish() {
	for _, g := range r.guests {
		if r.mayWait(g) {
			r.startWait(g)
		}
	}
	if r.p.Returns {
		r.note("drain")
		r.drain()
	}
	for _, g := range r.guests {
		if g.done != nil {
			if !r.p.Returns {
				g.giveUp()
			}
			if !g.over() {
				r.t.Fatalf("waiter %d is stuck: %v", g.w.Goroutine, r.s)
			}
		}
	}
}
