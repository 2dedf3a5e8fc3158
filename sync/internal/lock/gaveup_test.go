package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// stated takes what k has to state for w, and sends nothing.
func (k *Key) stated(w Demand) *Statement {
	k.mu.Lock()
	defer k.mu.Unlock()
	var s *Statement
	k.talk, s, _ = k.talk.Next(w, k.l.number.Add(1), k.l.now())
	k.flying++
	return s
}

// repeated is the last statement, for one more answer.
func (k *Key) repeated() *Statement {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flying++
	s := k.talk.said
	return &s
}

// answered is what comes for s.
func (k *Key) answered(s *Statement, h News, a *lettucecompat.Answer) {
	h.N = s.N
	k.take(h, s, a)
}

// A confirmation whose call came first has no answer: nobody hears so while, or after, this process has the lock.
func TestGaveUp_AFailureBesideAnOwner(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	o := p.mustAcquire(t, "k")
	k := o.g.k
	k.answered(k.repeated(), News{Word: Silence}, &lettucecompat.Answer{Outcome: lettucecompat.OutcomeUnknown, Err: errors.New("unreachable")})
	if a := k.Answer(); a != nil {
		t.Errorf("it says %v", a.Err)
	}
	mustRelease(t, o)
}

// A caller that has learned since it came that another has the lock does not hear that nothing was answered while its process asks
// anew.
func TestGaveUp_WhatWasAnsweredSinceItCame(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	came := p.now()
	k.answered(k.stated(Pending), News{Word: Waits, Lease: time.Hour}, &lettucecompat.Answer{Word: lettucecompat.WordWaits})
	cancel := k.stated(Quiet) // whose answer the next caller waits for
	if err := k.gaveUp(came, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := k.gaveUp(k.knew, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("who came in the same moment: %v", err)
	}
	if err := k.gaveUp(p.now()+time.Hour, context.Canceled); err != error(errUnanswered) {
		t.Errorf("who came after that: %v", err)
	}
	k.answered(cancel, News{Word: HasNot}, &lettucecompat.Answer{Word: lettucecompat.WordNothing})
}

// An answer that is void says nothing about who has the lock.
func TestGaveUp_AVoidAnswer(t *testing.T) {
	_, client := fresh(t)
	p := newParty(t, client(), longLease)
	k := p.Key("k", p.set)
	defer k.Done()
	k.answered(k.stated(Pending), News{Word: Failed}, &lettucecompat.Answer{Word: lettucecompat.WordVoid})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.knew != 0 {
		t.Errorf("at %v it was known who has the lock", k.knew)
	}
}
