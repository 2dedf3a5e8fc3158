package anteroom

import (
	"runtime"
	"strconv"
	"strings"
)

// errInside is why Close has not waited.
var errInside = ownText("called inside a callback or Do, which it would wait for; it continues in the background")

// calledInside reports whether the caller of Close, its only caller here, runs on a stack on
// which this library has called the program: in a callback, or in Do.
func calledInside() bool {
	pcs := make([]uintptr, 64)
	skip := 3 // runtime.Callers, this function, Close
	for {
		n := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); inLibrary(f.Function) && !strings.HasSuffix(f.File, "_test.go") {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
		skip += n
	}
}

// inLibrary reports whether a function belongs to the packages that call callbacks.
func inLibrary(function string) bool {
	name, ours := strings.CutPrefix(function, "github.com/anteroom/anteroom/")
	if !ours {
		return false
	}
	switch pkg, _, _ := strings.Cut(name, "."); pkg {
	case "sync", "sync/internal/report", "lettuce_compat", "renewal", "watchdog":
		return true
	}
	return false
}

// callSite names the caller outside this package, if call sites are recorded.
func (m *Manager) callSite() string {
	if !m.cfg.RecordCallSites {
		return ""
	}
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function) {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}

// ours reports whether a function is one of this package or of its inner ones, so that the caller of Lock, Do or
// sync.Locker is what gets recorded.
func ours(function string) bool {
	const pkg = "github.com/anteroom/anteroom/sync"
	return strings.HasPrefix(function, pkg+".") || strings.HasPrefix(function, pkg+"/internal/")
}
