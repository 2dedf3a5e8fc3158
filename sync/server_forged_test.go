package anteroom_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// forgedNotice is what ForceRelease sends a holder, written by somebody else.
// forgedNotice says that somebody has deleted the unit n of key.
func forgedNotice(key string, n uint64) string { return fmt.Sprintf("forced - %d %s", n, key) }

// A forged notice of a forced release costs its holder a question, which finds that it is not so. A hold with a fixed lease
// is given up only where Redis does not answer that, and lets nobody in: in Redis nothing was released.
func TestSecurity_AForgedNoticeLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, none := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		c, rec := manager(t, s.clientOver(net), anteroom.Config{})
		renewed, fixed := acquire(t, a.Mutex("renewed")), acquire(t, a.Mutex("fixed"), anteroom.Lease(10*time.Second))
		alone, start := acquire(t, c.Mutex("alone"), anteroom.Lease(10*time.Second)), time.Now()
		notify := func(key string, h *anteroom.Hold, more uint64) {
			id, n, _ := lettucecompat.ParseField(h.Holder())
			s.Publish("anteroom:client:"+id, forgedNotice(key, n+more))
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		notify("other", fixed, 0)
		notify("", fixed, 0)
		notify("fixed", fixed, 1)
		notify("renewed", renewed, 0)
		notify("fixed", fixed, 0)
		if !renewed.Held() || !fixed.Held() {
			t.Fatalf("lost by a notice about something else, or a false one: %v, %v", renewed.Err(), fixed.Err())
		}
		if lost := none.of(observe.EventLost); len(lost) != 0 {
			t.Fatalf("losses: %+v", lost)
		}
		ok(t, fixed.Release(bg))
		net.OnRequest("alone", 1, faultnet.Swallowed)
		notify("alone", alone, 0)
		time.Sleep(3 * time.Second)
		if lost := rec.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostForced || alone.Held() {
			t.Fatalf("losses: %+v", lost)
		}
		if _, err := b.Mutex("alone").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Fatalf("somebody is let in: %v", err)
		}
		next := acquire(t, b.Mutex("alone"))
		if waited := time.Since(start); waited < 9*time.Second {
			t.Errorf("the next one is in after %v, before the lease of 10s can be over", waited)
		}
		ok(t, next.Release(bg))
		ok(t, renewed.Release(bg))
	})
}

// A flood of messages that say that it was called, by one who has not read the secret of its place, costs a waiter
// nothing and lets nobody in. Neither do release messages, which it does not need.
func TestSecurity_AFloodOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		counts := newCounter()
		b, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(counts)})
		h := acquire(t, a.Mutex("k"))
		got := make(chan *anteroom.Hold)
		go func() { got <- acquire(t, b.Mutex("k")) }()
		time.Sleep(100 * time.Millisecond)
		flood := func(channel, message string) (asked int) {
			commands := func() int { return counts.get("command/acquire") + counts.get("command/confirm") }
			before := commands()
			for range 1000 {
				s.Publish(channel, message)
			}
			synctest.Wait()
			return commands() - before
		}
		n := strconv.FormatUint(s.spots("k")[0].n, 10)
		for _, message := range []string{"called WORD " + n + " 1 7 0 k", "called - " + n + " 1 7 0 k", "retry - 0 k", "contended - " + n + " k"} {
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
