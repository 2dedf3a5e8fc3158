package lettucecompat_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// BenchmarkAcquireRelease against BenchmarkBare is the price of this package over two
// bare EVALSHA calls of the same size.
func BenchmarkAcquireRelease(b *testing.B) {
	c := newClient(b, onReal(b, nil).raw)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		field := lettucecompat.NewField("me", n)
		if c.TryAcquire(ctx, lockRequest("k", field)).Outcome != ok {
			b.Fatal("not acquired")
		}
		if c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: field}).Outcome != ok {
			b.Fatal("not released")
		}
	}
}

func BenchmarkBare(b *testing.B) {
	rdb := onReal(b, nil).raw
	lock, unlock := redis.NewScript(lettucecompat.AcquireSource), redis.NewScript(lettucecompat.ReleaseSource)
	message := lettucecompat.ReleaseMessage("k", "me:1", time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if lock.Run(ctx, rdb, []string{"k"}, "me:1", "10000").Err() != nil ||
			unlock.Run(ctx, rdb, []string{"k"}, "me:1", "lock:release:k", message).Err() != nil {
			b.Fatal("failed")
		}
	}
}

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
