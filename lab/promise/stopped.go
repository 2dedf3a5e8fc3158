package promise

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
)

// Paused makes a process of its own take n locks, stops it by SIGSTOP for longer than its leases, until a rival has
// got every key, and continues it. The figure is told − SIGCONT. A question asked after the rival's grant and
// answered "held" breaks the promise.
//
// The other process asks without pause from before SIGSTOP on, so that a question is the first thing it does when it
// runs again. lib must be one of those given to Main, which finds it by its name.
func Paused(lib Library, s *testredis.Server, n int) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*lib.Lease+2*patience)
	defer cancel()
	r := &round{lib: lib, server: s}
	r.name(n)
	p, err := spawn(ctx, order{Library: lib.Name, Addr: s.Addr(), Names: r.names})
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	rdb := rival(s.Addr())
	defer rdb.Close()
	if err := seize.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	clock := clock{time.Now()}
	if err := p.Send(toWatch); err != nil {
		return nil, err
	}
	if err := expect(p, watching); err != nil {
		return nil, err
	}
	began := now()
	if err := p.Signal(child.SIGSTOP); err != nil {
		return nil, err
	}
	granted, err := hammer(ctx, rdb, r.keys)
	if err != nil {
		return nil, err
	}
	continued := now()
	if err := p.Signal(child.SIGCONT); err != nil {
		return nil, err
	}
	if err := p.Send(toReport); err != nil {
		return nil, err
	}
	var seen []sighting
	if err := p.Receive(&seen, child.Forever); err != nil {
		return nil, err
	}
	if len(seen) != n {
		return nil, fmt.Errorf("%s: %d of %d holds are in the report", lib.Name, len(seen), n)
	}
	if err := clock.check(); err != nil {
		return nil, err
	}
	samples := make([]Sample, n)
	for i, see := range seen {
		samples[i] = sample(see, began, continued)
		// A context that nobody asks cannot end before a goroutine has run, and that is not promised: its figure says
		// how long it takes.
		if !samples[i].ByContext {
			samples[i].judge(see.LastHeld > granted[i])
		}
	}
	return samples, flush(ctx, s)
}
