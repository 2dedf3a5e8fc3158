package lettucecompat

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// lingerTime is how long a goroutine without work stays for the next.
	lingerTime = 50 * time.Millisecond
	// flightLimit is the deadline of the context that go-redis is given for a flight
	// whose callers may leave. It matters only where the user's client has no read limit
	// of its own but minds contexts.
	flightLimit = 30 * time.Second
)

// flight is one round trip under way, carrying one or more calls.
type flight struct {
	ctx   untilContext
	scope scope
	calls []*call
	alone [1]*call // calls, where it is one
	began time.Time

	// Guarded by lane.mu.
	present   int  // callers that still wait
	abandoned bool // present fell to 0; its slot was given back
	ended     bool // its context has ended before it landed
	slow      bool // it is under way for much longer than others
}

// scope is a context that can be ended. One that was not serves a later flight.
type scope struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// departLocked gives f a context, which has the deadline end.
func (l *lane) departLocked(f *flight, end time.Time) {
	ctx := context.Background()
	if len(f.calls) == 1 {
		ctx = f.calls[0].ctx
	}
	switch {
	case ctx != context.Background():
		f.scope.ctx, f.scope.cancel = context.WithCancel(context.WithoutCancel(ctx)) // its trace, not its end
	case l.spare.ctx != nil:
		f.scope, l.spare = l.spare, scope{}
	default:
		f.scope.ctx, f.scope.cancel = context.WithCancel(ctx)
	}
	f.ctx = untilContext{f.scope.ctx, end}
}

// endLocked ends the context of f, which frees it where it waits for a connection.
func (f *flight) endLocked() {
	f.ended = true
	f.scope.cancel()
}

// untilContext has a deadline for those who ask for it, and no timer: what ends it is the
// lane's alarm.
type untilContext struct {
	context.Context
	end time.Time
}

func (c *untilContext) Deadline() (time.Time, bool) { return c.end, true }

// carry flies f, which holds k alone, on the caller's goroutine. The client keeps to the
// deadline, so the caller is free in time.
func (l *lane) carry(f *flight, k *call) error {
	defer neverRecovered()
	l.c.send(f)
	l.mu.Lock()
	l.landLocked(f)
	if l.queued != nil {
		l.startLocked(time.Now())
	}
	l.mu.Unlock()
	for _, cmd := range k.cmds {
		if err := cmd.Err(); err != nil && !time.Now().Before(k.end) && Classify(err) >= ClassUnreachable {
			l.c.relocate()
			return k.withdraw(k.timedOut())
		}
	}
	return nil
}

// neverRecovered makes a panic of the user's client, of a hook for example, end the process
// here as it does on a goroutine of the lane. A caller that recovers, as net/http does, would
// leave its lock without the driver or the release that it has started: locked for good.
func neverRecovered() {
	if p := recover(); p != nil {
		text := fmt.Sprintf("%v [on a goroutine that called Anteroom]\n\n%s", p, debug.Stack())
		go panic(text)
		select {}
	}
}

// fly carries flights one after another until nothing is queued.
func (l *lane) fly() {
	seat := make(chan bool, 1)
	l.mu.Lock()
	l.boarding = false
	for {
		if !l.roomLocked() {
			l.startLocked(time.Now()) // sets the alarm where something is queued
			if !l.lingerLocked(seat) {
				return
			}
			continue
		}
		now := time.Now()
		f := l.boardLocked(now)
		l.departLocked(f, l.flightEnd(f, now))
		l.startLocked(now) // more than one flight's worth was queued, or a slot came free
		l.mu.Unlock()
		l.c.send(f)
		l.mu.Lock()
		l.landLocked(f)
	}
}

// flightEnd is the deadline of a flight whose callers may leave.
func (l *lane) flightEnd(f *flight, now time.Time) time.Time {
	limit := flightLimit
	for _, k := range f.calls {
		limit = max(limit, 2*k.timeout)
	}
	return now.Add(limit)
}

// lingerLocked gives lane.mu up and waits a moment for work; it has lane.mu again when it
// returns true, and not when it returns false: there was none. A goroutine that has made
// a round trip has a stack of the right size; making that anew costs a lone caller a
// noticeable part of its round trip. One per lane waits.
func (l *lane) lingerLocked(seat chan bool) bool {
	if l.idle != nil || l.closed || l.brisk {
		l.mu.Unlock()
		return false
	}
	now := time.Now()
	l.idle, l.idleEnd = seat, now.Add(lingerTime)
	l.ringLocked(l.idleEnd, now)
	l.mu.Unlock()
	if !<-seat {
		return false
	}
	l.mu.Lock()
	l.boarding = false
	return true
}

// dismissLocked ends the goroutine that lingers, if there is one.
func (l *lane) dismissLocked() {
	if l.idle != nil {
		l.idle <- false
		l.idle = nil
	}
}
