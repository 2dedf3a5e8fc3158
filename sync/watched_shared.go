package anteroom

import (
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
