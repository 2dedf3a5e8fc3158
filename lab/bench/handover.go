package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/history"
)

// A hand-over is how long a lock takes from one process to another that waits for it.
//
//	A: ──── has the lock ────┤ release                        A and B swap roles
//	B:      ├─ acquire waits ───────────┤ has it
//	                         └ latency ─┘
//
// It is measured from just before the call of A's release to the return of B's acquire, on their shared clock. B has
// waited for some time before, so that it has asked, was refused and listens, and the intervals are random, so that
// no polling falls into step. A measures a round trip, a PING, before each hand-over, after an equally long silence.
const (
	// lull is the minimum before a round trip and before a release; up to half of it is added at random.
	lull = 10 * time.Millisecond
	// uncounted is the number of first hand-overs: connections and subscriptions are made.
	uncounted = 4
	// obey bounds one order. It is generous: peers poll, and machines are slow.
	obey = 10 * time.Second
)

// handoverPlan is the work of both processes.
type handoverPlan struct {
	Library   string
	Kind      library.Kind
	Addr, Key string
}

// answer is the result of an order.
type answer struct {
	At   int64         // lock: after its return; unlock: before its call
	Took time.Duration // of the order
}

var errAsleep = fmt.Errorf("a waiter did not get the released lock within %v", obey)

// handOver measures hand-overs between two processes. A waiter that does not get the lock ends the round, and the
// figures show it.
func handOver(ctx context.Context, r round) (f figures, err error) {
	return between(ctx, r, func(a *child.Process) error { _, err := order(a, "lock"); return err }, once,
		func(a *child.Process) error { _, err := order(a, "unlock"); return err })
}

// idleElsewhere measures how long a process takes to get a lock that another one has unlocked, and nobody has locked since.
func idleElsewhere(ctx context.Context, r round) (f figures, err error) {
	nothing := func(*child.Process) error { return nil }
	return between(ctx, r, nothing, func(a, b *child.Process) (took, trip time.Duration, err error) {
		var did answer
		time.Sleep(time.Second) // the lock does not linger for so long after another client was seen
		for _, word := range []string{"lock", "unlock"} {
			if _, err := order(a, word); err != nil {
				return 0, 0, err
			}
		}
		time.Sleep(lull + rand.N(lull/2))
		if did, err = order(b, "ping"); err != nil {
			return 0, 0, err
		}
		trip = did.Took
		if did, err = order(b, "lock"); err != nil {
			return 0, 0, err
		}
		_, err = order(b, "unlock")
		return did.Took, trip, err
	}, nothing)
}

// between measures something again and again between two processes, which swap roles.
func between(ctx context.Context, r round, first func(a *child.Process) error, once func(a, b *child.Process) (took, trip time.Duration, err error), last func(a *child.Process) error) (f figures, err error) {
	var both [2]*child.Process
	asleep := false
	defer func() {
		for _, p := range both {
			if p == nil {
				continue
			}
			if failed := p.Stop(obey); !asleep { // a stuck process ends with an error of its own
				err = errors.Join(err, failed)
			}
		}
	}()
	for i := range both {
		plan := handoverPlan{r.lib.Name, r.kind, r.addr, r.load.Prefix}
		if both[i], err = child.Start(ctx, "handover", plan, 10*obey+r.load.For); err != nil {
			return nil, err
		}
		var ready string
		if err := both[i].Receive(&ready, obey); err != nil {
			return nil, err
		}
	}
	a, b := both[0], both[1]
	if err := first(a); err != nil {
		return nil, err
	}
	var overs, trips []time.Duration
	for i, end := 0, time.Now().Add(r.load.For); i < uncounted+4 || time.Now().Before(end); i++ {
		over, trip, err := once(a, b)
		if asleep = errors.Is(err, errAsleep); asleep {
			r.note(err.Error())
			return handoverFigures(overs, trips).add(figures{stuck: 1}), nil
		}
		if err != nil {
			return nil, err
		}
		if i >= uncounted {
			overs, trips = append(overs, over), append(trips, trip)
		}
		a, b = b, a
	}
	if err := last(a); err != nil {
		return nil, err
	}
	return handoverFigures(overs, trips), nil
}

// once makes b wait and a release, and measures a round trip before that.
func once(a, b *child.Process) (over, trip time.Duration, err error) {
	if err := b.Send("lock"); err != nil {
		return 0, 0, err
	}
	var did [2]answer
	for i, word := range []string{"ping", "unlock"} {
		// An idle process or server responds more slowly; both are then in the same state.
		time.Sleep(lull + rand.N(lull/2))
		if did[i], err = order(a, word); err != nil {
			return 0, 0, err
		}
	}
	var acquired answer
	if err := b.Receive(&acquired, obey); errors.Is(err, child.ErrNoAnswer) {
		return 0, 0, errAsleep
	} else if err != nil {
		return 0, 0, err
	}
	over = time.Duration(acquired.At - did[1].At)
	if over < 0 {
		return 0, 0, fmt.Errorf("the lock was acquired %v before it was released", -over)
	}
	return over, did[0].Took, nil
}

func order(p *child.Process, word string) (a answer, err error) {
	if err := p.Send(word); err != nil {
		return a, err
	}
	err = p.Receive(&a, obey)
	return a, err
}

func handoverFigures(overs, trips []time.Duration) figures {
	if len(overs) == 0 {
		return figures{}
	}
	over, trip := quantile(overs, 0.5), quantile(trips, 0.5)
	return figures{handoverP50: over, handoverP99: quantile(overs, 0.99), roundTrip: trip, roundTrips: over / trip}
}

// quantile sorts the times, and returns microseconds.
func quantile(times []time.Duration, q float64) float64 {
	slices.Sort(times)
	return micros(times[min(int(q*float64(len(times))), len(times)-1)])
}

// handoverRole is one of the two processes.
func handoverRole(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan handoverPlan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	lib, err := library.For(plan.Library, plan.Kind)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return err
	}
	c, err := lib.Open(plan.Addr)
	if err != nil {
		return err
	}
	h := c.Handle(plan.Key)
	if err := l.Send("ready"); err != nil {
		return err
	}
	for {
		var word string
		if l.Receive(&word) != nil {
			return c.Close() // no more orders
		}
		var a answer
		before := time.Now()
		switch word {
		case "lock":
			err = h.Lock(ctx)
			a.At = history.Now()
		case "unlock":
			a.At = history.Now()
			err = h.Unlock()
		case "ping":
			err = rdb.Ping(ctx).Err()
		}
		a.Took = time.Since(before)
		if err == nil {
			err = l.Send(a)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
}
