package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/history"
)

// Plan is the work of a crew.
type Plan struct {
	Library string // its name
	Kind    library.Kind
	Addr    string // of the redis-server
	// Goroutines is the number for each process: one entry for each process.
	Goroutines []int
	Hold       time.Duration
	Prefix     string // of the key
	Warm, For  time.Duration
}

// Outcome is the result of a crew.
type Outcome struct {
	Tallies []measure.Tally // by process
	Turns   []Turn          // including those of the warm-up
	Whole   bool            // Turns has all turns
	// From and To bound the window, on the shared clock; the processes' own windows differ by a few milliseconds.
	From, To int64
}

// startWithin bounds how long all processes may take until they are ready. It is generous because 64 processes start
// on few cores.
const startWithin = 60 * time.Second

// Run starts the processes, lets them work, and returns when they have ended. begin and
// end, if not nil, are called at the ends of the window.
func Run(ctx context.Context, plan Plan, begin, end func()) (out Outcome, err error) {
	dir, err := os.MkdirTemp("", "anteroom-crew-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log, err := OpenLog(filepath.Join(dir, logName))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()

	bound := startWithin + plan.Warm + plan.For + endWithin
	crew, err := muster(ctx, plan, dir, bound)
	defer func() {
		for _, p := range crew {
			err = errors.Join(err, p.Stop(endWithin))
		}
	}()
	if err != nil {
		return out, err
	}
	for _, p := range crew {
		if err := p.Send("go"); err != nil {
			return out, err
		}
	}
	time.Sleep(plan.Warm)
	if begin != nil {
		begin()
	}
	out.From = history.Now()
	time.Sleep(plan.For)
	out.To = history.Now()
	if end != nil {
		end()
	}
	for _, p := range crew {
		var t measure.Tally
		if err := p.Receive(&t, endWithin); err != nil {
			return out, err
		}
		out.Tallies = append(out.Tallies, t)
	}
	out.Turns, out.Whole = log.Turns()
	return out, nil
}

// endWithin bounds how long a process may take to report its counts. Its goroutines have 20 seconds to come back, and
// its client some to close.
const endWithin = 60 * time.Second

// muster starts all processes, and returns when all are ready; on an error it returns those that were started (I1).
func muster(ctx context.Context, plan Plan, dir string, bound time.Duration) (crew []*child.Process, err error) {
	first := 0
	for proc, n := range plan.Goroutines {
		p, err := child.Start(ctx, RoleName, order{Plan: plan, Dir: dir, Proc: proc, First: first}, bound)
		if err != nil {
			return crew, err
		}
		crew = append(crew, p)
		first += n
	}
	for proc, p := range crew {
		var ready string
		if err := p.Receive(&ready, startWithin); err != nil {
			return crew, fmt.Errorf("process %d: %w", proc, err)
		}
	}
	return crew, nil
}

// Sum returns the tally of all processes.
func (o Outcome) Sum() measure.Tally {
	var sum measure.Tally
	for i := range o.Tallies {
		sum.Add(&o.Tallies[i])
	}
	return sum
}
