package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
)

// plan is how scenarios are run.
type plan struct {
	rounds int // 0: that of the scenario
}

// round is one measurement of one library.
type round struct {
	scenario
	lib  library.Library
	addr string       // of the redis-server, which is empty
	note func(string) // records what a reader must know, such as the first error
}

// roundLimit bounds a round beyond its own times, so that nothing hangs the program.
const roundLimit = 6 * time.Minute

// run measures a scenario on a redis-server of its own. Rounds are interleaved: every library once, then again, each
// time beginning with another one, so that other activity of the machine affects all of them equally. notes has no
// duplicates.
func (p plan) run(ctx context.Context, s scenario) (results []result, notes []string, err error) {
	s.rounds = cmp.Or(p.rounds, s.rounds, 5)
	note := func(words string) {
		if !slices.Contains(notes, words) {
			notes = append(notes, words)
		}
	}
	var libs []library.Library
	for _, name := range s.libraries {
		lib, err := library.For(name, s.kind)
		if err != nil {
			return nil, nil, err
		}
		libs = append(libs, lib)
	}
	err = testredis.WithoutTest(s.name, func(t *testredis.Program) (err error) {
		server := testredis.Start(t)
		if s.placed {
			if undo, failed := place(server.Pid()); failed != nil {
				note("Redis has no processor of its own: " + failed.Error())
			} else {
				defer func() { err = errors.Join(err, undo()) }()
			}
		}
		rounds := make([][]figures, len(libs))
		for n := range s.rounds {
			for i := range libs {
				at := (i + n) % len(libs)
				r := round{s, libs[at], server.Addr(), func(words string) { note(libs[at].Name + ": " + words) }}
				r.load.Prefix = fmt.Sprintf("bench:%d", n)
				f, err := r.once(ctx)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, libs[at].Name, err)
				}
				rounds[at] = append(rounds[at], f)
			}
		}
		for i, lib := range libs {
			results = append(results, summarize(result{
				Scenario: s.name, Library: lib.Name, Version: lib.Version(), Settings: lib.Settings,
				Processes: max(s.processes, 1), Goroutines: s.load.Goroutines, Keys: s.load.Keys,
			}, rounds[i]))
		}
		return nil
	})
	return results, notes, err
}

// once measures, on an empty server and an empty heap. If Redis is far, the time of a round trip is a figure.
func (r round) once(ctx context.Context) (f figures, err error) {
	bound := r.load.Warm + r.load.For + roundLimit
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: r.addr})
	defer rdb.Close()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	runtime.GC()
	if !r.far {
		return r.measure(ctx, r)
	}
	proxy, addr, err := startFar(ctx, r.addr, bound)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.Stop(endWithin)) }()
	r.addr = addr
	far := redis.NewClient(&redis.Options{Addr: addr})
	defer far.Close()
	var trips []time.Duration
	for range 31 {
		before := time.Now()
		if err := far.Ping(ctx).Err(); err != nil {
			return nil, err
		}
		trips = append(trips, time.Since(before))
	}
	if f, err = r.measure(ctx, r); err != nil {
		return nil, err
	}
	if _, has := f[roundTrip]; !has {
		f[roundTrip] = quantile(trips, 0.5)
	}
	return f, nil
}
