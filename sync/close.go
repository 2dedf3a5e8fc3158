package anteroom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

const (
	// closeNotice is how long Close waits before it says for what.
	closeNotice = 5 * time.Second
	// closeGrace is how much longer than its context Close may take: what needs nobody's
	// answer ends in it, on a machine that is not starved.
	closeGrace = 100 * time.Millisecond
)

// Close refuses new acquisitions and ends waiting Acquires with ErrClosed. It waits
// until all locks are released and all clean-ups are done, or ctx ends; after 5 seconds
// it says what it waits for, as EventClosing. Then the contexts of the remaining holds end
// with ErrClosed as cause, and they are no longer renewed: their leases end by themselves,
// because deleting a lock under running work would let somebody else in beside it. A later
// Release or Unlock still sends one release. The client of Open is closed with the last of
// these leases, and immediately if there is none.
//
// An acquire that got no answer is cleaned up when Redis has answered one clean-up. Should
// the network deliver the acquire after that, its key stays taken for at most 2 s, or a
// ticket's for the ticket's time.
//
// It returns nil, or an *Error that wraps ctx's error and names the keys that were
// still held, and those for which a caller is parked in Lock: such callers have no
// way to learn of it and stay parked for good. It returns at most a tenth of a second after
// ctx has ended, also where a callback of the program (OnEvent, an Observer, a log handler)
// does not return; what is left of the Manager ends in the background then. Close may be
// called again; it then waits for the first call, within its own ctx.
//
// Close that is called inside such a callback, or inside Do, would wait for its own caller.
// It begins, continues in the background up to ctx's deadline, which counts although its
// cancelling does not, and returns an *Error that wraps ErrInUse immediately.
func (m *Manager) Close(ctx context.Context) error { return m.close(ctx, calledInside()) }

// CloseWithin is Close that returns within d, for defer: a context made before would count
// from then on, and one without an end would wait for a holder that never releases. Holders
// have d less a tenth of a second, or half of a d below 0.2 s. It returns what Close returns.
func (m *Manager) CloseWithin(d time.Duration) error {
	inside := calledInside() // here, because it inspects who called the exported method
	ctx, cancel := context.WithTimeout(context.Background(), d-min(closeGrace, d/2))
	defer cancel()
	return m.close(ctx, inside)
}

// close is Close. inside: its caller is what it would wait for.
func (m *Manager) close(ctx context.Context, inside bool) error {
	if err := m.made(); err != nil {
		return newError("close", "", err)
	}
	first := !m.closing.Swap(true)
	if first {
		m.locks.BeginClose()
		if inside {
			go func() {
				limit, cancel := onlyDeadline(ctx)
				defer cancel()
				m.awaitUsers(limit)
				m.tearDown(limit)
			}()
		} else {
			m.awaitUsers(ctx)
			go m.tearDown(ctx)
		}
	}
	if inside {
		return newError("close", "", joined(ErrInUse, errInside))
	}
	if m.hasClosed(ctx) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.closeErr
	}
	if !first {
		return newError("close", "", joined(ErrInUse, ctx.Err()))
	}
	return m.notClosed(ctx, "a command or a callback of the program has not returned")
}

// over reports whether Close has ended. The wire may live on, for holds that were left.
func (m *Manager) over() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// onlyDeadline returns a context that ends at ctx's deadline, if it has one, and not before.
func onlyDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, has := ctx.Deadline(); has {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithoutCancel(ctx), func() {}
}

// hasClosed waits until Close has ended, or ctx and a little more.
func (m *Manager) hasClosed(ctx context.Context) bool {
	select {
	case <-m.closed:
		return true
	case <-ctx.Done():
	}
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-m.closed:
		return true
	case <-grace.C:
		return false
	}
}

// awaitUsers waits for what depends on others, within ctx: for holders, who are
// given up otherwise, and for releases and clean-ups. It notes what was left.
func (m *Manager) awaitUsers(ctx context.Context) {
	notice := time.AfterFunc(closeNotice, m.sayClosing)
	defer notice.Stop()
	lost, unsettled := m.locks.Settle(ctx)
	var left []string
	if unsettled > 0 {
		left = append(left, report.Plural(unsettled, "command")+" not confirmed")
	}
	for _, g := range lost {
		left = append(left, quoteKey(g.Name())+" is still held")
		m.outlived(g)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost, m.left = len(lost), left
}

// tearDown ends the services. It lasts at most some time limits of a command (an
// acquire with Replicas has two and a release), but for callbacks of the program that do
// not return.
func (m *Manager) tearDown(ctx context.Context) {
	m.mu.Lock()
	lost := m.lost
	m.mu.Unlock()
	limit, cancel := context.WithTimeout(context.Background(), 3*m.defaults.lock.Timeout)
	m.locks.Drain(limit)
	cancel()
	m.reports.Calm()
	m.lookout.Stop()
	m.locks.Stop() // before the watchdog: it reports what was given up, and the watchdog then has something to report of that
	m.dog.Stop()
	m.reports.Settle()
	if lost > 0 {
		m.wire.StopListening() // their late releases still need it
	} else {
		m.wire.Close()
	}
	m.closeClient()
	m.reports.Stop()
	err := m.notClosed(ctx)
	m.mu.Lock()
	m.closeErr = err
	m.mu.Unlock()
	close(m.closed)
}

// notClosed is the error of a Close that has left something, besides what its arguments say, or
// that parks somebody in Lock for good; nil where it has and does neither.
func (m *Manager) notClosed(ctx context.Context, besides ...string) error {
	m.mu.Lock()
	left := slices.Concat(m.left, besides)
	m.mu.Unlock()
	left = append(left, m.parked()...)
	if len(left) == 0 {
		return nil
	}
	return &Error{Op: "close", Outcome: observe.OutcomeFailed, Err: joined(ErrClosed, errors.New(strings.Join(left, "; ")), ctx.Err(), endsWithLease)}
}

// sayClosing says what Close waits for.
func (m *Manager) sayClosing() {
	held, unsettled := m.locks.Open()
	classes := map[string]int{}
	var oldest *lock.Owner
	for _, g := range held {
		if g.Settings().Shared && g.Key().Queue().Demand().Used == 0 { // units that nobody uses
			continue
		}
		classes[g.Settings().Class]++
		if o := g.AnyOwner(); o != nil && (oldest == nil || o.Since() < oldest.Since()) {
			oldest = o
		}
	}
	site := ""
	if oldest != nil {
		site = oldest.CallSite
	}
	m.reports.Closing(closeNotice, classes, site, unsettled)
}

// parked names the keys for which somebody waits in Lock.
func (m *Manager) parked() []string {
	var problems []string
	for _, k := range m.locks.All() {
		if n := k.Queue().Len(); n > 0 {
			method := "Lock"
			if k.Settings().Shared {
				method = "Lock or RLock"
			}
			problems = append(problems, fmt.Sprintf("%d callers are parked in %s of %s", n, method, quoteKey(k.Name())))
		}
	}
	return problems
}
