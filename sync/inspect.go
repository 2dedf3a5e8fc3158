package anteroom

import (
	"context"
	"errors"
	"fmt"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Info is what Redis says about a lock at one moment.
type Info struct {
	// Locked reports whether somebody holds it, as far as Redis knows.
	Locked bool
	// Holders are the fields of the lock: one, but for clients that break the
	// protocol.
	Holders []Holder
	// TTL is what is left of the lease; negative if the key never expires.
	TTL time.Duration
	// Token is the last fencing token that was reserved, 0 if there is none.
	Token int64
	// Subscribers is how many connections listen for the release, -1 if unknown.
	// On a Cluster it counts one node only. Clients in line do not listen for it,
	// unless the holder is a stranger to the line.
	Subscribers int
	// Standing is how many clients wait in line for the lock, and First the id of the
	// first, "" if there is none. Some may have died; a release skips those.
	Standing int
	First    string
	// Open is for how much longer the lock is left to clients outside the line.
	Open time.Duration
}

// Holder is one field of a lock.
type Holder struct {
	Field  string // "<client id>:<n>" for ours
	Client string // the client id, "" for a holder of another kind
	Count  int64
}

// Inspect asks Redis who holds key. It changes nothing. A key that holds no lock, because
// it is of another type or a hash of more than 64 fields, is ErrConfig; ErrUnavailable if
// Redis does not answer within CommandTimeout; ErrClosed after Close.
func (m *Manager) Inspect(ctx context.Context, key string) (Info, error) {
	const op = "inspect"
	if err := m.validKey(key); err != nil {
		return Info{}, newError(op, key, err)
	}
	i, err := m.wire.Inspect(ctx, key)
	if err != nil {
		return Info{}, asked(op, key, err)
	}
	if err := noLock(i); err != nil {
		return Info{}, &Error{Op: op, Key: key, Outcome: OutcomeFailed, Err: needsPerson(err)}
	}
	info := Info{Locked: i.Exists, TTL: i.TTL, Token: i.Token, Subscribers: i.Subscribers, Standing: i.Standing, First: i.First, Open: i.Open}
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

// ForceRelease deletes the lock, no matter who holds it, and reports whether anyone held it.
// The holder's Manager is notified at once, on a channel of its own, and ends the
// hold with LostForced; waiters are woken. It is for operators: work that runs
// under the lock is not stopped by it, only notified. A key of another type is left
// alone (ErrConfig). It returns within CommandTimeout, and false with an error.
// ErrUnavailable: Redis does not answer. ErrUnknown: the command may have taken effect;
// calling again is safe. ErrClosed after Close.
func (m *Manager) ForceRelease(ctx context.Context, key string) (bool, error) {
	const op = "force release"
	if err := m.validKey(key); err != nil {
		return false, newError(op, key, err)
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
	switch {
	case lettucecompat.Permanent(err):
		return newError(op, key, needsPerson(err))
	case errors.Is(err, lettucecompat.ErrClosed):
		return newError(op, key, ErrClosed)
	case lettucecompat.Uncertain(err):
		return newError(op, key, joined(ErrUnknown, ErrUnavailable, err))
	}
	return newError(op, key, joined(ErrUnavailable, err))
}

// Destroy drops everything that this Manager keeps for an idle key, the idle
// subscription included; afterwards the key can be used with any configuration.
// It changes nothing in Redis, where the fencing record stays on purpose. It
// returns an *Error that wraps ErrInUse while the key is held, waited for or
// cleaned up, and ErrConfig for a key that no lock can have; nothing is changed then. Idle keys are dropped by themselves a few
// seconds after their last use: Destroy only makes that certain, and at once.
func (m *Manager) Destroy(key string) error {
	const op = "destroy"
	if err := m.validKey(key); err != nil {
		return newError(op, key, err)
	}
	m.mu.Lock()
	e := m.entries[key]
	m.mu.Unlock()
	if e != nil && e.refs.Load() > 0 {
		return newError(op, key, ErrInUse)
	}
	m.wire.Forget(key)
	return nil
}
