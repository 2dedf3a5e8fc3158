package lock

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Share is one local possession of units, from its admission to its last exit. The caller makes it, with the exported
// fields; it must not be copied. Readers of an RWMutex, and permits of a Semaphore, that nobody knows by name need none:
// see SharedKey.Enter.
type Share struct {
	registration
	// Stay is that in the queue. The caller sets Goroutine, 0 if none is named in reports, Kind, and Need: of an RWMutex 1 to
	// read, lettucecompat.AllUnits to write. See Downgrade.
	queue.Stay
	Of       int64  // the capacity of a Semaphore with which it counts; 0: that of the key's settings
	CallSite string // "" unless call sites are recorded
	Holder   Holder // nil: nobody is notified

	g      *SharedHeld
	token  int64
	since  Moment
	writes int // of them those that write; guarded by SharedKey.mu

	until   atomic.Int64 // the Moment at which it ends by itself; 0: never. See Limit
	stopped atomic.Bool  // StopRenewing was called
	timer   *time.Timer  // of until; guarded by SharedKey.mu
	loss    *Loss        // of this share alone; guarded by SharedKey.mu
}

func (s *Share) whole() bool { return s.Need == lettucecompat.AllUnits }

// Acquire brings s in, or returns why it is not, as Key.Acquire does. Its caller has a reference on k meanwhile.
func (k *SharedKey) Acquire(ctx context.Context, s *Share) error {
	w := k.l.waiters.Get().(*queue.Waiter)
	w.Stay, w.Of, w.Note = &s.Stay, cmp.Or(s.Of, k.set.Capacity), s
	wait := time.Duration(0)
	err := k.enter(ctx, k, w, func() (err error) {
		wait, err = k.admit(s, w)
		return err
	}, func() { k.out(func() { k.q.Leave(&s.Stay) }) })
	if wait > 0 { // some microseconds
		time.Sleep(wait)
	}
	return err
}

// admit makes s, whose waiter w the queue has admitted, one of the grant, and returns for how long it must wait for its token.
func (k *SharedKey) admit(s *Share, w *queue.Waiter) (wait time.Duration, err error) {
	now := k.l.leases.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.cur.Load()
	switch {
	case k.l.closing.Load():
		return 0, ErrClosed
	case g == nil || g.loss != nil || w.Grant != g.n || !g.lease.Valid(now):
		return 0, errAgain
	}
	s.g, s.since = g, now
	s.token, wait = g.tokenLocked(s, now)
	if s.whole() {
		s.writes = 1
	}
	g.owners[s] = struct{}{}
	return wait, nil
}

// out gives back what somebody was let in by, who cannot rely on that.
func (k *SharedKey) out(leave func()) {
	if g := k.cur.Load(); g != nil && !g.lease.Valid(k.l.leases.Now()) {
		g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
	}
	leave()
	k.kick()
}

// Enter brings in so many units that nobody knows by name: a reader of an RWMutex, or permits of a Semaphore of that
// capacity. Nobody can notify them of a loss, which keeps others of this process out until they have left. Otherwise it is as
// Acquire.
func (k *SharedKey) Enter(ctx context.Context, kind queue.Kind, units, of int64) error {
	if k.Join() { // never of a Semaphore
		return nil
	}
	w := k.l.waiters.Get().(*queue.Waiter)
	w.Stay, w.Of = &queue.Stay{Kind: kind | queue.NoNotify, Need: int32(units)}, cmp.Or(of, k.set.Capacity)
	return k.enter(ctx, k, w, func() error {
		switch g := k.cur.Load(); {
		case k.l.closing.Load():
			return ErrClosed
		case g == nil || !g.lease.Valid(k.l.leases.Now()):
			return errAgain
		}
		return nil
	}, func() { k.out(func() { k.leave(units, of) }) })
}

func (k *SharedKey) parks(*queue.Waiter) {}

func (k *SharedKey) carryOut(o queue.Order) {
	if o != queue.Nothing {
		k.kick()
	}
}

func (k *SharedKey) leave(units, of int64) queue.Order {
	if k.set.Capacity == 0 {
		return k.q.ReleaseShared(1, 0)
	}
	k.q.ReleaseShared(units, of)
	return queue.Restate
}

// Leave is the way out of what came in by Enter. Where units go back because of that, it returns after the answer, as Exit
// does: a program that ends then leaves nothing that others wait for. It returns the grant if that was lost before.
func (k *SharedKey) Leave(units, of int64) (lost *SharedHeld) {
	g := k.cur.Load()
	if g != nil {
		// As in Owner.Exit both clocks are read: a process that was stopped or suspended learns here that its units are lost.
		if !g.lease.Valid(k.l.leases.Now()) {
			g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
		}
		if _, is := g.lease.Lost(); is {
			lost = g
		}
	}
	if k.leave(units, of) != queue.Nothing || k.lossy.Load() {
		g := k.cur.Load()
		k.giveBack(g, nil, true, func() { k.exitedLocked(g) })
	}
	return lost
}

// Held returns the grant.
func (s *Share) Held() *SharedHeld { return s.g }

// Since returns the Moment at which it came in.
func (s *Share) Since() Moment { return s.since }

// Token returns the fencing token, 0 without Fencing. Those of readers that are inside together may be equal.
func (s *Share) Token() int64 { return s.token }

// Deadline returns until when the units can be relied on without a further renewal.
func (s *Share) Deadline() time.Time {
	d := s.g.lease.Deadline()
	if until := s.until.Load(); until > 0 {
		if own := s.g.k.at(Moment(until)); own.Before(d) {
			return own
		}
	}
	return d
}

// Err returns nil while the units can be relied on, and otherwise why not.
func (s *Share) Err() *Loss {
	if l := s.Loss(); l != nil {
		return l
	}
	now := s.g.k.l.leases.Now()
	if until := s.until.Load(); until > 0 && now >= Moment(until) {
		return &Loss{Cause: s.fixed()}
	}
	if !s.g.lease.Valid(now) {
		return s.g.LossOr(renewal.ReasonDeadline)
	}
	return nil
}

// Again enters once more, if s is inside. One more Exit is due then.
func (s *Share) Again() error {
	return s.g.k.q.Reenter(&s.Stay, false)
}

// ErrReads is why AgainToWrite does not enter.
var ErrReads = errors.New("it reads")

// AgainToWrite is Again for one that writes. It returns ErrReads if none of those inside does.
func (s *Share) AgainToWrite() error {
	k := s.g.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.writes == 0 {
		return ErrReads
	}
	err := s.Again()
	if err == nil {
		s.writes++
	}
	return err
}

// EndWriting is called before the Exit of an entry that writes, if others are inside: after the last one that writes s
// becomes a reader.
func (s *Share) EndWriting() {
	k := s.g.k
	k.mu.Lock()
	s.writes--
	k.mu.Unlock()
}

// Downgrade makes an entry that writes one that reads. After the last one s is a reader; nobody comes between, and readers
// that wait come in beside it.
func (s *Share) Downgrade() {
	s.EndWriting()
	s.downgrade()
}

// downgrade makes a writer a reader once no entry writes.
func (s *Share) downgrade() {
	k := s.g.k
	k.mu.Lock()
	becomes := s.whole() && s.writes == 0 && s.Entered() > 0
	if becomes {
		k.q.Downgrade(&s.Stay)
	}
	k.mu.Unlock()
	if becomes {
		k.kick()
	}
}

// Exit ends one entry of s. After the last one its units serve others of this process, or go back to Redis. Where they go
// back immediately, it waits for the first answer, and where that confirms nothing, for what repetitions bring, within two
// time limits of a command in all. A ctx that ends meanwhile ends the wait, not the release.
func (s *Share) Exit(ctx context.Context) ExitResult {
	g, k := s.g, s.g.k
	switch left, ok := k.q.EndEntry(&s.Stay); {
	case !ok:
		return ExitResult{Stale: true}
	case left > 0:
		s.downgrade() // the last one that writes may have left
		return ExitResult{Nested: true}
	}
	k.l.Unregister(s)
	outLocked := func() {
		if s.timer != nil {
			s.timer.Stop()
		}
		delete(g.owners, s)
		k.q.Leave(&s.Stay)
		k.exitedLocked(g)
	}
	if loss := s.Err(); loss != nil {
		var own *Loss // of s alone, which nobody has noticed
		k.mu.Lock()
		switch {
		case s.loss != nil:
		case g.lease.Valid(k.l.leases.Now()):
			own = &Loss{Cause: loss.Cause, Of: []Possession{s}}
			s.loss = own
		default:
			g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline}) // before the units can go back because of this exit
			if g.loss == nil {
				g.left = append(g.left, s)
			}
		}
		outLocked()
		k.mu.Unlock()
		k.kick()
		if own != nil {
			k.l.cfg.Reporter.Lost(g, own)
		}
		return ExitResult{ReleaseResult: ReleaseResult{Lost: loss}}
	}
	if ctx.Done() == nil || ctx.Err() != nil {
		return k.giveBack(g, s, !s.Kind.CanNotify(), outLocked)
	}
	done := make(chan ExitResult, 1)
	go func() { done <- k.giveBack(g, s, false, outLocked) }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		return ExitResult{ReleaseResult: ReleaseResult{Unknown: true, Err: context.Cause(ctx)}}
	}
}

// giving is what is given back of a grant because somebody has left, until an answer shows that it is free.
type giving struct {
	g       *SharedHeld
	n       uint64        // of the command that states it
	by      []Possession  // those who have left and are known by name
	unnamed bool          // others have left
	before  *giving       // stated before, without an answer: one to this shows that it is free, too
	over    chan struct{} // closed when it is known how it ended
	r       ExitResult    // that, or how the first answer failed; guarded by SharedKey.mu
}

func (b *giving) end(r ExitResult) {
	if b != nil {
		b.r = r
		close(b.over)
		b.before.end(ExitResult{})
	}
}

// giveBack lets somebody out, by unless nobody knows who it is, states what g has too much because of that, if it is not to
// linger, and says how that ended.
func (k *SharedKey) giveBack(g *SharedHeld, by *Share, mayBeHeld bool, outLocked func()) ExitResult {
	limit := time.After(2 * k.set.Timeout)
	k.mu.Lock()
	outLocked()
	_, lost := g.lease.Lost()
	now, b := k.l.now(), (*giving)(nil)
	switch d := k.demandLocked(now); {
	case k.usableLocked() && k.talk.Grant.Record == g.n && k.givesLocked(&d, now):
		if k.next == nil {
			k.next = &giving{g: g, over: make(chan struct{})}
		}
		if by != nil {
			k.next.by = append(k.next.by, by)
		} else {
			k.next.unnamed = true
		}
		b = k.next
	case by == nil && k.talk.Unanswered() && k.freeing != nil && k.freeing.g == g: // another one has stated it meanwhile
		b = k.freeing
		b.unnamed = true
	case by != nil && lost && g.loss == nil:
		g.left = append(g.left, by)
	case lost && g.loss == nil:
		g.unnamed = true
	}
	s := k.nextLocked()
	mine := s != nil && b != nil && b == k.freeing
	k.mu.Unlock()
	switch {
	case mine:
		say(k, s, mayBeHeld)
	case s != nil:
		go say(k, s, false)
	}
	if b == nil && lost {
		return ExitResult{ReleaseResult: ReleaseResult{Lost: g.LossOr(renewal.ReasonGone)}}
	} else if b == nil {
		return ExitResult{HandedOff: true}
	}
	select {
	case <-b.over:
		return b.r
	case <-limit:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.r == (ExitResult{}) {
		return ExitResult{ReleaseResult: ReleaseResult{Err: errUnanswered, Unknown: true}}
	}
	return b.r
}
