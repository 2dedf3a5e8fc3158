package anteroom

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Info is what Redis says about a lock at one moment.
type Info struct {
	// Locked tells whether somebody holds it, as far as Redis knows.
	Locked bool
	// Holders are the fields of the lock: one, but for clients that break the
	// protocol.
	Holders []Holder
	// TTL is what is left of the lease; negative if the key never expires.
	TTL time.Duration
	// Token is the last fencing token that was reserved, 0 if there is none.
	Token int64
	// Subscribers is how many connections listen for the release, -1 if unknown.
	// On a Cluster it counts one node only.
	Subscribers int
}

// Holder is one field of a lock.
type Holder struct {
	Field  string // "<client id>:<n>" for ours
	Client string // the client id, "" for a holder of another kind
	Count  int64
}

// Inspect asks Redis who holds key. It changes nothing. A key that holds no lock, because
// it is of another type or a hash of more than 64 fields, is ErrConfig; ErrUnavailable if
// Redis does not answer within CommandTimeout.
func (m *Manager) Inspect(ctx context.Context, key string) (Info, error) {
	const op = "inspect"
	if err := validKey(key); err != nil {
		return Info{}, &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: err}
	}
	i, err := m.wire.Inspect(ctx, key)
	if err != nil {
		return Info{}, asked(op, key, err)
	}
	if err := noLock(i); err != nil {
		return Info{}, &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: &serverError{err}}
	}
	info := Info{Locked: i.Exists, TTL: i.TTL, Token: i.Token, Subscribers: i.Subscribers}
	for _, h := range i.Holders {
		info.Holders = append(info.Holders, Holder{Field: h.Field, Client: h.Client, Count: h.Count})
	}
	return info, nil
}

// noLock says why what stands at a key is no lock, in the words in which the script of
// ForceRelease refuses it; nil for a lock and for a free key.
func noLock(i lettucecompat.Info) error {
	switch {
	case i.Exists && i.Type != "hash":
		return fmt.Errorf("WRONGTYPE the key holds a value of type %s, not a lock", i.Type)
	case i.Exists && len(i.Holders) == 0:
		return errors.New("ANTEROOM the key holds a hash of more than 64 fields, not a lock")
	}
	return nil
}

// ForceRelease deletes the lock whoever holds it, and reports whether anybody did.
// The holder's Manager is told at once, on a channel of its own, and ends the
// hold with LostForced; waiters are woken. It is for operators: work that runs
// under the lock is not stopped by it, only told. A key of another type is left
// alone (ErrConfig). ErrUnknown: the command may have taken effect; calling again
// is safe.
func (m *Manager) ForceRelease(ctx context.Context, key string) (bool, error) {
	const op = "force release"
	if err := validKey(key); err != nil {
		return false, &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: err}
	}
	fields, err := m.wire.ForceRelease(ctx, key)
	if err != nil {
		return false, asked(op, key, err)
	}
	// Our own holds are told without the detour over Redis.
	for _, f := range fields {
		m.forced(key, f)
	}
	return len(fields) > 0, nil
}

// asked words the failure of a command that needs no clean-up.
func asked(op, key string, err error) error {
	e := &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: joined(ErrUnavailable, err)}
	switch {
	case lettucecompat.Permanent(err):
		e.Err = &serverError{err}
	case lettucecompat.Uncertain(err):
		e.Outcome, e.Err = OutcomeUnknown, joined(ErrUnknown, ErrUnavailable, err)
	}
	return e
}

// State is what a Manager knows about one live key, for people and for metrics; it
// may be outdated when it is looked at.
type State struct {
	Key   string
	Class string
	// Status is the queue's state: "free", "acquiring", "granted" (to this process,
	// and about to be taken), "owned", "releasing" or "lost" (and not yet unlocked).
	Status string
	// Holder is the field in Redis, Goroutine who acquired (0 if nobody owns it), Kind
	// how, as WaiterState has it; a "hold" or "try" may be released by any goroutine.
	// CallSite is where, if recorded, Since since when, Count how many holds.
	Holder    string
	Goroutine int64
	Kind      string
	CallSite  string
	Since     time.Time
	Count     int
	// HeldBy is, in status "acquiring", the field with which somebody else held the key
	// when Redis refused it to this Manager last; "" if it has not.
	HeldBy string
	// Token is the owner's fencing token, 0 without Fencing.
	Token int64
	// Deadline is until when the lock can be relied on without a further renewal;
	// NextRenewal when the next one is due, zero for a fixed lease. Lease is how long
	// the lease was made, which is more than what is left to Deadline by the Margin.
	// Granted is when Redis granted it to this process; owners before this one may have
	// had it since.
	Deadline    time.Time
	NextRenewal time.Time
	Lease       time.Duration
	Granted     time.Time
	// HandOffs counts the hand-offs within the process since the grant or since the
	// turn was extended.
	HandOffs int
	// Lost tells that the hold is lost and its owner has not left yet.
	Lost bool
	// Waiters are those who wait in this process, in order, and Waiting how many they
	// are: Survey may list the first of them only.
	Waiters []WaiterState
	Waiting int
	// Verdicts are the watchdog's last, one per check that has looked.
	Verdicts []VerdictState
}

// WaiterState is one waiting caller.
type WaiterState struct {
	Goroutine int64
	Kind      string // "hold", "lock", "try" or "try_lock"
	Waiting   time.Duration
	CallSite  string // if recorded
}

// VerdictState is one verdict of the watchdog.
type VerdictState struct {
	Check   string
	Health  string // "healthy", "unhealthy" or "unknown"
	Finding string
	Reason  string // in the library's words
	Err     error  // what Redis brought instead of an answer, if Reason speaks of that
	At      time.Time
}

// Snapshot returns what this Manager knows about every key that is held or waited
// for here, sorted by key. It asks nobody; each key's part is consistent in
// itself. It is for monitoring, not for synchronization control.
func (m *Manager) Snapshot() []State {
	entries, now := m.live(), time.Now()
	states := make([]State, 0, len(entries))
	for _, e := range entries {
		states = append(states, e.state(now, 0))
	}
	sort.Slice(states, func(i, j int) bool { return states[i].Key < states[j].Key })
	return states
}

// Count is how many locks of one class a Manager holds and how many callers wait, and
// for how long those do that began first.
type Count struct {
	Held, Waiting int
	// OldestHold is the age of the oldest hold, from getting the lock to now; that of a
	// lock that was lost and is not unlocked yet goes on. OldestWait is how long the
	// caller has waited that waits longest. Each is 0 where there is none.
	OldestHold, OldestWait time.Duration
}

// Counts returns the held and waiting figures by class. It is much cheaper than
// Snapshot: metrics read it at each scrape.
func (m *Manager) Counts() map[string]Count {
	entries, now := m.live(), time.Now()
	counts := map[string]Count{}
	for _, e := range entries {
		counts[e.cfg.Name], _ = e.tally(counts[e.cfg.Name], now)
	}
	return counts
}

// tally adds the key to the count of its class, and returns how long its first waiter has
// waited, 0 where there is none.
func (e *entry) tally(c Count, now time.Time) (Count, time.Duration) {
	if e.held() {
		c.Held++
		c.OldestHold = e.oldest(c.OldestHold, now)
	}
	waiting, first := e.q.Line()
	c.Waiting += waiting
	c.OldestWait = max(c.OldestWait, first)
	return c, first
}

// oldest is the age of the present owner's hold where that is above age, else age. A lock
// that is coming in or leaving at this moment has no owner.
func (e *entry) oldest(age time.Duration, now time.Time) time.Duration {
	g := e.cur.Load()
	// No owner is older than the grant, so most holds need no further look.
	if g == nil || now.Sub(g.since) <= age {
		return age
	}
	cur := e.q.Current()
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if t := g.owner; t != nil && cur.Number != 0 && t.number == cur.Number && g.n == cur.Grant {
		age = max(age, now.Sub(t.began()))
	}
	return age
}

// state describes the key, with the first so many of its waiters, or all of them if
// waiters is 0.
func (e *entry) state(now time.Time, waiters int) State {
	cur := e.q.Current()
	s := State{Key: e.key, Class: e.cfg.Name, Status: statusName(cur.State), Count: cur.Count, HandOffs: cur.HandOffs, Lost: cur.State == queue.Lost}
	queued, waiting := e.q.First(waiters)
	s.Waiting = waiting
	for _, w := range queued {
		ws := WaiterState{Goroutine: int64(w.Owner), Kind: kindName(w.Kind), Waiting: now.Sub(w.Since)}
		if t, ok := w.Note.(*terms); ok {
			ws.CallSite = t.callSite
		}
		s.Waiters = append(s.Waiters, ws)
	}
	if a := e.answer.Load(); cur.State == queue.Acquiring && a != nil {
		s.HeldBy = a.holder
	}
	g := e.cur.Load()
	if g == nil || g.n != cur.Grant || cur.Grant == 0 {
		return s
	}
	lease := g.lease.Load()
	s.Holder, s.Deadline, s.Lease, s.Granted = g.name(), lease.Deadline(), g.terms.lease, e.m.dated(g.since)
	if lease.State() == renewal.StateActive {
		s.NextRenewal = lease.NextDue()
	}
	s.Lost = s.Lost || !g.valid(now)
	g.e.mu.Lock()
	if t := g.owner; t != nil && t.number == cur.Number {
		s.Goroutine, s.CallSite, s.Since, s.Token = t.goroutine, t.callSite, e.m.dated(t.began()), t.token
		s.Kind = kindName(cur.Kind)
	}
	g.e.mu.Unlock()
	s.Verdicts = e.m.verdicts(g.n)
	return s
}

// verdicts returns the watchdog's last on a grant, or on the process as a whole with 0.
func (m *Manager) verdicts(n uint64) []VerdictState {
	var list []VerdictState
	for _, v := range m.dog.Verdicts(n) {
		list = append(list, VerdictState{
			Check: v.Check.String(), Health: v.Health.String(), Finding: v.Finding.String(), Reason: v.Reason, Err: v.Err, At: m.dated(v.At),
		})
	}
	return list
}

func statusName(s queue.State) string {
	switch s {
	case queue.Free:
		return "free"
	case queue.Owned:
		return "owned"
	case queue.Acquiring:
		return "acquiring"
	case queue.Granted:
		return "granted"
	case queue.Releasing:
		return "releasing"
	}
	return "lost"
}

// kindName is how a waiter came, by what it asked for.
func kindName(k queue.Kind) string {
	switch {
	case k.IsTry() && k.IsDeaf():
		return "try_lock"
	case k.IsTry():
		return "try"
	case k.IsDeaf():
		return "lock"
	}
	return "hold"
}

// Destroy forgets everything that this Manager keeps for an idle key, the idle
// subscription included; afterwards the key can be used with any configuration.
// It changes nothing in Redis, where the fencing record stays on purpose. It
// returns an *Error that wraps ErrInUse while the key is held, waited for or
// cleaned up, and ErrConfig for a key that no lock can have; nothing is changed then. Idle keys are forgotten by themselves a few
// seconds after their last use: Destroy only makes that certain, and at once.
func (m *Manager) Destroy(key string) error {
	const op = "destroy"
	if err := validKey(key); err != nil {
		return &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: err}
	}
	m.mu.Lock()
	e := m.entries[key]
	m.mu.Unlock()
	if e != nil && e.refs.Load() > 0 {
		return &Error{Op: op, Key: key, Outcome: OutcomeNothing, Err: ErrInUse}
	}
	m.wire.Forget(key)
	return nil
}

// plural words a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
