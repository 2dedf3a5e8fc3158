package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// In each of these a call has overtaken the answer to a confirmation, which then comes beside that to a later command.

// overtaken has b, over net, come in to write by a call, and the answer to its confirmation come so late.
func (s *embedded) overtaken(t *testing.T, a, b *anteroom.Manager, net *faultnet.Network, late time.Duration) *anteroom.Hold {
	t.Helper()
	h := must[*anteroom.Hold](t)(a.RWMutex("k").Acquire(bg))
	got := make(chan *anteroom.Hold, 1)
	go func() { got <- must[*anteroom.Hold](t)(b.RWMutex("k").Acquire(bg)) }()
	s.settle()
	s.late(net, late)
	for net.Waiting() > 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // other commands pass that connection
	ok(t, h.Release(bg))
	s.settle()
	return isIn(t, got)
}

// late makes the answer to the next command about k over net come so late.
func (s *embedded) late(net *faultnet.Network, d time.Duration) {
	net.OnRequest(lineOf("k"), 1, faultnet.Late(d))
}

// Only its own answer says how a release ended.
func TestShared_AReleaseBesideAnOlderAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		h := s.overtaken(t, a, b, net, 300*time.Millisecond)
		s.Del("k")
		s.late(net, 600*time.Millisecond)
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("Release of units that were deleted: %v", err)
		}
	})
}

// A try is not refused by the answer to what was asked before it.
func TestShared_ATryBesideAnOlderAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ok(t, s.overtaken(t, a, b, net, 300*time.Millisecond).Release(bg))
		s.late(net, 600*time.Millisecond)
		h, err := b.RWMutex("k").TryAcquire(bg)
		if err != nil {
			t.Fatalf("a try of a free lock: %v", err)
		}
		ok(t, h.Release(bg))
	})
}

// Who gives up is told what Redis has answered to what was asked last.
func TestShared_AWaiterBesideAnOlderAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ok(t, s.overtaken(t, a, b, net, time.Minute).Release(bg))
		h := must[*anteroom.Hold](t)(a.RWMutex("k").Acquire(bg))
		time.Sleep(300 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 900*time.Millisecond) // the older one is given up meanwhile
		defer cancel()
		if _, err := b.RWMutex("k").Acquire(ctx); !errors.Is(err, anteroom.ErrNotAcquired) || errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("Redis has answered that it is held: %v", err)
		}
		ok(t, h.Release(bg))
	})
}
