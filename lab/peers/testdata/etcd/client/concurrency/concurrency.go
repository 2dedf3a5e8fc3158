// Package concurrency has etcd's API over Anteroom: its Mutex, and the Election of package leader.
package concurrency

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	v3 "go.etcd.io/etcd/client/v3"

	"github.com/anteroom/anteroom/leader"
	anteroom "github.com/anteroom/anteroom/sync"
)

var (
	ErrElectionNoLeader = errors.New("election: no leader")
	ErrLocked           = errors.New("mutex: Locked by another session")
	ErrSessionExpired   = errors.New("mutex: session is expired")
	ErrLockReleased     = errors.New("mutex: lock has already been released")
)

// Session is a lease, which it extends until Orphan.
type Session struct {
	*v3.Granted
	Orphan func()
	ctx    context.Context
	id     v3.LeaseID
	ttl    int64
}

type SessionOption func(*Session)

func WithTTL(seconds int) SessionOption        { return func(s *Session) { s.ttl = int64(seconds) } }
func WithLease(lease v3.LeaseID) SessionOption { return func(s *Session) { s.id = lease } }

func NewSession(client *v3.Client, opts ...SessionOption) (*Session, error) {
	s := &Session{ttl: 60}
	for _, o := range opts {
		o(s)
	}
	if s.id == 0 {
		granted, err := client.Grant(context.Background(), s.ttl)
		if err != nil {
			return nil, err
		}
		s.id = granted.ID
	}
	s.Granted = v3.Find(s.id)
	s.ctx, s.Orphan = context.WithCancel(s.Hold.Context())
	go func() {
		for s.ctx.Err() == nil {
			select {
			case <-s.ctx.Done():
			case <-time.After(s.TTL / 3):
				_ = s.Hold.Extend(s.ctx, s.TTL) // without that it ends by itself
			}
		}
	}()
	return s, nil
}

func (s *Session) Lease() v3.LeaseID     { return s.id }
func (s *Session) Ctx() context.Context  { return s.ctx }
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }
func (s *Session) Close() error          { s.Orphan(); return s.Revoke() }

// keep has end called when the lease is over, or by giveBack.
func (s *Session) keep(key string, end func(context.Context) error) error {
	s.Kept.Store(key, end)
	if s.Hold.Held() {
		return nil
	}
	return errors.Join(ErrSessionExpired, s.giveBack(context.Background(), key))
}

func (s *Session) giveBack(ctx context.Context, key string) error {
	end, kept := s.Kept.LoadAndDelete(key)
	if !kept {
		return ErrLockReleased
	}
	return end.(func(context.Context) error)(ctx)
}

type Mutex struct {
	s   *Session
	pfx string
}

func NewMutex(s *Session, pfx string) *Mutex { return &Mutex{s, pfx} }

func (m *Mutex) Lock(ctx context.Context) error    { return m.lock(ctx, (*anteroom.Mutex).Acquire) }
func (m *Mutex) TryLock(ctx context.Context) error { return m.lock(ctx, (*anteroom.Mutex).TryAcquire) }
func (m *Mutex) Unlock(ctx context.Context) error  { return m.s.giveBack(ctx, m.pfx) }

func (m *Mutex) lock(ctx context.Context, acquire func(*anteroom.Mutex, context.Context, ...anteroom.AcquireOption) (*anteroom.Hold, error)) error {
	if _, locked := m.s.Kept.Load(m.pfx); locked {
		return nil
	}
	hold, err := acquire(m.s.Mutex(m.s.Prefix+m.pfx), ctx)
	switch {
	case errors.Is(err, anteroom.ErrClosed):
		return ErrSessionExpired
	case errors.Is(err, anteroom.ErrNotAcquired) && ctx.Err() == nil:
		return ErrLocked
	case err != nil:
		return err
	}
	return m.s.keep(m.pfx, hold.Release)
}

type Election Mutex

func NewElection(s *Session, pfx string) *Election { return &Election{s, pfx} }

// ResumeElection is NewElection, since the lease knows what its session leads.
func ResumeElection(s *Session, pfx, _ string, _ int64) *Election { return NewElection(s, pfx) }

func (e *Election) candidate(note string) *leader.Election {
	c, err := leader.New(e.s.Manager, anteroom.LockConfig{Key: e.s.Prefix + e.pfx}, note)
	if err != nil {
		panic(err)
	}
	return c
}

func (e *Election) Campaign(ctx context.Context, value string) error {
	if _, leads := e.s.Kept.Load(e.pfx); leads {
		return e.Proclaim(ctx, value)
	}
	run, stop := context.WithCancel(context.Background())
	elected, ended := make(chan struct{}), make(chan error, 1)
	resign := func(context.Context) error { stop(); return <-ended }
	go func() {
		ended <- e.candidate(value).Run(run, func(term context.Context) error {
			close(elected)
			<-term.Done()
			stop() // one term
			return nil
		})
	}()
	select {
	case <-elected:
		return e.s.keep(e.pfx, resign)
	case err := <-ended:
		return errors.Join(ErrSessionExpired, err)
	case <-ctx.Done():
		return errors.Join(ctx.Err(), resign(ctx))
	}
}

// Proclaim would change a leader's note within its term.
func (e *Election) Proclaim(context.Context, string) error { return errors.ErrUnsupported }
func (e *Election) Resign(ctx context.Context) error       { return e.s.giveBack(ctx, e.pfx) }

func (e *Election) Leader(ctx context.Context) (*v3.GetResponse, error) {
	l, err := e.candidate("").Leader(ctx)
	if err == nil && l.ID == "" {
		err = ErrElectionNoLeader
	}
	return e.response(l), err
}

func (e *Election) Observe(ctx context.Context) <-chan *v3.GetResponse {
	ch := make(chan *v3.GetResponse)
	go func() {
		defer close(ch)
		for l := range e.candidate("").Observe(ctx) {
			if l.Note != "" {
				select {
				case ch <- e.response(l):
				case <-ctx.Done():
				}
			}
		}
	}()
	return ch
}

func (e *Election) response(l leader.Leader) *v3.GetResponse {
	return &v3.GetResponse{Kvs: []*mvccpb.KeyValue{{Key: []byte(e.pfx + "/" + l.ID), Value: []byte(l.Note)}}}
}
