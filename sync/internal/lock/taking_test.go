package lock

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// A command that takes the lock is for who has ordered it: it is not sent once somebody else takes the lock.
func TestTaking_IsForWhoHasOrderedIt(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	o := newParty(t, client(), nil).mustAcquire(t, "k")
	var from []string
	c := client()
	c.AddHook(slowHook{func(cmd redis.Cmder) {
		for _, field := range []string{"first", "second"} {
			if slices.Contains(cmd.Args(), any(field)) {
				from = append(from, field)
			}
		}
	}})
	p := newParty(t, c, nil)
	mustRelease(t, p.mustAcquire(t, "another"))
	<-p.up
	k := p.Key("k", p.set)
	defer k.Done()
	var waiters []*queue.Waiter
	for _, field := range []string{"first", "second"} {
		o := &Owner{}
		o.With(More{Takes: &Taking{From: field, spoil: func(error) {}}})
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1}, Note: o, Takes: true}
		_, _, _ = k.q.Acquire(w)
		waiters = append(waiters, w)
	}
	next := func(seize bool) conversation.Command {
		k.mu.Lock()
		defer k.mu.Unlock()
		s := k.nextLocked()
		if s.N == 0 || s.Seize != seize {
			t.Fatalf("stated %+v", s)
		}
		return s
	}
	states := func(s conversation.Command) { // as send, but sends nothing after it
		k.exchange(&s)
		k.l.landed()
	}
	states(next(false))
	late := next(true)
	k.handle(conversation.Event{Kind: conversation.Silence, N: late.N})
	states(next(false))
	giveUp(t, k, waiters[0])
	states(next(true))
	before := len(from)
	states(late)
	if len(from) != before || before == 0 || slices.Contains(from, "first") {
		t.Errorf("taken from %v", from)
	}
	giveUp(t, k, waiters[1])
	mustRelease(t, o)
}
