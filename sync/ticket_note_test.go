package anteroom_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The note of a detached hold stays with its ticket, for up to a day: nothing else says who has left the lock. The hold that is
// resumed has the note that it is given, and one that is only released, with MinHold, leaves none.
func TestTicket_KeepsTheNote(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		const text = "import of März, host-7:8080"
		noted := func() string {
			info, err := b.Inspect(bg, "k")
			ok(t, err)
			if len(info.Holders) != 1 {
				t.Fatalf("%+v", info.Holders)
			}
			return info.Holders[0].Note
		}
		h := acquire(t, a.Mutex("k"), anteroom.Note(text))
		ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		if got := noted(); got != text {
			t.Errorf("noted with the ticket: %q", got)
		}
		_, err := b.Mutex("k").TryAcquire(bg)
		if of, _ := errors.AsType[*anteroom.Error](err); of == nil || of.Note != text {
			t.Errorf("who is refused: %v", err)
		}
		h = resume(t, b, ticket)
		if got := noted(); got != "" {
			t.Errorf("the note of the one before: %q", got)
		}
		ticket = must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		h = must[*anteroom.Hold](t)(b.Mutex("k").Resume(bg, ticket, anteroom.Note("second")))
		net.OnRequest("ticket.", 1, faultnet.Lost) // the release is repeated
		ticket = must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		if got := noted(); got != "second" {
			t.Errorf("noted with the ticket: %q", got)
		}
		ok(t, resume(t, a, ticket).Release(bg))
		h = acquire(t, mutex(t, a, anteroom.LockConfig{Key: "k", MinHold: time.Minute}), anteroom.Note(text))
		ok(t, h.Release(bg))
		if got := noted(); got != "" {
			t.Errorf("noted after a Release: %q", got)
		}
	})
}
