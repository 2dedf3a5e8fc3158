package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/renewal"
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
