package renewal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// I3: the answer to a renewal takes two seconds, and they do not lengthen the lease.
func TestLease_I3_CountsFromTheSend(t *testing.T) {
	s, k := &sender{}, &losses{}
	s.answer = func(_ context.Context, _ string, items []renewal.Item) []renewal.Result {
		r := renewed(items)
		time.Sleep(2 * time.Second)
		return r
	}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		l := m.Add(spec(1, k))
		time.Sleep(13 * time.Second) // sent at 10 s, answered at 12 s
		equal(t, "renewals", l.Renewals(), 1)
		equal(t, "confirmed", l.LastConfirmed().Sub(begin), 10*time.Second)
		equal(t, "deadline", l.Deadline().Sub(begin), 38500*time.Millisecond)
	})
}

// I7: one lease is lost at the moment at which another is due. However long the notice
// takes, the batch comes after it.
func TestManager_I7_NoBatchBeforeTheNotice(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		begin := time.Now()
		over := spec(1, k)
		over.Period, over.Lease = 0, 11500*time.Millisecond // over when the other is due
		over.Owner = notifiedBy(over, func(renewal.Cause) { time.Sleep(time.Second) })
		m.Add(over)
		m.Add(spec(2, k))
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if sent := s.sent(); len(sent) != 1 || sent[0].at.Sub(begin) != 11*time.Second {
			t.Errorf("%d batches, the first after %v; want one, after the notice ended at 11s", len(sent), sent[0].at.Sub(begin))
		}
	})
}

// A lease that wants attention long before the loop's timer fires: the loop sleeps for a
// whole second because of the other one, and the short lease is over in less.
func TestRenewal_AShortLeaseBesideALongOne(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		m.Add(spec(1, k))
		synctest.Wait()
		short := spec(2, k)
		short.Lease, short.Period, short.Margin = 300*time.Millisecond, 100*time.Millisecond, 30*time.Millisecond
		l := m.Add(short)
		time.Sleep(950 * time.Millisecond)
		synctest.Wait()
		equal(t, "renewals", l.Renewals(), 9)
		equal(t, "losses", k.total(), 0)
	})
}

// A lone lock that is taken again and again makes nothing but its lease: what leases share
// outlives them, for no longer than the loop sleeps. And the loop is not woken for it.
func TestManager_ALoneLeaseSharesWhatIsThere(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		sp := spec(1, k)
		sp.Owner = namer{}
		m.Add(sp).End()
		synctest.Wait() // the loop has checked, and sleeps for a heartbeat
		round := m.Stats().LastRound
		time.Sleep(time.Millisecond)
		equal(t, "allocations", testing.AllocsPerRun(100, func() { m.Add(sp).End() }), 1)
		synctest.Wait()
		equal(t, "round of the loop", m.Stats().LastRound, round)
		equal(t, "shards while the loop sleeps", m.Shards(), 1)
		time.Sleep(2 * time.Second)
		equal(t, "shards after it", m.Shards(), 0)
		equal(t, "check", m.Check(), "")
	})
}

// A brief lease wants attention before the loop would check by itself. The first one wakes it; those that come after it,
// and are ended before the loop runs, do not, until that time has come.
func TestManager_BriefLeasesThatAreEndedImmediatelyWakeTheLoopOnce(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s}, func(t *testing.T, m *renewal.Manager) {
		sp := spec(1, k)
		sp.First = 2 * time.Second
		rounds := 0
		for last := (time.Time{}); m.Now() < 10*time.Second; time.Sleep(time.Millisecond) {
			sp.SentAt = time.Now()
			m.Add(sp).End()
			synctest.Wait()
			if now := m.Stats().LastRound; !now.Equal(last) {
				rounds, last = rounds+1, now
			}
		}
		if rounds > 250 { // two in the time that the first one has until its renewal, a twentieth of two seconds
			t.Errorf("%d rounds for 10,000 leases", rounds)
		}
		l := m.Add(func() renewal.Spec { sp.SentAt = time.Now(); return sp }())
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		equal(t, "renewals of one that stays", l.Renewals(), 1)
	})
}

// namer is an owner that knows its names.
type namer struct{}

func (namer) Lost(renewal.Cause)         {}
func (namer) Names() (key, field string) { return "k", "f" }
