package anteroom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// named notes when each command that names a field was handed to the client's connection.
type named struct {
	redis.Hook
	mu   sync.Mutex
	sent map[string]time.Time // by field: its last command
}

func (n *named) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *named) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.note(cmd)
		return next(ctx, cmd)
	}
}

func (n *named) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			n.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (n *named) note(cmd redis.Cmder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sent == nil {
		n.sent = map[string]time.Time{}
	}
	for _, a := range cmd.Args() {
		if text, is := a.(string); is && strings.HasPrefix(text, "self") {
			n.sent[text] = time.Now()
		}
	}
}

// slow is an Observer that takes its time where renewals and losses are counted, or for
// ever until free is closed.
type slow struct {
	takes time.Duration
	free  chan struct{}
	mu    sync.Mutex
	seen  []string
}

func (o *slow) take(what string) {
	if o.takes > 0 {
		time.Sleep(o.takes)
	} else {
		<-o.free
	}
	o.mu.Lock()
	o.seen = append(o.seen, what)
	o.mu.Unlock()
}

func (o *slow) Renewed(_ string, outcome observe.Outcome, _ time.Duration) {
	o.take(string(outcome))
}

func (o *slow) Lost(_ string, reason observe.LossReason) { o.take("lost: " + string(reason)) }

func (o *slow) Command(name, _ string, _ time.Duration) {
	if name == "renew" {
		o.take(name)
	}
}

func (o *slow) EventRaised(kind observe.EventKind, _ bool) {
	if kind == observe.EventLost {
		o.take("event")
	}
}

// I6: locks are released while the Observer is notified of the renewals before theirs.
func TestSync_I6_NoRenewalAfterTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		seen := &named{}
		rdb := s.client()
		rdb.AddHook(seen)
		m, _ := manager(t, rdb, anteroom.Config{ClientID: "self", RenewalInFlight: 1, Observer: hooks(&slow{takes: 100 * time.Millisecond})})
		var holds []*anteroom.Hold
		for i := range 100 {
			holds = append(holds, acquire(t, m.Mutex(string(rune('a'+i%26))+strings.Repeat("x", i/26))))
		}
		s.net.Delay(200 * time.Millisecond) // so that some are due while others are under way
		time.Sleep(9 * time.Second)         // between 8 and 10 s after the acquire each is due
		released := map[string]time.Time{}
		for _, h := range holds {
			field := h.Holder()
			ok(t, h.Release(bg))
			released[field] = time.Now()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		late := 0
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for field, at := range released {
			sent, was := seen.sent[field]
			if !was {
				t.Fatalf("no command named %s", field)
			}
			if sent.After(at) {
				late++
			}
		}
		if late > 0 {
			t.Errorf("%d of %d locks were renewed after their release", late, len(released))
		}
	})
}

// I9: an Observer that does not return keeps nobody from being renewed or notified, and Close
// brings what it is owed.
func TestSync_I9_AnObserverThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &slow{free: make(chan struct{})}
		m, rec := manager(t, s.client(), anteroom.Config{Observer: hooks(o), Defaults: anteroom.LockConfig{WatchdogPeriod: time.Hour}})
		stays, goes, after := acquire(t, m.Mutex("stays")), acquire(t, m.Mutex("goes")), acquire(t, m.Mutex("after"))
		time.Sleep(time.Minute)
		ok(t, stays.Err())
		s.Del("goes")
		time.Sleep(11 * time.Second) // its next renewal
		synctest.Wait()
		if goes.Context().Err() == nil {
			t.Fatal("not notified of the loss")
		}
		s.Del("after")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if after.Context().Err() == nil {
			t.Fatal("not notified of the loss after the first one")
		}
		time.Sleep(5 * time.Minute)
		ok(t, stays.Err())
		ok(t, stays.Release(bg))
		_, _ = goes.Release(bg), after.Release(bg)
		close(o.free)
		ok(t, m.Close(bg))
		for _, what := range []string{"refused", "lost: gone", "event"} {
			if n := len(slices.DeleteFunc(slices.Clone(o.seen), func(s string) bool { return s != what })); n != 2 {
				t.Errorf("%s was counted %d times, want 2", what, n)
			}
		}
		if n := len(rec.of(observe.EventLost)); n != 2 {
			t.Errorf("%d events of losses, want 2", n)
		}
	})
}

// I9: nor does it keep the next waiter from the lock that a release has found gone.
func TestSync_I9_AReleaseThatFindsALossPassesTheQueueOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := &slow{free: make(chan struct{})}
		m, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(o), Defaults: anteroom.LockConfig{WatchdogPeriod: time.Hour, MaxHandoffs: -1}})
		first := acquire(t, m.Mutex("k"))
		got := make(chan *anteroom.Hold, 1)
		go func() {
			h, err := m.Mutex("k").Acquire(bg)
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		synctest.Wait()
		s.Del("k")
		released := make(chan error, 1)
		go func() { released <- first.Release(bg) }()
		second := <-got // while the Observer hangs
		close(o.free)
		if err := <-released; !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		ok(t, second.Release(bg))
	})
}
