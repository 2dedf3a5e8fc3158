package lettucecompat

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// tripLimit is the deadline of the context that go-redis is given for a trip whose
	// callers may leave. It matters only where the user's client has no read limit of its
	// own but minds contexts.
	tripLimit = 30 * time.Second
	// lingerTime is how long a goroutine without work stays for the next trip. It has a stack
	// of the right size; making that anew costs a lone caller a noticeable part of its round
	// trip.
	lingerTime = 50 * time.Millisecond
	// mostHeld bounds how long a client that does not mind deadlines may hold a caller: so
	// many time limits of the command. With go-redis' default of 5 s and a limit of 1 s that
	// is a sixth of the default lease.
	mostHeld = 5
	// trustTime is how long an answer speaks for the next one.
	trustTime = time.Second
	// maxBatch bounds the commands that share one round trip (beyond it by one parcel's at
	// most), so that one slow connection delays a bounded number of callers.
	maxBatch = 256
	// abandonedPerPlace bounds the abandoned trips of a lane to this many times its limit.
	// Beyond it new parcels wait: a hung server costs a bounded number of goroutines and
	// connections.
	abandonedPerPlace = 4
	// fewTrips is the number of trips that are always under way at once if there is that
	// much to do, and tripSpacing the time that each further one must be worth: see
	// lane.room.
	fewTrips    = 4
	tripSpacing = 250 * time.Microsecond
	// slowTrip is the least time after which a trip is slow: a busy machine takes a few
	// milliseconds for what is usually done in a tenth of one.
	slowTrip = 10 * time.Millisecond
)

// trip is one round trip under way, carrying one or more parcels.
type trip struct {
	ctx     tripContext
	parcels []*parcel
	alone   [1]*parcel // parcels, where it is one
	began   time.Time

	// Guarded by lane.mu.
	present int  // callers that still wait; 0: the trip is abandoned
	slow    bool // it is under way for much longer than others
}

// tripContext is what go-redis is given with a trip. It has a deadline for those who ask for
// one, and no timer: what ends it is the lane's alarm, or the last caller that leaves.
type tripContext struct {
	context.Context
	stop context.CancelFunc
	end  time.Time
}

// Deadline returns when the caller, or the lane, gives the trip up.
func (c *tripContext) Deadline() (time.Time, bool) { return c.end, true }

// carriesItselfLocked tells whether the caller of k, which was queued just now, makes the
// trip on its own goroutine: it cannot leave, nothing else is under way, there was no crowd
// of late, and it will be back in time.
//
// A client that minds deadlines is back at the parcel's limit. Another one holds whoever sends
// up to its own limits where Redis hangs. Such a client is trusted only by callers that may
// be held, only where its limits are short against the parcel's, only while Redis has answered
// a moment ago, and only while no trip is abandoned. So at most one caller of a lane is held:
// the one that was under way when Redis, or its connection, fell silent. Its place in the
// lane is free at the end of its time, as that of an abandoned trip is.
func (l *lane) carriesItselfLocked(k *parcel, now time.Time) bool {
	if k.ctx.Done() != nil || k.wait != nil || l.queued != k || l.live > 0 || l.starting || l.crowded || l.total >= l.limit {
		return false
	}
	holds := l.c.limits.holds
	return holds == 0 || k.mayBeHeld && l.total == 0 && holds <= mostHeld*k.timeout && now.Sub(l.answeredAt) < trustTime
}

// carryOwn makes the trip t, which has k alone, for the caller of k.
func (l *lane) carryOwn(t *trip, k *parcel) error {
	defer neverRecovered()
	l.c.send(t)
	l.mu.Lock()
	l.endLocked(t)
	if l.queued != nil {
		l.startLocked(time.Now())
	}
	l.mu.Unlock()
	for _, cmd := range k.cmds {
		if cmd.state.Load() == cmdWithdrawn || cmd.Err() != nil && k.isLate(cmd.Err()) {
			l.c.relocate()
			return k.withdraw(k.timedOut())
		}
	}
	return nil
}

// isLate tells whether err came because the time of k was over.
func (k *parcel) isLate(err error) bool {
	return !time.Now().Before(k.end) && classify(err) >= classUnreachable
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

// startLocked sends a goroutine for what is queued while the lane has room. One at a time
// is on its way, and sends for the next where it leaves something behind. Where there is no
// room the lane looks again when the trips under way have become slow.
func (l *lane) startLocked(now time.Time) {
	if l.queued == nil || l.starting {
		return
	}
	if !l.hasRoomLocked() {
		if l.live < l.limit {
			l.ringLocked(now.Add(l.patience()), now)
		}
		return
	}
	l.starting = true
	if l.idle != nil {
		l.idle <- true
		l.idle = nil
		return
	}
	go l.carry()
}

// carry makes one trip after another while parcels are queued and the lane has room.
func (l *lane) carry() {
	wake := make(chan bool, 1)
	l.mu.Lock()
	l.starting = false
	for {
		if l.queued == nil || !l.hasRoomLocked() {
			l.startLocked(time.Now()) // sets the alarm where something is queued
			if !l.lingerLocked(wake) {
				return
			}
			continue
		}
		now := time.Now()
		t := l.takeLocked(l.share(), now)
		l.startLocked(now) // more than one trip's worth was queued, or a place came free
		l.mu.Unlock()
		l.c.send(t)
		l.mu.Lock()
		l.endLocked(t)
	}
}

// lingerLocked gives lane.mu up and waits a moment for work; it has lane.mu again when it
// returns true, and not when it returns false: there was none. One goroutine of a lane waits.
func (l *lane) lingerLocked(wake chan bool) bool {
	if l.idle != nil || l.closed || l.hasty {
		l.mu.Unlock()
		return false
	}
	now := time.Now()
	l.idle, l.idleEnd = wake, now.Add(lingerTime)
	l.ringLocked(l.idleEnd, now)
	l.mu.Unlock()
	if !<-wake {
		return false
	}
	l.mu.Lock()
	l.starting = false
	return true
}

// dismissLocked ends the goroutine that lingers, if there is one.
func (l *lane) dismissLocked() {
	if l.idle != nil {
		l.idle <- false
		l.idle = nil
	}
}

// lingerNoMore ends the goroutine that lingers; none does from then on.
func (l *lane) lingerNoMore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasty = true
	l.dismissLocked()
}

// takeLocked begins a trip with at most share of the queued parcels. A parcel that waits for
// replicas travels alone: WAIT speaks about one connection and holds it up.
func (l *lane) takeLocked(share int, now time.Time) *trip {
	l.crowded = l.awaited > 2
	first := l.queued
	t := &first.lead
	limit := tripLimit
	t.parcels = t.alone[:0]
	if share > 1 {
		t.parcels = make([]*parcel, 0, share)
	}
	for commands := 0; l.queued != nil && len(t.parcels) < share && commands < maxBatch; {
		k := l.queued
		if k != first && (k.wait != nil || first.wait != nil) {
			break
		}
		k.trip, k.sentAt = t, now
		limit = max(limit, 2*k.timeout)
		t.parcels = append(t.parcels, k)
		commands += len(k.cmds)
		l.queued = k.next
	}
	switch {
	case len(t.parcels) == 1 && first.ctx != context.Background():
		t.ctx.Context, t.ctx.stop = context.WithCancel(context.WithoutCancel(first.ctx)) // its trace, not its end
	case l.spare.Context != nil:
		t.ctx, l.spare = l.spare, tripContext{}
	default:
		t.ctx.Context, t.ctx.stop = context.WithCancel(context.Background())
	}
	t.present, t.began, t.ctx.end = len(t.parcels), now, now.Add(limit)
	l.live++
	l.total++
	return t
}

// endLocked answers the callers of t that are still there, and notes whether Redis has
// answered. A context that was not ended serves a later trip.
func (l *lane) endLocked(t *trip) {
	for _, k := range t.parcels {
		if k.over {
			continue
		}
		k.over = true
		l.remove(k)
		if k.done != nil {
			k.done <- struct{}{}
		}
	}
	l.answeredAt = time.Time{}
	if t.parcels[0].cmds[0].Err() == nil {
		l.answeredAt = t.began
	}
	if t.ctx.Err() != nil || t.parcels[0].ctx != context.Background() {
		t.ctx.stop()
	} else {
		l.spare = t.ctx
	}
	l.total--
	if t.present > 0 {
		l.freeLocked(t)
	}
	l.drainLocked()
}

// hasRoomLocked reports whether another trip may start.
func (l *lane) hasRoomLocked() bool {
	return l.live < l.room() && l.total < l.limit*(1+abandonedPerPlace)
}

// room is how many trips may be under way. Each costs both ends the same few system
// parcels, whatever it carries, so where round trips are short there are few, and what waits
// for the next one travels together; it waits a moment only. Where they are long there
// are more, so that nobody waits for a large part of one. What counts is how long the quick
// ones take: on a busy machine the others take longer, and more trips at once would make it
// busier still. Slow trips do not count among the few: a connection that gives no answer must
// not keep everybody else waiting.
func (l *lane) room() int {
	quick := time.Duration(l.c.quick.Load())
	return min(l.limit, l.slow+max(fewTrips, int(quick/tripSpacing)))
}

// share is how many parcels a trip takes: as many as each would have if all were under way.
// Trips then alternate, so that a server works on one while its clients work on the
// answers of another. One trip that took everything would keep either waiting for the other.
func (l *lane) share() int {
	room := max(l.room()-l.slow, 1) // slow trips take nothing
	return min((l.awaited+room-1)/room, maxBatch)
}

// patience is how long a trip may take before it is slow: much longer than is usual.
func (l *lane) patience() time.Duration { return max(slowTrip, 4*l.c.RTT()) }

// markLocked marks t, which may have a parcel that is awaited, where it is slow.
func (l *lane) markLocked(t *trip, now time.Time) {
	if t != nil && !t.slow && now.Sub(t.began) >= l.patience() {
		t.slow = true
		l.slow++
	}
}

// freeLocked gives the place of t up, for which nobody waits any more.
func (l *lane) freeLocked(t *trip) {
	l.live--
	if t.slow {
		l.slow--
	}
}
