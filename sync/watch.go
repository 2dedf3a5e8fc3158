package anteroom

import (
	"context"
	"errors"
	"iter"
	"time"
)

// How long Watch waits for a message: without a holder, beyond the end of a lease, and after an error.
const (
	watchIdle  = 30 * time.Second
	watchAfter = 10 * time.Millisecond
	watchRetry = time.Second
)

// Watch yields what Inspect answers about key now, and again whenever something may have changed: a message says that
// the lock was released, or that a hold with a Note began, or the lease has ended that was last heard of. It does not
// learn of a holder without a Note that takes a free lock, and asks once in 30 s for that. So it may yield the same
// twice, or miss what was over soon. Of an RWMutex and a Semaphore it learns by message of a ForceRelease only. An error is that of Inspect; it asks again after a second, but for ErrConfig and ErrClosed, which
// end it. It ends with ctx, or when the loop does.
//
// It listens on the lock's release channel, as programs outside the line do, to which every second turn is left for a
// moment: do not watch a lock that is in demand.
func (m *Manager) Watch(ctx context.Context, key string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if m.validKey(key) != nil || m.over() {
			_, err := m.Inspect(ctx, key)
			yield(Info{}, err)
			return
		}
		w := m.wire.Watch(key)
		defer w.Close()
		for ctx.Err() == nil {
			info, err := m.Inspect(ctx, key)
			if ctx.Err() != nil || !yield(info, err) {
				return
			}
			wait := watchIdle
			switch {
			case err != nil && (errors.Is(err, ErrConfig) || errors.Is(err, ErrClosed)):
				return
			case err != nil:
				wait = watchRetry
			case info.Locked && info.TTL >= 0:
				wait = info.TTL + watchAfter
			}
			again := time.NewTimer(wait)
			select {
			case <-w.C():
			case <-again.C:
			case <-m.closed:
			case <-ctx.Done():
			}
			again.Stop()
		}
	}
}
