package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func TestAcquireAndRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{ClientID: "me"})
		mu := m.Mutex("order:42")
		h := acquire(t, mu)
		if got := s.HGet("order:42", h.Holder()); got != "1" {
			t.Fatalf("field %s holds %q, want 1", h.Holder(), got)
		}
		if ttl := s.TTL("order:42"); ttl != 2*time.Second {
			t.Fatalf("TTL %v, want 2s of what is new", ttl)
		}
		time.Sleep(100 * time.Millisecond)
		if ttl := s.TTL("order:42"); ttl < 29*time.Second {
			t.Fatalf("TTL %v, want 30s after the first renewal", ttl)
		}
		if !h.Held() || h.Err() != nil || h.Context().Err() != nil {
			t.Fatal("not held")
		}
		ok(t, h.Release(bg))
		if s.Exists("order:42") {
			t.Fatal("the key is still there after Release")
		}
		if len(m.Snapshot()) != 0 {
			t.Fatalf("left behind: %+v", m.Snapshot())
		}
	})
}
