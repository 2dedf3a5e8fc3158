package locktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// OtherClient is the client id of the holder that TakeBy creates: Inspect shows it.
const OtherClient = "someone-else"

const (
	// forever is the lease of that holder: longer than any test, even in virtual time, and short enough for a
	// time.Duration.
	forever = 100 * 365 * 24 * time.Hour

	// noticeTimeout bounds how long Lose waits until the holder is notified. It is reached only if the holder's Manager
	// is broken.
	noticeTimeout = time.Minute

	// lossPoll is how soon Lose checks again if no loss was reported, which is needed only if the holder changes
	// while Lose runs.
	lossPoll = 10 * time.Millisecond
)

var foreignTerms = &lettucecompat.Terms{Call: forever, Lease: forever, Life: time.Minute}

// TakeBy gives the lock to another client in another process, which keeps it until release is called, however much time
// passes. release publishes the release, as the protocol demands, so waiters wake up immediately; calling it again, or
// after Lose, has no effect. Both work while the server is down; the release is then not published, and waiters find
// the lock free when the server is back.
//
// TakeBy fails the test if the lock is held: take it from its holder with Lose first. To compete for a lock like a
// real process, use Another.
func (m *Manager) TakeBy(key string) (release func()) {
	m.r.Helper()
	if err := (anteroom.LockConfig{Key: key}).Validate(); err != nil {
		m.r.Fatalf("locktest: TakeBy: %v", err)
	}
	s, ctx := m.srv, context.Background()
	number := func() uint64 { return lettucecompat.FirstNumber + s.said.Add(1) }
	n := number()
	ask := lettucecompat.Command{Key: key, N: n, Since: n, Want: 1, Try: true, Terms: foreignTerms}
	answer := s.foreign.Do(ctx, ask)
	switch {
	case answer.Outcome != lettucecompat.OutcomeOK:
		m.r.Fatalf("locktest: TakeBy(%q): %v", key, answer.Err)
	case answer.Word == lettucecompat.WordRefused:
		m.r.Fatalf("locktest: TakeBy(%q): %s has the lock; wait for its release, or call Lose first", key, answer.Holder)
	}
	return sync.OnceFunc(func() {
		s.foreign.Do(ctx, lettucecompat.Command{Key: key, N: number(), Since: n, Have: lettucecompat.HaveUnit, Units: 1, Terms: foreignTerms})
	})
}

// Lose takes the lock from its holder, a Manager or the one of TakeBy, and reports whether there was one.
// When it returns the holder has been notified: the contexts of its Holds have ended, Held is false, Release returns
// ErrLost, and the reason is LostForced, as after Manager.ForceRelease. Waiters are woken and may have the lock
// before Lose returns.
//
// While the server is down the lock is deleted from its memory and nobody is notified. A holder finds out as with a
// real server: by its first renewal after Up, with LostGone, or at its deadline, with LostDeadline.
func (m *Manager) Lose(key string) bool {
	m.r.Helper()
	had, err := m.srv.lose(context.Background(), key)
	if err != nil {
		m.r.Fatalf("locktest: Lose(%q): %v", key, err)
	}
	return had
}

// lose deletes the lock, through the Manager that holds it if there is one: a Manager notifies its own holders
// without the detour over its subscription, which may not exist yet.
func (s *server) lose(ctx context.Context, key string) (bool, error) {
	info, err := s.foreign.Inspect(ctx, key, false)
	if err != nil {
		return false, err
	}
	for _, h := range info.Holders {
		holder := s.manager(h.Client)
		if holder == nil {
			continue
		}
		// This fails while the server is down, and for a closed Manager. If it succeeds it is enough: the next
		// holder, which may have the lock by now, loses nothing.
		if broken, err := holder.ForceRelease(ctx, key); err == nil {
			return len(broken) > 0, s.awaitNotice(ctx, key)
		}
	}
	fields, err := s.foreign.ForceRelease(ctx, key, false)
	if err == nil {
		err = s.awaitNotice(ctx, key)
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

// awaitNotice waits until no Manager believes any more that it holds what the server does not have, or until nobody can
// be notified because the server is down.
func (s *server) awaitNotice(ctx context.Context, key string) error {
	limit := time.NewTimer(noticeTimeout)
	defer limit.Stop()
	for {
		s.mu.Lock()
		down, reported := s.down, s.lossReported // fetched before the check, so that no notification is missed
		s.mu.Unlock()
		believer, err := s.believer(ctx, key)
		if believer == "" || err != nil || down {
			return err
		}
		again := time.NewTimer(lossPoll)
		select {
		case <-reported:
		case <-again.C:
		case <-limit.C:
			return fmt.Errorf("%s was not notified within %v", believer, noticeTimeout)
		}
		again.Stop()
	}
}

// believer returns a holder that some Manager believes to have the lock although the server does not know it, or "".
// A hold that is lost but not unlocked yet has been notified.
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
	info, err := s.foreign.Inspect(ctx, key, false)
	for _, h := range info.Holders {
		delete(believed, h.Field)
	}
	for field := range believed {
		return field, err
	}
	return "", err
}
