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

// model says what a Synchronizer must do in the plainest way: slices, no links, no channels, one goroutine. It
// settles after each step, as a bubble does: a waiter whose goroutine is in Wait checks immediately, one that has only
// entered checks when its Wait begins. So every order of wake-up and check occurs.
type model struct {
	fair     bool
	state    queue.State
	count    int
	handOffs int
	grant    uint64
	number   uint64
	last     uint64
	owner    *guest
	line     []*guest
	given    []*guest // admitted by a hand-off, and not run yet
	now      time.Duration
}

// guest is a waiter of the model, beside the party that it models.
type guest struct {
	*party
	kind     queue.Kind
	since    time.Duration
	queued   bool // it has been in the line, so since is set
	waits    bool // its goroutine is in Wait
	woken    bool
	owed     bool
	ended    bool        // its context has ended
	err      error       // what Wait must return
	order    queue.Order // with err
	number   uint64      // of its last admission
	grant    uint64
	handOffs int
}

func (g *guest) try() bool  { return g.kind.IsTry() }
func (g *guest) lock() bool { return !g.kind.CanNotify() }

func (m *model) set(state queue.State, count, handOffs int) {
	m.state, m.count, m.handOffs = state, count, handOffs
}

func (m *model) offer(handOffs int) queue.Order {
	if len(m.line) == 0 {
		m.number, m.owner = 0, nil
		m.set(queue.Releasing, 0, handOffs)
		return queue.SendRelease
	}
	if head := m.line[0]; m.fair || head.owed {
		m.admit(head, handOffs)
		m.given = append(m.given, head)
		return queue.Nothing
	}
	m.number, m.owner = 0, nil
	m.set(queue.Granted, 0, handOffs)
	m.line[0].woken = true
	return queue.Nothing
}

func (m *model) restart() queue.Order {
	m.grant, m.number, m.owner = 0, 0, nil
	if len(m.line) == 0 {
		m.set(queue.Free, 0, 0)
		return queue.Nothing
	}
	m.set(queue.Acquiring, 0, 0)
	return queue.StartAttempt
}

func remove(list []*guest, g *guest) []*guest {
	return slices.DeleteFunc(list, func(other *guest) bool { return other == g })
}

func (m *model) fail(chosen func(*guest) bool, err error) queue.Order {
	for _, g := range slices.Clone(m.line) {
		if chosen(g) {
			m.line = remove(m.line, g)
			g.err = err
		}
	}
	return m.departed()
}

func (m *model) admit(g *guest, handOffs int) {
	m.line = remove(m.line, g)
	m.last++
	m.number, m.owner = m.last, g
	m.set(queue.Owned, 1, handOffs)
	g.number, g.grant, g.handOffs = m.number, m.grant, m.handOffs
}

func (m *model) departed() queue.Order {
	switch {
	case m.state == queue.Granted:
		return m.offer(m.handOffs)
	case m.state == queue.Acquiring && len(m.line) == 0:
		m.restart()
		return queue.EndAttempt
	}
	return queue.Nothing
}

func (m *model) giveUp(g *guest) queue.Order {
	if slices.Contains(m.line, g) {
		m.line = remove(m.line, g)
		return m.departed()
	}
	switch {
	case g.number != m.number:
		return queue.Nothing
	case m.state == queue.Lost:
		return m.restart()
	}
	return m.offer(m.handOffs)
}

// settle lets every waiter check that was woken or whose context ended, until nothing moves.
func (m *model) settle() {
	for m.check() {
	}
}

func (m *model) check() bool {
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
		case m.state == queue.Granted && m.line[0] == g:
			g.waits = false
			m.admit(g, m.handOffs)
		case m.now-g.since > queue.StarvationThreshold:
			g.owed = true
		}
		return true
	}
	return false
}

func (m *model) enter(g *guest, first bool) (string, queue.Order) {
	switch {
	case g.try() && m.state != queue.Free && m.state != queue.Lingers:
		return "refused", queue.Nothing
	case m.state == queue.Granted, m.state == queue.Lingers:
		m.admit(g, m.handOffs)
		return "in", queue.Nothing
	}
	if !g.queued {
		g.since, g.queued = m.now, true
	}
	g.owed = first || g.try()
	at := len(m.line)
	if first {
		at = 0
		if len(m.line) > 0 && m.line[0].try() { // I12
			at = 1
		}
	}
	m.line = slices.Insert(m.line, at, g)
	if m.state == queue.Free {
		return "queued", m.restart()
	}
	return "queued", queue.Nothing
}

func (m *model) exit(number uint64, mayHandOff bool) (queue.Exit, queue.Order) {
	switch {
	case number == 0 || number != m.number:
		return queue.Stale, queue.Nothing
	case m.count > 1:
		m.count--
		return queue.Nested, queue.Nothing
	case m.state == queue.Lost:
		return queue.WasLost, m.restart()
	case mayHandOff && len(m.line) > 0:
		return queue.HandedOff, m.offer(m.handOffs + 1)
	}
	m.number, m.owner = 0, nil
	m.set(queue.Releasing, 0, m.handOffs)
	return queue.Final, queue.SendRelease
}

func (m *model) keep(number uint64) bool {
	if number == 0 || number != m.number || m.count > 1 || m.state != queue.Owned || len(m.line) > 0 {
		return false
	}
	m.number, m.owner = 0, nil
	m.set(queue.Lingers, 0, m.handOffs+1)
	return true
}

func (m *model) endLinger() queue.Order {
	if m.state != queue.Lingers {
		return queue.Nothing
	}
	m.set(queue.Releasing, 0, m.handOffs)
	return queue.SendRelease
}

func (m *model) lose(grant uint64) (queue.State, queue.Order) {
	switch {
	case grant != m.grant:
		return queue.Free, queue.Nothing
	case m.state == queue.Granted, m.state == queue.Lingers:
		was := m.state
		return was, m.restart()
	case m.state == queue.Owned && m.owner.lock():
		m.state = queue.Lost
		return queue.Lost, queue.Nothing
	case m.state == queue.Owned:
		return queue.Owned, m.restart()
	}
	return queue.Free, queue.Nothing
}

// trial runs one random history on the model and on a Synchronizer, and compares everything visible after each step.
type trial struct {
	*fixture
	rng    *rand.Rand
	m      *model
	guests []*guest
	grants uint64
}

// intN draws a number below n.
func (r *trial) intN(n int) int { return r.rng.IntN(n) }

func (r *trial) step() {
	pause := time.Duration(r.intN(3)) * queue.StarvationThreshold * 2 / 3
	time.Sleep(pause)
	r.m.now += pause
	switch r.intN(14) {
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
			r.note("end the context of %d", g.w.Owner)
			g.ended = true
			g.cancel(errGiveUp)
		}
	case 6:
		r.answer()
	case 7, 8:
		tenure := r.m.number
		if r.intN(5) == 0 && r.m.last > 0 {
			tenure = uint64(r.intN(int(r.m.last) + 1))
		}
		mayHandOff := r.intN(4) > 0
		r.note("exit %d mayHandOff=%v", tenure, mayHandOff)
		exit, order := r.m.exit(tenure, mayHandOff)
		r.mustExit(tenure, mayHandOff, exit, order)
	case 9:
		if r.intN(3) == 0 {
			grant := r.grants - min(r.grants, uint64(r.intN(2)))
			r.note("lose %d", grant)
			loss, order := r.m.lose(grant)
			r.mustLose(grant, loss, order)
		}
	case 10:
		r.reenter()
	case 11:
		r.rare()
	case 12:
		tenure := r.m.number
		if r.intN(5) == 0 && r.m.last > 0 {
			tenure = uint64(r.intN(int(r.m.last) + 1))
		}
		r.note("keep %d", tenure)
		must(r.fixture, "Keep", r.s.Keep(tenure), r.m.keep(tenure))
	case 13:
		if r.intN(3) == 0 {
			r.note("end linger")
			must(r.fixture, "EndLinger", r.s.EndLinger(), r.m.endLinger())
		}
	}
	r.m.settle()
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
	must(r.fixture, "Enter", g.entered(), entered)
	must(r.fixture, "Enter's order", g.party.order, order)
	if entered == "queued" && r.intN(2) == 0 {
		r.startWait(g)
	}
}

// mustStillWait reports whether the guest is queued, or was, and its Wait has not begun.
func (r *trial) mustStillWait(g *guest) bool {
	return g.done == nil && (g.err != nil || slices.Contains(r.m.line, g) || slices.Contains(r.m.given, g))
}

func (r *trial) startWait(g *guest) {
	r.note("wait %d", g.w.Owner)
	g.waits = true
	g.wait()
}

// answer is what Redis says, mostly something that the state allows.
func (r *trial) answer() {
	switch n := r.intN(4); {
	case r.m.state == queue.Releasing && n < 3:
		r.note("released")
		must(r.fixture, "Released", r.s.Released(), r.m.restart())
	case n == 0:
		r.note("refused")
		if r.m.state == queue.Acquiring {
			r.m.fail((*guest).try, errRefused)
		}
		r.s.Refuse(errRefused)
	default:
		r.grants++
		r.note("granted %d", r.grants)
		want := r.m.state == queue.Acquiring
		if want {
			r.m.grant = r.grants
			r.m.offer(0)
		}
		must(r.fixture, "Granted", r.s.Granted(r.grants), want)
	}
}

func (r *trial) reenter() {
	if owner := r.m.owner; owner != nil && owner.lock() {
		allowLost := r.intN(2) == 0
		r.note("reenter %d allowLost=%v", owner.w.Owner, allowLost)
		want := queue.ErrWasLost
		if r.m.state == queue.Owned || allowLost {
			want = nil
			r.m.count++
		}
		tenure, err := r.s.ReenterOwner(owner.w.Owner, allowLost)
		must(r.fixture, "ReenterOwner", err, want)
		must(r.fixture, "its tenure", tenure, r.m.number)
	}
}

// rare does what programs seldom do: close, or enter again after a tenure that has ended.
func (r *trial) rare() {
	if r.intN(4) == 0 {
		r.note("fail")
		want := r.m.fail(func(g *guest) bool { return g.kind.IsRefusable() }, errClosed)
		must(r.fixture, "Fail", r.s.Fail(errClosed), want)
		return
	}
	if g := r.pick(func(g *guest) bool {
		return g.number != 0 && g.number != r.m.number && g.err == nil && g.refused == nil && !slices.Contains(r.m.given, g)
	}); g != nil {
		r.note("enter %d again", g.w.Owner)
		g.number = 0
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
	want := queue.Tenure{State: m.state, Number: m.number, Grant: m.grant, Count: m.count, HandOffs: m.handOffs}
	if m.owner != nil {
		want.Owner, want.Kind = m.owner.w.Owner, m.owner.kind
	}
	must(x, "Current", x.s.Current(), want)
	must(x, "Len", x.s.Len(), len(m.line))
	for i, info := range x.s.Waiting() {
		must(x, "a waiter's place", info.Owner, m.line[i].w.Owner)
		if info.Kind.IsTry() && (i > 0 || m.state != queue.Acquiring) {
			x.t.Fatalf("I12: a Try kind at place %d; %v", i, x.s)
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
		case g.number != 0:
			if g.done != nil {
				g.mustBeIn()
			}
			if g.w.Number != g.number || g.w.Grant != g.grant || g.w.HandOffs != g.handOffs {
				x.t.Fatalf("waiter %d was admitted with %d/%d/%d, want %d/%d/%d", g.w.Owner,
					g.w.Number, g.w.Grant, g.w.HandOffs, g.number, g.grant, g.handOffs)
			}
		}
	}
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
			r.t.Fatalf("waiter %d is stuck: %v", g.w.Owner, r.s)
		}
	}
}

// Arrival, cancellation, hand-off, loss, budget, re-entry, entering again and closing, in any order and at any moment.
func TestQueue_RandomHistoriesAgreeWithTheModel_Lab(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			seeds.Each(t, 100, func(t *testing.T, rng *rand.Rand) {
				synctest.Test(t, func(t *testing.T) {
					r := &trial{fixture: &fixture{t, queue.New(fair), fair}, rng: rng, m: &model{fair: fair}}
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
