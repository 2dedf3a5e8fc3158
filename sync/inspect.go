package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Info is what Redis says about a lock at one moment.
type Info struct {
	// Locked reports whether somebody holds it, as far as Redis knows.
	Locked bool
	// Holders are the fields of the lock: of a Mutex one, but for clients that break the
	// protocol.
	Holders []Holder
	// TTL is what is left of the lease; negative if the key never expires.
	TTL time.Duration
	// Token is the fencing token of the last grant, or of the last hand-off of one that was
	// given back; 0 if there is none.
	Token int64
	// Subscribers is how many connections listen for the release, -1 if unknown.
	// On a Cluster it counts one node only. Clients in line do not listen for it,
	// but the first two do if the holder is a foreign client.
	Subscribers int
	// InLine is how many clients wait in line for the lock, and First the id of the
	// first, "" if there is none. Some may have died; a release skips those.
	InLine int
	First  string
	// Kind is "RWMutex" or "Semaphore" while anybody holds one, and "" of a Mutex. Capacity is then how many units there are:
	// the least that a holder counts with.
	Kind     string
	Capacity int64
	// Open is for how much longer the lock is left to clients outside the line.
	Open time.Duration
}

// Holder is one field of a lock.
type Holder struct {
	Field  string // "<client id>:<n>" for ours, of an RWMutex and a Semaphore "<client id>"
	Client string // the client id, "" for a holder of another kind
	Count  int64  // of an RWMutex and a Semaphore: the units that the client has
	Note   string // see the option Note
}

// Inspect asks Redis who holds key. It changes nothing. What Acquire would refuse as no
// lock is ErrConfig: a value of another type, or a hash whose values are no counts or that
// has more than 64 fields. A string is a lock, without Holders, where the key is in use
// with StringHolders or Config.Defaults has it. ErrUnavailable if Redis does not answer
// within CommandTimeout; ErrClosed after Close.
func (m *Manager) Inspect(ctx context.Context, key string) (Info, error) {
	const op = "inspect"
	if err := m.validKey(key); err != nil {
		return Info{}, newError(op, key, err)
	}
	if m.over() {
		return Info{}, newError(op, key, ErrClosed)
	}
	i, err := m.wire.Inspect(ctx, key, m.stringHolders(key))
	if err != nil {
		return Info{}, asked(op, key, err)
	}
	info := Info{Locked: i.Exists, TTL: i.TTL, Token: i.Token, Subscribers: i.Subscribers, InLine: i.InLine, First: i.First, Open: i.Open}
	switch info.Capacity = i.Capacity; i.Kind {
	case "rw":
		info.Kind = "RWMutex"
	case "sem":
		info.Kind = "Semaphore"
	}
	for _, h := range i.Holders {
		info.Holders = append(info.Holders, Holder{Field: h.Field, Client: h.Client, Count: h.Count, Note: h.Note})
	}
	return info, nil
}

// ForceRelease deletes the lock, no matter who holds it, and returns the holders that it
// has broken, as Hold.Holder names them: one, none if the lock was free, "" for a string.
// The holder's Manager is notified immediately, on a channel of its own: it asks Redis, and ends the
// hold with LostForced. The first in line are asked to retry. It
// is for operators: work that runs under the lock is not stopped by it, only notified. What
// is no lock is left alone (ErrConfig), as by Inspect. It returns within CommandTimeout, and
// nobody with an error.
// ErrUnavailable: Redis does not answer. ErrUnknown: the command may have taken effect;
// calling again is safe. ErrClosed after Close.
func (m *Manager) ForceRelease(ctx context.Context, key string) (broken []string, err error) {
	const op = "force release"
	if err := m.validKey(key); err != nil {
		return nil, newError(op, key, err)
	}
	if m.over() {
		return nil, newError(op, key, ErrClosed)
	}
	broken, err = m.wire.ForceRelease(ctx, key, m.stringHolders(key))
	if err != nil {
		return nil, asked(op, key, err)
	}
	// Our own holds of a Mutex are notified without the detour over Redis.
	for _, f := range broken {
		if id, n, ours := lettucecompat.ParseField(f); ours && id == m.cfg.ClientID {
			m.locks.Forced(n)
		}
	}
	return broken, nil
}

// stringHolders reports whether a string at key is a lock to this Manager: as a Mutex of it is in use, else by default.
func (m *Manager) stringHolders(key string) bool {
	if k := m.locks.Find(key); k != nil {
		defer k.Done()
		if !k.Settings().Shared {
			return settingsOf(k).cfg.StringHolders
		}
	}
	return m.defaults.cfg.StringHolders
}

// asked words the failure of a command that needs no clean-up.
func asked(op, key string, err error) error {
	if lettucecompat.Uncertain(err) {
		return newError(op, key, joined(ErrUnknown, err))
	}
	return notReached(op, key, err, "")
}

// Destroy checks that this Manager keeps nothing of key, which can then be used with any configuration. A Manager drops
// what it keeps by itself when a key is held, waited for and cleaned up no more, so there is nothing to be done. It
// returns an *Error that wraps ErrInUse before that, and ErrConfig for a key that no lock can have. It changes nothing
// in Redis, where the fencing record stays on purpose.
func (m *Manager) Destroy(key string) error {
	const op = "destroy"
	if err := m.validKey(key); err != nil {
		return newError(op, key, err)
	}
	if k := m.locks.Find(key); k != nil {
		k.Done()
		return newError(op, key, ErrInUse)
	}
	return nil
}
