package handover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The figures of hand-overs.
const (
	P50        measure.Figure = "handover_p50_us"
	P99        measure.Figure = "handover_p99_us"
	Max        measure.Figure = "handover_max_us"
	RoundTrip  measure.Figure = "ping_p50_us"
	RoundTrips measure.Figure = "handover_p50_round_trips" // P50 in round trips
	// Script is a round trip that does a lock's work: half of a bare pair of EVALSHA.
	Script      measure.Figure = "script_p50_us"
	ScriptTrips measure.Figure = "handover_p50_script_round_trips"
	Count       measure.Figure = "handovers"
)

// Plan is the work of two processes.
type Plan struct {
	Library string
	Kind    library.Kind
	Addr    string
	Key     string
	For     time.Duration // how long hand-overs are measured
}

const (
	// settle is the minimum silence before a round trip and before a release; up to half of it is added at random. It
	// is many round trips long, even through the proxy.
	settle = 10 * time.Millisecond
	// warm is the number of hand-overs that are not counted: connections and subscriptions are made.
	warm = 4
	// within bounds one order. It is generous: peers poll, and machines are slow.
	within = 10 * time.Second
)

// errStuck: the release did not wake the waiter.
var errStuck = fmt.Errorf("a waiter did not get the released lock within %v", within)

// Run measures hand-overs between two processes. A waiter that does not get the lock ends the round; note is called,
// and the figures show it.
func Run(ctx context.Context, plan Plan, note func(string)) (f measure.Figures, err error) {
	var pair [2]*child.Process
	stuck := false
	defer func() {
		for _, p := range pair {
			if p == nil {
				continue
			}
			if failed := p.Stop(within); !stuck { // a stuck process ends with an error of its own
				err = errors.Join(err, failed)
			}
		}
	}()
	for i := range pair {
		if pair[i], err = child.Start(ctx, RoleName, plan, 10*within+plan.For); err != nil {
			return nil, err
		}
		// Not concurrently: learning the bare scripts takes a key that the two would share.
		var ready string
		if err := pair[i].Receive(&ready, within); err != nil {
			return nil, err
		}
	}
	a, b := pair[0], pair[1]
	if _, err := ask(a, lock); err != nil {
		return nil, err
	}
	var overs, trips, scripts []time.Duration
	for i, end := 0, time.Now().Add(plan.For); i < warm+4 || time.Now().Before(end); i++ {
		kind, to := ping, &trips
		if i/2%2 == 0 { // each of the two processes does both kinds
			kind, to = script, &scripts
		}
		over, trip, err := once(a, b, kind)
		if stuck = errors.Is(err, errStuck); stuck {
			note(err.Error())
			f = measure.Figures{measure.Stuck: 1}
			if len(trips) > 0 && len(scripts) > 0 {
				f.Add(figures(overs, trips, scripts))
			}
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if i >= warm {
			overs, *to = append(overs, over), append(*to, trip)
		}
		a, b = b, a
	}
	if _, err := ask(a, unlock); err != nil {
		return nil, err
	}
	return figures(overs, trips, scripts), nil
}

// once makes b wait and a release, and measures a round trip of the given kind before that.
func once(a, b *child.Process, kind string) (over, trip time.Duration, err error) {
	if err := b.Send(lock); err != nil {
		return 0, 0, err
	}
	var did [2]answer
	for i, order := range []string{kind, unlock} {
		// An idle process or server responds more slowly; both are then in the same state.
		time.Sleep(settle + rand.N(settle/2))
		if did[i], err = ask(a, order); err != nil {
			return 0, 0, err
		}
	}
	var acquired answer
	if err := b.Receive(&acquired, within); errors.Is(err, child.ErrNoAnswer) {
		return 0, 0, errStuck
	} else if err != nil {
		return 0, 0, err
	}
	if acquired.At < did[1].At {
		return 0, 0, fmt.Errorf("the lock was acquired %v before it was released", time.Duration(did[1].At-acquired.At))
	}
	return time.Duration(acquired.At - did[1].At), did[0].Took, nil
}

func ask(p *child.Process, order string) (a answer, err error) {
	if err := p.Send(order); err != nil {
		return a, err
	}
	err = p.Receive(&a, within)
	return a, err
}

func figures(overs, trips, scripts []time.Duration) measure.Figures {
	slices.Sort(overs)
	slices.Sort(trips)
	slices.Sort(scripts)
	p50, trip, pair := quantile(overs, 0.5), quantile(trips, 0.5), quantile(scripts, 0.5)
	return measure.Figures{
		P50: p50, P99: quantile(overs, 0.99), Max: quantile(overs, 1), RoundTrip: trip, RoundTrips: p50 / trip,
		Script: pair, ScriptTrips: p50 / pair,
		Count: float64(len(overs)),
	}
}

// quantile returns microseconds; the values are sorted.
func quantile(sorted []time.Duration, q float64) float64 {
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i].Nanoseconds()) / 1e3
}
