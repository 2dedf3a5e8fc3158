package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// worker is one process of the demonstration, or its substitute in this one: a Manager and a connection pool of its
// own, and the goroutines that use the locks.
//
// Its methods are safe for concurrent use; stop ends it for good.
type worker struct {
	plan   plan
	locks  map[string]lock      // by key, fixed
	rdb    *redis.Client        // closed by stop
	m      *anteroom.Manager    // closed by stop
	meter  *metrics.Collector   // the Observer of m, and of the Managers of forget
	reg    *prometheus.Registry // private: nothing is registered for the whole program
	res    resource             // what the locks protect
	report func(Report)         // receives events; called by several goroutines
	page   *debug.Page          // shows m, and the Managers of forget
	ctx    context.Context      // ends when stop begins
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// newWorker creates a worker that does not run yet, and takes over rdb. Events go to report, which must not block for
// long, and to page.
func newWorker(p plan, rdb *redis.Client, res resource, report func(Report), page *debug.Page) (*worker, error) {
	meter, err := metrics.New(metrics.Config{Detail: true, ConstLabels: prometheus.Labels{"process": fmt.Sprint(p.Process)}})
	if err != nil {
		return nil, err
	}
	w := &worker{
		plan: p, locks: map[string]lock{}, rdb: rdb, res: res, report: report, page: page,
		meter: meter, reg: prometheus.NewRegistry(),
	}
	for _, k := range demoLocks() {
		w.locks[p.Prefix+k.name] = k
	}
	if w.m, err = w.manager(w.event); err != nil {
		return nil, err
	}
	meter.Attach(w.m)
	if err := w.reg.Register(meter); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// manager creates a Manager on the worker's connection. If it is closed before the run ends, it must be taken off the
// page.
func (w *worker) manager(onEvent func(observe.Event)) (*anteroom.Manager, error) {
	m, err := anteroom.NewManager(w.rdb, anteroom.Config{
		// Events are printed by the demonstration itself, once and in plain words.
		Logger:   slog.New(slog.DiscardHandler),
		Observer: w.meter.Observer(),
		OnEvent: func(e observe.Event) {
			w.page.OnEvent(e)
			onEvent(e)
		},
		RecordCallSites: true,
		CommandTimeout:  commandTimeout,
		Defaults:        anteroom.LockConfig{WatchdogPeriod: watchdogPeriod},
	})
	if err == nil {
		w.page.Attach(m)
	}
	return m, err
}

func (w *worker) event(e observe.Event) {
	w.report(Report{
		Process: w.plan.Process, Kind: e.Kind, Key: e.Key, Reason: e.Reason, Check: e.Check, Text: e.Text,
	})
}

// start starts the goroutines. They run until stop, or until an error that will not end by itself, which is
// reported as a problem.
func (w *worker) start() error {
	for _, k := range w.locks {
		round, err := w.rounds(k)
		if err != nil {
			return err
		}
		for range k.goroutines {
			w.wg.Go(func() {
				for w.ctx.Err() == nil {
					if err := round(); isFinal(err) {
						// Waiting does not help; the same answer would come again.
						w.report(Report{Process: w.plan.Process, Kind: kindProblem, Key: w.plan.Prefix + k.name, Text: err.Error()})
						return
					}
				}
			})
		}
	}
	return nil
}

// rounds returns what a goroutine repeats with k.
func (w *worker) rounds(k lock) (func() error, error) {
	if k.shared != nil {
		rw, err := w.m.NewRWMutex(k.config(w.plan.Prefix))
		return func() error { return k.shared(w, rw) }, err
	}
	mu, err := w.m.NewMutex(k.config(w.plan.Prefix))
	return func() error { return k.round(w, mu) }, err
}

// locked is the drop-in use, as a sync.Locker. Lock cannot be cancelled, so the end of the run waits for the current
// rounds.
func (w *worker) locked(mu *anteroom.Mutex) error {
	mu.Lock()
	w.increment(mu.Key(), 0, 0)
	mu.Unlock()
	pause(w.ctx, rand.N(restTime))
	return nil
}

// acquired is the same with Acquire, which ends when the run does. A fault explains an error of Release; the library
// continues the release by itself.
func (w *worker) acquired(mu *anteroom.Mutex) error {
	hold, err := mu.Acquire(w.ctx)
	if err != nil {
		return err
	}
	w.increment(mu.Key(), 0, 0)
	err = w.release(hold)
	pause(w.ctx, rand.N(restTime))
	return err
}

// longJob holds the lock through several renewals, and through outages of the server. If the lock is lost all the
// same, ctx ends and the job with it, too late to be harmless: the ledger sees the second holder.
func (w *worker) longJob(mu *anteroom.Mutex) error {
	return mu.Do(w.ctx, func(ctx context.Context) error {
		pass := w.res.enter(mu.Key(), 0)
		pause(ctx, time.Second+rand.N(time.Second))
		w.res.write(pass.Visit, pass.Value+1)
		w.res.leave(pass.Visit)
		return nil
	})
}

// priced mostly reads, beside others that read, and sometimes writes, alone.
func (w *worker) priced(rw *anteroom.RWMutex) error {
	defer pause(w.ctx, rand.N(restTime))
	if rand.N(10) == 0 {
		return rw.Do(w.ctx, func(context.Context) error {
			w.increment(rw.Key(), 0, 0)
			return nil
		})
	}
	return rw.RDo(w.ctx, func(ctx context.Context) error {
		pass := w.res.enter(rw.Key(), reads)
		pause(ctx, rand.N(5*time.Millisecond))
		w.res.leave(pass.Visit)
		return nil
	})
}

// again uses a lock that lingers. Process 1 takes it again and again, without a command. Process n comes every n²
// seconds: after its visit the lock does not linger for up to a second, so any number of them leaves process 1 time.
func (w *worker) again(mu *anteroom.Mutex) error {
	mu.Lock()
	w.increment(mu.Key(), 0, 0)
	mu.Unlock()
	next := rand.N(10 * time.Millisecond)
	if n := w.plan.Process; n > 1 {
		next = time.Duration(n*n) * time.Second
	}
	pause(w.ctx, next)
	return nil
}

// fenced presents the token to the resource, which makes a lock that can be lost safe. The impatient process tries
// only when it has nothing else to do, and so is the first at a lock that was deleted, while the patient ones still
// wait for its release.
func (w *worker) fenced(mu *anteroom.Mutex) error {
	defer pause(w.ctx, 10*time.Millisecond+rand.N(20*time.Millisecond))
	var hold *anteroom.Hold
	var err error
	if w.plan.Impatient {
		hold, err = mu.TryAcquire(w.ctx)
	} else {
		hold, err = mu.Acquire(w.ctx, anteroom.Wait(2*time.Second))
	}
	if err != nil {
		return err
	}
	w.increment(mu.Key(), tokenOf(hold), time.Millisecond+rand.N(4*time.Millisecond))
	return w.release(hold)
}

// release waits for the answer no longer than a run can afford at its end; the library continues an unconfirmed
// release in the background.
func (w *worker) release(hold *anteroom.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	return hold.Release(ctx)
}

// tokenOf returns what the hold of a fenced lock presents to its resource, which refuses 0.
func tokenOf(hold *anteroom.Hold) int64 {
	token, _ := hold.Token()
	return token
}

// increment is one protected section: read, let others run, write what was read plus one. Two concurrent sections
// lose an update.
func (w *worker) increment(key string, token int64, work time.Duration) {
	pass := w.res.enter(key, token)
	pause(w.ctx, work)
	w.res.write(pass.Visit, pass.Value+1)
	w.res.leave(pass.Visit)
}

// isFinal reports whether err will remain after a retry, for example a missing permission; errors explained by a
// fault or by the end of the run, and nil, are not final.
func isFinal(err error) bool {
	passing := []error{
		anteroom.ErrNotAcquired, anteroom.ErrUnavailable, anteroom.ErrUnknown, anteroom.ErrLost,
		context.Canceled, context.DeadlineExceeded,
	}
	return err != nil && !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) })
}

// pause waits for d or until ctx ends. A d of 0 only lets others run, which a protected section needs for an overlap
// to show.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// restTime is the longest pause of a goroutine between two visits.
const restTime = 100 * time.Millisecond

// stop ends the goroutines and closes the Manager, both bounded by leaveTime and ctx. A caller parked in Lock while
// Redis is gone for good stays parked, and is named in the error. The metrics are the last ones.
func (w *worker) stop(ctx context.Context) ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	w.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.wg.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	err := w.m.Close(ctx)
	families, lost := w.reg.Gather()
	return families, errors.Join(err, w.rdb.Close(), lost)
}

func (w *worker) gather(context.Context) ([]*dto.MetricFamily, error) { return w.reg.Gather() }
