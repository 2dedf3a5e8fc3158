package lock

import (
	"maps"
	"slices"
	"sync/atomic"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// SharedKey is what a client keeps for one RWMutex or Semaphore in use: the queue of its goroutines, and its
// conversation with Redis.
//
// The queue decides who is inside, and the conversation what that means for Redis. Both change under mu, but for
// goroutines that come and go by the queue alone.
type SharedKey struct {
	base
	cur   atomic.Pointer[SharedHeld] // the last grant
	lossy atomic.Bool                // it was lost, and somebody inside has not left
	slept atomic.Int64               // the suspensions that the deadline of the queue counts with

	// Guarded by mu.
	use     use
	deleted uint64  // the newest record of which somebody says that it was deleted on purpose
	least   int64   // the capacity that counts
	ended   Moment  // when units were given back last
	next    *giving // not yet stated
	freeing *giving // stated, and no answer shows that it is free
}

// Shared returns the shared key with one reference more; Done gives that back. An unused one is made with the settings s.
func (l *Locks) Shared(name string, s *Settings) *SharedKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.shared[name]; k != nil && k.Use() {
		return k
	}
	k := &SharedKey{base: base{l: l, name: name, set: s}, ended: -linger}
	whole := int32(0)
	k.talk.Terms, k.least = k.set.times, s.Capacity
	if s.Capacity == 0 {
		k.least, whole = lettucecompat.AllUnits, lettucecompat.AllUnits
	}
	k.refs.Store(1)
	k.q.Init(&queue.Policy{All: whole, Fair: s.Fair, Turn: s.MaxHandoffTime, Zero: l.zero})
	l.shared[name] = k
	return k
}

// Done gives a reference back. The last one forgets the key.
func (k *SharedKey) Done() {
	if k.refs.Add(-1) > 0 {
		return
	}
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	if k.l.shared[k.name] == k {
		delete(k.l.shared, k.name)
	}
	k.l.changedLocked()
}

// FindShared returns the shared key with one reference more, or nil where it is not in use.
func (l *Locks) FindShared(name string) *SharedKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.shared[name]; k != nil && k.Use() {
		return k
	}
	return nil
}

// AllShared returns the shared keys in use, without references.
func (l *Locks) AllShared() []*SharedKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.shared))
}

// Held returns the last grant, nil before the first; it may have ended.
func (k *SharedKey) Held() *SharedHeld { return k.cur.Load() }

// demandLocked returns what the goroutines need.
func (k *SharedKey) demandLocked(now Moment) queue.Demand {
	d := k.q.Demand()
	if d.Contended && now >= d.TurnEnds { // which the queue notices only when somebody comes or leaves
		k.q.Contended()
		d = k.q.Demand()
	}
	if d.Try && (now < Moment(k.talk.SilentUntil()) || d.Barred) { // a try waits for answers only, and none is to come
		k.q.Refuse(ErrRefused)
		d = k.q.Demand()
	}
	if d.Idle { // only where nobody was here a moment ago: one who comes again and again asks Redis once
		d.Idle = k.cur.Load().since-k.ended > linger
	}
	if k.l.closing.Load() { // who is parked in Lock stays parked
		d.Idle, d.Waiting = true, 0
	}
	return d
}

// nextLocked takes what there is to state now. Where that is nothing, it returns nil and sets the timer.
func (k *SharedKey) nextLocked() *conversation.Command {
	for {
		if k.lossy.Load() {
			k.exitedLocked(k.cur.Load())
		}
		now := k.l.now()
		d := k.demandLocked(now)
		lingers, demand, at := k.meansLocked(&d, now)
		talk, s, until := k.takeLocked(demand, now)
		before := k.usableLocked()
		of := k.ofLocked(&d)
		if s.N > 0 {
			if talk.State == conversation.Holding && !k.q.CountsWith(of.keep) || s.Keep < d.Units && !k.q.Shrink(s.Keep) {
				continue // somebody has come in
			}
			if s.Keep == 0 && before {
				g := k.cur.Load()
				if !g.lease.End() {
					return nil // it was lost, and Lost is on its way
				}
				k.l.Unregister(g)
				k.ended = now
			}
			k.sendsLocked(&s, now)
			k.use.sent, k.use.sentN, k.use.of = of, s.N, of.keep
		}
		k.talk, k.use.linger, k.use.idle = talk, lingers, false
		k.settledLocked()
		switch {
		case s.Keep < s.Have && before:
			if k.next == nil {
				k.next = &giving{g: k.cur.Load(), over: make(chan struct{})}
			}
			k.next.n, k.next.before, k.freeing, k.next = s.N, k.freeing, k.next, nil
		case k.next != nil && k.usableLocked() && !k.givesLocked(&d, now): // somebody has come in
			k.next.end(ExitResult{HandedOff: true})
			k.next = nil
		}
		if k.busyLocked(talk.State != conversation.Idle || k.flying > 0 || d.Units > 0 || d.Used > 0 || d.Lost) {
			defer k.Done()
		}
		if s.N == 0 {
			if k.asksLocked(&d, now) {
				if g := k.cur.Load(); g.lease.Healthy() { // otherwise it has the pauses of an outage
					g.lease.Hurry()
				}
			}
			k.wakeLocked(k, min(until, at), now)
			return nil
		}
		cmd := s // only what is sent is to be allocated
		return &cmd
	}
}

func (k *SharedKey) speak(mayBeHeld bool) { speak(k, mayBeHeld) }
func (k *SharedKey) kick()                { kick(k) }

// SharedState is what a client knows of a shared key, all from one moment but for those who come and go by the queue alone.
type SharedState struct {
	queue.Demand
	Capacity int64       // that counts
	Held     *SharedHeld // the last grant, nil before the first; it may have ended
	Valid    bool        // Held has not ended
	Entries  int         // of those inside that are known by name, and have not exited
	Writes   *Share      // the one of them that writes, or nil
	InLine   bool        // the client has a place in the line
	Ahead    int         // so many places are before it, at most
}

// State returns what is known of k.
func (k *SharedKey) State() SharedState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := SharedState{Demand: k.q.Demand(), Capacity: k.least, Held: k.cur.Load(), Valid: k.usableLocked()}
	if of := k.use.of; s.Valid && of > 0 {
		s.Capacity = min(s.Capacity, of) // a call says no other one's
	}
	if g := s.Held; g != nil {
		for o := range g.owners {
			s.Entries += o.Entered()
			if o.whole() {
				s.Writes = o
			}
		}
	}
	if a := k.answer; a != nil && a.Word == lettucecompat.WordWaits && k.talk.InLine {
		s.InLine, s.Ahead = true, a.Ahead
	}
	return s
}
