//go:build unix

package anteroom_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkLineGrowth_Keys is one process that waits for n keys, each held by another client, as
// the first in line for all of them, or behind some others: what it sends in a second, and what
// that costs both ends. One iteration takes most of a minute:
//
//	go test -run '^$' -bench LineGrowth -benchtime 1x -count 3 -timeout 1h ./sync
func BenchmarkLineGrowth_Keys(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("ahead=0/n=%d", n), func(b *testing.B) { benchLine(b, n, 0) })
	}
	for _, ahead := range []int{2, 15} {
		b.Run(fmt.Sprintf("ahead=%d/n=10000", ahead), func(b *testing.B) { benchLine(b, 10_000, ahead) })
	}
}

func benchLine(b *testing.B, n, ahead int) {
	s := testredis.Start(b)
	other := s.Client(b)
	m, _ := manager(b, s.Client(b), anteroom.Config{})
	warmUp(m)
	names := numbered(n)
	inLine(b, other, names, ahead)
	before := heap()
	ctx, cancel := context.WithCancel(bg)
	var waiters sync.WaitGroup
	for _, name := range names {
		mu := m.Mutex(name)
		waiters.Go(func() { _, _ = mu.Acquire(ctx) })
	}
	for m.Counts()["default"].Waiting < n {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Second) // all wait, and the confirmations find their rhythm
	for b.Loop() {
		start, client, server, calls := time.Now(), cpu(), redisCPU(b, other), scriptCalls(b, other)
		time.Sleep(window)
		took := time.Since(start).Seconds()
		b.ReportMetric(100*(cpu()-client)/took, "client-%core")
		b.ReportMetric(100*(redisCPU(b, other)-server)/took, "redis-%core")
		b.ReportMetric((scriptCalls(b, other)-calls)/took, "commands/s")
	}
	b.ReportMetric(float64(settled()-before)/float64(n), "B/key")
	b.ReportMetric(0, "ns/op")
	cancel()
	waiters.Wait()
}

// inLine has somebody else hold all the keys, and so many others wait for each. Nobody confirms
// those, and while a lock is held nobody minds.
func inLine(b *testing.B, other *redis.Client, names []string, ahead int) {
	pipe, alive := other.Pipeline(), time.Now().Add(time.Hour).UnixMilli()
	for _, name := range names {
		pipe.HSet(bg, name, "holder:1700000000000000", "1")
		pipe.PExpire(bg, name, time.Hour)
		line := "anteroom:line:{" + name + "}"
		for i := 1; i <= ahead; i++ {
			pipe.HSet(bg, line, ":", fmt.Sprintf("1 %d %d %d 1", i, i, alive), fmt.Sprint("cother", i), i,
				fmt.Sprint("p", i), fmt.Sprintf("other%d 1700000000000000 2000 %d word", i, alive))
		}
		if ahead > 0 {
			pipe.PExpire(bg, line, time.Hour)
		}
	}
	_, err := pipe.Exec(bg)
	ok(b, err)
}
