package watchdog

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
)

// Goroutines is the result of one goroutine scan: its States say of each goroutine that was
// asked about where it is, or that it has ended.
type Goroutines = goroutines.Scan

// Goroutine is one goroutine in a scan.
type Goroutine = goroutines.Goroutine

// CheckHolder judges whether a hold's owner can still let go of it. It is healthy when
// the Hold is reachable, MaxHold is not over, and, for a hold that only one goroutine can
// unlock, that goroutine has not ended. g is the last goroutine scan; a hold that it
// did not ask about, or that is younger than it, is judged without it. A scan without a
// result is no verdict on such a hold. A parked goroutine is a remark on a healthy
// verdict. A fixed lease is never unreachable: it ends by itself, as its owner chose. It
// reads nothing but its arguments.
func CheckHolder(now time.Time, f Facts, g Goroutines) Verdict {
	state, asked := g.States[f.Goroutine]
	asked = asked && f.Since.Before(g.At)
	switch held := now.Sub(f.Since); {
	case asked && g.Complete && state.Ended:
		return unhealthy(Holder, now, HolderGone,
			fmt.Sprintf("goroutine %d has ended without unlocking%s", f.Goroutine, f.takenAt()))
	case f.MaxHold > 0 && held > f.MaxHold:
		return unhealthy(Holder, now, OverMaxHold,
			fmt.Sprintf("held for %v, at most %v is allowed%s", held.Round(100*time.Millisecond), f.MaxHold, f.takenAt()))
	case !f.Reachable && !f.Fixed:
		return unhealthy(Holder, now, HolderUnreachable, "nobody can release this hold any more"+f.takenAt())
	case asked && !g.Complete:
		return unknown(Holder, now, None, "the goroutine scan has no result: "+g.Reason)
	case asked && state.Parked():
		v := healthy(Holder, now)
		v.Finding, v.Reason = HolderBlocked, state.Remark(f.Goroutine)
		return v
	}
	return healthy(Holder, now)
}

// takenAt names the call site for a reason, where it is known.
func (f Facts) takenAt() string {
	if f.CallSite == "" {
		return ""
	}
	return ", taken at " + f.CallSite
}

// scanned reports whether a scan at that moment asks about the hold: only where one
// goroutine alone can unlock, and only past a lease, because most locks are held far
// shorter and the scan stops everything.
func (f Facts) scanned(at time.Time) bool {
	return f.Goroutine != 0 && at.Sub(f.Since) > f.Lease
}
