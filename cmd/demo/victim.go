package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// setUpTime bounds how long a fault may wait for the lock at which it is aimed. There is no fair order between
	// processes, so on a busy machine it may take a while.
	setUpTime = 20 * time.Second
	// tellTime is when a victim that was not notified gives up, so that it does not hold its lock for ever: its fault
	// could not be injected, or the ledger has noticed the missing report by then.
	tellTime = awayLease + 2*busy
	// strideTime is how often a victim writes while it believes that it holds the lock.
	strideTime = 5 * time.Millisecond
)

// obey prepares a fault: it returns nil when the lock is held as the order says, and an error if it could not be
// acquired in time. ctx bounds the wait.
func (w *worker) obey(ctx context.Context, o Order) error {
	k, ok := w.locks[o.Key]
	if !ok {
		return fmt.Errorf("no lock %q in this run", o.Key)
	}
	ctx, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	if o.Act == actForget {
		return w.forget(k)
	}
	mu, err := w.m.NewMutex(k.config(w.plan.Prefix))
	if err != nil {
		return err
	}
	if o.Act == actDrop {
		return w.drop(ctx, mu)
	}
	hold, err := mu.Acquire(ctx)
	if err != nil {
		return err
	}
	w.wg.Go(func() { w.workOn(hold) })
	return nil
}

// workOn is the work of a holder whose lock is destroyed: it keeps writing until it is notified, and once more after
// that with its old token, like a program that was slow at the wrong moment. The resource must refuse that write if a
// later holder has been there.
func (w *worker) workOn(hold *anteroom.Hold) {
	pass := w.res.enter(hold.Key(), tokenOf(hold))
	ctx, cancel := context.WithTimeout(hold.Context(), tellTime)
	defer cancel()
	// The values count up from what was read at the beginning, without reading again: this must overwrite a second
	// holder's updates, if anything lets it.
	for value := pass.Value; ctx.Err() == nil && w.ctx.Err() == nil; pause(ctx, strideTime) {
		if w.res.write(pass.Visit, value+1) {
			value++
		}
		pass.Value = value
	}
	w.res.write(pass.Visit, pass.Value+1)
	w.res.leave(pass.Visit)
	lost := errors.Is(hold.Err(), anteroom.ErrLost)
	if err := w.release(hold); lost && !errors.Is(err, anteroom.ErrLost) {
		w.report(Report{
			Process: w.plan.Process, Kind: kindProblem, Key: hold.Key(),
			Text: fmt.Sprintf("the lock was destroyed, and Release said %v instead of ErrLost", err),
		})
	}
}

// drop makes a holder that vanishes: it takes a fixed lease, writes once and drops the Hold without releasing it.
func (w *worker) drop(ctx context.Context, mu *anteroom.Mutex) error {
	hold, err := mu.Acquire(ctx, anteroom.Lease(dropLease))
	if err != nil {
		return err
	}
	w.increment(mu.Key(), tokenOf(hold), 0)
	return nil
}

// forget locks in a goroutine that ends without unlocking. It does so in a Manager of its own, as a program with that
// mistake would: the watchdog scans goroutines rarely, and each Manager on its own, so that a second mistake of the
// same Manager would be found half a minute later.
func (w *worker) forget(k lock) error {
	over, end := context.WithCancel(w.ctx) // ends when the loss was reported, or there is nothing to wait for
	m, err := w.manager(func(e observe.Event) {
		w.event(e)
		if e.Kind == observe.EventLost {
			end()
		}
	})
	if err != nil {
		end()
		return err
	}
	mu, err := m.NewMutex(k.config(w.plan.Prefix))
	if err != nil {
		end()
		w.closeWhen(over, m)
		return err
	}
	// The goroutine that locks has ended when its lock is reported as held: nobody can unlock it any more.
	locked := make(chan bool, 1)
	go func() { locked <- mu.TryLockFor(setUpTime) }()
	got := <-locked
	w.wg.Go(func() { w.closeWhen(over, m) })
	if !got {
		end()
		return fmt.Errorf("%w within %v", anteroom.ErrNotAcquired, setUpTime)
	}
	return nil
}

// closeWhen closes a Manager of forget when over ends. The event itself cannot
// close it: Close waits for the events to be delivered. What Close cannot finish, because of the next fault, ends
// with its lease.
func (w *worker) closeWhen(over context.Context, m *anteroom.Manager) {
	<-over.Done()
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	_ = m.Close(ctx)
	w.page.Detach(m)
}
