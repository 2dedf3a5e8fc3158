package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerCommand is the argument that makes this program a child of the demonstration.
const workerCommand = "demo-worker"

// statsEvery is how often a child says its figures; more often than they are printed, so
// that a printed second is never two.
const statsEvery = 250 * time.Millisecond

// runAsWorker is main in a child. It returns the exit status.
func runAsWorker() int {
	// Ctrl-C reaches every process of the terminal. The parent ends the run, and with it
	// this process, when the faults under way are settled.
	signal.Ignore(os.Interrupt)
	if err := runWorker(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return exitFailed
	}
	return 0
}

// child is the child's side of the conversation.
type child struct {
	line   *line         // to the parent
	worker *worker       // whose resource is the parent's ledger
	begun  chan struct{} // closed by msgStart
	ended  chan struct{} // closed by msgStop
}

// runWorker takes part in a run until its parent says stop or is gone. It returns an error
// only if it could not take part or the parent was gone at the end; what its Manager says
// when it is closed goes to the parent with the last figures.
func runWorker(in io.Reader, out io.Writer) error {
	c := &child{line: newLine(in, out), begun: make(chan struct{}), ended: make(chan struct{})}
	var first message
	if err := c.line.dec.Decode(&first); err != nil || first.Kind != msgPlan || first.Plan == nil {
		return errors.New("demo-worker is started by demo, and by nobody else")
	}
	err := c.hire(*first.Plan)
	if sent := c.line.send(message{Kind: msgAnswer, ID: first.ID, Error: text(err)}); err != nil || sent != nil {
		return errors.Join(err, sent)
	}
	go c.line.receive(c.handle)
	select {
	case <-c.begun:
		err = c.worker.start()
		c.work()
	case <-c.ended:
	case <-c.line.ended:
	}
	err = errors.Join(err, c.worker.stop(context.Background()))
	s := c.worker.meter.stats()
	return c.line.send(message{Kind: msgDone, Stats: &s, Error: text(err)})
}

// hire makes the worker that the plan describes. Its events go to the parent; one that
// cannot be sent is one that nobody is left to read.
func (c *child) hire(p plan) error {
	opts, err := redis.ParseURL(p.URL)
	if err != nil {
		return errors.New("the plan has no usable URL")
	}
	c.worker, err = newWorker(p, redis.NewClient(opts), c, func(r report) {
		_ = c.line.send(message{Kind: msgEvent, Report: &r})
	}, nil)
	return err
}

// work says the figures until the end.
func (c *child) work() {
	ticker := time.NewTicker(statsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s := c.worker.stats()
			_ = c.line.send(message{Kind: msgStats, Stats: &s})
		case <-c.ended:
			return
		case <-c.line.ended:
			return
		}
	}
}

// handle takes one message of the parent in. What takes time gets a goroutine, because
// the reader has to go on: the answers to enter and write come the same way.
func (c *child) handle(m message) {
	switch m.Kind {
	case msgStart:
		close(c.begun)
	case msgStop:
		close(c.ended)
	case msgOrder:
		go func() {
			err := c.worker.obey(c.worker.ctx, *m.Order)
			_ = c.line.send(message{Kind: msgAnswer, ID: m.ID, Error: text(err)})
		}()
	case msgScrape:
		go func() {
			page, err := c.worker.metrics(c.worker.ctx)
			_ = c.line.send(message{Kind: msgAnswer, ID: m.ID, Text: page, Error: text(err)})
		}()
	}
}

// enter, write and leave make the child's end of the pipe the resource. Without a parent
// nothing is admitted and nothing accepted: the run is over then.
func (c *child) enter(key string, token int64) pass {
	if a, ok := c.line.ask(nil, message{Kind: msgEnter, Key: key, Token: token}); ok && a.Pass != nil {
		return *a.Pass
	}
	return pass{}
}

func (c *child) write(visit, value int64) bool {
	a, ok := c.line.ask(nil, message{Kind: msgWrite, Visit: visit, Value: value})
	return ok && a.OK
}

func (c *child) leave(visit int64) {
	c.line.ask(nil, message{Kind: msgLeave, Visit: visit})
}

// text is an error as it goes through the pipe, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
