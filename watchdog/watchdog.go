package watchdog

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/heap"
)

// Watchdog checks every hold of one process. New makes it; the zero value is of no
// use. All its methods are safe for concurrent use.
type Watchdog struct {
	cfg    Config
	ctx    context.Context // ends with Stop; the Prober's questions hang on it
	cancel context.CancelFunc
	wg     sync.WaitGroup // the loop and at most two questions

	// mu guards what the loop writes and others read: the map's shape and the verdicts.
	mu      sync.Mutex
	started bool
	stopped bool
	holds   map[uint64]*hold
	process hold // what concerns the process as a whole

	// The fields below belong to the loop alone, except for the answers' channels. epoch
	// and the channels are written once by Start.
	epoch     time.Time
	agenda    heap.Heap[*hold] // all holds, by the moment at which each is to be visited: see plan
	absent    []uint64         // those that had come at the last tick and were not listed: see update
	peak      int              // the most holds since the map was last made
	visits    [visitSize]due   // the holds that are visited together
	facts     [visitSize]Facts // of the same holds
	tick      time.Duration    // the present distance of ticks
	shortest  time.Duration    // the shortest period that was seen since paced
	before    time.Duration    // and in the period before that
	paced     time.Duration
	nextAll   time.Time // when the process as a whole is checked
	quiet     time.Time // until then renewals and holders are not accused
	suspect   time.Time // answers from before prove nothing: the wall clock jumped
	lastRound time.Time
	lastWall  time.Time
	scan      Goroutines
	lastScan  time.Time

	statuses     chan statusAnswer
	askingStatus bool
	asks         question // while askingStatus nobody changes it
	probes       chan Probe
	askingProbe  bool
	probeAsked   time.Time
	lateAt       time.Time // the last tick that came late
}

// New returns a Watchdog that does nothing until Start. It panics if Source, Prober or
// Actor is missing, because no later moment could reach the programmer.
func New(cfg Config) *Watchdog {
	if cfg.Source == nil || cfg.Prober == nil || cfg.Actor == nil {
		panic("watchdog: Config needs Source, Prober and Actor")
	}
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Watchdog{
		cfg: cfg, ctx: ctx, cancel: cancel,
		holds: make(map[uint64]*hold), shortest: cfg.Period, before: cfg.Period,
	}
}

// Start begins the checks. It does nothing when the Watchdog has been started or stopped
// before: a Watchdog has one life.
func (w *Watchdog) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.stopped {
		return
	}
	w.started = true
	w.epoch = time.Now()
	// Made here and not by New, so that they belong to the virtual-time bubble of the
	// one who starts.
	w.statuses, w.probes = make(chan statusAnswer), make(chan Probe)
	w.wg.Go(w.loop)
}

// Stop ends the loop and the questions under way, clears the alerts that are active, and
// waits until no goroutine is left and no callback will be called any more. It may be
// called before Start, repeatedly and concurrently; it must not be called from a callback.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.cancel()
	w.wg.Wait()
}

// Verdicts returns the last verdict of each check that has judged the hold, in the
// order of the checks; with id 0, those about the process as a whole. It returns nil for
// a hold that was not checked or has ended. The slice is the caller's.
func (w *Watchdog) Verdicts(id uint64) []Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &w.process
	if id != 0 {
		h = w.holds[id]
	}
	if h == nil {
		return nil
	}
	var verdicts []Verdict
	for c, at := range h.last {
		if check := Check(c); h.isSet(check) {
			now := h.concern(check)
			verdicts = append(verdicts, Verdict{Check: check, Health: now.health, Finding: now.finding, Reason: now.reason, Err: now.err, At: w.epoch.Add(at)})
		}
	}
	return verdicts
}

// Unhealthy returns the holds on which the last verdict of some check is unhealthy, in no
// order. It walks over all holds: meant for a person, not for a loop.
func (w *Watchdog) Unhealthy() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []uint64
	for id, h := range w.holds {
		if h.concerns != nil && slices.ContainsFunc(h.concerns.of[:], func(c concern) bool { return c.health == Unhealthy }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// loop is the Watchdog's one goroutine. In words: sleep until the next tick, the moment of a
// hold, or the next answer; in a round check all that is due and ask Redis about the holds that need it;
// judge answers as they come; at the end clear every alert.
func (w *Watchdog) loop() {
	defer w.clearAll()
	w.tick = tickFor(w.cfg.Period)
	w.lastRound, w.lastWall = w.epoch, w.cfg.wall(w.epoch)
	w.nextAll = w.epoch
	tick := w.epoch.Add(w.tick)
	due := tick
	timer := time.NewTimer(w.tick)
	defer timer.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case a := <-w.statuses:
			w.askingStatus = false
			w.judgeStatuses(a)
		case p := <-w.probes:
			w.askingProbe = false
			w.judgeProbe(time.Now(), p)
		case <-timer.C:
			now := time.Now()
			w.run(now, now.Sub(due))
			if !due.Before(tick) {
				tick = w.after(tick)
			}
		}
		due = w.nextRound(tick)
		timer.Reset(time.Until(due))
	}
}

// nextRound returns when the next round is: at the tick, or before it when the first hold is
// to be visited. While a question is open no other could be put, so the next is not early.
func (w *Watchdog) nextRound(tick time.Time) time.Time {
	soonest := w.soonest()
	if w.askingStatus || soonest >= w.since(tick) {
		return tick
	}
	return w.epoch.Add(max(soonest, w.since(w.lastRound)+breath))
}

// after returns when the tick after the one that was due at due comes. Ticks keep their
// distance however long a turn takes, so that holds meet at them. A turn that took longer than
// that is not taken for lateness, and what it missed is not caught up with a burst: the next
// tick counts from its end.
func (w *Watchdog) after(due time.Time) time.Time {
	now := time.Now()
	if next := due.Add(w.tick); next.After(now) {
		return next
	}
	return now.Add(w.tick)
}

// clearAll ends what is known about every hold when the checks have stopped. The loop has
// ended, so only Verdicts and Unhealthy may still read beside it.
func (w *Watchdog) clearAll() {
	for _, h := range w.holds {
		w.close(h, false)
	}
	w.close(&w.process, false)
	w.mu.Lock()
	clear(w.holds)
	w.mu.Unlock()
	w.agenda = heap.Heap[*hold]{}
}

// since turns a moment into the short form that is kept per hold.
func (w *Watchdog) since(t time.Time) time.Duration { return t.Sub(w.epoch) }

// aboutProcess returns the Facts of callbacks that speak of the whole process.
func (w *Watchdog) aboutProcess() *Facts {
	return &Facts{Period: w.cfg.Period, AlertThreshold: w.cfg.AlertThreshold}
}
