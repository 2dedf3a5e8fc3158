package main

import (
	"context"
	"errors"
	"net/rpc"
	"sync/atomic"

	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/internal/child"
)

// remote is a real process of the demonstration: a child of this process. It calls us (parent) and we call it
// (employee) by net/rpc.
type remote struct {
	plan     plan
	ledger   *ledger      // the resource for which the child sends requests
	report   func(Report) // where its events go
	child    *child.Process
	worker   *rpc.Client   // calls the child
	ended    chan struct{} // closed when the child has ended and its last call was answered
	stopping atomic.Bool
}

// newRemote starts a child that has its plan and is ready to work. On an error no child remains. The child shares our
// standard error, so that its output, for example a crash, is not lost. The plan contains the URL and so perhaps a
// password; it goes through a pipe, which, unlike an argument, nobody else can read.
func newRemote(p plan, l *ledger, report func(Report)) (*remote, error) {
	r := &remote{plan: p, ledger: l, report: report, ended: make(chan struct{})}
	answers := rpc.NewServer()
	_ = answers.RegisterName("Parent", parent{r}) // it has methods
	c, err := child.Start(context.Background(), workerRole, p, child.Forever)
	if err != nil {
		return nil, err
	}
	var ready bool
	if err := c.Receive(&ready, startTime); err != nil {
		c.Kill()
		return nil, err
	}
	orders, calls := streams(c.Send, func(v any) error { return c.Receive(v, child.Forever) })
	r.child, r.worker = c, rpc.NewClient(orders)
	go func() {
		defer close(r.ended)
		answers.ServeConn(calls)
	}()
	return r, nil
}

// parent is what a child may call. The ledger answers immediately, so a child delays only itself.
type parent struct{ r *remote }

// Visit and Update are the arguments of a resource's methods.
type (
	Visit struct {
		Key   string
		Token int64
	}
	Update struct{ Visit, Value int64 }
)

func (p parent) Enter(v Visit, answer *Pass) error {
	*answer = p.r.ledger.enter(p.r.plan.Process, v.Key, v.Token)
	return nil
}

func (p parent) Write(u Update, accepted *bool) error {
	*accepted = p.r.ledger.write(u.Visit, u.Value)
	return nil
}

// Leave is answered too: the child releases its lock only when its visit has ended.
func (p parent) Leave(visit int64, _ *struct{}) error {
	p.r.ledger.leave(visit)
	return nil
}

func (p parent) Report(said Report, _ *struct{}) error {
	p.r.report(said)
	return nil
}

// ask calls the child. If ctx ends first, the child may still carry it out.
func (r *remote) ask(ctx context.Context, method string, args, answer any) error {
	done := make(chan *rpc.Call, 1)
	// In a goroutine, because a child that hangs may not even read; the goroutine ends with the child.
	go r.worker.Go("Worker."+method, args, answer, done)
	select {
	case call := <-done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts the child's goroutines.
func (r *remote) start() error {
	go r.watch()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return r.ask(ctx, "Start", struct{}{}, &struct{}{})
}

// watch notices if the child ends without having been asked to: it ends its visits and reports a problem, since the
// run is not the intended one.
func (r *remote) watch() {
	<-r.ended
	r.ledger.gone(r.plan.Process)
	if !r.stopping.Load() {
		r.report(Report{Process: r.plan.Process, Kind: kindProblem, Text: "it ended by itself"})
	}
}

func (r *remote) obey(ctx context.Context, o Order) error { return r.ask(ctx, "Obey", o, &struct{}{}) }

// gather asks the child for its metrics, so that a child needs no port of its own.
func (r *remote) gather(ctx context.Context) ([]*dto.MetricFamily, error) {
	var families []*dto.MetricFamily
	if err := r.ask(ctx, "Gather", struct{}{}, &families); err != nil {
		return nil, err // families may still be written to
	}
	return families, nil
}

// stop lets the child end its work and returns its last metrics and the error of its Close. If ctx ends, the child is
// killed; its locks then end with their leases, as those of every process that dies.
func (r *remote) stop(ctx context.Context) ([]*dto.MetricFamily, error) {
	r.stopping.Store(true)
	err := r.ask(ctx, "Stop", struct{}{}, &struct{}{})
	families, lost := r.gather(ctx)
	bound := stopTime
	if ctx.Err() != nil {
		bound = 0
	}
	err = errors.Join(err, lost, r.child.Stop(bound))
	_ = r.worker.Close() // it may have ended with the child
	<-r.ended
	return families, err
}
