package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/anteroom/anteroom/internal/child"
)

// remote is a process of the demonstration that is one: a child of this process.
type remote struct {
	plan   plan
	ledger *ledger      // the resource that the child asks for
	tell   func(report) // where its events go
	child  *child.Process
	line   *line // its reader ends when the child does

	mu      sync.Mutex
	last    stats  // as the child last said, guarded by mu
	said    string // the error with which it says that it ended, guarded by mu
	isDone  bool   // it has said that it ended, guarded by mu
	stopped bool   // we have asked it to, guarded by mu
}

// toChild is the parent's side of the conversation.
type toChild struct{ *child.Process }

func (c toChild) Receive(v any) error { return c.Process.Receive(v, child.Forever) }

// newRemote starts a child that has got its plan and is ready to work. On an error no child
// is left behind. The child's standard error is ours: what it says there, for example why it
// crashed, must not be lost. The plan holds the URL and so perhaps a password; it goes
// through a pipe, which unlike an argument is read by nobody else.
func newRemote(p plan, l *ledger, tell func(report)) (*remote, error) {
	c, err := child.Start(context.Background(), workerRole, p, child.Forever)
	if err != nil {
		return nil, err
	}
	var ready message
	if err := c.Receive(&ready, startTime); err != nil {
		c.Kill()
		return nil, err
	}
	r := &remote{plan: p, ledger: l, tell: tell, child: c, line: newLine(toChild{c})}
	go r.line.receive(r.handle)
	return r, nil
}

// handle takes one message of the child in, on the child's reader. The ledger answers at
// once, so a child delays nobody but itself.
func (r *remote) handle(m message) {
	switch m.Kind {
	case msgEnter:
		p := r.ledger.enter(r.plan.Process, m.Key, m.Token)
		r.reply(m, message{Pass: &p})
	case msgWrite:
		r.reply(m, message{OK: r.ledger.write(m.Visit, m.Value)})
	case msgLeave:
		// Answered, too: the child releases its lock only when its visit has ended.
		r.ledger.leave(m.Visit)
		r.reply(m, message{})
	case msgEvent:
		if m.Report != nil {
			r.tell(*m.Report)
		}
	case msgStats, msgDone:
		r.mu.Lock()
		if m.Stats != nil {
			r.last = *m.Stats
		}
		if m.Kind == msgDone {
			r.isDone, r.said = true, m.Error
		}
		r.mu.Unlock()
	}
}

// reply answers a question of the child. A child that is gone needs no answer.
func (r *remote) reply(to, m message) {
	m.Kind, m.ID = msgAnswer, to.ID
	_ = r.line.send(m)
}

// start lets the child's goroutines begin.
func (r *remote) start() error {
	go r.watch()
	return r.line.send(message{Kind: msgStart})
}

// watch finds out when the child ends though nobody asked it to: its visits are over, and
// the run is not what it was meant to be.
func (r *remote) watch() {
	<-r.line.ended
	r.ledger.gone(r.plan.Process)
	r.mu.Lock()
	stopped := r.stopped
	r.mu.Unlock()
	if !stopped {
		r.tell(report{Process: r.plan.Process, Kind: kindProblem, Text: "it ended by itself"})
	}
}

// obey passes an order on. When ctx ends first the child may still carry it out.
func (r *remote) obey(ctx context.Context, o order) error {
	answer, ok := r.line.ask(ctx.Done(), message{Kind: msgOrder, Order: &o})
	switch {
	case !ok && ctx.Err() != nil:
		return ctx.Err()
	case !ok:
		return errors.New("it has ended")
	case answer.Error != "":
		return errors.New(answer.Error)
	}
	return nil
}

// stats returns what the child said last, at most statsEvery ago.
func (r *remote) stats() stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// metrics asks the child for its page, so that a child needs no port of its own.
func (r *remote) metrics(ctx context.Context) (string, error) {
	answer, ok := r.line.ask(ctx.Done(), message{Kind: msgScrape})
	if !ok || answer.Error != "" {
		return "", fmt.Errorf("no metrics: %s", answer.Error)
	}
	return answer.Text, nil
}

// stop asks the child to end and waits for it; the child then says its last figures and the
// error with which it closed, which stop returns. When ctx ends it is killed; its locks end
// with their leases then, as those of every process that dies.
func (r *remote) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	// In a goroutine, because a child that hangs may not even read; it ends with the child.
	go func() { _ = r.line.send(message{Kind: msgStop}) }()
	var killed error
	select {
	case <-r.line.ended:
	case <-ctx.Done():
		killed = errors.New("killed, because it did not end in time")
		r.child.Kill()
		<-r.line.ended
	}
	err := errors.Join(killed, r.child.Stop(stopTime))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		return err
	case r.said != "":
		return errors.New(r.said)
	case !r.isDone:
		return errors.New("it ended without its figures")
	}
	return nil
}
