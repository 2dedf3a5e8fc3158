package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
)

// workerRole is the child role of a process of the demonstration.
const workerRole = "demo-worker"

// statsEvery is how often a child sends its figures: more often than they are printed, so that a printed second is
// never two.
const statsEvery = 250 * time.Millisecond

// employee is the child's side of the conversation.
type employee struct {
	line   *line         // to the parent
	worker *worker       // whose resource is the parent's ledger
	begun  chan struct{} // closed by msgStart
	ended  chan struct{} // closed by msgStop
}

// runWorker takes part in a run until its parent says stop or is gone. It returns an error only if it could not take
// part or the parent was gone at the end; the error of its Manager's Close goes to the parent with the last figures.
func runWorker(_ context.Context, parent *child.Link, raw json.RawMessage) error {
	// Ctrl-C reaches every process of the terminal, and SIGTERM may be sent to a whole group. The parent ends the run,
	// and with it this process, when the current fault is settled.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	e := &employee{line: newLine(parent), begun: make(chan struct{}), ended: make(chan struct{})}
	err := e.hire(p)
	if err != nil {
		return err
	}
	if err := e.line.send(message{Kind: msgReady}); err != nil {
		return err
	}
	go e.line.receive(e.handle)
	select {
	case <-e.begun:
		err = e.worker.start()
		e.work()
	case <-e.ended:
	case <-e.line.ended:
	}
	err = errors.Join(err, e.worker.stop(context.Background()))
	s := e.worker.meter.stats()
	return e.line.send(message{Kind: msgDone, Stats: &s, Error: text(err)})
}

// hire creates the worker that the plan describes. Its events go to the parent; errors are ignored, since they mean
// that the parent is gone.
func (e *employee) hire(p plan) error {
	opts, err := redis.ParseURL(p.URL)
	if err != nil {
		return errors.New("the plan has no usable URL")
	}
	e.worker, err = newWorker(p, redis.NewClient(opts), e, func(r report) {
		_ = e.line.send(message{Kind: msgEvent, Report: &r})
	}, nil)
	return err
}

// work sends the figures until the end.
func (e *employee) work() {
	ticker := time.NewTicker(statsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s := e.worker.stats()
			_ = e.line.send(message{Kind: msgStats, Stats: &s})
		case <-e.ended:
			return
		case <-e.line.ended:
			return
		}
	}
}

// handle handles one message of the parent. Slow requests get a goroutine, because the reader has to go on: the
// answers to enter and write arrive the same way.
func (e *employee) handle(m message) {
	switch m.Kind {
	case msgStart:
		close(e.begun)
	case msgStop:
		close(e.ended)
	case msgOrder:
		go func() {
			err := e.worker.obey(e.worker.ctx, *m.Order)
			_ = e.line.send(message{Kind: msgAnswer, ID: m.ID, Error: text(err)})
		}()
	case msgScrape:
		go func() {
			page, err := e.worker.metrics(e.worker.ctx)
			_ = e.line.send(message{Kind: msgAnswer, ID: m.ID, Text: page, Error: text(err)})
		}()
	}
}

// enter, write and leave make the child's end of the pipe the resource. Without a parent nothing is admitted and
// nothing accepted: the run is over then.
func (e *employee) enter(key string, token int64) pass {
	if a, ok := e.line.ask(nil, message{Kind: msgEnter, Key: key, Token: token}); ok && a.Pass != nil {
		return *a.Pass
	}
	return pass{}
}

func (e *employee) write(visit, value int64) bool {
	a, ok := e.line.ask(nil, message{Kind: msgWrite, Visit: visit, Value: value})
	return ok && a.OK
}

func (e *employee) leave(visit int64) {
	e.line.ask(nil, message{Kind: msgLeave, Visit: visit})
}

// text returns an error as it is sent through the pipe, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
