package watchdog_test

import (
	"context"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// TestWatchdog_I4_AQuestionWithoutAnAnswerIsNoWord: a removal behind one lost answer is
// reported one check after that answer's time is over, not a whole period later.
func TestWatchdog_I4_AQuestionWithoutAnAnswerIsNoWord(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Fixed, f.RenewalTime, f.Deadline = true, 0, time.Now().Add(time.Hour)
		var removed time.Time
		questions := 0
		w.answer(func(ctx context.Context, _ wd.Facts) wd.Status {
			switch questions++; questions {
			case 1:
				removed = time.Now() // right after Redis has answered
				return good()
			case 2:
				<-ctx.Done() // its answer is lost
				return wd.Status{Err: ctx.Err()}
			}
			return wd.Status{Answered: true, Gone: true}
		})
		w.do(func() { w.act = func(_ string, id uint64, _ wd.Finding) bool { w.end(id); return true } })
		w.add(f)
		pass(20 * time.Second)
		w.want(t, 1, "found 1 field_gone")
		// W until it is asked, C without an answer, and the next check.
		bound := 5*time.Second + time.Second + 500*time.Millisecond
		if told := w.askedAt[2].Sub(removed); told > bound {
			t.Errorf("found %v after the removal, want at most %v", told, bound)
		}
	})
}
