package renewal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// A lease that is made a fixed one ends as agreed, sooner or later than it would have, and is not renewed.
func TestFix_EndsAsAgreed(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, time.Minute} {
		k, s := &losses{}, &sender{}
		bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
			l, sentAt := m.Add(spec(0, k)), time.Now()
			equal(t, "fixed", l.Fix(sentAt, lease, 100*time.Millisecond), true)
			equal(t, "the deadline", l.Deadline(), sentAt.Add(lease-100*time.Millisecond))
			time.Sleep(2 * time.Minute)
			c := one(t, k, "f0")
			equal(t, "the reason", c.Reason, renewal.ReasonFixed)
			equal(t, "notified", k.when("f0"), l.Deadline())
			equal(t, "renewals", s.count(), 0)
		})
	}
}

// What a renewal is answered that was under way says nothing of the lease as it is now.
func TestFix_BesideARenewal(t *testing.T) {
	for name, answer := range map[string]func([]renewal.Item) []renewal.Result{
		"renewed": renewed,
		"failed":  failed,
		"gone":    func(items []renewal.Item) []renewal.Result { return all(items, renewal.Result{Gone: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			k, open := &losses{}, make(chan struct{})
			s := &sender{}
			bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
				open = make(chan struct{})
				s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result { <-open; return answer(items) }
				l := m.Add(spec(0, k))
				time.Sleep(10 * time.Second)
				synctest.Wait()
				equal(t, "under way", s.count(), 1)
				sentAt := time.Now()
				equal(t, "fixed", l.Fix(sentAt, time.Minute, time.Second), true)
				close(open)
				synctest.Wait()
				equal(t, "the state", l.State(), renewal.StateActive)
				equal(t, "the deadline", l.Deadline(), sentAt.Add(59*time.Second))
				equal(t, "healthy", l.Healthy(), true)
				time.Sleep(2 * time.Minute)
				equal(t, "the reason", one(t, k, "f0").Reason, renewal.ReasonFixed)
				equal(t, "renewals", s.count(), 1)
			})
		})
	}
}

// I1, I2: what has ended, or is over though the loop has not said so, stays so.
func TestFix_OfWhatIsOver(t *testing.T) {
	k := &losses{}
	bubble(t, renewal.Config{Sender: &sender{answer: func(_ context.Context, _ string, items []renewal.Item) []renewal.Result { return failed(items) }}}, func(t *testing.T, m *renewal.Manager) {
		ended, lost := m.Add(spec(0, k)), m.Add(spec(1, k))
		ended.End()
		lost.Lose(renewal.Cause{Reason: renewal.ReasonForced})
		late := spec(2, k)
		late.SentAt = time.Now().Add(-time.Hour)
		for name, l := range map[string]*renewal.Lease{"ended": ended, "lost": lost, "over": m.Add(late)} {
			equal(t, name, l.Fix(time.Now(), time.Minute, time.Second), false)
			equal(t, name+" valid", l.Valid(m.Now()), false)
		}
	})
}
