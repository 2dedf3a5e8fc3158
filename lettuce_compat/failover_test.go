package lettucecompat_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestClusterFindsTheNewMaster_Lab: a master that died, or that hangs, is followed by its
// replica, and each kind of command finds it there without the help of another kind.
// go-redis asks for the layout once a minute by itself, and after errors only for
// commands that it may send again, which ours are not.
func TestClusterFindsTheNewMaster_Lab(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testredis.Server){"killed": (*testredis.Server).Kill, "hung": (*testredis.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := testredis.StartCluster(t, 3, 1)
			nodes.FailOver()
			old := nodes.Nodes()[0] // the one with the replica, which before 6.0 answers WAIT only a while after it is linked
			eventually(t, "the replica confirms", func() bool {
				r := old.Client(t)
				defer r.Close()
				r.Set(ctx, "confirmed", "", 0)
				return r.Wait(ctx, 1, time.Second).Val() == 1
			})
			var key, id string // of a lock, and of a client whose own channel is read there
			for i := 0; key == "" || id == ""; i++ {
				if k := fmt.Sprint("k", i); lettucecompat.KeySlot(k) < 5461 {
					key = k
				}
				if c := fmt.Sprint("c", i); lettucecompat.KeySlot("anteroom:client:"+c) < 5461 {
					id = c
				}
			}
			// The layout comes from a node that answers.
			asked := nodes.Nodes()[1].Client(t)
			reading := func(timeout time.Duration) *lettucecompat.Client {
				rdb := nodes.Client(t, func(o *redis.ClusterOptions) {
					o.ReadTimeout = timeout
					o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
						//lint:ignore SA1019 the option wants what this command answers
						return asked.ClusterSlots(ctx).Result()
					}
				})
				c := newClient(t, rdb, func(o *lettucecompat.Options) { o.ClientID, o.CommandTimeout = id, pace.Scale(time.Second) })
				want(t, "acquire", c.Do(ctx, asks("warm"+key, 1)).Outcome != lettucecompat.OutcomeUnknown, true)
				return c
			}
			// What is sent to a node that hangs is not answered within this test: only the time
			// limits of commands can detect.
			client := func() *lettucecompat.Client { return reading(time.Hour) }
			holder := client()
			want(t, "granted", holder.Do(ctx, asks(key, 2)).Word, has)
			field := lettucecompat.NewField(id, number(2))
			withWait := lettucecompat.Renewal{Key: key, Field: field, Lease: time.Hour, Replicas: 1, ReplicaTimeout: 500 * time.Millisecond}
			confirmed := withWait
			confirmed.ReplicaTimeout = pace.Hang
			want(t, "confirmed", holder.Extend(ctx, confirmed, 0).Outcome, ok)
			renew := []lettucecompat.Renewal{{Key: key, Field: field, Lease: time.Hour}}
			batch := append(renew, lettucecompat.Renewal{Key: "{" + key + "}", Field: field, Lease: time.Hour})
			asker, waiter, renewer, batcher := client(), client(), client(), client()
			listener := reading(pace.Scale(time.Second)) // making a connection has no other limit
			watchConfirmed(t, listener, key)
			want(t, "probed", probed(listener), true)

			try := asks(key, 1) // since a number above that of the lock's field it refuses as anybody's
			try.N, try.Since, try.Try = number(3), number(3), true
			stop(old)
			nodes.AwaitMaster(int(lettucecompat.KeySlot(key)), old)
			var wg sync.WaitGroup
			for what, works := range map[string]func() bool{
				"a renewal":           func() bool { return renewer.Renew(ctx, renew, 0)[0].Outcome == ok },
				"a batch of renewals": func() bool { return batcher.Renew(ctx, batch, 0)[0].Outcome == ok },
				"a command":           func() bool { return asker.Do(ctx, try).Word == wordRefused },
				"a renewal with WAIT": func() bool { return waiter.Extend(ctx, withWait, 0).Outcome == refused },
				// One that hangs keeps its subscribers, who find out by a probe.
				"the subscription": func() bool { return probed(listener) },
			} {
				wg.Go(func() {
					for deadline := time.Now().Add(pace.Hang); !works(); time.Sleep(5 * time.Millisecond) {
						if time.Now().After(deadline) {
							t.Errorf("%s does not find the new master", what)
							return
						}
					}
				})
			}
			wg.Wait()
			if name == "hung" {
				old.Resume()
			}
		})
	}
}

func probed(c *lettucecompat.Client) bool {
	return c.Listening() && c.Probe(ctx) == nil
}
