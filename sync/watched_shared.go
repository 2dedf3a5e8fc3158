package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/watchdog"
)

// sharedFacts describes who has units, for the watchdog. Renewals and Redis' answers are about all units of the process, so
// only whether somebody can still release these is checked: what Facts.Lost means.
func (s *services) sharedFacts(id uint64) (watchdog.Facts, bool) {
	share := s.m.locks.Share(id)
	if share == nil {
		return watchdog.Facts{}, false
	}
	set := settingsIn(share)
	cfg := &set.cfg
	f := watchdog.Facts{
		ID: id, Key: share.Name(), Class: cfg.Name, Since: s.m.leases.Zero().Add(share.Since()), Lease: cfg.LeaseTime, Reachable: true,
		Period: cfg.WatchdogPeriod, AlertThreshold: cfg.AlertThreshold, Strategy: watchdog.Strategy(cfg.Recovery),
		CallSite: share.CallSite, MaxHold: cfg.MaxHold, Lost: true, Fixed: share.Limited(),
	}
	if t, is := share.Holder.(*tenure); is {
		f.Reachable = t.reachable()
	}
	return f, true
}

// endShare takes the units from the share that the watchdog accuses. What is true of it stays true, but for a release.
func (s *services) endShare(id uint64, action string, f watchdog.Finding) bool {
	share := s.m.locks.Share(id)
	is, ok := s.sharedFacts(id)
	switch {
	case !ok || action != watchdog.ActionCancel:
		return false
	case f == watchdog.OverMaxHold && (is.MaxHold == 0 || time.Since(is.Since) < is.MaxHold):
		return false
	case f == watchdog.HolderUnreachable && is.Reachable:
		return false
	}
	return share.Revoke(renewal.ReasonWatchdog)
}

// sharedQueue is the waits.Queue of an RWMutex or a Semaphore. Only a writer is an owner: readers have no identity.
type sharedQueue struct{ k *lock.SharedKey }

func (q sharedQueue) Front() (f queue.Front, waited bool) {
	first := q.k.Gate().Peek(1)
	if f.Waiting = q.k.Gate().Demand().Waiting; f.Waiting == 0 || len(first) == 0 {
		return queue.Front{}, false
	}
	f.Current, f.First = q.Current(), first[0]
	return f, true
}

func (q sharedQueue) Current() (t queue.Tenure) {
	if w := q.k.State().Writes; w != nil {
		t.State, t.Number, t.Owner, t.Kind, t.Count = queue.Owned, w.Number(), w.Goroutine, w.Kind, 1
	}
	return t
}

func (q sharedQueue) Find(goroutine uint64) (w queue.WaiterInfo, waiting bool) {
	for _, w := range q.k.Gate().Peek(-1) {
		if w.Owner == goroutine {
			return w, true
		}
	}
	return queue.WaiterInfo{}, false
}

func (q sharedQueue) AppendWaiting(goroutines []uint64) []uint64 {
	for _, w := range q.k.Gate().Peek(-1) {
		if w.Owner != 0 {
			goroutines = append(goroutines, w.Owner)
		}
	}
	return goroutines
}
