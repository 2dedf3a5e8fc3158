package anteroom

import (
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/watchdog"
)

// shareFacts describes who has units, for the watchdog. Redis' answers are about all units of the process, which have facts
// of their own, so only whether somebody can still release these is checked: what Facts.Lost means.
func shareFacts(o *lock.Owner) watchdog.Facts {
	f, set := factsOf(o.Number(), o.Held().Key(), o.Since())
	f.CallSite, f.MaxHold, f.Lost, f.Fixed, f.Deadline = o.CallSite, set.cfg.MaxHold, true, o.Share().Limited(), o.Deadline()
	if t, is := o.Holder.(*tenure); is {
		f.Reachable = t.reachable()
	}
	return f
}

// endShare acts against the owner of units that the watchdog accuses; nil: it has exited. What is true of it stays true.
func endShare(o *lock.Owner, action string, f watchdog.Finding) bool {
	if o == nil {
		return false
	}
	is := shareFacts(o)
	switch {
	case refuted(&is, f):
		return false
	case action == watchdog.ActionStopRenewing:
		return o.StopRenewing()
	}
	return action == watchdog.ActionCancel && o.Revoke(renewal.ReasonWatchdog)
}
