package anteroom_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
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

// A flood of messages that say that it was called, by one who has not read the secret of its place, costs a waiter
// nothing and lets nobody in. Neither do release messages, which it does not need.
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
			commands := func() int { return counts.get("command/ask") + counts.get("command/confirm") }
			before := commands()
			for range 1000 {
				s.Publish(channel, message)
			}
			synctest.Wait()
			return commands() - before
		}
		n := strconv.FormatUint(s.spots("k")[0].n, 10)
		for _, message := range []string{"called WORD " + n + " 1 7 0 k", "called - " + n + " 1 7 0 k", "look - 0 k", "told - " + n + " k"} {
			if asked := flood("anteroom:client:"+b.ClientID(), message); asked != 0 {
				t.Errorf("1000 × %q cost %d questions", message, asked)
			}
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
