//go:build unix

package anteroom

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// BenchmarkCheck is one check: its processor time, and what checking costs of
// one processor with the default LongWait: every 5 s, or later if a check takes more than
// 50 ms.
//
//	go test -run '^$' -bench Check -benchtime 10x -count 5 ./sync
//
// The waiters have been there for a while, so every key with a waiter may be part of a
// deadlock: the costly case. Between two checks the caches are filled with something else,
// as a program would in 5 s.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name          string
		keys, waiters int
	}{
		{"100000-keys-held", 100_000, 0},
		{"1000-keys-100-waiters-each", 1000, 100},
		{"100000-keys-1-waiter-each", 100_000, 1},
		{"1-key-100000-waiters", 1, 100_000},
		{"2-keys-50000-waiters-each", 2, 50_000},
	} {
		b.Run(c.name, func(b *testing.B) { benchLook(b, c.keys, c.waiters) })
	}
}

func benchLook(b *testing.B, keys, waiters int) {
	s := newScene(b, Config{})
	s.m.cfg.LongWait = time.Hour // nothing is reported
	others := make([]uint64, waiters)
	for i := range keys {
		for j := range others {
			others[j] = uint64(keys + 1 + i*waiters + j)
		}
		s.key(fmt.Sprintf("order:%d", i), uint64(i+1), queue.NoNotify, others...)
	}
	s.l.Check(time.Now())
	other := make([]byte, 64<<20)
	b.ReportAllocs()
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		for i := 0; i < len(other); i += 64 {
			other[i]++
		}
		b.StartTimer()
		began := processorTime(b)
		s.l.Check(time.Now())
		took += processorTime(b) - began
	}
	took /= time.Duration(b.N)
	b.ReportMetric(took.Seconds()*1000, "cpu-ms/op")
	b.ReportMetric(100*took.Seconds()/(took+max(5*time.Second, 100*took)).Seconds(), "%core")
}

// processorTime is that of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWalk is for how long the mutex of a queue of 100,000 is held if a check
// walks it.
func BenchmarkWalk(b *testing.B) {
	s := newScene(b, Config{})
	others := make([]uint64, 100_000)
	for i := range others {
		others[i] = uint64(i + 2)
	}
	e := s.key("k", 1, queue.NoNotify, others...)
	ids := make([]uint64, 0, len(others))
	for b.Loop() {
		ids = e.Queue().AppendWaiting(ids[:0])
	}
}
