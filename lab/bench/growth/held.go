package growth

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The figures of held locks.
const (
	Renewals  measure.Figure = "renewals"                 // in the window
	Late      measure.Figure = "renewals_late"            // more than a sixth of the lease overdue
	Failed    measure.Figure = "renewals_failed"          // without an answer, or refused
	InTime    measure.Figure = "renewals_in_time_percent" // of those of the window
	Lost      measure.Figure = "locks_lost"               // of all N, until their release
	LeastLeft measure.Figure = "lease_left_least_s"       // of the latest renewal
	TakenPerS measure.Figure = "acquisitions_per_s"       // while they were taken, by 64 goroutines
	FreedPerS measure.Figure = "releases_per_s"           // while they were released, by as many
)

func key(prefix, kind string, i int) string { return fmt.Sprintf("%s:%s:%d", prefix, kind, i) }

// settled is the time after the last acquisition by which every lock has been renewed and checked.
const settled = 15 * time.Second

// calmDown lets the effects of taking N locks pass, so that the window measures held locks: garbage, the first check
// of each, renewals in the order of acquisition. A window shorter than that sees no renewals in any case.
func calmDown(window time.Duration) {
	time.Sleep(min(settled, 2*window))
	runtime.GC()
}

// held holds N locks for a while.
func held(ctx context.Context, l *child.Link, plan Plan) error {
	if plan.Library == library.Rueidislock {
		return heldByPeer(ctx, l, plan)
	}
	m, err := newManager(plan.Addr, plan.Library == library.AnteroomFair)
	if err != nil {
		return err
	}
	if err := m.warm(plan.Prefix); err != nil {
		return err
	}
	holds := make([]*anteroom.Hold, plan.N)
	before := weigh()
	began := time.Now()
	err = each(plan.N, func(i int) (err error) {
		holds[i], err = m.Mutex(key(plan.Prefix, "held", i)).Acquire(ctx)
		return err
	})
	if err != nil {
		return err
	}
	taken := float64(plan.N) / time.Since(began).Seconds()
	f := weigh().per(before, plan.N).Add(measure.Figures{TakenPerS: taken})
	calmDown(plan.For)
	if err := ready(l, report{Figures: f, Sends: sends()}); err != nil {
		return err
	}
	m.reset()
	if err := l.Send(report{Figures: look(plan.For).Add(m.renewals())}); err != nil {
		return err
	}
	end := measure.Figures{}
	began = time.Now()
	err = each(plan.N, func(i int) error {
		if err := holds[i].Release(ctx); err != nil && !errors.Is(err, anteroom.ErrLost) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	end[FreedPerS] = float64(plan.N) / time.Since(began).Seconds()
	end[Lost] = float64(m.lost.Load())
	if err := l.Send(report{Figures: end}); err != nil {
		return err
	}
	return m.close()
}

// renewals are the figures of the renewals since reset.
func (m manager) renewals() measure.Figures {
	renewed, failed, late := float64(m.renewed.Load()), float64(m.failed.Load()), float64(m.late.Load())
	f := measure.Figures{Renewals: renewed, Failed: failed, Late: late}
	if renewed > 0 {
		f[LeastLeft] = time.Duration(m.leastLeft.Load()).Seconds()
	}
	if renewed+failed > 0 {
		f[InTime] = 100 * (renewed - late) / (renewed + failed)
	}
	return f
}

// heldByPeer is the same with a library that renews by itself and does not report its renewals.
func heldByPeer(ctx context.Context, l *child.Link, plan Plan) error {
	lib, err := library.For(plan.Library, library.Alone)
	if err != nil {
		return err
	}
	c, err := lib.Open(plan.Addr)
	if err != nil {
		return err
	}
	err = each(2000, func(i int) error {
		h := c.Handle(key(plan.Prefix, "warm", i))
		if err := h.Lock(ctx); err != nil {
			return err
		}
		return h.Unlock()
	})
	if err != nil {
		return err
	}
	handles := make([]library.Handle, plan.N)
	before := weigh()
	began := time.Now()
	err = each(plan.N, func(i int) error {
		handles[i] = c.Handle(key(plan.Prefix, "held", i))
		return handles[i].Lock(ctx)
	})
	if err != nil {
		return err
	}
	f := weigh().per(before, plan.N).Add(measure.Figures{TakenPerS: float64(plan.N) / time.Since(began).Seconds()})
	calmDown(plan.For)
	if err := ready(l, report{Figures: f, Sends: lib.Sends}); err != nil {
		return err
	}
	if err := l.Send(report{Figures: look(plan.For)}); err != nil {
		return err
	}
	began = time.Now()
	if err := each(plan.N, func(i int) error { return handles[i].Unlock() }); err != nil {
		return err
	}
	if err := l.Send(report{Figures: measure.Figures{FreedPerS: float64(plan.N) / time.Since(began).Seconds()}}); err != nil {
		return err
	}
	return c.Close()
}
