package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// client is one goroutine of a worker.
type client struct {
	*worker
	n   uint32
	rng *rand.Rand
}

// turn is one attempt of a client, and the resulting hold.
type turn struct {
	*client
	key   int
	cfg   *anteroom.LockConfig
	mu    way
	units int64 // that it acquires; 0: a Mutex
	id    uint64
	lock  bool // by Lock or TryLock
	token int64
	// held asks whether the lock is held, and deadline until when; nil if this way of acquiring has no such answer.
	held     func() bool
	deadline func() time.Time
	told     bool // of a turn by Lock: its loss is recorded
}

// round is one round of a client: acquire a lock, work, release it.
func (c *client) round() {
	t := &turn{client: c, key: c.plan.Keys[c.rng.IntN(len(c.plan.Keys))]}
	if c.plan.Load != LoadMixed {
		t.key = c.plan.Keys[int(c.n)%len(c.plan.Keys)]
	}
	t.cfg, t.id, t.units = &c.plan.Locks[t.key], c.next.Add(1), c.some(c.plan.units(t.key))
	t.mu = c.locks[t.key](t.units)
	if c.plan.Load == LoadKeep {
		t.kept()
		return
	}
	switch c.rng.IntN(8) {
	case 0, 1:
		t.locked()
	case 2:
		t.do()
	default:
		t.acquired()
	}
	c.pause(c.ctx, c.upTo(10*time.Millisecond))
}

// upTo returns a random time below d.
func (c *client) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }

// oneIn is true once in n times.
func (c *client) oneIn(n int) bool { return c.rng.IntN(n) == 0 }

// pause waits for d or until ctx ends.
func (c *client) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// event records something about this turn.
func (t *turn) event(kind Kind, at int64, change ...func(*Event)) {
	e := Event{Kind: kind, Locked: t.lock, Key: uint16(t.key), Client: t.n, Hold: t.id, At: at, Token: t.token, Units: uint32(t.units)}
	if t.deadline != nil {
		e.Deadline = At(t.deadline())
	}
	for _, f := range change {
		f(&e)
	}
	t.add(e)
}

// check asks whether the lock is held, and records the answer.
func (t *turn) check() bool {
	before := Now()
	if t.held() {
		t.event(Checked, before)
		return true
	}
	if t.lock && !t.told {
		t.told = true
		t.event(Told, Now())
	}
	return false
}

// failed records how an acquire failed. docs/guarantees.md lists the errors that a fault explains; any other is a
// problem.
func (t *turn) failed(err error) {
	kind := NotAcquired
	switch {
	case errors.Is(err, anteroom.ErrUnknown):
		kind = Unknown
	case errors.Is(err, anteroom.ErrNotAcquired), errors.Is(err, anteroom.ErrUnavailable), errors.Is(err, anteroom.ErrLost):
	case errors.Is(err, anteroom.ErrConfig) && !mistake(err): // a key of another type, a missing permission
	default:
		t.problem("acquire of %s: %v", t.cfg.Key, err)
	}
	t.event(kind, Now())
}

func mistake(err error) bool {
	e, ok := errors.AsType[*anteroom.Error](err)
	return ok && e.Outcome == observe.OutcomeMistake
}

// released records how a release ended.
func (t *turn) released(err error) {
	kind, since := Released, int64(0)
	switch {
	case err == nil:
	case errors.Is(err, anteroom.ErrLost):
		kind, since = ReleasedLost, lostSince(err)
	case errors.Is(err, anteroom.ErrUnknown), errors.Is(err, anteroom.ErrUnavailable):
		kind = ReleasedUnknown
	default:
		t.problem("release of %s: %v", t.cfg.Key, err)
		kind = ReleasedUnknown
	}
	t.event(kind, Now(), func(e *Event) { e.Since = since })
}

// lostSince returns since when a lock is lost, according to the error.
func lostSince(err error) int64 {
	if e, ok := errors.AsType[*anteroom.Error](err); ok {
		return At(e.Since)
	}
	return 0
}

// watch records when ctx ends with a loss, until the returned function is called.
func (t *turn) watch(ctx context.Context) (stop func() bool) {
	entered := *t // the turn goes on meanwhile, and may change
	return context.AfterFunc(ctx, func() {
		now := Now()
		if err := context.Cause(ctx); errors.Is(err, anteroom.ErrLost) {
			entered.event(Told, now, func(e *Event) { e.Since = lostSince(err) })
		}
	})
}

// grantOf returns the number of a grant from the holder's field.
func grantOf(holder string) uint64 {
	_, number, _ := strings.Cut(holder, ":")
	n, _ := strconv.ParseUint(number, 10, 64)
	return n
}

// protected is the work under a lock: read, take time, write back; with queries in between whether the lock is still
// held. On an unfenced key nothing is written: its history says who has it when.
func (t *turn) protected(ctx context.Context, d time.Duration) {
	var read ReadReply
	if t.cfg.Fencing && t.token > 0 {
		read = t.reg.read(ReadArgs{Key: t.key, Proc: t.plan.Proc, Hold: t.id, Token: t.token})
	}
	const step = 40 * time.Millisecond
	for ; d > 0 && t.check() && t.ctx.Err() == nil; d -= step {
		t.pause(ctx, min(d, step))
	}
	if read.Accepted && !t.reads() {
		// Even if the lock is lost by now: the register has to refuse that.
		t.reg.write(WriteArgs{Key: t.key, Proc: t.plan.Proc, Hold: t.id, Token: t.token, Base: read.Version})
	}
	t.check()
}

// workTime is how long a lock is held: mostly briefly, sometimes so long that it is renewed, or its fixed lease
// expires.
func (t *turn) workTime() time.Duration {
	switch n := t.rng.IntN(100); {
	case n < 75 || t.key%5 == 0:
		return t.upTo(4 * time.Millisecond)
	case n < 97:
		return t.upTo(150 * time.Millisecond)
	}
	return 300*time.Millisecond + t.upTo(t.cfg.LeaseTime)
}
