package anteroom

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// A wait whose first attempt is under way meets no errors.
func TestLookout_AnAttemptWithoutAnAnswerYetIsNoError(t *testing.T) {
	for _, answer := range []*trouble{notAsked, notAnswered} {
		s := newScene(t, Config{})
		e, err := s.m.use("a", s.m.defaults)
		if err != nil {
			t.Fatal(err)
		}
		s.wait(e, queue.Deaf, 1) // the queue is acquiring
		e.answer.Store(answer)
		s.l.look(time.Now().Add(31 * time.Second))
		evs := s.events(EventLongWait)
		if len(evs) != 1 || evs[0].Err != nil || !strings.Contains(evs[0].Text, "it is just being acquired") {
			t.Errorf("%+v", evs)
		}
	}
}

// Who was admitted and gives its place back, since the process was stopped, does not wait
// for itself.
func TestLookout_AWaiterThatGivesBackDoesNotWaitForItself(t *testing.T) {
	s := newScene(t, Config{})
	e, err := s.m.use("a", s.m.defaults)
	if err != nil {
		t.Fatal(err)
	}
	w := &queue.Waiter{Owner: 1, Kind: queue.Deaf}
	e.q.Enter(w)
	e.q.Granted(1)
	if _, err := e.q.Wait(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	s.wait(e, queue.Deaf, 2)
	longer := s.key("b", 3, queue.Deaf, 4, 5, 6)
	s.l.look(time.Now())
	// The next look, in steps: it has seen the tenure when the waiter gives it back.
	s.l.looks++
	s.l.visit(e, time.Now())
	s.l.visit(longer, time.Now())
	if len(s.l.stuck) != 2 {
		t.Fatalf("%d stuck keys", len(s.l.stuck))
	}
	e.q.GiveBack(w)
	if cycles := s.l.deadlocks(time.Now()); len(cycles) != 0 {
		t.Errorf("goroutine %d waits for itself, certain: %v", cycles[0][0].waiter.Owner, cycles[0].certain())
	}
}
