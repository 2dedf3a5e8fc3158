package anteroom

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/anteroom/anteroom/sync/observe"
)

// rewind makes t a time with a wall reading that is earlier by d, which no method of it does
// without moving its monotonic reading.
func rewind(t *time.Time, d time.Duration) {
	const seconds = 30 // the place of the seconds in the first word, of a time with a monotonic reading
	*(*uint64)(unsafe.Pointer(t)) -= uint64(d/time.Second) << seconds
}

// clockWasSet makes m one that was made before somebody set the wall clock forward by d.
func clockWasSet(m *Manager, d time.Duration) {
	field := func(v reflect.Value, name string) unsafe.Pointer { return v.FieldByName(name).Addr().UnsafePointer() }
	clock := reflect.ValueOf(m.leases).Elem().FieldByName("clock").Elem()
	rewind((*time.Time)(field(clock, "base")), d)
	*(*int64)(field(clock, "baseWall")) -= int64(d)
	epoch := reflect.NewAt(clock.FieldByName("epoch").Type(), field(clock, "epoch")) // an atomic.Pointer
	first := epoch.MethodByName("Load").Call(nil)[0].Elem()
	rewind((*time.Time)(unsafe.Pointer(first.FieldByName("read").UnsafeAddr())), d)
}

// suspendable makes m that of a machine which was suspended for as long as asleep says now.
func suspendable(m *Manager, asleep *atomic.Int64) {
	clock := reflect.ValueOf(m.leases).Elem().FieldByName("clock").Elem()
	field := func(name string) unsafe.Pointer { return clock.FieldByName(name).Addr().UnsafePointer() }
	*(*func(time.Time) int64)(field("wall")) = func(now time.Time) int64 { return now.UnixNano() + asleep.Load() }
	*(*func() time.Duration)(field("suspended")) = func() time.Duration { return time.Duration(asleep.Load()) }
	*(*time.Duration)(field("origin")) = 0
}

// The wall clock was set while a lock was held. Every time that is shown is by the clock
// that is right now, and compares with the monotonic one as before.
func TestTimesForPeopleAfterTheClockWasSet(t *testing.T) {
	const d = time.Hour
	var lost observe.Event
	notified := make(chan struct{})
	m := insideManager(t, Config{OnEvent: func(e observe.Event) {
		if e.Kind == observe.EventLost {
			lost = e
			close(notified)
		}
	}})
	defer func() { _ = m.Close(context.Background()) }()
	m.leases.Stop()
	clockWasSet(m, d)
	m.leases.Start()
	h, err := m.Mutex("k").Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(m.Snapshot()[0].NextRenewal)) // the first one is soon, and makes the lease whole
	for m.Snapshot()[0].Deadline.Before(time.Now().Add(10 * time.Second)) {
		time.Sleep(time.Millisecond)
	}
	now := time.Now()
	s := m.Snapshot()[0]
	about := func(what string, at time.Time, want time.Duration) {
		t.Helper()
		for name, got := range map[string]time.Duration{"wall": at.Round(0).Sub(now.Round(0)), "monotonic": at.Sub(now)} {
			if (got - want).Abs() > 20*time.Second { // this machine is busy
				t.Errorf("%s: the %s clock shows %v after, want %v", what, name, got, want)
			}
		}
	}
	about("Hold.Deadline", h.Deadline(), 28*time.Second)
	about("Hold.Since", h.Since(), 0)
	about("State.Deadline", s.Deadline, 28*time.Second)
	about("State.NextRenewal", s.NextRenewal, 9*time.Second)
	about("State.Granted", s.Granted, 0)
	about("State.Since", s.Since, 0)
	if _, err := m.ForceRelease(context.Background(), "k"); err != nil {
		t.Fatal(err)
	}
	<-notified
	about("Event.At", lost.At, 0)
	about("Event.Since", lost.Since, 0)
	about("Event.LastConfirmed", lost.LastConfirmed, 0)
	about("Event.Deadline", lost.Deadline, 28*time.Second)
	_ = h.Release(context.Background())
}
