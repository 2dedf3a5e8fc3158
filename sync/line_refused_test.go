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
	"github.com/anteroom/anteroom/sync/observe"
)

// noReleases refuses what gives a lock back while it is on, as a server does that may not write.
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

// The end of a turn is refused by the server for a while. It is repeated, and lets in who waits and then who waits
// here. Where somebody has deleted the lock meanwhile, and another client has it, the hold was lost.
func TestLine_ATurnThatIsRefusedIsRepeated(t *testing.T) {
	for name, deleted := range map[string]bool{"released": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				rdb := &noReleases{Client: s.client()}
				a, rec := manager(t, rdb, anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: -1})
				h := acquire(t, mu)
				here := make(chan *anteroom.Hold, 1)
				go func() { here <- acquire(t, mu) }()
				s.settle()
				if deleted {
					s.Del("k")
					s.HSet("k", "other:1700000000000000", "1")
					s.SetTTL("k", 3*time.Second)
				}
				there := s.waiting(t, bg, b.Mutex("k"))
				rdb.on.Store(true)
				released := make(chan error, 1)
				go func() { released <- h.Release(bg) }()
				time.Sleep(300 * time.Millisecond)
				isOut(t, here)
				isOut(t, there)
				rdb.on.Store(false)
				err := <-released
				s.settle()
				lost := rec.of(observe.EventLost)
				if deleted {
					outcome(t, err, observe.OutcomeLost, anteroom.ErrLost)
					time.Sleep(3 * time.Second)
				} else if err != nil {
					t.Errorf("release: %v", err)
				}
				if (len(lost) == 1) != deleted {
					t.Errorf("reported as lost: %v", lost)
				}
				next := isIn(t, there)
				isOut(t, here)
				ok(t, next.Release(bg))
				ok(t, (<-here).Release(bg))
				time.Sleep(time.Second)
				s.nothing(t, "k")
				anteroom.NothingLeft(t, a)
			})
		})
	}
}
