package watchdog_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// renewer renews one hold as the RenewalManager does. It
// notes when it is notified that the field is gone.
type renewer struct {
	w       *world
	rng     *rand.Rand
	fails   float64       // the share of renewals without an answer
	removed time.Time     // when the field vanishes
	told    time.Time     // zero: by nobody yet; guarded by w.mu
	takes   time.Duration // at most, for an answer
}

const answerTime = time.Second

// part returns a random part of a time.
func part(rng *rand.Rand, of time.Duration) time.Duration {
	return time.Duration(rng.Float64() * float64(of))
}

func (r *renewer) pause(most time.Duration) time.Duration { return part(r.rng, most) }

// tell notes that the holder was notified. The caller has w.mu.
func (r *renewer) tell() {
	if r.told.IsZero() {
		r.told = time.Now()
	}
}

func (r *renewer) run(ctx context.Context, f wd.Facts) {
	due := f.Since.Add(f.RenewalTime*8/10 + r.pause(f.RenewalTime*2/10))
	for {
		r.w.do(func() { r.w.due[f.ID] = due })
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due) - r.pause(50*time.Millisecond)): // it shares a batch
		}
		sent, answer := time.Now(), r.pause(r.takes)
		executed := sent.Add(r.pause(answer))
		time.Sleep(answer)
		due = time.Now().Add(f.RenewalTime / 4 * 3 / 4)
		switch {
		case r.rng.Float64() < r.fails:
		case !executed.Before(r.removed):
			r.w.do(r.tell)
			return
		default:
			due = sent.Add(f.RenewalTime)
			r.w.change(f.ID, false, func(f *wd.Facts) {
				f.LastConfirmed, f.Deadline = sent, sent.Add(f.Lease*19/20)
			})
		}
	}
}

// removal lets a field vanish at a random moment and returns how long after that its holder
// was notified.
func removal(t *testing.T, seed uint64, fails float64, edit func(*wd.Facts)) (took time.Duration) {
	t.Helper()
	run(t, nil, func(t *testing.T, w *world, _ *wd.Watchdog) {
		r := &renewer{w: w, rng: rand.New(rand.NewPCG(seed, 1)), fails: fails, takes: answerTime}
		time.Sleep(r.pause(500 * time.Millisecond)) // the ticks have any place
		f := hold(1)
		f.Lease = time.Hour // nothing else tells
		f.Deadline = f.Since.Add(f.Lease)
		edit(&f)
		asked := rand.New(rand.NewPCG(seed, 2)) // the questions have a goroutine of their own
		r.removed = f.Since.Add(r.pause(40 * time.Second))
		w.add(f)
		w.do(func() {
			if w.alive[1] = false; !f.Fixed {
				w.due[1] = f.Since.Add(f.RenewalTime)
			}
			w.status = func(context.Context, wd.Facts) wd.Status {
				answer := part(asked, answerTime)
				executed := part(asked, answer)
				time.Sleep(executed)
				s := good()
				if !time.Now().Before(r.removed) {
					s = wd.Status{Answered: true, Gone: true}
				}
				time.Sleep(answer - executed)
				return s
			}
			w.act = func(action string, _ uint64, _ wd.Finding) bool {
				if action == "lose" {
					r.tell()
				}
				return true
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		if !f.Fixed {
			go r.run(ctx, f)
		}
		pass(time.Minute)
		cancel()
		time.Sleep(2 * answerTime)
		w.do(func() { took = r.told.Sub(r.removed) })
	})
	return took
}

// TestWatchdog_I4_RemovalIsNoticedWithinItsBound_Lab: whatever the moment, and however long Redis
// takes to answer, a removal is reported a period and an answer after it; where renewals fail,
// a tick later.
func TestWatchdog_I4_RemovalIsNoticedWithinItsBound_Lab(t *testing.T) {
	const period, tick = 5 * time.Second, 500 * time.Millisecond
	for name, c := range map[string]struct {
		fails float64
		bound time.Duration
		edit  func(*wd.Facts)
	}{
		"default":           {0, period + answerTime, func(*wd.Facts) {}},
		"fixed":             {0, period + answerTime, func(f *wd.Facts) { f.Fixed = true }},
		"renewed often":     {0, period + answerTime, func(f *wd.Facts) { f.RenewalTime = 4 * time.Second }},
		"renewed seldom":    {0, period + answerTime, func(f *wd.Facts) { f.RenewalTime = 23 * time.Second }},
		"failing":           {0.5, period + tick + answerTime, func(*wd.Facts) {}},
		"failing, often":    {0.5, period + tick + answerTime, func(f *wd.Facts) { f.RenewalTime = 4 * time.Second }},
		"hardly ever comes": {1, period + tick + answerTime, func(*wd.Facts) {}},
	} {
		t.Run(name, func(t *testing.T) {
			var worst time.Duration
			for seed := range uint64(300) {
				took := removal(t, seed, c.fails, c.edit)
				if took < 0 || took > c.bound {
					t.Errorf("seed %d: told %v after the removal, want at most %v", seed, took, c.bound)
				}
				worst = max(worst, took)
			}
			t.Logf("worst of 300: %v of %v", worst, c.bound)
		})
	}
}

// TestWatchdog_I4_AQuestionWaitsForTheRenewal: with renewals every two periods there is one
// question between two of them, though the answer to a renewal takes its time.
func TestWatchdog_I4_AQuestionWaitsForTheRenewal(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, _ *wd.Watchdog) {
		r := &renewer{w: w, rng: rand.New(rand.NewPCG(1, 1)), takes: 200 * time.Millisecond}
		f := hold(1)
		r.removed = f.Since.Add(time.Hour)
		w.add(f)
		w.do(func() { w.alive[1], w.due[1] = false, f.Since.Add(f.RenewalTime) })
		ctx, cancel := context.WithCancel(t.Context())
		go r.run(ctx, f)
		pass(103 * time.Second)
		cancel()
		time.Sleep(time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := w.asked[1]; n < 10 || n > 11 {
			t.Errorf("Redis was asked %d times in ten renewals", n)
		}
	})
}
