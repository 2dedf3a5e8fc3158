package anteroom

import (
	"context"
	"testing"
)

// A Mutex remembers the key that it has found last. Once that is over it finds the one that everybody else finds.
func TestMutex_DoesNotReviveAKeyThatIsOver(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu := m.Mutex("k")
	over, err := mu.use()
	if err != nil {
		t.Fatal(err)
	}
	over.Done()
	if mu.last.Load() == nil || mu.last.Load().Key() != nil {
		t.Fatal("it has not found the key, or leads to it still")
	}
	if mu.find() != nil {
		t.Error("found a key that is not in use")
	}
	mu.Lock()
	defer mu.Unlock()
	if k := mu.find(); k == over || k == nil || m.Mutex("k").find() != k {
		t.Error("it locked in a key that nobody else knows")
	}
}

// A program may keep a Mutex for each of many keys.
func TestMutex_IdleKeepsNothingAlive(t *testing.T) {
	m, s := insideServer(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	byLock, byHold := m.Mutex("a"), m.Mutex("b")
	pass(byLock)
	h, err := byHold.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.HSet("c", "somebody:1", "1")
	s.HSet("d", "somebody:1", "1")
	refused, refusedHold := m.Mutex("c"), m.Mutex("d")
	if refused.TryLock() {
		t.Fatal("two hold it")
	}
	if _, err := refusedHold.TryAcquire(context.Background()); err == nil {
		t.Fatal("two hold it")
	}
	for _, mu := range []*Mutex{byLock, byHold, refused, refusedHold} {
		if mu.last.Load().Key() != nil {
			t.Errorf("the Mutex of %s keeps the last key", mu.Key())
		}
	}
}

// Two Mutexes of one key with different configurations are refused also where the one remembers a key of its own.
func TestMutex_RemembersOnlyItsOwnConfiguration(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	fair, err := m.NewMutex(LockConfig{Key: "k", Fair: true})
	if err != nil {
		t.Fatal(err)
	}
	other := m.Mutex("k")
	for range 2 {
		fair.Lock()
		if h, err := other.TryAcquire(context.Background()); err == nil {
			_ = h.Release(context.Background())
			t.Error("two configurations of one key in parallel")
		}
		fair.Unlock()
		pass(other)
	}
}
