package anteroom

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// Close refuses new acquisitions and ends waiting Acquires with ErrClosed. It waits
// until all locks are released and all clean-ups are done, or ctx ends. Then the
// contexts of the remaining holds end with ErrClosed as cause, and they are no
// longer renewed: their leases end by themselves, because deleting a lock under
// running work would let somebody else in beside it. A later Release or Unlock
// still sends one release.
//
// It returns nil, or an *Error that wraps ctx's error and names the keys that were
// still held, and those for which a caller is parked in Lock: such callers have no
// way to be told and stay parked for good. Close may be called again; it then
// waits for the first call, within its own ctx.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	first := !m.closing.Swap(true)
	entries := m.liveLocked()
	m.mu.Unlock()
	if !first {
		select {
		case <-m.closed:
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.closeErr
		case <-ctx.Done():
			return &Error{Op: "close", Outcome: OutcomeNothing, Err: joined(ErrUnknown, ctx.Err())}
		}
	}
	for _, e := range entries {
		e.do(e.q.Fail(ErrClosed))
	}
	m.cancel()
	var held, problems []string
	if !m.await(ctx, func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.grants) == 0 }) {
		held = m.giveUpHolds()
	}
	if !m.await(ctx, func() bool { return m.cleanups.n.Load() == 0 }) {
		problems = append(problems, fmt.Sprintf("%d clean-ups not confirmed", m.cleanups.n.Load()))
	}
	m.end()
	m.await(context.Background(), func() bool { return m.cleanups.n.Load() == 0 })
	m.lookout.stop()
	m.dog.Stop()
	m.leases.Stop()
	if len(held) == 0 {
		m.wire.Close()
	} else {
		m.wire.StopListening() // their late releases need the rest
	}
	problems = append(problems, held...)
	problems = append(problems, m.parked()...)
	m.events.stop()
	var err error
	if len(problems) > 0 {
		err = &Error{Op: "close", Outcome: OutcomeRemains, Err: joined(ErrClosed, notClosed(problems), ctx.Err())}
	}
	m.mu.Lock()
	m.closeErr = err
	m.mu.Unlock()
	close(m.closed)
	return err
}

// notClosed lists what Close could not end.
type notClosed []string

func (n notClosed) Error() string { return strings.Join(n, "; ") }

// await waits until done or ctx ends, and returns done's last answer.
func (m *Manager) await(ctx context.Context, done func() bool) bool {
	for !done() {
		select {
		case <-m.notify:
		case <-ctx.Done():
			return done()
		}
	}
	return true
}

func (m *Manager) liveLocked() []*entry {
	list := make([]*entry, 0, len(m.entries))
	for _, e := range m.entries {
		list = append(list, e)
	}
	return list
}

// giveUpHolds ends the contexts of all holds and lets their leases end.
func (m *Manager) giveUpHolds() []string {
	m.mu.Lock()
	grants := make([]*grant, 0, len(m.grants))
	for _, g := range m.grants {
		grants = append(grants, g)
	}
	m.mu.Unlock()
	var problems []string
	for _, g := range grants {
		if g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonClosed, At: time.Now()}) {
			problems = append(problems, quoteKey(g.e.key)+" is still held")
		}
	}
	return problems
}

// parked names the keys for which somebody waits in Lock.
func (m *Manager) parked() []string {
	m.mu.Lock()
	entries := m.liveLocked()
	m.mu.Unlock()
	var problems []string
	for _, e := range entries {
		if n := e.q.Len(); n > 0 {
			problems = append(problems, fmt.Sprintf("%d callers are parked in Lock of %s", n, quoteKey(e.key)))
		}
	}
	return problems
}

// gauge counts goroutines under way and tells when one has ended.
type gauge struct {
	n       atomic.Int64
	changed func()
}

func (g *gauge) Add(n int64) { g.n.Add(n) }

func (g *gauge) Done() {
	g.n.Add(-1)
	g.changed()
}
