package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// answered is what comes for the last statement of k, a confirmation of its place.
func (k *Key) answered(h News, a *lettucecompat.Answer) {
	k.mu.Lock()
	h.N = k.l.number.Add(1)
	k.talk.last = h.N
	k.flying++
	k.mu.Unlock()
	k.take(h, &Statement{N: h.N, Have: Place, Keep: 1, Want: 1}, a)
}

// A confirmation whose call came first has no answer: nobody hears so while, or after, this process has the lock.
func TestGaveUp_AFailureBesideAnOwner(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.answered(News{Word: Silence}, &lettucecompat.Answer{Outcome: lettucecompat.OutcomeUnknown, Err: errors.New("unreachable")})
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
	k.answered(News{Word: Waits, Lease: time.Hour}, &lettucecompat.Answer{Word: lettucecompat.WordWaits})
	k.mu.Lock()
	before := k.talk
	k.talk = Conversation{unconfirmed: true, said: Statement{Want: 1}}
	k.mu.Unlock()
	if err := k.gaveUp(came, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := k.gaveUp(k.knew, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("who came in the same moment: %v", err)
	}
	if err := k.gaveUp(p.now()+time.Hour, context.Canceled); err != error(errUnanswered) {
		t.Errorf("who came after that: %v", err)
	}
	k.mu.Lock()
	k.talk = before.empty(before.last + 1)
	k.talk.since = 0
	k.mu.Unlock()
}

// An answer that is void says nothing about who has the lock.
func TestGaveUp_AVoidAnswer(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	k.answered(News{Word: Failed}, &lettucecompat.Answer{Word: lettucecompat.WordVoid})
	k.mu.Lock()
	if k.knew != 0 {
		t.Errorf("at %v it was known who has the lock", k.knew)
	}
	k.talk.since = 0
	k.mu.Unlock()
}
