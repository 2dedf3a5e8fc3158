package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// taken takes what k has to send for d, and sends nothing.
func (k *Key) taken(d conversation.Demand) *conversation.Command {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flying++
	conv, cmd, _ := k.planLocked(d, k.l.now())
	k.conv = conv
	return &cmd
}

// repeated is the last command, for one more answer.
func (k *Key) repeated() *conversation.Command {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flying++
	cmd := k.conv.LastCommand()
	return &cmd
}

// answered is what comes for cmd.
func (k *Key) answered(cmd *conversation.Command, e conversation.Event, a *lettucecompat.Answer) {
	e.N = cmd.N
	k.apply(e, cmd, a)
}

// A confirmation whose call came first has no answer: nobody hears so while, or after, this process has the lock.
func TestGaveUp_AFailureBesideAnOwner(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.answered(k.repeated(), conversation.Event{Kind: conversation.Silence}, &lettucecompat.Answer{Outcome: lettucecompat.OutcomeUnknown, Err: errors.New("unreachable")})
	if a := k.Answer(); a != nil {
		t.Errorf("it says %v", a.Err)
	}
	mustRelease(t, o)
}

// A caller that has learned since it came that another has the lock does not hear that nothing was answered while its process asks
// anew.
func TestGaveUp_WhatWasAnsweredSinceItCame(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	came := p.now()
	k.answered(k.taken(conversation.Demand{Want: 1}), conversation.Event{Kind: conversation.Waits, After: time.Hour}, &lettucecompat.Answer{Word: lettucecompat.WordWaits})
	cancel := k.taken(conversation.Demand{}) // whose answer the next caller waits for
	if err := k.gaveUp(&queue.Waiter{Began: came}, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := k.gaveUp(&queue.Waiter{Began: k.knew}, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("who came in the same moment: %v", err)
	}
	if err := k.gaveUp(&queue.Waiter{Began: p.now() + time.Hour}, context.Canceled); err != error(errUnanswered) {
		t.Errorf("who came after that: %v", err)
	}
	k.answered(cancel, conversation.Event{Kind: conversation.HasNot}, &lettucecompat.Answer{Word: lettucecompat.WordNothing})
}

// An answer that is void says nothing about who has the lock.
func TestGaveUp_AVoidAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	k.answered(k.taken(conversation.Demand{Want: 1}), conversation.Event{Kind: conversation.Failed}, &lettucecompat.Answer{Word: lettucecompat.WordVoid})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.knew != 0 {
		t.Errorf("at %v it was known who has the lock", k.knew)
	}
}
