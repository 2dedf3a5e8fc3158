package lettucecompat_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// keeper is a go-redis hook that keeps every script call and its context, as one that traces
// may, with what they said when they came by.
type keeper struct {
	plainHook
	mu   sync.Mutex
	kept []keptCommand
}

type keptCommand struct {
	ctx  context.Context
	end  time.Time
	cmd  redis.Cmder
	args []any
}

func (k *keeper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" { // the others are go-redis introducing itself
			end, _ := ctx.Deadline()
			k.mu.Lock()
			k.kept = append(k.kept, keptCommand{ctx, end, cmd, slices.Clone(cmd.Args())})
			k.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// same returns how many commands were kept, and reports each that says something else now.
func (k *keeper) same(t *testing.T) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, was := range k.kept {
		want(t, "arguments", fmt.Sprint(was.cmd.Args()), fmt.Sprint(was.args))
		end, _ := was.ctx.Deadline()
		want(t, "deadline", end, was.end)
	}
	return len(k.kept)
}

// TestWire_ACallIsNotUsedAgain: a command that its caller has left is go-redis' for as long
// as that has it, however many calls come and go meanwhile; and what a hook keeps stays as
// it was.
func TestWire_ACallIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]bool{"on a connection of ours": false, "by go-redis": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := onMini(t)
				keep, gate := &keeper{}, newGate("held")
				b.rdb.AddHook(keep)
				b.rdb.AddHook(gate)
				c := b.client(t)
				if wrap {
					c = b.wrapped(t)
				}
				warm(t, c)
				keep.kept = nil
				n := 0
				pairs := func() {
					for range 50 {
						n++
						key := fmt.Sprint("k", n)
						want(t, "acquire", c.Do(ctx, asks(key, 100+n)).Word, has)
						want(t, "release", c.Do(ctx, gives(key, 100+n)).Word, hasNothing)
					}
				}
				leave := func(key string, i int) {
					leaving, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					want(t, "left", c.Do(leaving, asks(key, i)).Outcome, unknown)
				}
				if wrap { // otherwise the caller is in the hook
					leave("held", 1) // a hook has the command while others come and go
				}
				pairs()
				gate.open()
				synctest.Wait()
				b.net.HoldReplies()
				leave("late", 2)
				b.wantHash(t, "late", hash{me(2): "1"})
				b.net.Heal() // its answer arrives while others are under way
				pairs()
				synctest.Wait()
				if n := keep.same(t); n < 201 {
					t.Errorf("%d commands", n)
				}
				want(t, "under way", lettucecompat.UnderWay(c), 0)
			})
		})
	}
}
