package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

func main() {
	history.RunWorker()
	silence.Logs()
	c := defaults()
	flag.DurationVar(&c.lasts, "for", fromEnv("CHAOS_FOR", time.ParseDuration, time.Minute), "how long to inject faults")
	flag.Uint64Var(&c.seed, "seed", fromEnv("CHAOS_SEED", parseSeed, rand.Uint64N(1_000_000)), "seed of the schedule")
	only := flag.String("only", "", "restricts the faults to these kinds, separated by commas")
	flag.Parse()
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, c, os.Stdout)
	stop()
	os.Exit(status)
}

// config configures a run.
type config struct {
	lasts                       time.Duration
	seed                        uint64
	processes, goroutines, keys int
	// singles are processes of one goroutine, and singleKeys how many of the keys they use.
	singles, singleKeys int
	// only, if there are any, restricts the kinds of faults.
	only []string
	// apart and admits plant faults: see history.Setup.
	apart  bool
	admits func(newest, token int64) bool
}

// defaults is a full run: 4 processes with 200 goroutines in total on 50 keys, and 12 with one goroutine each on the
// first of these keys, so that there is always a line of processes.
func defaults() config {
	return config{processes: 4, goroutines: 50, keys: 50, singles: 12, singleKeys: 4}
}

// fromEnv reads a setting; an invalid one ends the program.
func fromEnv[T any](name string, parse func(string) (T, error), def T) T {
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	v, err := parse(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	return v
}

func parseSeed(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

const (
	// bound is how long callers may take to return after all faults have healed: what a killed holder has left, at
	// most an extended lease of 3 s; the lease of a key whose waiters missed the message, 2 s; a pause of a driver
	// after errors, up to 1.25 s; and then the queue of up to 200. A busy machine stretches it. The actual time is printed.
	bound = 12 * time.Second
	// grace is what a run may take beyond its time before it is given up: the current fault, the start of processes,
	// the end.
	grace = 5 * time.Minute
)

// run runs one run and prints its last line, however it ends. It returns the exit status.
func run(ctx context.Context, c config, out io.Writer) int {
	r := &chaos{config: c, out: &lines{w: out}, counts: map[string]int{}, begun: time.Now()}
	tb := testredis.NewProgram("chaos")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer tb.Recover()
		r.all(ctx, tb)
	}()
	select {
	case <-ended:
	case <-time.After(c.lasts + grace):
		tb.Errorf("the run did not end within %v", c.lasts+grace)
	}
	tb.CleanUp()
	return r.conclude(tb.Failures())
}
