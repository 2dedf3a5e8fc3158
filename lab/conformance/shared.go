package conformance

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// shared returns an RWMutex of m.
func (s *stage) shared(m *anteroom.Manager, key string, leaseTime time.Duration) *anteroom.RWMutex {
	s.Helper()
	rw, err := m.NewRWMutex(anteroom.LockConfig{Key: s.key(key), LeaseTime: leaseTime, WatchdogPeriod: watch, Fencing: true})
	s.ok(err)
	return rw
}

// A thousand readers of ten processes are in together. A writer waits, then nobody else comes in, and it has the lock
// because of the last release. Then all readers have it again because of its own.
func aThousandReaders(s *stage) {
	const processes, each = 10, 100
	w, _ := s.manager()
	rw := s.shared(w, "k", long)
	var readers []*anteroom.RWMutex
	for range processes {
		m, _ := s.manager()
		readers = append(readers, s.shared(m, "k", long))
	}
	all := func() (holds []*anteroom.Hold) {
		var wg sync.WaitGroup
		got := make(chan *anteroom.Hold, processes*each)
		for _, r := range readers {
			for range each {
				wg.Go(func() {
					h, err := r.RAcquire(s.Context())
					if err != nil {
						s.Error(err)
						return
					}
					got <- h
				})
			}
		}
		wg.Wait()
		close(got)
		for h := range got {
			holds = append(holds, h)
		}
		return holds
	}
	holds := all()
	info, err := w.Inspect(s.Context(), rw.Key())
	s.ok(err)
	if len(holds) != processes*each || len(info.Holders) != processes {
		s.Fatalf("%d readers, and %d processes in Redis", len(holds), len(info.Holders))
	}
	wrote := make(chan grant, 1)
	go func() {
		h, err := rw.Acquire(context.Background())
		wrote <- grant{hold: h, at: time.Now(), err: err}
	}()
	s.until("the writer stands", func() bool { return s.stands(rw.Key()) })
	s.until("no reader passes the writer", func() bool { // once the message has come, and the turn of its process is over
		h, err := readers[0].TryRAcquire(s.Context())
		if err == nil {
			s.release(h)
		} else if !errors.Is(err, anteroom.ErrNotAcquired) {
			s.ok(err)
		}
		return err != nil
	})
	for _, h := range holds {
		s.ok(h.Err())
		s.release(h)
	}
	released := time.Now()
	g := s.take(wrote)
	s.atMost("the turn of the writer", g.at.Sub(released), 10*time.Millisecond, time.Second)
	for _, h := range holds {
		if tokenOf(h) >= tokenOf(g.hold) {
			s.Fatalf("the writer has token %d, a reader before it %d", tokenOf(g.hold), tokenOf(h))
		}
	}
	again := make(chan []*anteroom.Hold, 1)
	go func() { again <- all() }()
	s.until("all processes stand", func() bool {
		info, err := w.Inspect(s.Context(), rw.Key())
		s.ok(err)
		return info.InLine == processes
	})
	begin := time.Now()
	s.release(g.hold)
	for _, h := range <-again {
		s.release(h)
	}
	s.atMost("the turn of the readers", time.Since(begin), 10*time.Millisecond, 3*time.Second)
}

// What a dead process has is free when its lease ends, and a deleted key is told to every reader.
func aDeadReader(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	dies, die := mortal(s.client())
	c, err := anteroom.NewManager(dies, anteroom.Config{CommandTimeout: commandTimeout, Logger: slog.New(slog.DiscardHandler)})
	s.ok(err)
	defer func() { _ = c.CloseWithin(time.Millisecond) }()
	read := func(m *anteroom.Manager) *anteroom.Hold {
		h, err := s.shared(m, "k", lease).RAcquire(s.Context())
		s.ok(err)
		return h
	}
	one, other, dead := read(a), read(b), read(c)
	s.until("the lease is the whole one", func() bool { return dead.TTL() > lease/2 })
	die()
	begin := time.Now()
	s.release(other)
	s.release(one)
	h, err := s.shared(b, "k", lease).Acquire(s.Context())
	s.ok(err)
	s.atMost("waiting for the end of a lease", time.Since(begin), lease+10*time.Millisecond, 3*time.Second)
	select {
	case <-dead.Context().Done():
	default:
		s.Error("a writer came in before the reader was notified")
	}
	s.release(h)
	one, other = read(a), read(b)
	s.removed(one, func() { s.ok(s.client().Del(s.Context(), s.key("k")).Err()) })
	<-other.Context().Done()
	s.is(other.Release(s.Context()), anteroom.ErrLost)
}
