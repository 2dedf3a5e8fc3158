package watchdog_test

import (
	"context"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// halves is Redis on two servers: the holds with odd numbers live on one that can hang.
type halves struct {
	*world
	hangs bool                 // guarded by world.mu, as asked is
	asked map[uint64]time.Time // last, with an answer
}

func (s *halves) Status(ctx context.Context, holds []wd.Facts) []wd.Status {
	answers, silent := make([]wd.Status, len(holds)), false
	s.do(func() {
		for i, f := range holds {
			if s.hangs && f.ID%2 == 1 {
				silent = true
				continue
			}
			s.asked[f.ID], answers[i] = time.Now(), good()
		}
	})
	if silent {
		<-ctx.Done()
	}
	return answers
}

// TestWatchdog_I4_AServerThatHangsStarvesNobody_Lab: what gets no answer is asked again and
// again, and a question has room for some thousand holds; the others have their turn.
func TestWatchdog_I4_AServerThatHangsStarvesNobody_Lab(t *testing.T) {
	s := &halves{asked: map[uint64]time.Time{}}
	run(t, func(w *world, c *wd.Config) { s.world, c.Prober = w, s }, func(t *testing.T, w *world, _ *wd.Watchdog) {
		const n = 10_000
		for id := uint64(1); id <= n; id++ {
			w.add(fixedHold(id))
		}
		pass(20 * time.Second)
		w.do(func() { s.hangs = true })
		pass(10 * time.Second)
		from := time.Now()
		pass(20 * time.Second)
		w.do(func() {
			for id := uint64(2); id <= n; id += 2 {
				if s.asked[id].Before(from) {
					t.Fatalf("hold %d was not asked about in four periods", id)
				}
			}
		})
	})
}

// fixedHold is a hold that is never renewed.
func fixedHold(id uint64) wd.Facts {
	f := hold(id)
	f.Fixed, f.Lease, f.Deadline = true, time.Hour, f.Since.Add(time.Hour)
	return f
}

// TestWatchdog_FixedHoldsAreAskedAboutTogether: holds that were taken at any moment meet at
// ticks, and share their questions there.
func TestWatchdog_FixedHoldsAreAskedAboutTogether(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, _ *wd.Watchdog) {
		for id := uint64(1); id <= 1000; id++ {
			w.add(fixedHold(id))
			time.Sleep(7 * time.Millisecond)
		}
		pass(20 * time.Second)
		moments, asked := map[time.Time]bool{}, 0
		w.answer(func(context.Context, wd.Facts) wd.Status {
			moments[time.Now()] = true
			asked++
			return good()
		})
		pass(50 * time.Second)
		w.do(func() {
			if asked < 9_000 || len(moments) > 110 {
				t.Errorf("%d questions about %d holds in ten periods of ten ticks", len(moments), asked)
			}
		})
	})
}
