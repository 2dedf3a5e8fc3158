package partition

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
	anteroom "github.com/anteroom/anteroom/sync"
)

// On a busy machine these are longer, up to three times.
var (
	lease   = min(pace.Scale(3*time.Second), 9*time.Second) // L
	renewal = lease / 3                                     // R
	margin  = lease / 20                                    // M
	look    = lease / 6                                     // W
	command = min(lease/6, time.Second)                     // C
	// busy is what a busy machine may add to the bounds here. The judge has its own slack, which is less.
	busy = min(pace.Scale(2*time.Second), 20*time.Second)
)

// through is how long callers may take to return after everything was healed.
const through = 15 * time.Second

// The keys of a trial: some are kept by one client for as long as it has them, first here or first there; the others
// are for the mixed load.
var (
	here  = []int{0, 1, 2, 3}
	there = []int{4, 5, 6, 7}
	mixed = []int{8, 9, 10, 11}
	// units makes one of each a Semaphore that one holder fills, and another mixed one an RWMutex.
	units = []int64{3: 1, 7: 1, 10: history.AllUnits, 11: 1}
)

// trial is one partition of a site, with clients on hosts of their own.
type trial struct {
	*site
	t     *testing.T
	dir   string
	reg   *history.Register
	locks []anteroom.LockConfig
	side  map[*history.Process]bool // by client: it is on the side that is cut off
	// What happened, for the judge.
	removals []history.Removal
	at       int64 // the cut
}

// trial begins one. lease is that of the kept locks.
func (s *site) trial(t *testing.T, lease time.Duration) *trial {
	t.Helper()
	s.ready()
	measured(t)
	x := &trial{site: s, t: t, dir: t.TempDir(), side: map[*history.Process]bool{}}
	for i := range len(here) + len(there) + len(mixed) {
		x.locks = append(x.locks, anteroom.LockConfig{
			Key: fmt.Sprint(tag, t.Name(), i), LeaseTime: lease, RenewalTime: renewal, WatchdogPeriod: look, Fencing: i%2 == 0,
		})
	}
	x.reg = history.NewRegister(history.NewLocks(x.locks, units...))
	stop, err := history.ServeRegister(x.reg, filepath.Join(x.dir, "register"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return x
}

// measured measures again and again how slow the machine is, until the test ends.
func measured(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				pace.Factor()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}

// client starts a process on a host. off: on the side that will be cut off.
func (x *trial) client(off bool, host testredis.Host, load history.Load, goroutines int, keys ...int) *history.Process {
	x.t.Helper()
	proc := uint32(len(x.side) + 1)
	p, err := history.Start(history.Plan{
		Proc: proc, Seed: uint64(proc), Namespace: host.Namespace, Addrs: x.addrs, Master: x.name, Dials: 1,
		Log: history.LogPath(x.dir, proc), Register: filepath.Join(x.dir, "register"),
		Locks: x.locks, Units: units, Keys: keys, Goroutines: goroutines, Load: load,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(p.Kill)
	x.side[p] = off
	return p
}

// present returns the master, when there is one.
func (x *trial) present() (n *testredis.Server) {
	x.t.Helper()
	eventually(x.t, demotion, "there is a master", func() bool {
		n = x.master()
		return n != nil
	})
	return n
}

// clients starts two sides: each keeps keys and waits for those of the other, and works on the mixed ones.
func (x *trial) clients(off, on testredis.Host) {
	x.t.Helper()
	x.client(true, off, history.LoadKeep, len(here), here...)
	x.held(here)
	x.client(false, on, history.LoadKeep, len(here)+len(there), slices.Concat(there, here)...)
	x.held(there)
	x.client(true, off, history.LoadKeep, len(there), there...)
	x.client(true, off, history.LoadMixed, 4, mixed...)
	x.client(false, on, history.LoadMixed, 4, mixed...)
}

// held waits until somebody has each of the keys, and returns who.
func (x *trial) held(keys []int) (by []string) {
	x.t.Helper()
	eventually(x.t, through, "the keys are held", func() bool {
		n := x.master()
		if n == nil {
			return false // nodes that got no processor call each other dead
		}
		by = x.holders(n, keys)
		return !slices.Contains(by, "")
	})
	return by
}

func (x *trial) holders(n *testredis.Server, keys []int) (by []string) {
	for _, k := range keys {
		by = append(by, x.holder(n, x.locks[k].Key))
	}
	return by
}

// passed waits until others have the keys than those, according to that server.
func (x *trial) passed(n *testredis.Server, keys []int, from []string) {
	x.t.Helper()
	eventually(x.t, 3*lease+through, "others have the keys", func() bool {
		for i, who := range x.holders(n, keys) {
			if who == "" || who == from[i] {
				return false
			}
		}
		return true
	})
}

// removed records that keys may have been lost from then to now.
func (x *trial) removed(from, to int64, what string) {
	x.removals = append(x.removals, history.Removal{Key: history.AllKeys, From: from, To: to, What: what})
}

// outcome is what a trial has shown.
type outcome struct {
	lost []string // the holds that were, but for those of a fixed lease
	*history.Verdict
	told    []time.Duration // after the cut, of the locks that the cut-off side kept
	let     []time.Duration // after the cut, when others were let in to them
	last    time.Duration   // after the cut, when the last overlap ended
	through time.Duration
}

// finish ends the clients and judges both sides together, and each alone by what it knows of: the one that is cut off
// has lost nothing until healed, the other one nothing since elected.
func (x *trial) finish(healed, elected int64) *outcome {
	x.t.Helper()
	o := &outcome{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for p := range x.side {
		wg.Go(func() {
			ended := p.Ended()
			r, err := p.Stop(pace.Scale(through))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || ended {
				x.t.Errorf("client %d has ended by itself: %v", p.Plan.Proc, err)
			}
			for _, text := range append(r.Problems, r.Leaks...) {
				x.t.Error(text)
			}
			if r.Stuck > 0 {
				x.t.Errorf("%d callers are stuck", r.Stuck)
			}
			o.through = max(o.through, r.Through)
		})
	}
	wg.Wait()
	x.nothingLeft()
	all := x.history(x.removals, true, false)
	for _, h := range all.Holds() {
		if !h.Fixed && (h.Told != 0 || h.How == history.ReleasedLost) { // a fixed lease ends by itself
			o.lost = append(o.lost, fmt.Sprintf("lock %d: %s", h.Key, h.Story()))
		}
		x.figures(o, h)
	}
	o.Verdict = x.judged("both sides", all)
	if o.Overlaps > 0 {
		o.last = x.since(o.Until)
	}
	if x.removals == nil || healed == 0 {
		return o // judged without any excuse, or there were no two sides
	}
	until := x.removals[len(x.removals)-1].To
	x.judged("the side cut off", x.history([]history.Removal{{Key: history.AllKeys, From: healed, To: until, What: "healing"}}, true))
	x.judged("the other side", x.history([]history.Removal{{Key: history.AllKeys, From: x.at, To: elected + int64(lease), What: "failover"}}, false))
	return o
}

// nothingLeft waits until the master has nothing of this trial but fencing records. A lock whose release it has never
// seen remains until its lease ends.
func (x *trial) nothingLeft() {
	x.t.Helper()
	c, ctx := x.admin[x.present()], context.Background()
	eventually(x.t, x.locks[0].LeaseTime+through, "no key is left", func() bool {
		for it := c.Scan(ctx, 0, "*"+x.t.Name()+"*", 1000).Iterator(); it.Next(ctx); {
			if !strings.HasPrefix(it.Val(), "anteroom:fence:") {
				return false
			}
		}
		return true
	})
}

// history returns what clients of these sides have recorded.
func (x *trial) history(removals []history.Removal, sides ...bool) *history.History {
	x.t.Helper()
	h := &history.History{Locks: history.NewLocks(x.locks, units...), Removals: removals, Slow: pace.Factor()}
	for p, off := range x.side {
		if !slices.Contains(sides, off) {
			continue
		}
		events, err := history.ReadLog(p.Plan.Log)
		if err != nil {
			x.t.Fatal(err)
		}
		h.Events = append(h.Events, events...)
	}
	if len(sides) == 2 {
		h.Accesses = x.reg.Accesses()
	}
	return h
}

func (x *trial) judged(what string, h *history.History) *history.Verdict {
	x.t.Helper()
	v := h.Judge()
	for _, f := range v.Findings {
		x.t.Errorf("%s, %v after the cut: %s of %s: %s", what, x.since(f.At), f.Rule, f.Key, f.Text)
	}
	if v.Acquisitions == 0 {
		x.t.Errorf("%s: nobody has acquired anything", what)
	}
	return v
}

// figures takes what a hold says about who was told, and when others were let in.
func (x *trial) figures(o *outcome, h *history.Hold) {
	if !slices.Contains(here, h.Key) || h.Outcome != history.Acquired {
		return
	}
	switch first := h.Return < x.at; {
	case first && h.Told > x.at:
		o.told = append(o.told, time.Duration(h.Told-x.at))
	case !first && !x.off(h.Proc):
		o.let = append(o.let, time.Duration(h.Return-x.at))
	}
}

// since is how long after the cut at was.
func (x *trial) since(at int64) time.Duration {
	return time.Duration(at - x.at).Round(time.Millisecond)
}

func (x *trial) off(proc uint32) bool {
	for p, off := range x.side {
		if p.Plan.Proc == proc {
			return off
		}
	}
	return false
}

// spread is the least and the most of times, in seconds.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "nobody"
	}
	return fmt.Sprintf("%d in %.2f to %.2f s", len(times), slices.Min(times).Seconds(), slices.Max(times).Seconds())
}

// print logs the figures of a trial.
func (o *outcome) print(t *testing.T, more string) {
	t.Helper()
	t.Logf("told: %s; let in: %s; overlaps: %d, the longest %.2f s, the last until %.2f s; lost in all: %d of %d; %slast caller returned after %v",
		spread(o.told), spread(o.let), o.Overlaps, o.Longest.Seconds(), o.last.Seconds(), o.Lost, o.Acquisitions, more, o.through.Round(time.Millisecond))
}
