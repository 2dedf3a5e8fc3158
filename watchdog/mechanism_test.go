package watchdog_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// The two halves of the connection check are independent: after a PING that failed
// delivery is not asked about.
// What Redis said is apart from our words, which are shown as they are.
func TestVerdict_QuotesNobody(t *testing.T) {
	said := errors.New("ERR no such key: customer:anna")
	for reason, v := range map[string]wd.Verdict{
		"PING failed":                        wd.CheckConnection(time.Now(), wd.Probe{PingErr: said}),
		"a published message did not arrive": wd.CheckConnection(time.Now(), wd.Probe{DeliveryErr: said}),
		"Redis did not answer":               wd.CheckLockStatus(time.Now(), wd.Facts{}, wd.Status{Err: said}),
	} {
		if v.Reason != reason || v.Err != said {
			t.Errorf("%q, %v: want the reason %q and what Redis said", v.Reason, v.Err, reason)
		}
	}
}

func TestCheckConnection_EachHalf(t *testing.T) {
	t.Parallel()
	now, broken := time.Now(), errors.New("broken")
	expect(t, wd.CheckConnection(now, wd.Probe{PingErr: broken}), wd.Connection, wd.Unhealthy, wd.RedisUnreachable)
	expect(t, wd.CheckConnection(now, wd.Probe{DeliveryErr: broken}), wd.Connection, wd.Unhealthy, wd.DeliveryDead)
}

// slow is a world that holds the Watchdog's loop up.
type slow struct {
	*world
	pause atomic.Int64
}

func (s *slow) Renewals() wd.RenewalStats {
	time.Sleep(time.Duration(s.pause.Swap(0)))
	return s.world.Renewals()
}

// TestWatchdog_I2_AnAnswerThatLayAround: a failed PING comes back while the loop is held
// up, and is checked long after. That may be this process' own fault, and is no verdict;
// the next one is.
func TestWatchdog_I2_AnAnswerThatLayAround(t *testing.T) {
	var source *slow
	edit := func(w *world, cfg *wd.Config) {
		source = &slow{world: w}
		cfg.Source = source
		w.ping = func(context.Context) error {
			time.Sleep(600 * time.Millisecond) // longer than a tick
			return errors.New("broken")
		}
	}
	run(t, edit, func(t *testing.T, w *world, _ *wd.Watchdog) {
		pass(700 * time.Millisecond) // the first tick has asked
		source.pause.Store(int64(6 * time.Second))
		pass(6500 * time.Millisecond) // the second one was held up until the 7th second
		w.want(t, 0, "found")
		pass(1100 * time.Millisecond)
		w.want(t, 1, "found 0 redis_unreachable")
	})
}

// TestWatchdog_I2_ALateLoopIsExcused: the tick is a little late, and the renewal loop, of
// the same process, as late. It is not restarted for that.
func TestWatchdog_I2_ALateLoopIsExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := wd.New(w.config())
		defer d.Stop()
		start := time.Now()
		w.stats = wd.RenewalStats{LoopLastRound: start, NextDue: start.Add(time.Second)}
		pass(4500 * time.Millisecond) // due for 3.5 s, more than half a period
		wd.Round(d, time.Now(), 2*time.Second)
		w.want(t, 0, "found")
		w.want(t, 0, "restart")
		pass(3 * time.Second) // and now it stops
		wd.Round(d, time.Now(), 2*time.Second)
		w.want(t, 1, "found 0 renewal_stalled")
	})
}
