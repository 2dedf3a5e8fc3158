package anteroom_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Ten thousand keys that one process waits for are confirmed once a second each, keep their places, and leave nothing.
func TestLine_TenThousandPlaces(t *testing.T) {
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
	eventually(t, time.Minute, "all wait in line", func() bool { return must[int64](t)(other.DBSize(bg).Result()) == int64(2*keys) })
	t.Logf("in line after %v", time.Since(began))
	time.Sleep(3 * time.Second) // the confirmations find their rhythm
	sent.take()
	const watched = 6 * time.Second
	time.Sleep(watched)
	n := sent.take()
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
	eventually(t, time.Minute, "all have left", func() bool { return must[int64](t)(other.DBSize(bg).Result()) == int64(keys) })
	eventually(t, time.Minute, "nothing is left here", func() bool { return !anteroom.KeepsAny(m) })
	t.Logf("have left after %v", time.Since(began))
}

// Many processes, some of which lose their messages, give up, or are closed while they wait:
// nobody is in beside another, and nothing is left.
func TestLine_ManyProcessesUnderFaults(t *testing.T) {
	s := testredis.Start(t)
	admin := s.Client(t)
	var inside, turns int
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(bg, 8*time.Second)
	defer cancel()
	for i := range 8 {
		m, _ := manager(t, s.Client(t), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: i%2 == 0, LeaseTime: 2 * time.Second})
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
					turns++
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
	wg.Wait()
	t.Logf("%d turns", turns)
	if turns < 200 {
		t.Errorf("%d turns", turns)
	}
	eventually(t, 10*time.Second, "nothing is left", func() bool { return admin.Exists(bg, "k", lineOf("k")).Val() == 0 })
}

// A server without memory refuses to confirm places, while the holder's renewals continue: who waits
// asks no more often than who has no place.
func TestLine_AFullServerIsNotAskedWithoutAPause(t *testing.T) {
	s := testredis.Start(t)
	rdb, sent := s.Client(t), &traffic{}
	rdb.AddHook(sent)
	a, _ := manager(t, s.Client(t), anteroom.Config{})
	b, _ := manager(t, rdb, anteroom.Config{})
	cfg := anteroom.LockConfig{Key: "k", LeaseTime: time.Second}
	h := acquire(t, mutex(t, a, cfg))
	got := make(chan *anteroom.Hold, 1)
	go func() {
		h, _ := mutex(t, b, cfg).Acquire(bg)
		got <- h
	}()
	admin := s.Client(t)
	eventually(t, 5*time.Second, "it waits in line", func() bool { return admin.Exists(bg, lineOf("k")).Val() == 1 })
	ok(t, admin.ConfigSet(bg, "maxmemory", "1").Err())
	time.Sleep(1500 * time.Millisecond) // beyond the end of the lease of which its place was informed last
	sent.take()
	time.Sleep(time.Second)
	if n := sent.take(); n > 20 {
		t.Errorf("%d commands in a second", n)
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
