package anteroom

import (
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/watchdog"
)

// shareFacts describes who has units, for the watchdog. Redis' answers are about all units of the process, which have facts
// of their own, so only whether somebody can still release these is checked: what Facts.Lost means.
func shareFacts(share *lock.Share) watchdog.Facts {
	f, set := factsOf(share.Number(), share, share.Since())
	f.CallSite, f.MaxHold, f.Lost, f.Fixed, f.Deadline = share.CallSite, set.cfg.MaxHold, true, share.Limited(), share.Deadline()
	if t, is := share.Holder.(*tenure); is {
		f.Reachable = t.reachable()
	}
	return f
}

// endShare acts against the share that the watchdog accuses; nil: it has exited. What is true of it stays true.
func endShare(share *lock.Share, action string, f watchdog.Finding) bool {
	if share == nil {
		return false
	}
	is := shareFacts(share)
	switch {
	case refuted(&is, f):
		return false
	case action == watchdog.ActionStopRenewing:
		return share.StopRenewing()
	}
	return action == watchdog.ActionCancel && share.Revoke(renewal.ReasonWatchdog)
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
