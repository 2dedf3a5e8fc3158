package anteroomgocron

import (
	"cmp"
	"context"
	"errors"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Elector is a gocron.Elector: all jobs run in the process that leads. A job that runs when leadership is lost continues
// beside the next leader's. If that does harm, start the scheduler in leader.Election.Run instead, and stop its jobs when
// the term's context ends. It is safe for concurrent use.
type Elector struct {
	election *leader.Election
	ctx      context.Context // of the candidature; its cause is the election's error
	stop     context.CancelCauseFunc
	ended    chan struct{}
}

// NewElector begins a candidature, which lasts until Close. cfg.Key, "gocron:leader" by default, names what the
// candidates compete for; cfg and note are those of leader.New, and so is the error.
func NewElector(m *anteroom.Manager, cfg anteroom.LockConfig, note string) (*Elector, error) {
	cfg.Key, cfg.Name = cmp.Or(cfg.Key, "gocron:leader"), cmp.Or(cfg.Name, "gocron")
	election, err := leader.New(m, cfg, note)
	if err != nil {
		return nil, err
	}
	e := &Elector{election: election, ended: make(chan struct{})}
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	go func() {
		defer close(e.ended)
		e.stop(election.Run(e.ctx, func(term context.Context) error { <-term.Done(); return nil }))
	}()
	return e, nil
}

var errNotLeader = errors.New("anteroomgocron: this process does not lead")

// IsLeader returns nil if this process leads now, by the clock; see leader.Election.Leading. Otherwise gocron leaves the
// tick out, without a log line. The error says why if the candidature has ended, such as ErrClosed. It asks nobody.
func (e *Elector) IsLeader(context.Context) error {
	if e.election.Leading() {
		return nil
	}
	return errors.Join(errNotLeader, context.Cause(e.ctx))
}

// Close ends the candidature, and hands leadership over. It returns when that has happened, or continues in the
// background. Call it after the scheduler's Shutdown, which waits for jobs, and before the Manager's Close.
func (e *Elector) Close() {
	e.stop(nil)
	<-e.ended
}
