package history

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// suffer injects a fault for a time, and ends it.
func (w *worker) suffer(kind FaultKind, d time.Duration) error {
	switch kind {
	case Starved:
		starve(d)
		return nil
	case StopTheWorld:
		return stopTheWorld(d)
	}
	defer w.lines.Heal()
	end := time.After(d)
	again := time.NewTicker(40 * time.Millisecond)
	defer again.Stop()
	if kind == Latency {
		w.lines.Latency(100*time.Millisecond, 60*time.Millisecond, w.plan.Seed)
	}
	for {
		switch kind {
		case ReplyLost:
			w.lines.CutReplies(2, 0)
		case ReplyLate:
			w.lines.HoldReplies()
		case HalfOpen:
			w.lines.HalfOpen(faultnet.All) // including connections opened since the last time
		case Reset:
			w.lines.Reset(faultnet.All)
		case BlackHole:
			w.lines.BlackHole()
		case Latency:
		default:
			return errors.New("no such fault: " + string(kind))
		}
		select {
		case <-end:
			return nil
		case <-again.C:
		}
	}
}

// starve takes every processor from the goroutines of this process, and most of the machine from others, by
// goroutines that never wait.
func starve(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range 16 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := 0; n%(1<<20) != 0 || ctx.Err() == nil; n++ {
				_ = n
			}
		})
	}
	wg.Wait()
}

// stopTheWorld stops every goroutine of this process for about d, like a long garbage collection. A search through
// memory is one call that the runtime cannot interrupt; a stop of the world meanwhile stops all the other goroutines
// first, and waits. The memory is never written, so it is one page of zeros, however long.
func stopTheWorld(d time.Duration) error {
	const size = 1 << (30 + ^uint(0)>>63<<1) // 4 GiB, or what a 32-bit process has room for
	zeros, err := mapZeros(size)
	if err != nil {
		return err
	}
	defer func() { _ = unmap(zeros) }()
	search := 64 << 20
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		searching := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			<-searching
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
		})
		close(searching)
		begin := time.Now()
		bytes.IndexByte(zeros[:search], 1)
		took := time.Since(begin)
		wg.Wait()
		// The next search covers the rest in one piece, as far as the memory reaches.
		search = int(min(size, max(1<<20, float64(search)*float64(time.Until(end))/float64(took+1))))
	}
}
