package queue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/anteroom/anteroom/queue"
)

// model says what a Synchronizer must do in the plainest way: slices, no links, no channels, one goroutine. It
// settles after each step, as a bubble does: a waiter whose goroutine is in Wait looks at once, one that has only
// entered looks when its Wait begins. So every order of wake-up and look occurs.
// Wait begins. So every order of wake-up and look is met.
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
	lost     bool        // its tenure ended by a loss, and it has not been given back since
	err      error       // what Wait must return
	order    queue.Order // with err
	number   uint64      // of its last admission
	grant    uint64
	handOffs int
}

func (g *guest) try() bool  { return g.kind.IsTry() }
func (g *guest) lock() bool { return g.kind.IsDeaf() }

func (m *model) set(state queue.State, count, handOffs int) {
	m.state, m.count, m.handOffs = state, count, handOffs
}

func (m *model) patient() bool {
	return slices.ContainsFunc(m.line, func(g *guest) bool { return !g.try() })
}

func (m *model) offer(handOffs int) queue.Order {
	if len(m.line) == 0 {
		m.set(queue.Releasing, 0, handOffs)
		return queue.SendRelease
	}
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

func (m *model) drop(g *guest) {
	m.line = slices.DeleteFunc(m.line, func(other *guest) bool { return other == g })
}

func (m *model) fail(chosen func(*guest) bool, err error) (n int) {
	for _, g := range slices.Clone(m.line) {
		if chosen(g) {
			m.drop(g)
			g.err = err
			n++
		}
	}
	return n
}

func (m *model) admit(g *guest) {
	m.drop(g)
	m.last++
	m.number, m.owner = m.last, g
	m.set(queue.Owned, 1, m.handOffs)
	g.number, g.grant, g.handOffs = m.number, m.grant, m.handOffs
	g.owed, g.woken, g.waits = false, false, false
	m.fail((*guest).try, queue.ErrRefused)
}

func (m *model) departed() queue.Order {
	switch {
	case m.state == queue.Granted:
		return m.offer(m.handOffs)
	case m.state == queue.Acquiring && len(m.line) == 0:
		return queue.RecallAttempt
	}
	return queue.Nothing
}

// settle lets every waiter look that was woken or whose context ended, until nothing moves.
func (m *model) settle() {
	for moved := true; moved; {
		moved = false
		for _, g := range slices.Clone(m.line) {
			if !g.waits || (!g.woken && !g.ended) {
				continue
			}
			moved = true
			g.woken = false
			switch {
			case g.ended:
				m.drop(g)
				g.err = errGiveUp
				g.order = m.departed()
			case m.state == queue.Granted && m.line[0] == g:
				m.admit(g)
			case !m.fair && m.now-g.since > queue.StarvationThreshold:
				g.owed = true
			}
			break // the line may have changed
		}
	}
}

func (m *model) enter(g *guest) (string, queue.Order) {
	if m.state == queue.Granted && !m.fair && !m.line[0].owed {
		m.admit(g)
		return "in", queue.Nothing
	}
	if g.try() && (m.patient() || m.state == queue.Owned || m.state == queue.Lost || m.state == queue.Granted) {
		return "refused", queue.Nothing
	}
	g.since, g.queued = m.now, true
	m.line = append(m.line, g)
	if m.state == queue.Free {
		return "queued", m.restart()
	}
	if m.state == queue.Acquiring && len(m.line) == 1 && g.try() {
		return "queued", queue.RecallAttempt
	}
	return "queued", queue.Nothing
}

func (m *model) exit(number uint64, mayHandOff bool) (queue.Exit, queue.Order) {
	lost := m.state == queue.Lost
	switch {
	case number == 0 || number != m.number:
		return queue.Stale, queue.Nothing
	case m.count > 1:
		m.count--
		return queue.Nested, queue.Nothing
	case lost:
		return queue.WasLost, m.restart()
	}
	m.number, m.owner = 0, nil
	if mayHandOff && len(m.line) > 0 {
		return queue.HandedOff, m.offer(m.handOffs + 1)
	}
	m.set(queue.Releasing, 0, m.handOffs)
	return queue.Final, queue.SendRelease
}

func (m *model) lose(grant uint64) (queue.State, queue.Order) {
	switch {
	case grant != m.grant:
		return queue.Free, queue.Nothing
	case m.state == queue.Granted:
		return queue.Granted, m.restart()
	case m.state == queue.Owned && m.owner.lock():
		m.state = queue.Lost
		return queue.Lost, queue.Nothing
	case m.state == queue.Owned:
		m.owner.lost = true
		return queue.Owned, m.restart()
	}
	return queue.Free, queue.Nothing
}

func (m *model) giveBack(g *guest) queue.Order {
	current := m.number != 0 && g.number == m.number
	g.lost, g.number = false, 0
	if !current && g.try() && (m.state == queue.Owned || m.state == queue.Lost) {
		g.err = queue.ErrRefused
		return queue.Nothing
	}
	if !g.queued {
		g.since, g.queued = m.now, true
	}
	at := 0
	for i, other := range m.line {
		if other.owed {
			at = i + 1 // the owed one may be behind waiters that were given back before it looked (I6)
		}
	}
	m.line = slices.Insert(m.line, at, g)
	switch {
	case current || m.state == queue.Free:
		return m.restart()
	case m.state == queue.Granted:
		return m.offer(m.handOffs)
	case m.state == queue.Acquiring && g.try():
		return queue.RecallAttempt
	}
	return queue.Nothing
}

// trial runs one random history on the model and on a Synchronizer, and compares everything visible after each step.
type trial struct {
	*fixture
	rt     *rapid.T // for drawing
	m      *model
	guests []*guest
	grants uint64
}

// intN draws a number below n. rapid's own ranges prefer small numbers; these are uniform, so that steps of each kind
// are as frequent as their share says, and they shrink to 0.
func (r *trial) intN(n int) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range 12 {
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % n
	}).Draw(r.rt, "draw")
}

func (r *trial) step() {
	pause := time.Duration(r.intN(3)) * queue.StarvationThreshold * 2 / 3
	time.Sleep(pause)
	r.m.now += pause
	switch r.intN(12) {
	case 0, 1, 2:
		r.enter()
	case 3, 4:
		if g := r.pick(func(g *guest) bool {
			return !g.waits && (slices.Contains(r.m.line, g) || g.err != nil && g.done == nil)
		}); g != nil {
			r.startWait(g)
		}
	case 5:
		if g := r.pick(func(g *guest) bool { return !g.ended && slices.Contains(r.m.line, g) }); g != nil {
			r.note("end the context of %d", g.w.Owner)
			g.ended = true
			g.cancel(errGiveUp)
		}
	case 6:
		// Redis answers the current order.
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
	}
	r.m.settle()
	synctest.Wait()
	r.compare()
}

func (r *trial) enter() {
	kind, id := queue.Kind(r.intN(8)), uint64(len(r.guests)+1)
	g := &guest{kind: kind}
	entered, order := r.m.enter(g)
	r.note("enter %d %v", id, kind)
	g.party = r.fixture.enter(kind, id)
	r.guests = append(r.guests, g)
	must(r.fixture, "Enter", g.entered(), entered)
	must(r.fixture, "Enter's order", g.party.order, order)
	if entered == "queued" && r.intN(2) == 0 {
		r.startWait(g)
	}
}

func (r *trial) startWait(g *guest) {
	r.note("wait %d", g.w.Owner)
	g.waits = true
	g.wait()
}

func (r *trial) answer() {
	switch r.m.state {
	case queue.Acquiring:
		switch r.intN(3) {
		case 0:
			r.note("refused")
			r.m.fail((*guest).try, queue.ErrRefused)
			r.s.Refused()
		case 1:
			r.note("abandon")
			want := len(r.m.line) == 0
			if want {
				r.m.restart()
			}
			must(r.fixture, "Abandon", r.s.Abandon(), want)
		default:
			r.grants++
			r.note("granted %d", r.grants)
			r.m.grant = r.grants
			must(r.fixture, "Granted", r.s.Granted(r.grants), r.m.offer(0))
		}
	case queue.Releasing:
		if r.intN(2) == 0 {
			r.note("resumed")
			must(r.fixture, "Resumed", r.s.Resumed(), r.m.offer(0))
			return
		}
		r.note("released")
		must(r.fixture, "Released", r.s.Released(), r.m.restart())
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

// rare does what programs seldom do: close, or give an admission back, even one that was lost long ago.
func (r *trial) rare() {
	if r.intN(4) == 0 {
		r.note("fail")
		want := queue.Nothing
		if r.m.fail(func(g *guest) bool { return g.kind&queue.Refusable != 0 }, errClosed) > 0 {
			want = r.m.departed()
		}
		must(r.fixture, "Fail", r.s.Fail(errClosed), want)
		return
	}
	g := r.pick(func(g *guest) bool {
		// Admitted and not exited: the current owner with one unit, or one whose hold was lost.
		return g == r.m.owner && r.m.count == 1 || g.lost
	})
	if g != nil {
		r.note("give back %d", g.w.Owner)
		g.done = nil
		must(r.fixture, "GiveBack", r.s.GiveBack(g.w), r.m.giveBack(g))
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
	r.rt.Logf(format, args...)
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
		if m.state == queue.Owned || m.state == queue.Lost {
			must(x, "I12: a Try kind queued behind an owner", info.Kind.IsTry(), false)
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
		if g.done == nil && (g.err != nil || slices.Contains(r.m.line, g)) {
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

// Arrival, cancellation, hand-off, loss, budget, re-entry, giving back and closing, in any order and at any moment.
func TestQueue_RandomHistoriesAgreeWithTheModel(t *testing.T) {
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rapid.SyncTest(rt, func(rt *rapid.T) {
					r := &trial{fixture: &fixture{rt, queue.New(fair)}, rt: rt, m: &model{fair: fair}}
					for range r.intN(480) {
						r.step()
					}
					r.finish()
				})
			})
		})
	}
}
