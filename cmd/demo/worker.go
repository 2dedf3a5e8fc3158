package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/rpc"
	"os"
	"os/signal"
	"sync"
	"syscall"

	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/metrics/debug"
)

// workerRole is the child role of a process of the demonstration.
const workerRole = "demo-worker"

// runWorker takes part in a run until its parent says stop or is gone. It returns an error only if it could not take
// part.
func runWorker(ctx context.Context, link *child.Link, raw json.RawMessage) error {
	// Ctrl-C reaches every process of the terminal, and SIGTERM may be sent to a whole group. The parent ends the run,
	// and with it this process, when the current fault is settled.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	opts, err := redis.ParseURL(p.URL)
	if err != nil {
		return errors.New("the plan has no usable URL")
	}
	if err := link.Send(true); err != nil { // ready
		return err
	}
	orders, calls := streams(link.Send, link.Receive)
	up := rpc.NewClient(calls)
	page, _ := debug.New(debug.Config{}) // nobody reads it
	w, err := newWorker(p, redis.NewClient(opts), distant{up}, func(r Report) {
		_ = up.Call("Parent.Report", r, &struct{}{}) // an error means that the parent is gone
	}, page)
	if err != nil {
		return err
	}
	e := &employee{w: w, end: sync.OnceValue(func() error {
		_, err := w.stop(context.Background())
		return err
	})}
	answers := rpc.NewServer()
	_ = answers.RegisterName("Worker", e) // it has methods
	go answers.ServeConn(orders)
	<-ctx.Done()
	_ = e.end() // Stop has returned it, unless the parent is gone
	return nil
}

// employee is what the parent may call.
type employee struct {
	w   *worker
	end func() error // stops w, once
}

func (e *employee) Start(struct{}, *struct{}) error { return e.w.start() }
func (e *employee) Obey(o Order, _ *struct{}) error { return e.w.obey(e.w.ctx, o) }
func (e *employee) Stop(struct{}, *struct{}) error  { return e.end() }
func (e *employee) Gather(_ struct{}, answer *[]*dto.MetricFamily) (err error) {
	*answer, err = e.w.reg.Gather()
	return err
}

// distant is the parent's ledger. Without a parent nothing is admitted and nothing accepted: the run is over then.
type distant struct{ parent *rpc.Client }

func (d distant) enter(key string, token int64) (p Pass) {
	_ = d.parent.Call("Parent.Enter", Visit{Key: key, Token: token}, &p)
	return p
}

func (d distant) write(visit, value int64) (accepted bool) {
	_ = d.parent.Call("Parent.Write", Update{Visit: visit, Value: value}, &accepted)
	return accepted
}

func (d distant) leave(visit int64) { _ = d.parent.Call("Parent.Leave", visit, &struct{}{}) }
