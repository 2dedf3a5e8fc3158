package lettucecompat

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

const (
	// slowAfter is how long a round trip keeps the others waiting: the most that sharing adds to a call, and more
	// than a near round trip takes.
	slowAfter = 300 * time.Microsecond
	// maxBatch bounds the commands of a round trip (by one request's more at most), so that one slow connection
	// delays a bounded number of callers.
	maxBatch = 256
	// yields bounds how often a sender lets others run so that they join the next round trip.
	yields = 8
	// stackSize is about what a round trip needs of a stack.
	stackSize = 6 << 10
	// abandonedPerPlace bounds the abandoned round trips of a sender to this many times its limit. Beyond it requests
	// wait: a hung server costs a bounded number of goroutines and connections.
	abandonedPerPlace = 4
	// sharedLimit is the deadline of the context that go-redis gets with a round trip whose callers may leave. It
	// matters only if the client minds contexts and has no read limit of its own.
	sharedLimit = 30 * time.Second
	// mostHeld bounds how long a client that ignores deadlines may hold a caller: so many time limits of the command.
	// With go-redis' default of 5 s and a limit of 1 s that is a sixth of the default lease.
	mostHeld = 5
	// trustTime is how long an answer speaks for the next one.
	trustTime = time.Second
)

// sender merges the requests to one server into round trips.
//
//	idle                 a caller makes its own round trip, if it may (runsInlineLocked)
//	one is current       requests queue, and go along on the next
//	current is slow      for who comes then, or waits, it is current no more: the next starts beside it
//
// At most one round trip is current, at most limit have callers that wait, and the abandoned ones are bounded too. A
// goroutine runs only while requests are queued or under way.
type sender struct {
	c     *Client
	limit int
	solo  bool // its requests wait for replicas: each travels alone, and none is current

	mu         sync.Mutex
	queue      []*request
	claimed    bool             // a goroutine is about to take what is queued
	current    *roundTrip       // under way, and not passed; nil: none
	awaited    int              // round trips that a caller waits for
	total      int              // these and the abandoned ones
	answeredAt time.Time        // when the last round trip began, if it was answered
	spare      roundTripContext // for the next round trip; may be empty
	alarm      *time.Timer      // fires slowAfter the current round trip began, if somebody waits; else, if its caller makes it, at half its limit
}

func newSender(c *Client, limit int, solo bool) *sender {
	s := &sender{c: c, limit: limit, solo: solo}
	s.alarm = time.AfterFunc(time.Hour, s.alarmFired)
	s.alarm.Stop()
	return s
}

// request is what one caller waits for: one command, or several of a batch that goes to a cluster node.
type request struct {
	ctx     context.Context // the caller's; only its values travel on
	cmds    []*redisCmd
	wait    *waitFor      // set: a renewal whose replicas are waited for
	timeout time.Duration // after which its caller is free
	end     time.Time     // when that is
	// mayBeHeld: its caller cannot leave, and accepts that a client that ignores deadlines holds it beyond end.
	mayBeHeld bool
	done      chan struct{} // closed with the answer; nil: its caller makes the round trip

	// Guarded by sender.mu.
	over      bool       // answered or left
	roundTrip *roundTrip // nil: queued
	sentAt    time.Time  // before anything was handed to go-redis; zero: never was
	err       error      // why it ended without an answer
	lead      roundTrip  // the one that begins with this request, if one does
}

// roundTrip is one round trip under way, with one or more requests.
type roundTrip struct {
	ctx      roundTripContext
	requests []*request
	alone    [1]*request // requests, if it is one
	began    time.Time

	// Guarded by sender.mu.
	present int         // callers that still wait; 0: it is abandoned
	expiry  *time.Timer // set when it is slow and its caller makes it
}

// roundTripContext is what go-redis gets with a round trip. It has a deadline for a client that asks for one, and no
// timer: the last caller that leaves ends it.
type roundTripContext struct {
	context.Context
	stop context.CancelFunc
	end  time.Time
}

// Deadline returns when the round trip is given up.
func (c *roundTripContext) Deadline() (time.Time, bool) { return c.end, true }

// do sends r, now, and waits until it is answered (nil), ctx ends, or timeout (0: Options.CommandTimeout) passes.
// After an error r is not written any more if it was not yet; redisCmd.result says which. The caller is free
// immediately, whatever the connection does.
func (s *sender) do(ctx context.Context, r *request, now time.Time, timeout time.Duration) error {
	defer s.c.exit()
	if !s.c.enter() {
		return r.withdraw(ErrClosed)
	}
	if ctx.Err() != nil {
		return r.withdraw(context.Cause(ctx))
	}
	r.timeout = cmp.Or(timeout, s.c.opt.CommandTimeout)
	r.ctx, r.end = ctx, now.Add(r.timeout)
	s.mu.Lock()
	if s.runsInlineLocked(r, now) {
		t := s.beginLocked([]*request{r}, now)
		t.ctx.end = r.end
		s.alarm.Reset(max(slowAfter, r.timeout/2)) // to end it at its limit
		s.mu.Unlock()
		return s.runInline(t, r)
	}
	s.queue = append(s.queue, r)
	r.done = make(chan struct{})
	if s.startLocked(1); s.current != nil && len(s.queue) == 1 {
		s.alarmLocked(now)
	}
	s.mu.Unlock()
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case <-r.done:
		return nil
	case <-timer.C:
		return s.expire(r)
	case <-ctx.Done():
		return s.leave(r, context.Cause(ctx))
	}
}

// one sends a request of a single command and returns what is known about it.
func (c *Client) one(ctx context.Context, s *sender, r *request, now time.Time, limit time.Duration) (Outcome, error) {
	return r.cmds[0].result(s.do(ctx, r, now, limit))
}

// runsInlineLocked reports whether r may run on its caller's goroutine: the caller's context cannot end, the sender
// is idle, and the client will return in time.
//
// A client that minds deadlines returns at the request's limit. Another one holds its caller up to its own limits if
// Redis hangs. It is trusted only by callers that may be held, only if its limits are short against the request's,
// only while Redis has answered a moment ago, and only while no round trip is under way. So at most one caller of a
// sender is held: the one that was under way when Redis, or its connection, fell silent.
func (s *sender) runsInlineLocked(r *request, now time.Time) bool {
	if s.solo || r.ctx.Done() != nil || r.timeout <= slowAfter || len(s.queue) > 0 || !s.hasRoomLocked() {
		return false
	}
	holds := s.c.limits.holds
	return holds == 0 || r.mayBeHeld && s.total == 0 && holds <= mostHeld*r.timeout && now.Sub(s.answeredAt) < trustTime
}

// runInline makes the round trip t, which has r alone, for the caller of r.
func (s *sender) runInline(t *roundTrip, r *request) error {
	defer neverRecovered()
	s.c.send(t)
	s.mu.Lock()
	s.endLocked(t)
	s.startLocked(len(s.queue) + 1)
	s.mu.Unlock()
	if slices.ContainsFunc(r.cmds, func(c *redisCmd) bool {
		return c.state.Load() == cmdWithdrawn || classify(c.Err()) >= classUnreachable && !time.Now().Before(r.end)
	}) {
		s.c.relocate()
		return r.withdraw(r.timedOut())
	}
	return nil
}

// neverRecovered makes a panic of the user's client, of a hook for example, end the process here as it does on a
// goroutine of the sender. A caller that recovers, as net/http does, would leave its lock without the
// command that was under way: locked for good.
func neverRecovered() {
	if p := recover(); p != nil {
		text := fmt.Sprintf("%v [on a goroutine that called Anteroom]\n\n%s", p, debug.Stack())
		go panic(text)
		select {}
	}
}

// hasRoomLocked reports whether another round trip may start.
func (s *sender) hasRoomLocked() bool {
	return !s.claimed && s.current == nil && s.awaited < s.limit && s.total < s.limit*(1+abandonedPerPlace)
}

// alarmLocked sets the alarm for the current round trip. A timer that is due soon costs the process a wake-up, so it is
// set only when somebody waits.
func (s *sender) alarmLocked(now time.Time) { s.alarm.Reset(slowAfter - now.Sub(s.current.began)) }

// startLocked starts a goroutine for what is queued, if there is room. expected is as in gather.
func (s *sender) startLocked(expected int) {
	if len(s.queue) > 0 && s.hasRoomLocked() {
		s.claimed = true
		go s.carry(expected)
	}
}

// carry makes one round trip after another while requests are queued and there is room.
func (s *sender) carry(expected int) {
	growStack(0)
	s.gather(expected)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.claimed = false; len(s.queue) > 0; s.claimed = false {
		n := s.batchLocked()
		t := s.beginLocked(s.queue[:n], time.Now())
		s.queue = slices.Delete(s.queue, 0, n)
		if s.current == t && len(s.queue) > 0 {
			s.alarmLocked(t.began)
		}
		s.startLocked(1) // beside one that waits for replicas
		s.mu.Unlock()
		s.c.send(t)
		s.mu.Lock()
		s.endLocked(t)
		expected = len(s.queue) + len(t.requests)
		if s.claimed = s.hasRoomLocked() && expected > 1; !s.claimed {
			return
		}
		s.mu.Unlock()
		s.gather(expected)
		s.mu.Lock()
	}
}

// growStack makes room for go-redis on a new goroutine while there is next to nothing on its stack. Growing in the
// depth of go-redis moves all its frames, several times: a tenth of the processor time of a lone round trip
// (BenchmarkPair/default/may-leave).
//
//go:noinline
func growStack(i int) byte {
	var room [stackSize]byte
	return room[i]
}

// gather lets others run until expected requests are queued, or none came any more. The callers that were just
// answered often come again immediately: without this they would miss the next round trip, and each round trip would
// carry half of them.
func (s *sender) gather(expected int) {
	for range yields {
		s.mu.Lock()
		n := len(s.queue)
		s.mu.Unlock()
		if n >= expected {
			return
		}
		runtime.Gosched()
	}
}

// batchLocked returns how many of the queued requests travel together. There is at least one.
func (s *sender) batchLocked() int {
	n := 1
	for commands := len(s.queue[0].cmds); !s.solo && n < len(s.queue) && commands < maxBatch; n++ {
		commands += len(s.queue[n].cmds)
	}
	return n
}

// beginLocked begins the round trip of requests. It is current, unless it waits for replicas.
func (s *sender) beginLocked(requests []*request, now time.Time) *roundTrip {
	first, limit := requests[0], sharedLimit
	t := &first.lead
	t.requests = append(t.alone[:0], requests...)
	for _, r := range requests {
		r.roundTrip, r.sentAt = t, now
		limit = max(limit, 2*r.timeout)
	}
	switch {
	case len(requests) == 1 && first.ctx != context.Background():
		t.ctx.Context, t.ctx.stop = context.WithCancel(context.WithoutCancel(first.ctx)) // its trace, not its end
	case s.spare.Context != nil:
		t.ctx, s.spare = s.spare, roundTripContext{}
	default:
		t.ctx.Context, t.ctx.stop = context.WithCancel(context.Background())
	}
	t.present, t.began, t.ctx.end = len(requests), now, now.Add(limit)
	s.awaited++
	s.total++
	if !s.solo {
		s.current = t
	}
	return t
}

// endLocked answers the callers of t that are still there, and notes whether Redis has answered. A context that was
// not ended serves a later round trip.
func (s *sender) endLocked(t *roundTrip) {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	s.answeredAt = time.Time{}
	first := t.requests[0]
	if first.cmds[0].Err() == nil {
		s.answeredAt = t.began
		if t.present > 0 && !s.solo { // a late answer measures an outage, not the network
			s.c.noteRTT(time.Since(t.began))
		}
	}
	if t.ctx.Err() != nil || first.ctx != context.Background() {
		t.ctx.stop()
	} else {
		s.spare = t.ctx
	}
	for _, r := range t.requests {
		if !r.over && r.done != nil {
			close(r.done)
		}
		r.over = true
	}
	s.total--
	if t.present > 0 {
		s.freeLocked(t)
	}
}

// freeLocked gives the place of t to another round trip.
func (s *sender) freeLocked(t *roundTrip) {
	s.awaited--
	if s.current == t {
		s.current = nil
	}
}

// alarmFired lets others pass the current round trip if it is slow. One alarm serves all: the current one began last.
func (s *sender) alarmFired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && time.Since(s.current.began) >= slowAfter {
		s.passLocked()
	}
}

// passLocked makes the current round trip one that others pass.
func (s *sender) passLocked() {
	t := s.current
	s.current = nil
	if r := t.requests[0]; r.done == nil {
		// Its caller is in go-redis. At its limit it sends nothing any more, waits for no connection, and keeps no
		// place; it returns when the client lets it.
		t.expiry = time.AfterFunc(time.Until(r.end), func() { _ = s.expire(r) })
	}
	s.startLocked(1)
}

// expire ends r, whose time is over.
func (s *sender) expire(r *request) error {
	err := s.leave(r, r.timedOut())
	if err != nil {
		s.c.relocate() // a node that hangs may have been replaced; its own error comes much later
	}
	return err
}

// leave gives r up with err, unless its answer came first. A queued request is never sent. A round trip whose last
// caller leaves is abandoned: it gives its place up, and its context ends, which frees it if it only waits for a
// connection.
func (s *sender) leave(r *request, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return r.err
	}
	r.over, r.err = true, r.withdraw(err)
	if t := r.roundTrip; t == nil {
		i := slices.Index(s.queue, r)
		s.queue = slices.Delete(s.queue, i, i+1)
	} else if t.present--; t.present == 0 {
		t.ctx.stop()
		s.freeLocked(t)
		s.startLocked(1)
	}
	return r.err
}

// withdraw marks every command of r as never sent, where that is still possible.
func (r *request) withdraw(err error) error {
	for _, c := range r.cmds {
		c.withdraw()
	}
	return err
}

// timedOut is the error of a request whose time is over.
func (r *request) timedOut() error { return fmt.Errorf("%w (%v)", ErrTimeout, r.timeout) }
