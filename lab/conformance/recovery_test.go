package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// recovery has the times since the master stopped until …
type recovery struct {
	elected   time.Duration // a new master was seen, by asking every node
	first     time.Duration // a key of the old master was granted again
	all       time.Duration // each key had been granted
	listening time.Duration // each Manager's subscription was there
}

// figures are the recoveries of each mode.
type figures map[mode][]recovery

func (f figures) log(t *testing.T) {
	t.Helper()
	for m := range modes {
		for _, figure := range []struct {
			name string
			of   func(recovery) time.Duration
		}{
			{"new master seen", func(r recovery) time.Duration { return r.elected }},
			{"first acquisition there", func(r recovery) time.Duration { return r.first }},
			{"all keys usable", func(r recovery) time.Duration { return r.all }},
			{"subscribed again", func(r recovery) time.Duration { return r.listening }},
		} {
			var list []time.Duration
			for _, r := range f[m] {
				list = append(list, figure.of(r).Round(10*time.Millisecond))
			}
			slices.Sort(list)
			t.Logf("%-9v  until %-23s  least %v, median %v, most %v of %d", m, figure.name,
				list[0], list[len(list)/2], list[len(list)-1], len(list))
		}
	}
}

// usable acquires each key once, starting now, and returns when each of them was granted, in the order of keys. Any
// goroutine may call it.
func usable(t *testing.T, p *party, keys []string) []time.Time {
	times := make([]time.Time, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		lock := p.lock(t, anteroom.LockConfig{Key: key, Fencing: true})
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), stuck)
			defer cancel()
			h, err := lock.Acquire(ctx)
			if err != nil {
				t.Errorf("%s after the failover: %v", key, err)
				return
			}
			times[i] = time.Now()
			_ = h.Release(ctx)
		})
	}
	wg.Wait()
	return times
}

// listen waits until the parties have subscribed. Any goroutine may call it.
func (d target) listen(now *testredis.Server, parties []*party) bool {
	for deadline := time.Now().Add(stuck); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		there := 0
		for _, p := range parties {
			if d.subscribers(now, "anteroom:client:"+p.ClientID()) == 1 {
				there++
			}
		}
		if there == len(parties) {
			return true
		}
	}
	return false
}

// wakes checks that the release by one party wakes a waiter of the other: the quickest of some is far quicker than
// polling.
func wakes(t *testing.T, d target, a, b *party) {
	t.Helper()
	ctx := context.Background()
	key := d.key("woken")
	mine, theirs := a.lock(t, anteroom.LockConfig{Key: key}), b.lock(t, anteroom.LockConfig{Key: key})
	now := d.master()
	quickest := time.Hour
	for range 5 {
		h, err := mine.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan time.Time, 1)
		go func() {
			defer close(got)
			if h, err := theirs.Acquire(ctx); err == nil {
				got <- time.Now()
				_ = h.Release(ctx)
			}
		}()
		eventually(t, stuck, "the waiter stands", func() bool {
			info, err := a.Inspect(ctx, key)
			return err == nil && info.Standing == 1 && d.subscribers(now, "anteroom:client:"+info.First) == 1
		})
		begin := time.Now()
		err = h.Release(ctx)
		lost := errors.Is(err, anteroom.ErrLost) // by the old master, which serves on for those who have not heard
		if err != nil && !lost {
			t.Fatal(err)
		}
		at, ok := <-got
		if !ok {
			t.Fatal("the waiter did not get the lock")
		}
		if !lost {
			quickest = min(quickest, at.Sub(begin))
		}
		<-got
	}
	if quickest > 400*time.Millisecond {
		t.Errorf("the quickest waiter came %v after the release", quickest)
	}
}
