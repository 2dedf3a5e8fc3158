package anteroom_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// forgedNotice is what ForceRelease tells a holder, written by somebody else.
func forgedNotice(key, field string) string {
	return fmt.Sprintf(`{"forced":{"key":%q,"field":%q}}`, base64.StdEncoding.EncodeToString([]byte(key)), field)
}

// A forged notice of a forced release makes its holder give up, which docs/operations.md
// says. It lets nobody in: in Redis nothing was released, and the others wait for the lease.
func TestSecurity_AForgedNoticeLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		locks := anteroom.LockConfig{LeaseTime: 10 * time.Second}
		a, rec := manager(t, s.client(), anteroom.Config{Defaults: locks})
		b, _ := manager(t, s.client(), anteroom.Config{Defaults: locks})
		h := acquire(t, a.Mutex("k"))
		start, own := time.Now(), "anteroom:client:"+a.ClientID()
		for _, notice := range []string{
			forgedNotice("other", h.Holder()), forgedNotice("", h.Holder()), forgedNotice("k", b.ClientID()+":1"),
			forgedNotice("k", a.ClientID()+":99"), forgedNotice("k", h.Holder()+"0"), forgedNotice("k", h.Holder()+":kept"),
		} {
			s.Publish(own, notice)
		}
		synctest.Wait()
		if !h.Held() {
			t.Fatalf("lost by a notice about something else: %v", h.Err())
		}
		s.Publish(own, forgedNotice("k", h.Holder()))
		<-h.Context().Done()
		synctest.Wait()
		if lost := rec.of(anteroom.EventLost); len(lost) != 1 || lost[0].Reason != anteroom.LostForced {
			t.Fatalf("losses: %+v", lost)
		}
		if _, err := b.Mutex("k").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Fatalf("somebody is let in: %v", err)
		}
		next := acquire(t, b.Mutex("k"))
		if waited := time.Since(start); waited < 9*time.Second {
			t.Errorf("the next one is in after %v, before the lease of 10s can be over", waited)
		}
		ok(t, next.Release(bg))
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}

// A flood of messages that say that it was called costs a waiter at most one question for each,
// and lets nobody in. Release messages, which it does not need, cost it nothing.
func TestSecurity_AFloodOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		counts := newCounter()
		b, _ := manager(t, s.client(), anteroom.Config{Observer: counts})
		h := acquire(t, a.Mutex("k"))
		got := make(chan *anteroom.Hold)
		go func() { got <- acquire(t, b.Mutex("k")) }()
		time.Sleep(100 * time.Millisecond)
		flood := func(channel, message string) (asked int) {
			before := counts.get("command/acquire")
			for range 1000 {
				s.Publish(channel, message)
			}
			synctest.Wait()
			return counts.get("command/acquire") - before
		}
		field := s.spots("k")[0].field
		called := `{"called":{"field":"` + field + `","attempt":7,"lease":2000,"token":"7"}}`
		if asked := flood("anteroom:client:"+b.ClientID(), called); asked < 1 || asked > 1000 {
			t.Errorf("1000 calls cost %d questions", asked)
		}
		if asked := flood("lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"x"}`); asked != 0 {
			t.Errorf("1000 releases cost %d questions", asked)
		}
		select {
		case <-got:
			t.Fatal("a message let somebody in")
		default:
		}
		ok(t, h.Release(bg))
		ok(t, (<-got).Release(bg))
	})
}
