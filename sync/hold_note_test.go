package anteroom_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A note is with its hold, for those who read it or are refused, and goes with it.
func TestNote(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		const text = "import of März, host-7:8080"
		h := acquire(t, m.Mutex("k"), anteroom.Note(text))
		noted := func() string {
			info, err := other.Inspect(bg, "k")
			ok(t, err)
			if len(info.Holders) == 0 {
				return "free"
			}
			return info.Holders[0].Note
		}
		for name, m := range map[string]*anteroom.Manager{"of another process": other, "of its own": m} {
			_, err := m.Mutex("k").TryAcquire(bg)
			if of, _ := errors.AsType[*anteroom.Error](err); of == nil || of.Note != text || !strings.Contains(err.Error(), text) {
				t.Errorf("a waiter %s: %v", name, err)
			}
		}
		time.Sleep(time.Minute) // renewed and looked at
		ok(t, h.Err())
		if got := noted(); got != text {
			t.Errorf("noted %q", got)
		}
		here := make(chan *anteroom.Hold)
		go func() { here <- acquire(t, m.Mutex("k"), anteroom.Note("second")) }()
		s.settle()
		ok(t, h.Release(bg))
		second := <-here
		if got := noted(); got != "second" {
			t.Errorf("noted %q", got)
		}
		go func() { here <- acquire(t, m.Mutex("k")) }()
		s.settle()
		ok(t, second.Release(bg))
		third := <-here
		if got := noted(); got != "" {
			t.Errorf("the note of an owner is left with the next: %q", got)
		}
		ok(t, third.Release(bg))
		if got := noted(); got != "free" {
			t.Errorf("noted %q", got)
		}
	})
}

// What is no note is refused before anything is sent.
func TestNote_WhatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for _, text := range []string{strings.Repeat("x", 257), "two\nlines", "\xff", "a\x00"} {
			if _, err := m.Mutex("k").Acquire(bg, anteroom.Note(text)); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("%.10q: %v", text, err)
			}
		}
		s.nothing(t, "k")
		h := acquire(t, m.Mutex("k"), anteroom.Note(strings.Repeat("x", 256)))
		if _, err := m.Mutex("k").Acquire(h.Context(), anteroom.Note("inner")); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("of an inner Hold: %v", err)
		}
		ok(t, h.Release(bg))
		h = acquire(t, m.Mutex("k"), anteroom.AcquireOption{}, anteroom.Lease(time.Minute), anteroom.Note("both"))
		ok(t, h.Extend(bg, 2*time.Minute))
		ok(t, h.Release(bg))
	})
}

// A real server, which no test double replaces.
func TestNote_OnAServer(t *testing.T) {
	t.Parallel()
	server := testredis.Start(t)
	counts := newCounter()
	m, rec := manager(t, server.Client(t), anteroom.Config{Observer: hooks(counts), Defaults: anteroom.LockConfig{
		LeaseTime: pace.Scale(4 * time.Second), WatchdogPeriod: 50 * time.Millisecond,
	}})
	h := acquire(t, m.Mutex("k"), anteroom.Note("a note"))
	eventually(t, "renewed", func() bool { return counts.get("renewed/renewed") > 0 })
	ok(t, h.Err())
	info, err := m.Inspect(bg, "k")
	ok(t, err)
	if info.Holders[0].Note != "a note" || info.Holders[0].Count != 1 {
		t.Errorf("%+v", info.Holders)
	}
	ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
	h = must[*anteroom.Hold](t)(m.Mutex("k").Resume(bg, ticket, anteroom.Note("resumed")))
	h2 := must[*anteroom.Hold](t)(m.Mutex("k").Seize(bg))
	if !errors.Is(h.Err(), anteroom.ErrLost) {
		t.Errorf("%v", h.Err())
	}
	ok(t, h2.Release(bg))
	if alerts := rec.of(observe.EventAlert); len(alerts) > 0 {
		t.Errorf("%+v", alerts)
	}
}
