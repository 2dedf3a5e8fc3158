package anteroom

import (
	"context"
	"testing"
	"time"
)

// Manager.mu comes before entry.mu (docs/internals/architecture.md, "Locks, and their order"): a
// clean-up that begins waits for the one without the other.
func TestCleanUp_TakesManagerMuBeforeEntryMu(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	e, err := m.use(insideConfig(t, m, LockConfig{Key: "k"}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.unref()
	now := time.Now()
	g := &grant{e: e, n: 1, terms: &e.terms, field: &field{lease: 50 * time.Millisecond, timeout: 10 * time.Millisecond}}
	g.field.unanswered(now)

	begun := make(chan struct{})
	m.mu.Lock()
	go func() {
		defer close(begun)
		g.burn(false, (*field).burnNow)
	}()
	for deadline := now.Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if e.mu.TryLock() {
			listed := e.burnt[1] != nil
			e.mu.Unlock()
			if listed {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Error("it holds entry.mu and waits for Manager.mu")
			break
		}
	}
	m.mu.Unlock()
	<-begun
}
