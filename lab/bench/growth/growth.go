package growth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// Kind is the kind of item of which there are many.
type Kind string

// The kinds.
const (
	Held    Kind = "held"    // held locks
	Waiters Kind = "waiters" // goroutines waiting for one lock
	Keys    Kind = "keys"    // keys used one after another
)

// Plan is the work of one child.
type Plan struct {
	Kind    Kind
	Library string // Held: Anteroom or Rueidislock; Waiters: Anteroom's, Mutex or Semaphore; Keys: Anteroom
	Addr    string
	Prefix  string
	N       int
	// For is how long all N items are observed.
	For time.Duration
}

// RoleName is the child role of this package.
const RoleName = "growth"

// Role is the child's side.
func Role(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	switch plan.Kind {
	case Held:
		return held(ctx, l, plan)
	case Waiters:
		return waiters(ctx, l, plan)
	case Keys:
		return keys(ctx, l, plan)
	}
	return fmt.Errorf("nothing is known about how %q grows", plan.Kind)
}

// within bounds how long N items may take to be created and to be removed.
const within = 5 * time.Minute

// The figures of the server during the observation.
const (
	RedisCPU      measure.Figure = "redis_cpu_percent_of_core"
	RedisCommands measure.Figure = "redis_commands_in_window" // without those that scripts call
	Window        measure.Figure = "window_s"
	// RedisBytes is the server memory that a held lock takes.
	RedisBytes measure.Figure = "redis_bytes_per_item"
)

// Run measures one size. It is an error if the child could not do something; note receives what a reader must know in
// addition.
func Run(ctx context.Context, plan Plan, note func(string)) (f measure.Figures, err error) {
	empty, err := memory(ctx, plan.Addr)
	if err != nil {
		return nil, err
	}
	p, err := child.Start(ctx, RoleName, plan, 2*within+plan.For)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop(within)) }()
	f = measure.Figures{}
	// Keys come and go at once, so there is nothing to observe.
	if plan.Kind != Keys {
		if err := watch(ctx, p, plan, f, note); err != nil {
			return nil, err
		}
		if plan.Kind == Held {
			f[RedisBytes] = (f[RedisBytes] - empty) / float64(plan.N)
		}
	}
	var seen report
	if err := p.Receive(&seen, within); err != nil {
		return nil, err
	}
	return f.Add(seen.Figures), nil
}

// report is a child's message.
type report struct {
	Figures measure.Figures
	Note    string
	Sends   []string // commands that it sends itself
}

// watch waits until all items are there, and queries the server before and after the window.
func watch(ctx context.Context, p *child.Process, plan Plan, f measure.Figures, note func(string)) error {
	var ready report
	if err := p.Receive(&ready, within); err != nil {
		return err
	}
	probe, err := measure.NewProbe(plan.Addr)
	if err != nil {
		return err
	}
	defer probe.Close()
	begin, err := probe.Read()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := p.Send("go"); err != nil {
		return err
	}
	var watched report
	if err := p.Receive(&watched, within+plan.For); err != nil {
		return err
	}
	if watched.Note != "" {
		note(watched.Note)
	}
	took := time.Since(began)
	end, err := probe.Read()
	if err != nil {
		return err
	}
	sent := int64(0)
	for _, verb := range ready.Sends {
		sent += end.Calls[verb] - begin.Calls[verb]
	}
	f.Add(ready.Figures, watched.Figures)
	if len(ready.Sends) > 0 { // a lock of this process alone has no window
		f.Add(measure.Figures{
			RedisCPU: 100 * (end.CPU - begin.CPU).Seconds() / took.Seconds(), Window: took.Seconds(), RedisCommands: float64(sent),
		})
	}
	if plan.Kind == Held {
		f[RedisBytes], err = memory(ctx, plan.Addr)
	}
	return err
}

// memory returns the server's used memory.
func memory(ctx context.Context, addr string) (float64, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	text, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	_, text, _ = strings.Cut(text, "used_memory:")
	text, _, _ = strings.Cut(text, "\r")
	return strconv.ParseFloat(text, 64)
}

// ready tells the parent that all items are there, and waits for its order.
func ready(l *child.Link, r report) error {
	if err := l.Send(r); err != nil {
		return err
	}
	var word string
	return l.Receive(&word)
}
