package locktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Stranger is the client id of the holder that TakeBy makes: Inspect shows it.
const Stranger = "someone-else"

const (
	// forever is the lease of a stranger: longer than any test, also in virtual
	// time, and short enough for a time.Duration.
	forever = 100 * 365 * 24 * time.Hour

	// tellTimeout bounds how long Lose waits until the holder is told. It is not
	// reached unless the holder's Manager is broken.
	tellTimeout = time.Minute

	// tellPoll is how soon Lose looks again where no loss was told. Only a holder
	// that changes while Lose runs makes that necessary.
	tellPoll = 10 * time.Millisecond
)

// TakeBy lets someone else have the lock: a stranger in another process, who keeps
// it until release is called, however much time passes. release publishes the
// release, as the protocol says, so that waiters wake up at once; calling it again,
// or after Lose, does nothing. Both work while the server is down; nobody hears of
// the release then, and waiters find the lock free when the server is back.
//
// A lock that is held already ends the test: take it from its holder with Lose
// first. To compete for a lock like a real process, use Another.
func (m *Manager) TakeBy(key string) (release func()) {
	m.r.Helper()
	if err := (anteroom.LockConfig{Key: key}).Validate(); err != nil {
		m.r.Fatalf("locktest: TakeBy: %v", err)
	}
	s, ctx := m.srv, context.Background()
	field := lettucecompat.NewField(Stranger, s.taken.Add(1))
	reply := s.stranger.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: key, Field: field, Lease: forever})
	switch reply.Outcome {
	case lettucecompat.OutcomeOK:
	case lettucecompat.OutcomeRefused:
		m.r.Fatalf("locktest: TakeBy(%q): %s has the lock; let it release, or call Lose first", key, reply.Holder)
	default:
		m.r.Fatalf("locktest: TakeBy(%q): %v", key, reply.Err)
	}
	return sync.OnceFunc(func() {
		s.stranger.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: field})
	})
}

// Lose takes the lock away from whoever has it, one of the Managers or a stranger,
// and reports whether anybody had it. When it returns the holder has been told: the
// contexts of its Holds have ended, Held is false, Release answers ErrLost, and the
// reason is LostForced, as after Manager.ForceRelease. Waiters are woken and may
// have the lock before Lose returns.
//
// While the server is down the lock vanishes from its memory and nobody is told. A
// holder finds out as it would with a real server: by its first renewal after Up,
// with LostGone, or at its deadline, with LostDeadline.
func (m *Manager) Lose(key string) bool {
	m.r.Helper()
	had, err := m.srv.lose(context.Background(), key)
	if err != nil {
		m.r.Fatalf("locktest: Lose(%q): %v", key, err)
	}
	return had
}

// lose deletes the lock, through the Manager that has it where there is one: a
// Manager tells its own holders without the detour over its subscription, which
// may not be there yet.
func (s *server) lose(ctx context.Context, key string) (bool, error) {
	info, err := s.stranger.Inspect(ctx, key)
	if err != nil {
		return false, err
	}
	for _, h := range info.Holders {
		holder := s.manager(h.Client)
		if holder == nil {
			continue
		}
		// It fails while the server is down, and for a Manager that is closed. Where
		// it works it is all: the next holder, who may be in by now, loses nothing.
		if had, err := holder.ForceRelease(ctx, key); err == nil {
			return had, s.awaitTold(ctx, key)
		}
	}
	fields, err := s.stranger.ForceRelease(ctx, key)
	if err == nil {
		err = s.awaitTold(ctx, key)
	}
	return len(fields) > 0, err
}

// manager returns the Manager with that client id, or nil.
func (s *server) manager(clientID string) *anteroom.Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.managers {
		if a.m.ClientID() == clientID {
			return a.m
		}
	}
	return nil
}

// awaitTold waits until no Manager believes any more to have what the server does
// not have, or nobody can be told because the server is down.
func (s *server) awaitTold(ctx context.Context, key string) error {
	limit := time.NewTimer(tellTimeout)
	defer limit.Stop()
	for {
		s.mu.Lock()
		down, told := s.down, s.told // fetched before the look, so that no telling is missed
		s.mu.Unlock()
		believer, err := s.believer(ctx, key)
		if believer == "" || err != nil || down {
			return err
		}
		again := time.NewTimer(tellPoll)
		select {
		case <-told:
		case <-again.C:
		case <-limit.C:
			return fmt.Errorf("%s was not told within %v", believer, tellTimeout)
		}
		again.Stop()
	}
}

// believer returns a holder that some Manager takes for the lock's though the
// server does not know it, or "". A hold that is lost and not unlocked yet has been
// told.
func (s *server) believer(ctx context.Context, key string) (string, error) {
	s.mu.Lock()
	managers := s.managers
	s.mu.Unlock()
	believed := map[string]bool{}
	for _, a := range managers {
		for _, st := range a.m.Snapshot() {
			if st.Key == key && (st.Status == "owned" || st.Status == "granted") && st.Holder != "" {
				believed[st.Holder] = true
			}
		}
	}
	if len(believed) == 0 {
		return "", nil
	}
	info, err := s.stranger.Inspect(ctx, key)
	for _, h := range info.Holders {
		delete(believed, h.Field)
	}
	for field := range believed {
		return field, err
	}
	return "", err
}
