package anteroom_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// mistaken returns what f returns or panics with.
func mistaken(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err, _ = p.(error)
		}
	}()
	return f()
}

// TestReservedKeys: a key below the prefix of the fencing records is a mistake in the
// program, which every entry refuses immediately, without a word to Redis.
func TestReservedKeys(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var dialed atomic.Int32
		m, rec := manager(t, s.clientDialing(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed.Add(1)
			return s.net.Dial(ctx, network, addr)
		}), anteroom.Config{})
		for _, key := range []string{"anteroom:fence:", "anteroom:fence:{k}", "anteroom:fence:tag:{t}k", "anteroom:fence:{7}:a{b", "anteroom:fence:k"} {
			if (anteroom.LockConfig{Key: key}).Validate() == nil {
				t.Fatalf("%q is a valid key", key) // Lock would wait for ever
			}
			mu := m.Mutex(key)
			for name, f := range map[string]func() error{
				"Lock":       func() error { mu.Lock(); return nil },
				"TryLock":    func() error { mu.TryLock(); return nil },
				"TryLockFor": func() error { mu.TryLockFor(time.Minute); return nil },
				"Unlock":     func() error { mu.Unlock(); return nil },
				"Held":       func() error { mu.Held(); return nil },
				"Holds":      func() error { mu.Holds(); return nil },
				"Acquire":    func() error { _, err := mu.Acquire(bg); return err },
				"TryAcquire": func() error { _, err := mu.TryAcquire(bg); return err },
				"Do":         func() error { return mu.Do(bg, nil) },
				"NewMutex":   func() error { _, err := m.NewMutex(anteroom.LockConfig{Key: key}); return err },
				"Validate":   anteroom.LockConfig{Key: key}.Validate,
				"Inspect":    func() error { _, err := m.Inspect(bg, key); return err },
				"Force":      func() error { _, err := m.ForceRelease(bg, key); return err },
				"Destroy":    func() error { return m.Destroy(key) },
			} {
				began := time.Now()
				err := mistaken(f)
				if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), `"anteroom:fence:"`) || strings.Contains(err.Error(), "lettucecompat") {
					t.Errorf("%s of %q: %v", name, key, err)
				}
				if waited := time.Since(began); waited != 0 {
					t.Errorf("%s of %q: it took %v", name, key, waited)
				}
			}
		}
		if n := dialed.Load(); n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
		if n := len(rec.of(observe.EventUnavailable)); n != 0 {
			t.Errorf("%d events report an outage", n)
		}
	})
}

// TestReservedKeys_NoMore: what only looks like it is a key as any other. Channels are
// not keys, and a derived key begins with its prefix, whatever its hash tag.
func TestReservedKeys_NoMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
		for _, key := range []string{
			"anteroom:fence", "{anteroom:fence:}", "{anteroom:fence:x}", "Anteroom:fence:x", " anteroom:fence:x",
			"anteroom:client:me", "lock:release:k", "anteroom:", "k:kept",
		} {
			ok(t, acquire(t, m.Mutex(key)).Release(bg))
		}
	})
}
