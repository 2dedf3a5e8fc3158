package faults_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
)

// agent is a party as its cell sees it: it takes orders and returns notes.
type agent struct {
	who  string
	slow float64 // see cell.slow
	send func(order)

	mu     sync.Mutex
	last   int
	boxes  map[int]chan note // answers, by order
	losses map[int]chan note // by the order that acquired the hold
	spans  map[int]*span     // of the holds, by the order that acquired them
}

// span is the time in which a caller may believe that it holds the lock.
type span struct {
	who      string
	in, out  moment // out 0: to the end
	released bool   // a release was ordered
	aside    bool   // of the uncontended lock
	reads    bool   // beside others that read
}

func newAgent(who string, slow float64) *agent {
	return &agent{who: who, slow: slow, boxes: map[int]chan note{}, losses: map[int]chan note{}, spans: map[int]*span{}}
}

// call is an outstanding order.
type call struct {
	a     *agent
	id    int
	do    string
	began moment
}

// start sends an order and returns immediately.
func (a *agent) start(do string, hold int, limit time.Duration) *call {
	a.mu.Lock()
	a.last++
	c := &call{a: a, id: a.last, do: do, began: now()}
	if do == doRelease {
		a.spans[hold].released = true
	}
	a.boxes[c.id] = make(chan note, 1)
	a.losses[c.id] = make(chan note, 1)
	a.mu.Unlock()
	a.send(order{ID: c.id, Do: do, Hold: hold, For: limit})
	return c
}

func (a *agent) try() *call                 { return a.start(doTry, 0, 0) }
func (a *agent) acquire() *call             { return a.start(doAcquire, 0, stretch(patience, a.slow)) }
func (a *agent) read() *call                { return a.start(doRead, 0, stretch(patience, a.slow)) }
func (a *agent) release(h *call) *call      { return a.start(doRelease, h.id, stretch(lease, a.slow)) }
func (a *agent) ask(do string) note         { return a.start(do, 0, 0).wait() }
func (a *agent) told(h *call) <-chan note   { a.mu.Lock(); defer a.mu.Unlock(); return a.losses[h.id] }
func (a *agent) state() (live, waiting int) { n := a.ask(doState); return n.Live, n.Waiting }

// hold acquires, and fails the cell if that fails.
func (a *agent) hold() *call { return a.acquire().granted() }

// granted waits for the answer, and fails the cell if that is an error.
func (c *call) granted() *call {
	if n := c.wait(); n.Got != "nil" {
		fail("%s cannot %s: %s", c.a.who, c.do, n.Got)
	}
	return c
}

// open returns the calls whose holds are not released.
func (a *agent) open() (calls []*call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.spans {
		if !s.released {
			calls = append(calls, &call{a: a, id: id, do: doAcquire})
		}
	}
	return calls
}

// in reports whether a caller here may believe that it holds the lock: it ceases to when it releases, not when that
// returns.
func (a *agent) in() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.spans {
		if s.out == 0 && !s.released && !s.aside {
			return true
		}
	}
	return false
}

// wait returns the answer. A caller that hangs is a failure of the cell.
func (c *call) wait() note {
	box := c.box()
	limit := stretch(patience, c.a.slow) + pace.Hang
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case n := <-box:
		box <- n // wait may be called again
		return n
	case <-timer.C:
		fail("%s: %s has not returned after %v", c.a.who, c.do, limit)
	}
	panic("unreachable")
}

// earlier returns which of two calls is answered first.
func earlier(one, other *call) *call {
	limit := stretch(patience, one.a.slow) + pace.Hang
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case n := <-one.box():
		one.box() <- n
		return one
	case n := <-other.box():
		other.box() <- n
		return other
	case <-timer.C:
		fail("neither %s nor %s has returned after %v", one.a.who, other.a.who, limit)
	}
	panic("unreachable")
}

// box is where the answer arrives.
func (c *call) box() chan note {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	return c.a.boxes[c.id]
}

// deliver handles a note from the party.
func (a *agent) deliver(o order, n note) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n.Told {
		if s := a.spans[n.ID]; s != nil {
			s.end(min(n.At, n.Since))
		}
		a.losses[n.ID] <- n
		return
	}
	switch {
	case n.Got == "nil" && (o.Do == doAcquire || o.Do == doRead || o.Do == doTry || o.Do == doTryHere):
		a.spans[n.ID] = &span{who: fmt.Sprintf("%s/%d", a.who, n.ID), in: n.At, aside: o.Do == doTry, reads: o.Do == doRead}
	case o.Do == doRelease:
		if s := a.spans[o.Hold]; s != nil {
			s.end(n.Began)
			if n.Since != 0 {
				s.end(n.Since)
			}
		}
	}
	a.boxes[n.ID] <- n
}

func (s *span) end(m moment) {
	if s.out == 0 || m < s.out {
		s.out = m
	}
}

// overlap returns the longest time in which two callers overlapped, and which. Readers may.
func overlap(agents ...*agent) (time.Duration, string) {
	var all []*span
	for _, a := range agents {
		a.mu.Lock()
		for _, s := range a.spans {
			if !s.aside {
				all = append(all, s)
			}
		}
		a.mu.Unlock()
	}
	end := now()
	until := func(s *span) moment {
		if s.out == 0 {
			return end
		}
		return s.out
	}
	var worst time.Duration
	var who string
	for i, s := range all {
		for _, t := range all[:i] {
			if d := min(until(s), until(t)).sub(max(s.in, t.in)); d > worst && !(s.reads && t.reads) {
				worst, who = d, s.who+" and "+t.who
			}
		}
	}
	return worst, who
}
