package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// longWaitText words a long wait: who waits, where, how many, and for whom.
func longWaitText(ev *observe.Event, why string) string {
	w := &ev.Waits[0]
	text := fmt.Sprintf("goroutine %d has waited for %v%s; %s; ", w.Goroutine, rounded(ev.At.Sub(w.Since)), At(w.CallSite), waiting(ev.Waiters))
	if w.Owner == 0 {
		return text + ev.Text + unlocated(w.CallSite, why)
	}
	text += "held by goroutine " + strconv.FormatInt(w.Owner, 10)
	if !w.OwnerSince.IsZero() {
		text += " for " + rounded(ev.At.Sub(w.OwnerSince)).String()
	}
	text += ev.Text
	if w.OwnerSite != "" {
		text += ", taken" + At(w.OwnerSite)
	} else if w.OwnerAt != "" {
		text += ", now" + At(w.OwnerAt)
	}
	return text + unlocated(w.CallSite, why)
}

// shownLinks bounds the cycle that a text shows; Event.Waits has all of it.
const shownLinks = 8

// deadlockText words a cycle and says how sure it is. name says how keys are called.
func deadlockText(ev *observe.Event, certain bool, why string, name func(key string) string) string {
	var text strings.Builder
	if !certain {
		text.WriteString("possible ")
	}
	text.WriteString("deadlock of " + Plural(len(ev.Waits), "goroutine"))
	unknown := ""
	for i, w := range ev.Waits {
		if i == shownLinks {
			fmt.Fprintf(&text, "; and %d more", len(ev.Waits)-i)
			break
		}
		fmt.Fprintf(&text, "; goroutine %d waits%s for %s, which goroutine %d has", w.Goroutine, At(w.CallSite), name(w.Key), w.Owner)
		if w.OwnerSite != "" {
			text.WriteString(", taken" + At(w.OwnerSite))
		}
		if w.CallSite == "" {
			unknown = why
		}
	}
	if certain {
		text.WriteString("; only a wait with a limit (TryLockFor, a context) can end it")
	} else {
		text.WriteString("; it is none if a Hold was passed on to a goroutine that will release it, or if another goroutine unlocks a lock that is not Reentrant")
	}
	if unknown != "" {
		text.WriteString(unlocated("", unknown))
	}
	return text.String()
}

// hashed names a key where keys are not shown.
func hashed(key string) string { return "the key with hash " + observe.KeyHash(key) }

// At names a place, a call site or one server of several, if it is known.
func At(place string) string {
	if place == "" {
		return ""
	}
	return " at " + place
}

func waiting(n int) string {
	if n == 1 {
		return "nobody else waits in this process"
	}
	return strconv.Itoa(n) + " wait in this process"
}

// unlocated says why a call site is missing, and what would help.
func unlocated(site, why string) string {
	if site != "" || why == "" {
		return ""
	}
	return " (call sites unknown: " + why + "; Config.RecordCallSites records them)"
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
