package conversation

import "time"

// This file is what decides beside the conversation how much of what a process has stays with it: two plain values.

const (
	linger    = 10 * time.Millisecond // units that nobody uses are kept for so long
	mostPause = time.Second           // an open gate is looked at once in that time, at least
)

// Contention is whether another client waits for what this one has.
type Contention struct {
	Waits bool
	named uint64 // the record that a message named. The message may come before the answer that gives the units
}

// Answered takes in what an answer to command n, a call of it, or a renewal says.
func (o Contention) Answered(n uint64, waits bool) Contention {
	o.Waits = waits || o.named >= n
	return o
}

// Notified takes in a message: another client waits for the record n.
func (o Contention) Notified(n uint64, c *Conversation) Contention {
	if n <= c.lastCommand.N {
		o.named = max(o.named, n)
		o.Waits = o.Waits || c.Units > 0 && n >= c.Grant.Record
	}
	return o
}

// Use is how the goroutines of a process use its units.
type Use struct {
	Units, Used int64
	Readers     bool   // they come and go without a lock, by the open gate
	Waiting     bool   // somebody waits here
	Idle        bool   // the only one that came in has left, and nobody was here a moment ago
	Admissions  uint32 // changes if somebody has come in
}

// Linger is how long units that nobody uses are kept.
type Linger struct {
	until       Moment // 0: all are used
	unusedSince Moment // nobody was seen to come in since
	admissions  uint32
}

// Keep returns how many units stay, of those that the turn leaves, and when to ask again though nothing has happened: the last
// reader to leave an open gate notifies nobody. It asks the less often, the longer nobody comes.
func (l Linger) Keep(u Use, keep int64, now Moment) (Linger, int64, Moment) {
	came := u.Admissions != l.admissions
	switch {
	case u.Waiting || u.Used >= u.Units:
		l.until = 0
	case l.until == 0 || came && u.Used == 0:
		l.until = now.Add(linger)
	}
	if came || !u.Readers {
		l.unusedSince, l.admissions = now, u.Admissions
	}
	if !u.Waiting && (u.Idle || l.until > 0 && now >= l.until) {
		keep = min(keep, u.Used)
	}
	at := Never
	if l.until > now {
		at = l.until
	}
	if u.Readers && !u.Waiting {
		at = min(at, now.Add(min(max(linger, now.Sub(l.unusedSince)), mostPause)))
	}
	return l, keep, at
}
