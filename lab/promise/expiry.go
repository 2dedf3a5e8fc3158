package promise

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// Outage is how the holders of an expiry round lose Redis.
type Outage uint8

const (
	// CutOff: the holders' connections swallow everything, in both directions. Redis and the rival do not notice.
	CutOff Outage = iota
	// Stopped: Redis itself is stopped by SIGSTOP, for everybody, and continues when the last lease has just ended.
	// The rival's attempt is waiting by then.
	Stopped
)

// Expiry takes n locks, makes the holders lose Redis and a rival hammer the keys. The figure is told − grant to the
// rival; it must not be above zero. A hold that answers "held" to a question asked after that grant breaks the
// promise.
func Expiry(lib Library, s *testredis.Server, n int, how Outage) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*lib.Lease+2*patience)
	defer cancel()
	r, err := begin(ctx, lib, s, n)
	if err != nil {
		return nil, err
	}
	defer r.end()
	rdb := rival(s.Addr())
	defer rdb.Close()
	if err := seize.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	clock := clock{time.Now()}
	w := watch(r.holds, len(lib.Questions), watchPause)
	began := now()
	granted, err := r.lose(ctx, how, func() ([]int64, error) { return hammer(ctx, rdb, r.keys) })
	if err == nil {
		wait, cancel := context.WithTimeout(ctx, patience)
		w.told(wait)
		cancel()
	}
	seen := w.finish()
	if err != nil {
		return nil, err
	}
	if err := clock.check(); err != nil {
		return nil, err
	}
	samples := make([]Sample, n)
	for i, see := range seen {
		samples[i] = sample(see, began, granted[i])
		samples[i].judge(see.LastHeld > granted[i])
	}
	return samples, flush(ctx, s)
}

// lose takes Redis from the holders while the rival runs.
func (r *round) lose(ctx context.Context, how Outage, rival func() ([]int64, error)) (granted []int64, err error) {
	if how == CutOff {
		r.net.BlackHole()
		return rival()
	}
	r.server.Pause()
	done := make(chan struct{})
	go func() {
		defer close(done)
		granted, err = rival()
	}()
	slept := sleep(ctx, r.lib.Lease+r.lib.Lease/20)
	r.server.Resume()
	<-done
	if err == nil {
		err = slept
	}
	return granted, err
}

// sample evaluates what was seen of a hold since began; the figure counts from zero.
func sample(see sighting, began, zero int64) Sample {
	s := Sample{ByContext: see.Signal == byContext, Revived: see.Revived}
	switch {
	case see.FirstLost != 0 && see.FirstLost < began:
		s.Early = true
	case see.FirstLost != 0:
		s.Told, s.Figure = true, figure(zero, see.FirstLost)
	}
	return s
}

// judge determines whether the promise was broken, for a hold that was not lost before.
func (s *Sample) judge(broken bool) {
	s.Judged, s.Broken = true, broken && !s.Early
}
