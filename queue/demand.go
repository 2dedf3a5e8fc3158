package queue

import "time"

// This file is for the code that talks to Redis about the key of a Gate: what it states, and what it reports here.

// Demand is what a Gate needs of Redis, all from one moment.
type Demand struct {
	Units int64 // that Redis has given, as far as is known
	Used  int64 // of them by those inside. In an open gate it may be wrong by the time the caller reads it: see Shrink
	Keep  int64 // of them for now: all, or when the turn is over those that are used
	Want  int64 // with how many the first waiter could come in, if that is more than Keep; else Keep
	Again bool  // the first waiter needs a place in line, though Keep is enough for it: the turn is over
	Try   bool  // the first waiter is a Try: it waits for the answer to one statement, and takes no place in line
	Idle  bool  // the only one that was admitted in this turn has left. Its units may go back immediately

	Grant      uint64        // the number that the present stays have in Waiter.Grant; a loss changes it
	Admissions uint32        // in this turn: the gate was used if it changes
	TurnEnds   time.Duration // if Contended: call Gate.Contended again then
	Contended  bool          // another process waits
	Lost       bool          // nobody comes in before those inside have left
	Waiting    int           // waiters
	Readers    int64         // inside
	Writer     uint64        // owner of the writer inside, 0 if there is none or it is no goroutine's
}

// need is the part of a Demand that makes a statement.
type need struct {
	keep, want       int64
	again, try, idle bool
}

// Demand returns what the gate needs now.
func (g *Gate) Demand() Demand {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.needLocked()
	d := Demand{
		Units: g.units, Used: g.usedLocked(), Keep: n.keep, Want: n.want, Again: n.again, Try: n.try, Idle: n.idle,
		Grant: g.grant, Admissions: g.admissionsLocked(), TurnEnds: g.turnEnds, Contended: g.contended, Lost: g.lost, Waiting: g.waiters.len,
	}
	if g.all > 0 {
		d.Readers = g.held + int64(g.word.Load()&insideMask)
	}
	if g.writer != nil {
		d.Writer = g.writer.Owner
	}
	return d
}

// needLocked is the part of the Demand that makes a statement.
func (g *Gate) needLocked() need {
	if g.lost {
		return need{} // those inside rely on units that are gone, and nobody else could use any
	}
	used, head := g.usedLocked(), g.waiters.head
	n := need{keep: g.units}
	if g.over {
		n.keep = used
	}
	n.want = n.keep
	if head != nil {
		n.want, n.try = max(n.keep, g.withLocked(head)), head.Kind.IsTry()
		n.again = g.over && n.want == n.keep && g.writer == nil
	}
	n.idle = used == 0 && head == nil && g.units > 0 && g.admissionsLocked() == 1
	return n
}

// usedLocked is how many units those inside need.
func (g *Gate) usedLocked() int64 {
	switch {
	case g.lost:
		return 0
	case g.writer != nil:
		return g.all
	case g.all == 0:
		return g.held + g.loose
	case g.held > 0 || g.word.Load()&insideMask > 0:
		return 1
	}
	return 0
}

// withLocked is how many units the process needs with w inside: one is enough for all readers.
func (g *Gate) withLocked(w *Waiter) int64 {
	if g.all == 0 {
		return g.held + g.loose + w.Need
	}
	return w.Need
}

// admissionsLocked is the number of admissions in this turn, modulo 2^31.
func (g *Gate) admissionsLocked() uint32 {
	return (uint32(g.word.Load()>>33) - g.base) & (1<<31 - 1)
}

// admitsLocked reports whether anybody may come in now for whom the units suffice. It notices the end of the turn.
func (g *Gate) admitsLocked() bool {
	now := g.now()
	if g.contended && now >= g.turnEnds {
		g.over = true
	}
	return !g.over && !g.lost && !g.closed && now < g.deadline
}

// aimLocked sets the moment from which on nobody joins by the word: the deadline or, if another process waits, the end of the
// turn.
func (g *Gate) aimLocked() {
	until := g.deadline
	if g.contended {
		until = min(until, g.turnEnds)
	}
	g.until.Store(int64(until))
}

// Granted reports that Redis has given what was asked for, by an answer or a call: so many units in all, until the
// deadline. The waiter whom they are for comes in, even if the turn is over. A turn begins if the process had nothing, or did
// not know that another waits. contended: another process waits.
func (g *Gate) Granted(units int64, contended bool, deadline time.Duration) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.units == 0 || !g.contended {
		g.turnEnds, g.base = g.now()+g.handOff, uint32(g.word.Load()>>33)
	}
	g.units, g.deadline, g.contended, g.over = units, deadline, false, false
	if head := g.waiters.head; head != nil {
		g.oweLocked(head)
	}
	g.passLocked(false) // before the turn may be over
	return g.renewedLocked(contended)
}

// Renewed reports an answer that gives nothing new: the units count until the deadline. contended: another process
// waits.
func (g *Gate) Renewed(contended bool, deadline time.Duration) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = deadline
	return g.renewedLocked(contended)
}

// Contended reports that another process waits, or that the moment TurnEnds has come. From the end of the turn on nobody
// comes in, and the units that are not used go back.
func (g *Gate) Contended() Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.renewedLocked(true)
}

func (g *Gate) renewedLocked(contended bool) Order {
	g.contended, g.over = contended, g.over && contended
	g.aimLocked()
	g.admitsLocked()
	return g.settleLocked(false)
}

// Shrink gives back all units but keep, before the statement is sent that says so. False: those inside need more, since
// somebody came in meanwhile, and nothing has changed.
func (g *Gate) Shrink(keep int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.word.Or(closedBit) // close first, then count
	ok := g.usedLocked() <= keep
	if ok && keep < g.units {
		g.units = keep
		if keep == 0 {
			g.contended, g.over = false, false
		}
	}
	g.settleLocked(false) // the caller states what is needed now
	return ok
}

// Lose reports that the units are gone in Redis, or too old to be trusted. Those inside that can be notified are not
// inside any more, and their exits change nothing. The others keep new ones out until they have left.
func (g *Gate) Lose() Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.word.Or(closedBit) // close first, then count
	g.units, g.contended, g.over, g.held, g.lost = 0, false, false, 0, true
	if g.writer != nil && g.writer.Kind.CanNotify() {
		g.writer = nil
	}
	g.grant++
	return g.settleLocked(false)
}

// Close lets nobody in any more. Who waits stays, until Fail or the end of its context.
func (g *Gate) Close() Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.settleLocked(false)
}

// Refuse reports that Redis refused what was asked for or gave no usable answer: a Try that waits fails with err, all
// others stay. It panics if err is nil, which Wait would return as success.
func (g *Gate) Refuse(err error) Order {
	return g.fail(err, func(w *Waiter) bool { return w.Kind.IsTry() })
}

// Fail ends the wait of every Refusable waiter with err. It panics if err is nil, which Wait would return as success.
func (g *Gate) Fail(err error) Order {
	return g.fail(err, func(w *Waiter) bool { return w.Kind.IsRefusable() })
}

func (g *Gate) fail(err error, fails func(*Waiter) bool) Order {
	mustFailWith(err)
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := g.waiters.head; w != nil; {
		next := w.next
		if fails(w) {
			if g.heir == w {
				g.heir = nil
			}
			g.dequeueLocked(w)
			w.phase, w.failure = phaseOut, err
			w.wake(true)
		}
		w = next
	}
	return g.settleLocked(false)
}

// Peek returns copies of the first n waiters, or of all with a negative n. It is for monitoring.
func (g *Gate) Peek(n int) []WaiterInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n < 0 || n > g.waiters.len {
		n = g.waiters.len
	}
	infos := make([]WaiterInfo, 0, n)
	for w := g.waiters.head; len(infos) < n; w = w.next {
		infos = append(infos, WaiterInfo{Owner: w.Owner, Kind: w.Kind, Note: w.Note, Need: w.Need, Since: g.zero.Add(w.Began)})
	}
	return infos
}
