package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The rules of what a user of RWMutex and Semaphore writes, by the numbers of the design.

// x/sync's semaphore.Weighted.
var _ interface {
	Acquire(ctx context.Context, n int64) error
	TryAcquire(n int64) bool
	Release(n int64)
} = (*anteroom.Weighted)(nil)

type theHold = *anteroom.Hold

func TestShared_S1_Semaphore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		sa, sb := a.Semaphore("k", 5), b.Semaphore("k", 5)
		if sa.Capacity() != 5 || sa.Key() != "k" || sa.Config().Key != "k" || sa.Config().MaxHandoffTime != time.Millisecond {
			t.Errorf("%d %q %+v", sa.Capacity(), sa.Key(), sa.Config())
		}
		h := must[theHold](t)(sa.Acquire(bg, 3))
		if h.Units() != 3 {
			t.Errorf("%d units", h.Units())
		}
		if _, err := sb.TryAcquire(bg, 3); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("3 of 2: %v", err)
		}
		ok(t, sb.Do(bg, 2, func(context.Context) error {
			if _, err := sa.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("1 of 0: %v", err)
			}
			return nil
		}))
		more := must[theHold](t)(sa.Acquire(h.Context(), 2)) // in addition, not again
		ok(t, h.Release(bg))
		if _, err := sb.TryAcquire(bg, 4); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("4 of 3: %v", err)
		}
		ok(t, more.Release(bg))
		time.Sleep(time.Second)
		all := must[theHold](t)(sb.TryAcquire(bg, 5))
		ok(t, all.Release(bg))
	})
}

func TestShared_S1_Weighted(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		wa, wb := a.Semaphore("k", 5).Weighted(), b.Semaphore("k", 5).Weighted()
		ok(t, wa.Acquire(bg, 3))
		if !wb.TryAcquire(2) || wb.TryAcquire(1) || wa.TryAcquire(1) {
			t.Error("3 and 2 of 5")
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := wa.Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("1 of 0: %v", err)
		}
		wa.Release(1)
		wa.Release(2)
		ok(t, wb.Acquire(bg, 3))
		wb.Release(5)
		func() {
			defer func() {
				if e, is := recover().(*anteroom.Error); !is || !errors.Is(e, anteroom.ErrNotHeld) {
					t.Errorf("Release of what is not held panics with %v", e)
				}
			}()
			wb.Release(1)
		}()
	})
}

func TestShared_S2_Nested(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		r := must[theHold](t)(rw.RAcquire(bg))
		inner := must[theHold](t)(rw.RAcquire(r.Context()))
		began := time.Now()
		for name, acquire := range map[string]func(context.Context, ...anteroom.AcquireOption) (theHold, error){"Acquire": rw.Acquire, "TryAcquire": rw.TryAcquire} {
			if _, err := acquire(r.Context()); !errors.Is(err, anteroom.ErrUpgrade) {
				t.Errorf("%s in a read: %v", name, err)
			} else if e := err.(*anteroom.Error); e.Outcome != observe.OutcomeMistake || e.Key != "k" { //nolint:errorlint // it is one
				t.Errorf("%s: %+v", name, e)
			}
		}
		if time.Since(began) > 0 {
			t.Error("it was not refused immediately")
		}
		ok(t, r.Release(bg))
		if !inner.Held() {
			t.Error("the inner hold ended with the outer one")
		}
		ok(t, inner.Release(bg))
		ok(t, rw.Do(bg, func(ctx context.Context) error {
			return rw.RDo(ctx, func(ctx context.Context) error {
				return rw.Do(ctx, func(context.Context) error { return nil })
			})
		}))
		time.Sleep(time.Second)
		if s.Exists("k") {
			t.Error("the key is left")
		}
	})
}

func TestShared_S2_SelfDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		rw := m.RWMutex("k")
		for i, lock := range []func(){rw.Lock, rw.RLock} {
			rw.Lock()
			time.AfterFunc(time.Second, rw.Unlock)
			lock()
			if evs := rec.of(observe.EventSelfDeadlock); len(evs) != i+1 || evs[i].CallSite == "" || !strings.Contains(evs[i].Text, "shared_rules_test.go") {
				t.Errorf("events %+v", evs)
			}
			if i == 0 {
				rw.Unlock()
			} else {
				rw.RUnlock()
			}
		}
	})
}

func TestShared_S3_Downgrade(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		rw, other := a.RWMutex("k"), b.RWMutex("k")
		h := must[theHold](t)(rw.Acquire(bg))
		if h.Units() != 1<<20 {
			t.Errorf("a writer has %d units", h.Units())
		}
		ok(t, h.Downgrade())
		ok(t, h.Downgrade())
		if h.Units() != 1 {
			t.Errorf("a reader has %d units", h.Units())
		}
		if !rw.TryRLock() {
			t.Error("no reader beside it")
		} else {
			rw.RUnlock()
		}
		if _, err := rw.Acquire(h.Context()); !errors.Is(err, anteroom.ErrUpgrade) {
			t.Errorf("and back: %v", err)
		}
		r := must[theHold](t)(other.RAcquire(bg, anteroom.Wait(5*time.Millisecond))) // its process shrinks when told, not only when unused units go
		if _, err := other.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("a writer beside it: %v", err)
		}
		ok(t, r.Release(bg))
		ok(t, h.Release(bg))
		if err := h.Downgrade(); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("after the release: %v", err)
		}
		for _, h := range []theHold{must[theHold](t)(a.Mutex("m").Acquire(bg)), must[theHold](t)(a.Semaphore("s", 2).Acquire(bg, 1))} {
			if err := h.Downgrade(); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("of %s: %v", h.Key(), err)
			}
			ok(t, h.Release(bg))
		}
	})
}

func TestShared_S4_ALossIsNotifiedBeforeAnybodyElseComesIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, rec := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		r1, r2 := must[theHold](t)(a.RWMutex("k").RAcquire(bg)), must[theHold](t)(a.RWMutex("k").RAcquire(bg))
		time.Sleep(time.Second) // the lease is whole
		net.BlackHole()
		w := must[theHold](t)(b.RWMutex("k").Acquire(bg, anteroom.Wait(time.Minute)))
		for _, h := range []theHold{r1, r2} {
			if h.Held() || h.Context().Err() == nil {
				t.Error("a reader is not notified")
			}
			if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Err: %v", err)
			}
			var e *anteroom.Error
			if err := h.Release(bg); !errors.As(err, &e) || !errors.Is(err, anteroom.ErrLost) || time.Since(e.Since) < time.Second {
				t.Errorf("Release: %v", err)
			}
		}
		net.Heal()
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Owners != 2 || evs[0].Reason != observe.LostDeadline || evs[0].Holder != a.ClientID() {
			t.Errorf("events %+v", evs)
		}
		ok(t, w.Release(bg))
	})
}

// Readers by RLock are not notified, so nobody comes in here before they have left.
func TestShared_S4_NobodyComesInBesideLostReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		rw.RLock()
		time.Sleep(time.Second)
		s.Del("k")
		for len(rec.of(observe.EventLost)) == 0 {
			time.Sleep(time.Second)
		}
		if rw.TryRLock() || rw.TryLock() || rw.TryLockFor(time.Minute) {
			t.Error("somebody came in")
		}
		rw.RUnlock()
		if !rw.TryLockFor(time.Minute) {
			t.Error("nobody comes in afterwards")
		} else {
			rw.Unlock()
		}
	})
}

func TestShared_S4_UnlockOfALostLockIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		rw.Lock()
		time.Sleep(time.Second)
		s.Del("k")
		for len(rec.of(observe.EventLost)) == 0 {
			time.Sleep(time.Second)
		}
		rw.Unlock()
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventUnlockLost); len(evs) != 1 || evs[0].Reason != observe.LostGone {
			t.Errorf("events %+v", evs)
		}
	})
}

func TestShared_S5_Tokens(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
		b, _ := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
		last := int64(0) // of a writer
		for i := range 30 {
			rw := []*anteroom.Manager{a, b}[i%3%2].RWMutex("k")
			other := []*anteroom.Manager{b, a}[i%2].RWMutex("k")
			r := must[theHold](t)(other.RAcquire(bg))
			read := tokenOf(r)
			if read < last {
				t.Errorf("a reader's %d is below %d of a writer before it", read, last)
			}
			ok(t, r.Release(bg))
			w := must[theHold](t)(rw.Acquire(bg))
			if tokenOf(w) <= last || tokenOf(w) <= read {
				t.Errorf("a writer's %d is not above %d and the reader's %d", tokenOf(w), last, read)
			}
			last = tokenOf(w)
			ok(t, w.Release(bg))
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
	})
}

func TestShared_S6_CapacitiesMayDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		few := must[theHold](t)(b.Semaphore("k", 2).Acquire(bg, 1))
		many := a.Semaphore("k", 5)
		h := must[theHold](t)(many.Acquire(bg, 1))
		if _, err := many.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("above the lesser capacity: %v", err)
		}
		ok(t, few.Release(bg))
		time.Sleep(time.Second)
		others := must[theHold](t)(many.TryAcquire(bg, 4))
		ok(t, others.Release(bg))
		ok(t, h.Release(bg))
		if _, err := a.Semaphore("k", 5).Acquire(bg, 1); err != nil {
			t.Error(err)
		}
	})
}

func TestShared_S7_NIsFromOneToTheCapacity(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		sem := m.Semaphore("k", 5)
		began := time.Now()
		for _, n := range []int64{-1, 0, 6} {
			_, err1 := sem.Acquire(bg, n)
			_, err2 := sem.TryAcquire(bg, n)
			errs := []error{err1, err2, sem.Do(bg, n, nil)}
			if n != 0 { // which Weighted takes, as x/sync's does
				errs = append(errs, sem.Weighted().Acquire(bg, n))
			}
			for _, err := range errs {
				if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "from 1 to the capacity, here 5") {
					t.Errorf("%d: %v", n, err)
				}
			}
		}
		if time.Since(began) > 0 {
			t.Error("it was not refused immediately")
		}
		for _, capacity := range []int64{-1, 0, 1<<29 + 1} {
			if _, err := m.NewSemaphore(anteroom.LockConfig{Key: "k"}, capacity); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("capacity %d: %v", capacity, err)
			}
			if _, err := m.Semaphore("k", capacity).Acquire(bg, 1); !errors.Is(err, anteroom.ErrConfig) || m.Semaphore("k", capacity).Capacity() != 0 {
				t.Errorf("capacity %d: %v", capacity, err)
			}
		}
	})
}

func TestShared_S8_OneKeyOneKind(t *testing.T) {
	kinds := map[string]func(m *anteroom.Manager) (theHold, error){
		"a Mutex":     func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").TryAcquire(bg) },
		"an RWMutex":  func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").TryRAcquire(bg) },
		"a Semaphore": func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 3).TryAcquire(bg, 1) },
	}
	for is, first := range kinds {
		for wants, second := range kinds {
			if is == wants {
				continue
			}
			t.Run(fmt.Sprintf("%s, not %s", is, wants), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					a, _ := manager(t, s.client(), anteroom.Config{})
					b, _ := manager(t, s.client(), anteroom.Config{})
					h := must[theHold](t)(first(a))
					_, here := second(a)
					_, there := second(b)
					named := is
					if wants == "a Mutex" { // which knows no other kinds in Redis
						named = "a lock of another kind"
					}
					if !errors.Is(here, anteroom.ErrConfig) || !strings.Contains(here.Error(), is) {
						t.Errorf("in the same process: %v", here)
					}
					if !errors.Is(there, anteroom.ErrConfig) || !strings.Contains(there.Error(), named[2:]) {
						t.Errorf("in another one: %v", there)
					}
					if !h.Held() {
						t.Error("the holder has lost it")
					}
					ok(t, h.Release(bg))
					time.Sleep(time.Minute)
					ok(t, must[theHold](t)(second(b)).Release(bg))
				})
			})
		}
	}
}

func TestShared_S9_WhatOnlyAMutexCan(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for field, cfg := range map[string]anteroom.LockConfig{
			"Reentrant": {Reentrant: true}, "StringHolders": {StringHolders: true}, "Linger": {Linger: time.Second}, "MinHold": {MinHold: time.Second},
			"Replicas": {Replicas: 1}, "RenewalTime": {RenewalTime: -1}, "Fencing": {Fencing: true},
		} {
			cfg.Key = "k"
			_, err := m.NewSemaphore(cfg, 3)
			if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), field) {
				t.Errorf("a Semaphore with %s: %v", field, err)
			}
			_, err = m.NewRWMutex(cfg)
			if field != "Fencing" && (!errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), field)) || field == "Fencing" && err != nil {
				t.Errorf("an RWMutex with %s: %v", field, err)
			}
		}
		if _, err := m.RWMutex("k").Acquire(bg, anteroom.Note("n")); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("Note: %v", err)
		}
		h := must[theHold](t)(m.RWMutex("k").Acquire(bg))
		if err := h.Extend(bg, time.Minute); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("Extend: %v", err)
		}
		if _, err := h.Detach(bg, time.Minute); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("Detach: %v", err)
		}
		if !h.Held() {
			t.Error("it is lost by that")
		}
		ok(t, h.Release(bg))
		r, err := anteroom.NewManager(s.client(), anteroom.Config{Dialect: anteroom.DialectRedisson})
		ok(t, err)
		defer r.Close(bg)
		if _, err := r.NewRWMutex(anteroom.LockConfig{Key: "k"}); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("in Redisson's dialect: %v", err)
		}
	})
}

// A default that is not for this kind of lock is ignored, whatever bounds it has beside the lock's own fields. One that
// makes a promise which only a Mutex can keep is refused.
func TestShared_S9_DefaultsOfAMutex(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		for field, d := range map[string]anteroom.LockConfig{
			"Reentrant": {Reentrant: true}, "StringHolders": {StringHolders: true}, "Linger": {Linger: time.Second},
			"ReplicaTimeout": {ReplicaTimeout: 2 * time.Second},
			"Fencing":        {Fencing: true}, "FenceRecordTime": {FenceRecordTime: time.Hour},
			"Fair": {Fair: true}, "MaxHandoffs": {MaxHandoffs: -1}, "MaxHold": {MaxHold: time.Hour},
		} {
			m, _ := manager(t, s.client(), anteroom.Config{Defaults: d})
			for _, own := range []anteroom.LockConfig{{}, {LeaseTime: time.Second, MaxHold: time.Second}, {LeaseTime: 20 * time.Hour}} {
				own.Key = "sem " + field
				sem, err := m.NewSemaphore(own, 3)
				if err != nil {
					t.Errorf("a Semaphore of LeaseTime %v, by default %s: %v", own.LeaseTime, field, err)
				} else if c := sem.Config(); c.Fencing || c.Reentrant || c.StringHolders || c.Linger > 0 {
					t.Errorf("by default %s: %+v", field, c)
				}
				if field == "FenceRecordTime" && own.LeaseTime > time.Hour { // it is for an RWMutex, and too brief
					continue
				}
				own.Key = "rw " + field
				if rw, err := m.NewRWMutex(own); err != nil || rw.Config().Fencing != d.Fencing {
					t.Errorf("an RWMutex of LeaseTime %v, by default %s: %v", own.LeaseTime, field, err)
				}
			}
			ok(t, must[theHold](t)(m.Semaphore("s", 3).TryAcquire(bg, 3)).Release(bg))
			ok(t, must[theHold](t)(m.RWMutex("r").TryAcquire(bg)).Release(bg))
			ok(t, m.Close(bg))
		}
		m, _ := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
		if _, err := m.NewSemaphore(anteroom.LockConfig{Key: "k", Fencing: true}, 3); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("its own Fencing: %v", err)
		}
		for _, d := range []anteroom.LockConfig{{MinHold: 2 * time.Second}, {Replicas: 1}, {RenewalTime: -1}} {
			m, _ := manager(t, s.client(), anteroom.Config{Defaults: d})
			if _, err := m.RWMutex("k").Acquire(bg); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("an RWMutex by default %+v: %v", d, err)
			}
			if _, err := m.NewSemaphore(anteroom.LockConfig{Key: "k"}, 3); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("a Semaphore by default %+v: %v", d, err)
			}
		}
	})
}

// Lease ends one Hold, and not what its process has.
func TestShared_S9_Lease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		short, long := must[theHold](t)(rw.RAcquire(bg, anteroom.Lease(10*time.Second))), must[theHold](t)(rw.RAcquire(bg))
		if ttl := short.TTL(); ttl > 10*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		time.Sleep(9 * time.Second)
		if !short.Held() {
			t.Errorf("too early: %v", short.Err())
		}
		<-short.Context().Done()
		if !errors.Is(context.Cause(short.Context()), anteroom.ErrLost) || short.Held() || !long.Held() {
			t.Errorf("%v, %v, %v", context.Cause(short.Context()), short.Held(), long.Err())
		}
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Reason != observe.LostFixed || evs[0].Owners != 1 {
			t.Errorf("events %+v", evs)
		}
		ok(t, long.Release(bg))
		w := must[theHold](t)(rw.Acquire(bg, anteroom.Wait(time.Second)))
		if err := short.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		if !w.Held() {
			t.Error("that has freed the writer")
		}
		ok(t, w.Release(bg))
	})
}

// Under all units readers and writers of a process follow each other without Redis. With one unit a writer's want is stated
// immediately, while the readers leave.
func TestShared_S28_LocalReadersAndWriters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb, sent := s.client(), &traffic{}
		rdb.AddHook(sent)
		m, _ := manager(t, rdb, anteroom.Config{})
		rw := m.RWMutex("k")
		rw.Lock()
		time.Sleep(time.Second) // the call lease was renewed
		sent.take()
		var all sync.WaitGroup
		for _, l := range []sync.Locker{rw, rw.RLocker(), rw.RLocker(), rw, rw.RLocker(), rw} {
			all.Go(func() {
				for range 20 {
					l.Lock()
					time.Sleep(time.Millisecond)
					l.Unlock()
				}
			})
		}
		synctest.Wait()
		rw.Unlock()
		all.Wait()
		if n := sent.take(); n > 1 { // a renewal, which asks whether another client waits
			t.Errorf("%d commands", n)
		}
		time.Sleep(time.Second)

		rw.RLock()
		time.Sleep(time.Second)
		sent.take()
		locked := make(chan bool, 1)
		go func() { rw.Lock(); locked <- true }()
		s.settle()
		if units := strings.Fields(s.HGet("k", m.ClientID()))[1]; units != fmt.Sprint(1<<20) || sent.take() != 1 || len(locked) > 0 {
			t.Errorf("the process has %s units, and the writer is in: %d", units, len(locked))
		}
		rw.RUnlock()
		s.settle()
		if sent.take() > 0 || len(locked) == 0 {
			t.Error("the writer waits for another answer")
		}
		rw.Unlock()
	})
}

// After the exit of who was here alone, another process finds the lock free.
func TestShared_S30_ATryAfterAnExitSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		ra, rb := a.RWMutex("k"), b.RWMutex("k")
		for range 3 {
			pass(ra.RLocker())
			if !rb.TryLock() {
				t.Error("TryLock after RUnlock")
			} else {
				rb.Unlock()
			}
			if !ra.TryRLock() {
				t.Error("TryRLock after Unlock")
			} else {
				ra.RUnlock()
			}
			time.Sleep(time.Second)
		}
	})
}

func TestShared_OneKeyOneConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := must[theHold](t)(m.RWMutex("k").RAcquire(bg))
		fair, err := m.NewRWMutex(anteroom.LockConfig{Key: "k", Fair: true})
		ok(t, err)
		if _, err := fair.RAcquire(bg); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "Fair") {
			t.Errorf("RAcquire: %v", err)
		}
		func() {
			defer func() {
				if e, is := recover().(*anteroom.Error); !is || !errors.Is(e, anteroom.ErrConfig) {
					t.Errorf("RLock: %v", e)
				}
			}()
			fair.RLock()
		}()
		if err := m.Destroy("k"); !errors.Is(err, anteroom.ErrInUse) {
			t.Errorf("Destroy: %v", err)
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Minute)
		ok(t, m.Destroy("k"))
	})
}

func TestShared_Close(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		h := must[theHold](t)(rw.RAcquire(bg))
		failed := make(chan error, 1)
		go func() {
			_, err := rw.Acquire(bg)
			failed <- err
		}()
		synctest.Wait()
		err := m.CloseWithin(time.Second)
		if !errors.Is(err, anteroom.ErrClosed) || !strings.Contains(err.Error(), `"k" is still held`) {
			t.Errorf("Close: %v", err)
		}
		if err := <-failed; !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("who waits gets %v", err)
		}
		if err := context.Cause(h.Context()); !errors.Is(err, anteroom.ErrClosed) || !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("who holds gets %v", err)
		}
		if _, err := rw.RAcquire(bg); !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("who comes gets %v", err)
		}
		func() {
			defer func() {
				if e, is := recover().(*anteroom.Error); !is || !errors.Is(e, anteroom.ErrClosed) {
					t.Errorf("RLock panics with %v", e)
				}
			}()
			rw.RLock()
		}()
		_ = h.Release(bg)
	})
}

func TestShared_AnAbandonedHoldIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		rw, err := m.NewRWMutex(anteroom.LockConfig{Key: "rw", Recovery: anteroom.RecoverRelease})
		ok(t, err)
		kept := must[theHold](t)(rw.RAcquire(bg)).Context()
		func() {
			must[theHold](t)(rw.RAcquire(bg))
			must[theHold](t)(m.Semaphore("sem", 3).Acquire(bg, 2))
		}()
		for range 100 {
			runtime.GC()
			time.Sleep(6 * time.Second)
			if len(rec.of(observe.EventAbandoned)) == 2 {
				break
			}
		}
		time.Sleep(time.Minute)
		seen := map[string]int{}
		for _, ev := range rec.of(observe.EventAbandoned) {
			seen[ev.Key]++
			if ev.CallSite == "" || ev.Holder != m.ClientID() {
				t.Errorf("%+v", ev)
			}
		}
		if len(seen) != 2 || seen["rw"] != 1 || seen["sem"] != 1 {
			t.Fatalf("reported %v, want rw and sem, once each", seen)
		}
		if kept.Err() != nil {
			t.Errorf("who keeps the context: %v", kept.Err())
		}
		h, _ := anteroom.HoldFrom(kept)
		ok(t, h.Release(bg))
		ok(t, must[theHold](t)(rw.TryAcquire(bg)).Release(bg))
	})
}

func TestShared_ATraceEnds(t *testing.T) {
	type traced struct{}
	bubble(t, func(t *testing.T, s *embedded) {
		began, ended, withContext := 0, 0, 0
		var released []observe.Outcome
		m, _ := manager(t, s.client(), anteroom.Config{
			Tracer: &observe.Tracer{StartAcquire: func(ctx context.Context, a observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				began++
				if ctx.Value(traced{}) != nil && !a.Lock {
					withContext++
				}
				return ctx, func(observe.AcquireEnd) { ended++ }
			}},
			Observer: &observe.Observer{Released: func(_ string, o observe.Outcome, _ time.Duration) { released = append(released, o) }},
		})
		rw := m.RWMutex("k")
		pass(rw.RLocker())
		pass(rw)
		ok(t, must[theHold](t)(rw.RAcquire(bg)).Release(bg))
		_, _ = m.Semaphore("s", 1).Acquire(bg, 2)
		ok(t, m.Semaphore("s", 1).Weighted().Acquire(context.WithValue(bg, traced{}, 1), 1))
		m.Semaphore("s", 1).Weighted().Release(1)
		if began != 5 || ended != began || withContext != 1 {
			t.Errorf("%d began, %d with a context, %d ended", began, withContext, ended)
		}
		if len(released) != 2 {
			t.Errorf("released %v", released)
		}
	})
}

func TestShared_Snapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		rw, sem := m.RWMutex("rw"), m.Semaphore("sem", 5)
		w, two := must[theHold](t)(rw.Acquire(bg)), must[theHold](t)(sem.Acquire(bg, 2))
		waits := make(chan theHold, 1)
		go func() { waits <- must[theHold](t)(rw.RAcquire(bg)) }()
		time.Sleep(time.Second)
		for _, states := range [][]observe.State{m.Snapshot(), m.Survey(observe.SurveyOptions{}).States} {
			byKey := map[string]observe.State{}
			for _, s := range states {
				byKey[s.Key] = s
			}
			if len(byKey) != 2 {
				t.Fatalf("%+v", states)
			}
			if s := byKey["rw"]; s.Status != "owned" || s.Holder != m.ClientID() || s.Goroutine == 0 || s.Kind != "hold" || s.CallSite == "" ||
				s.Units != 1<<20 || s.Used != 1<<20 || s.Readers != 0 || s.Count != 1 || s.Waiting != 1 || len(s.Waiters) != 1 ||
				s.Waiters[0].Waiting != time.Second || s.Waiters[0].CallSite == "" || s.Deadline.IsZero() || s.NextRenewal.IsZero() {
				t.Errorf("rw: %+v", s)
			}
			if s := byKey["sem"]; s.Status != "owned" || s.Units != 2 || s.Used != 2 || s.Capacity != 5 || s.Count != 1 || s.Waiting != 0 {
				t.Errorf("sem: %+v", s)
			}
		}
		if c := m.Counts()["default"]; c.Held != 2 || c.Waiting != 1 || c.OldestWait != time.Second {
			t.Errorf("counts %+v", c)
		}
		info := must[anteroom.Info](t)(m.Inspect(bg, "sem"))
		if info.Kind != "Semaphore" || info.Capacity != 5 || len(info.Holders) != 1 || info.Holders[0].Client != m.ClientID() || info.Holders[0].Count != 2 {
			t.Errorf("%+v", info)
		}
		ok(t, w.Release(bg))
		r := <-waits
		for _, s := range m.Snapshot() {
			if s.Key == "rw" && (s.Readers != 1 || s.Goroutine != 0 || s.Status != "owned") {
				t.Errorf("%+v", s)
			}
		}
		ok(t, r.Release(bg))
		ok(t, two.Release(bg))
		time.Sleep(time.Minute)
		if states := m.Snapshot(); len(states) != 0 {
			t.Errorf("left behind %+v", states)
		}
	})
}

// A long wait names how many readers of this process keep the writer out, and where those came in that are known by name.
func TestShared_S2_ALongWaitNamesTheReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true, LongWait: 5 * time.Second})
		rw := m.RWMutex("k")
		rw.RLock()
		h := must[theHold](t)(rw.RAcquire(bg))
		go pass(rw)
		time.Sleep(20 * time.Second)
		evs := rec.of(observe.EventLongWait)
		if len(evs) != 1 || evs[0].Waiters != 1 || !strings.Contains(evs[0].Text, "read by 2 callers") || !strings.Contains(evs[0].Text, "shared_rules_test.go") {
			t.Errorf("events %+v", evs)
		}
		ok(t, h.Release(bg))
		rw.RUnlock()
		time.Sleep(time.Second)
	})
}

// A release that finds the units gone returns that, and it is reported.
func TestShared_S4_AReleaseFindsTheLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		time.Sleep(time.Second) // what comes alone, long after the last one, goes back immediately
		for i, h := range []theHold{must[theHold](t)(m.RWMutex("k").Acquire(bg)), must[theHold](t)(m.Semaphore("sem", 2).Acquire(bg, 1))} {
			s.Del(h.Key())
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Release of %s: %v", h.Key(), err)
			}
			time.Sleep(time.Second)
			if evs := rec.of(observe.EventLost); len(evs) != i+1 || evs[i].Owners != 1 || evs[i].Reason != observe.LostGone {
				t.Errorf("after %s: events %+v", h.Key(), evs)
			}
		}
	})
}

// ForceRelease takes all units, and their holders are notified.
func TestShared_ForceRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, rec := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := must[theHold](t)(a.Semaphore("k", 3).Acquire(bg, 2))
		time.Sleep(time.Second)
		broken := must[[]string](t)(b.ForceRelease(bg, "k"))
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventLost); len(broken) != 1 || h.Held() || len(evs) != 1 || evs[0].Reason != observe.LostForced {
			t.Errorf("broken %v, the holder: %v, events %+v", broken, h.Err(), evs)
		}
		_ = h.Release(bg)
		ok(t, must[theHold](t)(b.Semaphore("k", 3).TryAcquire(bg, 3)).Release(bg))
	})
}

// MaxHold ends a Hold whose process keeps its other units.
func TestShared_MaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		sem, err := m.NewSemaphore(anteroom.LockConfig{Key: "k", MaxHold: 20 * time.Second, Recovery: anteroom.RecoverRelease}, 3)
		ok(t, err)
		old := must[theHold](t)(sem.Acquire(bg, 2))
		time.Sleep(15 * time.Second)
		young := must[theHold](t)(sem.Acquire(bg, 1))
		time.Sleep(15 * time.Second)
		if old.Held() || !errors.Is(context.Cause(old.Context()), anteroom.ErrLost) || !young.Held() {
			t.Errorf("the old one: %v, the young one: %v", old.Err(), young.Err())
		}
		if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Reason != observe.LostWatchdog {
			t.Errorf("events %+v", evs)
		}
		if _, err := sem.TryAcquire(bg, 2); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("beside one who may still work: %v", err)
		}
		_ = old.Release(bg)
		ok(t, must[theHold](t)(sem.TryAcquire(bg, 2)).Release(bg))
		ok(t, young.Release(bg))
	})
}

// A try for more than those of its own process leave is refused immediately.
func TestShared_S24_ATryBesideItsOwnProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		sem := m.Semaphore("k", 3)
		h := must[theHold](t)(sem.Acquire(bg, 2))
		time.AfterFunc(time.Minute, func() { _ = h.Release(bg) })
		began := time.Now()
		if _, err := sem.TryAcquire(bg, 2); !errors.Is(err, anteroom.ErrNotAcquired) || time.Since(began) > time.Second {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
		if sem.Weighted().TryAcquire(2) || time.Since(began) > time.Second {
			t.Errorf("after %v", time.Since(began))
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestShared_S7_TheLargestCapacity: nothing overflows.
func TestShared_S7_TheLargestCapacity(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		const most = 1 << 29
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := must[*anteroom.Hold](t)(a.Semaphore("k", most).Acquire(bg, most))
		if _, err := b.Semaphore("k", most).TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("one more elsewhere: %v", err)
		}
		if _, err := a.Semaphore("k", most).TryAcquire(bg, most); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("as many more here: %v", err)
		}
		ok(t, h.Release(bg))
		ok(t, must[*anteroom.Hold](t)(b.Semaphore("k", most).Acquire(bg, most)).Release(bg))
	})
}
