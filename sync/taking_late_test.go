package anteroom_test

import (
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The first answer to Detach is lost, and the time of the ticket is over when it is repeated: the hold had lasted.
func TestTaking_ATicketWhoseTimeIsOverIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, events := manager(t, s.clientOver(net), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		net.OnRequest("ticket.", 1, faultnet.Late(3*time.Second))
		_, err := h.Detach(bg, 200*time.Millisecond)
		if errors.Is(err, anteroom.ErrLost) || len(events.of(observe.EventLost)) > 0 {
			t.Errorf("%v; reported: %+v", err, events.of(observe.EventLost))
		}
	})
}
