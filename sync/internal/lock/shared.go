package lock

import (
	"maps"
	"slices"
	"sync/atomic"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// SharedKey is what a client keeps for one RWMutex or Semaphore in use: the queue of its goroutines, here named its gate, and
// its conversation with Redis.
//
// The gate decides who is inside, and the conversation what that means for Redis. Both change under mu, but for
// goroutines that come and go by the gate alone.
type SharedKey struct {
	base
	gate  queue.Synchronizer
	cur   atomic.Pointer[SharedHeld] // the last grant
	lossy atomic.Bool                // it was lost, and somebody inside has not left
	slept atomic.Int64               // the suspensions that the deadline of the gate counts with

	// Guarded by mu.
	talk    sharedTalk
	answer  *lettucecompat.UnitsAnswer // to the last statement that has one
	deleted uint64                     // the newest record of which somebody says that it was deleted on purpose
	least   int64                      // the capacity that counts
	ended   Moment                     // when units were given back last
	next    *giving                    // not yet stated
	freeing *giving                    // stated, and no answer shows that it is free
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
	k.gate.Init(&queue.Policy{All: whole, Fair: s.Fair, Turn: s.MaxHandoffTime, Zero: l.zero})
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

// Gate returns the gate of the key, to read.
func (k *SharedKey) Gate() *queue.Synchronizer { return &k.gate }

// Held returns the last grant, nil before the first; it may have ended.
func (k *SharedKey) Held() *SharedHeld { return k.cur.Load() }

// demandLocked returns what the goroutines need.
func (k *SharedKey) demandLocked(now Moment) queue.Demand {
	d := k.gate.Demand()
	if d.Contended && now >= d.TurnEnds { // which the gate notices only when somebody comes or leaves
		k.gate.Contended()
		d = k.gate.Demand()
	}
	if d.Try && (now < Moment(k.talk.SilentUntil()) || d.Barred) { // a try waits for answers only, and none is to come
		k.gate.Refuse(ErrRefused)
		d = k.gate.Demand()
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
func (k *SharedKey) nextLocked() *unitsCommand {
	for {
		if k.lossy.Load() {
			k.exitedLocked(k.cur.Load())
		}
		now := k.l.now()
		d, n := k.demandLocked(now), k.l.number.Load()+1
		talk, s, until := k.talk.next(&d, n, now)
		before := k.talk.usable()
		if s.N > 0 { // only now a number is taken
			if taken := k.l.number.Add(1); taken != n {
				talk, s, until = k.talk.next(&d, taken, now)
			}
			if talk.usable() && !k.gate.CountsWith(talk.of) || s.Keep < d.Units && !k.gate.Shrink(s.Keep) {
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
			k.flying++
			k.l.flying.Add(1)
		}
		k.talk = talk
		switch {
		case s.Keep < s.Have && before:
			if k.next == nil {
				k.next = &giving{g: k.cur.Load(), over: make(chan struct{})}
			}
			k.next.n, k.next.before, k.freeing, k.next = s.N, k.freeing, k.next, nil
		case k.next != nil && talk.usable() && !talk.gives(&d, now): // somebody has come in
			k.next.end(ExitResult{HandedOff: true})
			k.next = nil
		}
		if k.busyLocked(talk.State != conversation.Idle || k.flying > 0 || d.Units > 0 || d.Used > 0 || d.Lost) {
			defer k.Done()
		}
		if s.N == 0 {
			if k.talk.asks(&d, now) {
				if g := k.cur.Load(); g.lease.Healthy() { // otherwise it has the pauses of an outage
					g.lease.Hurry()
				}
			}
			k.wakeLocked(k, until, now)
			return nil
		}
		cmd := s // only what is sent is to be allocated
		return &cmd
	}
}

func (k *SharedKey) timerFired() {
	k.hear(conversation.Event{Kind: conversation.Tick}, false)
	k.speak(false)
}

// speak states what there is to state now, and returns after the answer. mayBeHeld is as in lettucecompat.Statement.
func (k *SharedKey) speak(mayBeHeld bool) {
	k.mu.Lock()
	s := k.nextLocked()
	k.mu.Unlock()
	if s != nil {
		k.say(s, mayBeHeld)
	}
}

// kick is speak for callers that must not be held up.
func (k *SharedKey) kick() {
	k.mu.Lock()
	s := k.nextLocked()
	k.mu.Unlock()
	if s != nil {
		go k.say(s, false)
	}
}

// silence ends all that the key does by itself.
func (k *SharedKey) silence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silenced = true
	k.stopLocked()
}

// SharedState is what a client knows of a shared key, all from one moment but for those who come and go by the gate alone.
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
	s := SharedState{Demand: k.gate.Demand(), Capacity: k.least, Held: k.cur.Load(), Valid: k.talk.usable()}
	if of := k.talk.of; s.Valid && of > 0 {
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

// Answer returns the last answer of Redis to a statement, nil before the first.
func (k *SharedKey) Answer() *lettucecompat.UnitsAnswer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answer
}
