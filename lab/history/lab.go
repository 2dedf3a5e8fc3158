package history

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The user of the workers, so that an ACL change affects only them.
const (
	workerUser     = "worker"
	workerPassword = "work"
)

// Setup configures a laboratory.
type Setup struct {
	Locks      []anteroom.LockConfig
	Units      []int64 // see Plan
	Processes  int
	Goroutines int  // of each process
	Load       Load // "": LoadMixed
	// Singles are further processes, of one goroutine each, and SingleKeys is how many of the Locks they use, the
	// first ones: so that a line of many processes forms, as with many small services.
	Singles, SingleKeys int
	Seed                uint64
	// Apart and Admits plant faults for tests: locks that do not exclude other processes, and the rule of the
	// register.
	Apart  bool
	Admits func(newest, token int64) bool
}

// Lab is a redis-server, a register and worker processes that use locks under injected faults, and everything
// recorded about them. Its methods are for one goroutine at a time per server and per worker; different ones may be
// used concurrently.
type Lab struct {
	Server   *testredis.Server
	Admin    *redis.Client // affected only by faults of the server itself
	Operator *anteroom.Manager
	Register *Register
	Setup    Setup

	tb    testredis.TB
	dir   string // logs, socket
	data  string // the server's directory
	serve func() // ends serving the register
	quiet func() // ends the pulse

	mu       sync.Mutex
	lives    uint32     // guarded by mu
	workers  []*Process // guarded by mu
	removals []Removal  // guarded by mu
	aways    []Away     // guarded by mu
}

// NewLab starts everything; it ends with tb.
func NewLab(tb testredis.TB, s Setup) *Lab {
	tb.Helper()
	l := &Lab{tb: tb, Setup: s, dir: tb.TempDir(), data: tb.TempDir(), workers: make([]*Process, s.Processes+s.Singles)}
	user := []string{"--user", workerUser, "on", ">" + workerPassword, "~*", "&*", "+@all"}
	l.Server = testredis.Start(tb, append(user, "--dir", l.data, "--appendonly", "yes", "--appendfsync", "always",
		"--auto-aof-rewrite-percentage", "0")...)
	l.Admin = l.Server.Client(tb, func(o *redis.Options) { o.MaxRetries = 3; o.ReadTimeout = 5 * time.Second })
	l.Register = NewRegister(NewLocks(s.Locks, s.Units...))
	if s.Admits != nil {
		l.Register.Admits = s.Admits
	}
	var err error
	if l.serve, err = ServeRegister(l.Register, filepath.Join(l.dir, "register")); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.serve)
	if l.Operator, err = anteroom.NewManager(l.Admin, anteroom.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Operator.Close(context.Background()) })
	tb.Cleanup(func() {
		for _, p := range l.workers {
			if p != nil {
				p.Kill()
			}
		}
	})
	l.quiet = l.startPulse()
	tb.Cleanup(l.quiet)
	for i := range l.workers {
		l.StartWorker(i)
	}
	return l
}

// StartWorker starts a new life of worker i.
func (l *Lab) StartWorker(i int) {
	l.tb.Helper()
	l.mu.Lock()
	l.lives++
	proc := l.lives
	l.mu.Unlock()
	locks, goroutines := l.Setup.Locks, l.Setup.Goroutines
	if i >= l.Setup.Processes {
		locks, goroutines = locks[:l.Setup.SingleKeys], 1
	}
	p, err := Start(Plan{
		Proc: proc, Seed: l.Setup.Seed + uint64(proc), Addrs: []string{l.Server.Addr()}, User: workerUser, Password: workerPassword,
		Log: LogPath(l.dir, proc), Register: filepath.Join(l.dir, "register"),
		Locks: locks, Units: l.Setup.Units, Goroutines: goroutines, Load: cmp.Or(l.Setup.Load, LoadMixed), Apart: l.Setup.Apart,
	})
	if err != nil {
		l.tb.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workers[i] = p
}

// Worker returns the present life of worker i.
func (l *Lab) Worker(i int) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers[i]
}

// removed records a removal.
func (l *Lab) removed(r Removal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals = append(l.removals, r)
}

// away records that proc was not served, or did not run, from then until now.
func (l *Lab) away(proc uint32, from int64, stopped bool, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aways = append(l.aways, Away{Proc: proc, From: from, To: Now(), Stopped: stopped, What: what})
}

// Outcome is the result of a run.
type Outcome struct {
	*Verdict
	Reports  []Report
	Stuck    int
	Leaks    []string
	Problems []string
	Through  time.Duration // until the last caller returned
}

// Finish ends the workers, checks what remains of them, and judges. Callers that do not return within bound are
// stuck.
func (l *Lab) Finish(bound time.Duration) *Outcome {
	l.tb.Helper()
	o := &Outcome{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range l.workers {
		wg.Go(func() {
			p := l.Worker(i)
			ended := p.Ended()
			r, err := p.Stop(bound)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || ended {
				o.Problems = append(o.Problems, "a worker has ended by itself: "+text(err))
			}
			o.Reports = append(o.Reports, r)
			o.Stuck += r.Stuck
			o.Leaks = append(o.Leaks, r.Leaks...)
			o.Problems = append(o.Problems, r.Problems...)
			o.Through = max(o.Through, r.Through)
		})
	}
	wg.Wait()
	l.quiet()
	o.Leaks = append(o.Leaks, l.leftInRedis()...)
	h, err := l.History()
	if err != nil {
		l.tb.Fatal(err)
	}
	o.Verdict = h.Judge()
	return o
}

// History returns everything that was recorded, after the workers have ended.
func (l *Lab) History() (*History, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &History{Locks: NewLocks(l.Setup.Locks, l.Setup.Units...), Removals: l.removals, Aways: l.aways, Accesses: l.Register.Accesses(), Slow: pace.Factor()}
	var errs []error
	for proc := uint32(1); proc <= l.lives; proc++ {
		events, err := ReadLog(LogPath(l.dir, proc))
		h.Events, errs = append(h.Events, events...), append(errs, err)
	}
	return h, errors.Join(errs...)
}

// removeData makes the next start of the server an empty one.
func (l *Lab) removeData() error { return os.RemoveAll(filepath.Join(l.data, "appendonlydir")) }
