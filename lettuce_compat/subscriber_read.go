package lettucecompat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// read receives until the connection ends. It blocks in nothing but the socket and the callbacks, which promise not
// to block: a slow reader would lose no message but delay every wake-up.
//
// When a connection fails go-redis makes another one before it says so, which takes seconds if the server is silent,
// and under the lock that Subscribe needs too. That connection would not be used: what it has subscribed, and what
// was refused, is not known. So once a connection is made, go-redis is given a context that has ended. It asks a
// context for its deadline where it reads and writes, and for its end where it dials, so that only the latter fails,
// immediately. A go-redis that asks for the end where it reads learns of it by the first answer, and gets the living
// context from then on: news of a failure is late there.
func (s *subscriber) read(ps *redis.PubSub, generation uint64) {
	ctx := s.onceMade()
	for first := true; ; first = false {
		msg, err := ps.Receive(ctx)
		s.mu.Lock()
		s.heardAt = time.Now()
		if first && ctx != s.ctx && errors.Is(err, context.Canceled) {
			s.made = s.ctx
		}
		s.mu.Unlock()
		var answer redis.Error
		switch {
		case errors.As(err, &answer) && s.refuse(answer): // the connection is as good as before
			continue
		case err != nil:
			s.drop(generation, err)
			return
		}
		switch m := msg.(type) {
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				s.confirm(m.Channel)
			case "sunsubscribe":
				s.lost(m.Channel, generation)
			}
		case *redis.Message:
			s.deliver(m)
		}
	}
}

// onceMade is the context for the I/O of a connection that is made.
func (s *subscriber) onceMade() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made
}

// confirm notes that a channel is subscribed from now on. Its watches try again: the release may have come before. So
// they do if it was confirmed already: go-redis has reconnected by itself, and what came meanwhile was missed.
func (s *subscriber) confirm(name string) {
	s.mu.Lock()
	ch := s.channels[name]
	if ch == nil || ch.state != chAsked && ch.state != chConfirmed {
		s.mu.Unlock()
		return
	}
	ch.alone = false
	s.putLocked(ch, chConfirmed)
	ch.signalLocked()
	if ch.own {
		s.c.subs.refusal.Store(nil)
	}
	report := !s.up && s.own != nil
	s.up = true
	s.mu.Unlock()
	if report && s.c.opt.OnSubscription != nil {
		s.c.opt.OnSubscription(true, nil)
	}
}

// refuse handles an error answer to the unanswered SUBSCRIBE. A permission that is missing for one channel refuses
// the whole batch, so its channels are asked for one by one; a channel that is refused alone pauses. It reports false
// for any other error, after which the connection is made anew.
func (s *subscriber) refuse(answer redis.Error) bool {
	if s.own == nil && strings.Contains(answer.Error(), "unknown command") {
		s.c.unsharded.Store(true) // a Cluster below 7; the channels move to the own connection
	}
	if !strings.HasPrefix(answer.Error(), "NOPERM") {
		return false
	}
	s.mu.Lock()
	single := s.lists[chAsked].Len() == 1
	for ch := s.firstLocked(chAsked); ch != nil; ch = s.firstLocked(chAsked) {
		ch.alone, ch.since = true, time.Now()
		switch {
		case !single:
			s.putLocked(ch, chPending)
		case ch.unwatched():
			s.forgetLocked(ch)
		default:
			s.putLocked(ch, chRefused)
		}
		if ch.own {
			refusal := fmt.Errorf("subscribing the channel %s: %w", ch.name, answer)
			s.c.subs.refusal.Store(&refusal)
		}
	}
	signal(s.kick)
	s.mu.Unlock()
	if single {
		s.c.warn.raise(Warning{Kind: WarnChannelRefused, Err: answer})
	}
	return true
}

// lost handles the message that a server has ended a subscription. If that was not asked for, its slot has moved.
func (s *subscriber) lost(name string, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[name]; ch != nil && ch.state == chConfirmed {
		s.dropLocked(generation, errNoMaster)
	}
}

// deliver hands a message to whom it concerns.
func (s *subscriber) deliver(m *redis.Message) {
	if s.own != nil && m.Channel == s.own.name {
		s.deliverOwn(m)
		return
	}
	s.mu.Lock()
	if ch := s.channels[m.Channel]; ch != nil {
		ch.signalLocked()
	}
	s.mu.Unlock()
	// What it says is not used: the answer to the next command decides.
	if _, valid := s.c.opt.Dialect.ParseRelease(m.Channel, m.Payload); !valid {
		s.c.warn.raise(Warning{Kind: WarnMalformedMessage})
	}
}

// deliverOwn hands on a message on the client's own channel.
func (s *subscriber) deliverOwn(m *redis.Message) {
	if nonce, ok := strings.CutPrefix(m.Payload, probePrefix); ok {
		s.mu.Lock()
		if arrived := s.probes[nonce]; arrived != nil {
			delete(s.probes, nonce)
			close(arrived)
		}
		s.mu.Unlock()
		return
	}
	message, ok := parseMessage(m.Payload, s.c.word)
	if !ok {
		s.c.warn.raise(Warning{Kind: WarnMalformedMessage})
	} else if s.c.opt.OnMessage != nil {
		s.c.opt.OnMessage(message)
	}
}

// drop ends connection number generation, if it is still the current one.
func (s *subscriber) drop(generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(generation, err)
}

func (s *subscriber) dropLocked(generation uint64, err error) {
	if generation == s.generation && s.dropped != nil {
		s.dropErr = err
		close(s.dropped)
		s.dropped = nil
	}
}
