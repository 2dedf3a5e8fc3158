package lock

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// A command that takes the lock and fails is sent again after growing pauses, though the place is confirmed in between.
func TestTaking_PausesGrow(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	tk := &Taking{From: "ticket"}
	var last time.Duration
	for range 4 {
		k.mu.Lock()
		k.failedLocked(tk, conversation.Failed)
		pause := tk.notBefore - k.l.now()
		k.mu.Unlock()
		if pause <= last {
			t.Errorf("a pause of %v after one of %v", pause, last)
		}
		last = pause
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failedLocked(new(Taking), conversation.Silence); last < 8*leastPause/2 {
		t.Errorf("the fourth pause is %v", last)
	}
}
