package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The line of one key that an ACL refuses concerns that key: it is ErrConfig, also for Inspect, and who waits for
// another key is called as ever.
func TestLine_ARefusedLineConcernsItsKeyOnly(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	ok(t, s.Client(t).Do(bg, "acl", "setuser", "app", "reset", "on", ">pw", "~order:*", "~anteroom:line:{order:a}", "~anteroom:fence:*", "&*", "+@all").Err())
	client := func() *redis.Client {
		return s.Client(t, func(o *redis.Options) { o.Username, o.Password = "app", "pw" })
	}
	a, _ := manager(t, client(), anteroom.Config{})
	b, _ := manager(t, client(), anteroom.Config{})
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("a key whose line is refused: %v", err)
		}
	}
	begin := time.Now()
	for range 8 {
		_, err := b.Mutex("order:b").Acquire(bg)
		refused(err)
		_, err = b.Inspect(bg, "order:b")
		refused(err)
		refused(b.Ping(bg, "order:b"))
		h := acquire(t, a.Mutex("order:a"))
		got := make(chan *anteroom.Hold, 1)
		go func() { got <- acquire(t, b.Mutex("order:a")) }()
		eventually(t, "it waits in line", func() bool { return must[anteroom.Info](t)(a.Inspect(bg, "order:a")).InLine == 1 })
		ok(t, h.Release(bg))
		ok(t, (<-got).Release(bg))
	}
	if took := time.Since(begin); !pace.Within(took, 8*500*time.Millisecond) {
		t.Errorf("8 hand-overs took %v", took)
	}
}

// A waiter gives up while Redis does not answer its process. Its place goes as soon as Redis does, and who waits behind
// it is called immediately.
func TestLine_AWaiterThatGivesUpInAnOutageLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		holder, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		behind, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, holder.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		gone := s.waiting(t, ctx, m.Mutex("k"))
		got := s.waiting(t, bg, behind.Mutex("k"))
		net.BlackHole()
		cancel()
		<-gone
		time.Sleep(300 * time.Millisecond)
		net.Heal()
		time.Sleep(1500 * time.Millisecond)
		if at := s.spots("k"); len(at) != 1 || at[0].client != behind.ClientID() {
			t.Errorf("in line: %v", at)
		}
		ok(t, h.Release(bg))
		s.settle()
		ok(t, isIn(t, got).Release(bg))
		s.nothing(t, "k")
	})
}

// A caller that gives up behind a release that Redis has not answered was not refused by a holder: nobody knows.
func TestLine_AWaiterBehindAReleaseWithoutAnAnswer(t *testing.T) {
	for _, called := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			net := s.network()
			m, _ := manager(t, s.clientOver(net), anteroom.Config{})
			mu := m.Mutex("k")
			var h *anteroom.Hold
			if called {
				other, _ := manager(t, s.client(), anteroom.Config{})
				first := acquire(t, other.Mutex("k"))
				got := s.waiting(t, bg, mu)
				ok(t, first.Release(bg))
				s.settle()
				h = isIn(t, got)
			} else {
				h = acquire(t, mu)
			}
			net.HoldReplies()
			released := make(chan error, 1)
			go func() { released <- h.Release(bg) }()
			time.Sleep(10 * time.Millisecond)
			ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
			defer cancel()
			_, err := mu.Acquire(ctx)
			if !errors.Is(err, anteroom.ErrUnavailable) || !errors.Is(err, anteroom.ErrUnknown) || errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("called %v: %v", called, err)
			}
			net.Heal()
			<-released
			time.Sleep(5 * time.Second)
			s.nothing(t, "k")
			anteroom.NothingLeft(t, m)
		})
	}
}

// A hiccup of Redis, longer than a command is awaited, meets a release. When it is over, who waits in the process is in
// soon, whatever the answers say that come late.
func TestLine_AHiccupHoldsNobodyBack(t *testing.T) {
	for _, hiccup := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: -1})
			h := acquire(t, mu)
			time.Sleep(time.Second)
			got := make(chan *anteroom.Hold, 1)
			go func() { got <- acquire(t, mu) }()
			s.settle()
			s.net.HoldReplies()
			go func() { _ = h.Release(bg) }()
			time.Sleep(hiccup)
			s.net.Heal()
			begin := time.Now()
			next := <-got
			if took := time.Since(begin); took > 1500*time.Millisecond {
				t.Errorf("in %v after a hiccup of %v", took, hiccup)
			}
			ok(t, next.Release(bg))
			time.Sleep(5 * time.Second)
			s.nothing(t, "k")
			anteroom.NothingLeft(t, m)
		})
	}
}
