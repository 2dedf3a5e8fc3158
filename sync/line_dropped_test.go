package anteroom_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// noReleases refuses releases while it is on, as a server does that may not write.
type noReleases struct {
	*redis.Client
	on atomic.Bool
}

func (n *noReleases) Process(ctx context.Context, cmd redis.Cmder) error {
	if n.on.Load() && strings.Contains(fmt.Sprint(cmd.Args()...), "releaseTime") {
		return readOnly{}
	}
	return n.Client.Process(ctx, cmd)
}

type readOnly struct{}

func (readOnly) Error() string { return "READONLY You can't write against a read only replica." }
func (readOnly) RedisError()   {}

// A release was refused by the server. The next attempt of its process removes the field, and is
// refused all the same, because another process stands and is called: the repeat of the release,
// which finds nothing, is no loss.
func TestLine_ARefusedAttemptHasReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb := &noReleases{Client: s.client()}
		a, rec := manager(t, rdb, anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: -1})
		h := acquire(t, mu)
		there := s.waiting(t, bg, b.Mutex("k"))
		here := make(chan *anteroom.Hold, 1)
		go func() { here <- acquire(t, mu) }()
		s.settle()
		rdb.on.Store(true)
		released := make(chan error, 1)
		go func() { released <- h.Release(bg) }()
		time.Sleep(time.Second)
		next := isIn(t, there) // the attempt has removed the field
		rdb.on.Store(false)
		if err := <-released; err != nil {
			t.Errorf("release: %v", err)
		}
		if lost := rec.of(anteroom.EventLost); len(lost) != 0 {
			t.Errorf("told as lost: %v", lost)
		}
		ok(t, next.Release(bg))
		ok(t, (<-here).Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, a)
	})
}

// As above, but the attempt that is refused has found nothing to remove: somebody has deleted the
// lock, and another client has it. The hold was lost.
func TestLine_ARefusedAttemptThatDroppedNothingReleasesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb := &noReleases{Client: s.client()}
		a, _ := manager(t, rdb, anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: -1})
		h := acquire(t, mu)
		here := make(chan *anteroom.Hold, 1)
		go func() { here <- acquire(t, mu) }()
		s.settle()
		s.Del("k")
		s.HSet("k", "other:1700000000000000", "1")
		s.SetTTL("k", 3*time.Second)
		rdb.on.Store(true)
		released := make(chan error, 1)
		go func() { released <- h.Release(bg) }()
		time.Sleep(time.Second) // the attempt is refused
		rdb.on.Store(false)
		outcome(t, <-released, anteroom.OutcomeLost, anteroom.ErrLost)
		ok(t, (<-here).Release(bg))
		s.nothing(t, "k")
	})
}
