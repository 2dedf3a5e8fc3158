package anteroom_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Ten thousand keys that one process waits for are confirmed once a second each, keep their places, and leave nothing.
func TestLine_TenThousandPlaces_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb, sent := s.Client(t), &traffic{}
	keys := 10_000
	if anteroom.RaceEnabled {
		keys = 2_000
	}
	other := s.Client(t)
	pipe := other.Pipeline()
	for i := range keys {
		key := "k" + strconv.Itoa(i)
		pipe.HSet(bg, key, "other:1700000000000000", "1") // held by one that calls
		pipe.PExpire(bg, key, time.Hour)
	}
	must[[]redis.Cmder](t)(pipe.Exec(bg))
	rdb.AddHook(sent)
	m, _ := manager(t, rdb, anteroom.Config{})
	ctx, cancel := context.WithCancel(bg)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range keys {
		mu := m.Mutex("k" + strconv.Itoa(i))
		wg.Go(func() { _, _ = mu.Acquire(ctx) })
	}
	eventually(t, "all wait in line", func() bool { return must[int64](t)(other.DBSize(bg).Result()) == int64(2*keys) })
	t.Logf("in line after %v", time.Since(began))
	time.Sleep(3 * time.Second) // the confirmations find their rhythm
	sent.take()
	began = time.Now()
	time.Sleep(6 * time.Second)
	n := sent.take()
	watched := time.Since(began)
	if most := keys * int(watched/time.Second+1) * 6 / 5; n > most {
		t.Errorf("%d commands in %v for %d places, want at most %d", n, watched, keys, most)
	}
	t.Logf("%d commands in %v for %d places", n, watched, keys)
	if n := must[int64](t)(other.DBSize(bg).Result()); n != int64(2*keys) {
		t.Errorf("%d keys in Redis, want %d", n, 2*keys)
	}
	cancel()
	began = time.Now()
	wg.Wait()
	eventually(t, "all have left", func() bool { return must[int64](t)(other.DBSize(bg).Result()) == int64(keys) })
	eventually(t, "nothing is left here", func() bool { return !anteroom.KeepsAny(m) })
	t.Logf("have left after %v", time.Since(began))
}

// Many processes, some of which lose their messages, give up, or are closed while they wait:
// nobody is in beside another, and nothing is left.
func TestLine_ManyProcessesUnderFaults_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	var inside int
	var turns atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	lease := pace.Scale(2 * time.Second)
	for i := range 8 {
		m, _ := manager(t, s.Client(t), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: i%2 == 0, LeaseTime: lease})
		for j := range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					wait := time.Duration(1+(i*7+j*3)%20) * time.Millisecond
					if j == 0 {
						wait = time.Minute
					}
					h, err := mu.Acquire(ctx, anteroom.Wait(wait))
					if err != nil {
						continue
					}
					inside++
					if inside != 1 {
						t.Error("two are in")
					}
					turns.Add(1)
					inside--
					_ = h.Release(bg)
				}
			})
		}
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = admin.ClientKillByFilter(bg, "TYPE", "pubsub").Err()
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	})
	time.Sleep(8 * time.Second)
	eventually(t, "200 turns", func() bool { return turns.Load() >= 200 })
	cancel()
	wg.Wait()
	t.Logf("%d turns", turns.Load())
	eventually(t, "nothing is left", func() bool { return admin.Exists(bg, "k", lineOf("k")).Val() == 0 })
}

// A server without memory refuses to confirm places, while the holder's renewals continue: who waits
// asks no more often than who has no place.
func TestLine_AFullServerIsNotAskedWithoutAPause_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb, sent := s.Client(t), &traffic{}
	rdb.AddHook(sent)
	a, _ := manager(t, s.Client(t), anteroom.Config{})
	b, _ := manager(t, rdb, anteroom.Config{})
	lease := pace.Scale(time.Second)
	cfg := anteroom.LockConfig{Key: "k", LeaseTime: lease}
	h := acquire(t, mutex(t, a, cfg))
	got := make(chan *anteroom.Hold, 1)
	go func() {
		h, _ := mutex(t, b, cfg).Acquire(bg)
		got <- h
	}()
	admin := s.Client(t)
	eventually(t, "it waits in line", func() bool { return admin.Exists(bg, lineOf("k")).Val() == 1 })
	ok(t, admin.ConfigSet(bg, "maxmemory", "1").Err())
	time.Sleep(lease * 3 / 2) // beyond the end of the lease of which its place was informed last
	sent.take()
	began := time.Now()
	time.Sleep(time.Second)
	n := sent.take()
	if took := time.Since(began); n > 20*(1+int(took/time.Second)) {
		t.Errorf("%d commands in %v", n, took)
	}
	if !h.Held() {
		t.Error("the holder has lost it")
	}
	ok(t, admin.ConfigSet(bg, "maxmemory", "0").Err())
	ok(t, h.Release(bg))
	if h := <-got; h != nil {
		ok(t, h.Release(bg))
	}
}
