package renewal_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// atTimes is an owner that has a name unless it says otherwise.
type atTimes struct{ named func() bool }

func (*atTimes) Lost(renewal.Cause) {}

func (o *atTimes) Names() (key, field string) {
	if o.named() {
		return "k", "f"
	}
	return "", ""
}

// Somebody uses the lease again, and hurries it, after it has said that nobody does and before its batch is handed over: it is
// renewed immediately.
func TestHostile_AHurryBesideALeaseThatNobodyUses(t *testing.T) {
	s, k := &sender{}, &losses{}
	bubble(t, renewal.Config{Sender: s, Rand: top}, func(t *testing.T, m *renewal.Manager) {
		var lease atomic.Pointer[renewal.Lease]
		var calls atomic.Int32
		sp := spec(1, k)
		sp.Owner = &atTimes{func() bool {
			if calls.Add(1) > 1 {
				return true
			}
			lease.Load().Hurry() // by the next owner
			return false
		}}
		l := m.Add(sp)
		lease.Store(l)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		synctest.Wait()
		equal(t, "renewals", l.Renewals(), 1)
		l.End()
	})
}
