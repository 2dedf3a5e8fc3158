package renewal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// Why a lease is lost can be asked from the moment at which that was concluded, also
// while the loop still notifies others.
func TestLease_LostSaysWhyBeforeTheNotice(t *testing.T) {
	k := &losses{}
	bubble(t, renewal.Config{Sender: &sender{}}, func(t *testing.T, m *renewal.Manager) {
		until := make(chan struct{})
		blocker := spec(0, k)
		blocker.Owner = notifiedBy(blocker, func(renewal.Cause) { <-until })
		m.Add(blocker).Lose(renewal.Cause{Reason: renewal.ReasonClosed})
		synctest.Wait()
		l := m.Add(spec(1, k))
		if c, lost := l.Lost(); lost {
			t.Fatalf("active: %+v", c)
		}
		at := time.Now()
		l.Lose(renewal.Cause{Reason: renewal.ReasonForced})
		time.Sleep(time.Second)
		c, lost := l.Lost()
		if !lost || c.Reason != renewal.ReasonForced || !c.At.Equal(at) || len(k.get("f1")) != 0 {
			t.Fatalf("%v, %+v, notified %v", lost, c, k.get("f1"))
		}
		close(until)
		synctest.Wait()
		equal(t, "the cause of the notice", one(t, k, "f1"), c)
		ended := m.Add(spec(2, k))
		ended.End()
		if c, lost := ended.Lost(); lost {
			t.Fatalf("ended: %+v", c)
		}
		equal(t, "the loss of a lease that is lost", l.Loss(renewal.ReasonGone), c)
		over := ended.Loss(renewal.ReasonGone)
		if over.Reason != renewal.ReasonGone || !over.At.Equal(time.Now()) || !over.Deadline.Equal(ended.Deadline()) {
			t.Fatalf("the loss of another one: %+v", over)
		}
		time.Sleep(time.Hour)
		equal(t, "and after its deadline", ended.Loss(renewal.ReasonGone).At, ended.Deadline())
	})
}

// The words that logs and labels show.
func TestWords(t *testing.T) {
	equal(t, "states", fmt.Sprint(renewal.StateActive, renewal.StateEnded, renewal.StateLost, renewal.State(9)), "active ended lost invalid")
}

func TestNew_WithoutASenderPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not")
		}
	}()
	renewal.New(renewal.Config{})
}

// A loss carries what was known of its lease, so that nobody has to ask a lease that may
// not be in the owner's hands yet.
func TestLease_ALossSaysWhatWasKnownOfTheLease(t *testing.T) {
	k := &losses{}
	s := &sender{answer: func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		return slices.Repeat([]renewal.Result{{Err: errDown}}, len(items))
	}}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begun := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(time.Hour)
		c := one(t, k, "f1")
		if !c.LastConfirmed.Equal(begun) || !c.Deadline.Equal(l.Deadline()) || !c.At.Equal(c.Deadline) || c.Failures < 2 || c.Failures != l.Failures() {
			t.Errorf("confirmed at %v, deadline %v: %+v", begun, l.Deadline(), c)
		}
	})
}
