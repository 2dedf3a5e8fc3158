package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/anteroom/anteroom/internal/child"
)

// remote is a real process of the demonstration: a child of this process.
type remote struct {
	plan   plan
	ledger *ledger      // the resource for which the child sends requests
	tell   func(report) // where its events go
	child  *child.Process
	line   *line // its reader ends when the child does

	mu      sync.Mutex
	last    stats  // the child's latest figures, guarded by mu
	said    string // the error in the child's last message, guarded by mu
	isDone  bool   // the child has sent its last message, guarded by mu
	stopped bool   // stop was called, guarded by mu
}

// toChild is the parent's side of the conversation.
type toChild struct{ *child.Process }

func (c toChild) Receive(v any) error { return c.Process.Receive(v, child.Forever) }

// newRemote starts a child that has its plan and is ready to work. On an error no child remains. The child shares our
// standard error, so that its output, for example a crash, is not lost. The plan contains the URL and so perhaps a
// password; it goes through a pipe, which, unlike an argument, nobody else can read.
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

// handle handles one message of the child, on the child's reader. The ledger answers at once, so a child delays only
// itself.
func (r *remote) handle(m message) {
	switch m.Kind {
	case msgEnter:
		p := r.ledger.enter(r.plan.Process, m.Key, m.Token)
		r.reply(m, message{Pass: &p})
	case msgWrite:
		r.reply(m, message{OK: r.ledger.write(m.Visit, m.Value)})
	case msgLeave:
		// This is answered too: the child releases its lock only when its visit has ended.
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

// reply answers a request of the child. Errors are ignored: a child that is gone needs no answer.
func (r *remote) reply(to, m message) {
	m.Kind, m.ID = msgAnswer, to.ID
	_ = r.line.send(m)
}

// start starts the child's goroutines.
func (r *remote) start() error {
	go r.watch()
	return r.line.send(message{Kind: msgStart})
}

// watch notices if the child ends without having been asked to: it ends its visits and reports a problem, since the
// run is not the intended one.
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

// obey passes an order on. If ctx ends first, the child may still carry it out.
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

// stats returns the child's latest figures, at most statsEvery old.
func (r *remote) stats() stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// metrics asks the child for its metrics, so that a child needs no port of its own.
func (r *remote) metrics(ctx context.Context) (string, error) {
	answer, ok := r.line.ask(ctx.Done(), message{Kind: msgScrape})
	if !ok || answer.Error != "" {
		return "", fmt.Errorf("no metrics: %s", answer.Error)
	}
	return answer.Text, nil
}

// stop asks the child to end and waits for it; the child then sends its last figures and the error of its Close,
// which stop returns. If ctx ends, the child is killed; its locks then end with their leases, as those of every
// process that dies.
func (r *remote) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	// In a goroutine, because a child that hangs may not even read; the goroutine ends with the child.
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
