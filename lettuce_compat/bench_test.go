package lettucecompat_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// BenchmarkPair against BenchmarkBare is the price of this package over two bare EVALSHA
// calls of the same size, on the same kind of client.
func BenchmarkPair(b *testing.B) {
	for _, bc := range []struct {
		name     string
		option   func(*redis.Options)
		mayLeave bool
		held     bool // the caller may be held
	}{
		{"default", unchanged, false, true},
		{"default/not-held", unchanged, false, false},
		{"default/may-leave", unchanged, true, false},
		{"mindful", mindful, false, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c := newClient(b, onReal(b, nil).real.Client(b, bc.option))
			caller := ctx
			if bc.mayLeave {
				cancellable, cancel := context.WithCancel(ctx)
				defer cancel()
				caller = cancellable
			}
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				field := lettucecompat.NewField("me", n)
				r := lockRequest("k", field)
				r.MayBeHeld = bc.held
				if c.TryAcquire(caller, r).Outcome != ok {
					b.Fatal("not acquired")
				}
				if c.Release(caller, lettucecompat.ReleaseRequest{Key: "k", Field: field, MayBeHeld: bc.held}).Outcome != ok {
					b.Fatal("not released")
				}
			}
		})
	}
}

func BenchmarkBare(b *testing.B) {
	for _, bc := range []struct {
		name   string
		option func(*redis.Options)
	}{{"default", unchanged}, {"mindful", mindful}} {
		b.Run(bc.name, func(b *testing.B) {
			rdb := onReal(b, nil).real.Client(b, bc.option)
			lock, unlock := redis.NewScript(lettucecompat.AcquireSource), redis.NewScript(lettucecompat.ReleaseSource)
			message := lettucecompat.ReleaseMessage("k", "me:1", time.Now())
			b.ReportAllocs()
			for b.Loop() {
				if lock.Run(ctx, rdb, []string{"k"}, "me:1", "10000").Err() != nil ||
					unlock.Run(ctx, rdb, []string{"k"}, "me:1", "lock:release:k", message).Err() != nil {
					b.Fatal("failed")
				}
			}
		})
	}
}

func unchanged(*redis.Options) {}

func BenchmarkAcquireReleaseManyKeys(b *testing.B) {
	c := newClient(b, onReal(b, nil).raw)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		key := lettucecompat.NewClientID("")
		for n := uint64(0); pb.Next(); n++ {
			field := lettucecompat.NewField("me", n)
			if c.TryAcquire(ctx, lockRequest(key, field)).Outcome != ok || c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: field}).Outcome != ok {
				b.Error("failed")
			}
		}
	})
}
