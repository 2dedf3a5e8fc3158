package lock

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/anteroom/anteroom/renewal"
)

// ErrClosed is why a closing client admits nobody.
var ErrClosed = errors.New("closed")

// BeginClose refuses who comes, and fails who waits and can be refused. Who is parked in a Lock stays so: nothing asks
// for it any more.
func (l *Locks) BeginClose() {
	l.mu.Lock()
	l.closing.Store(true)
	l.mu.Unlock()
	l.shut()
	for _, k := range l.All() {
		k.beginClose()
		k.sendAsync()
	}
}

func (k *Key) beginClose() {
	if k.u != nil {
		k.q.Close()
	}
	k.carryOut(k.q.Fail(ErrClosed))
	k.endLinger()
}

// Open returns what a Close waits for: the grants that are held, and the number of conversations with something left to
// release or to clean up, those of these grants among them.
func (l *Locks) Open() (held []*Held, unsettled int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.grants)), int(l.unsettled.Load())
}

// Settle waits, after BeginClose, until nobody owns a lock and nothing is left to clean up, or ctx ends. Owners that
// remain then lose their locks, whose leases end by themselves. It returns those, and what else remains. Where that is
// nothing, it stays so: no message that comes later makes anything of it.
func (l *Locks) Settle(ctx context.Context) (lost []*Held, unsettled int) {
	l.await(ctx, func() bool {
		l.final = l.final || len(l.grants) == 0 && l.unsettled.Load() == 0
		return l.final
	})
	held, unsettled := l.Open()
	for _, g := range held {
		if g.lease.Lose(renewal.Cause{Reason: renewal.ReasonClosed}) {
			lost = append(lost, g)
		}
	}
	return lost, max(unsettled-len(lost), 0)
}

// Drain waits until no command is under way, or ctx ends.
func (l *Locks) Drain(ctx context.Context) {
	l.await(ctx, func() bool { return l.flying.Load() == 0 })
}

// await waits until done, which it calls with mu held, or ctx ends.
func (l *Locks) await(ctx context.Context, done func() bool) {
	for {
		l.mu.Lock()
		changed, over := l.changed, done()
		l.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends the renewals and all that keys do by themselves. A later exit still gives the lock back once.
func (l *Locks) Stop() {
	l.leases.Stop()
	for _, k := range l.All() {
		k.silence()
	}
}
