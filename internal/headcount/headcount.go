// Package headcount counts the goroutines of a test in virtual time. Only tests use it.
package headcount

import (
	"bytes"
	"regexp"
	"runtime"
)

// header is the first line of a goroutine in a dump, with its bubble's number.
var header = regexp.MustCompile(`(?m)^goroutine \d+ \[.*(synctest bubble \d+).*\]:$`)

// Bubble returns the number of goroutines in the caller's synctest bubble, including the caller, and 0 outside a
// bubble. runtime.NumGoroutine counts those of the whole process, in which goroutines of other tests and of the
// runtime (a cleanup, a finalizer) come and go. It stops the world for as long as a dump of all goroutines takes.
func Bubble() int {
	dump := make([]byte, 64<<10)
	for {
		n := runtime.Stack(dump, true)
		if n < len(dump) {
			dump = dump[:n]
			break
		}
		dump = make([]byte, 2*len(dump))
	}
	all := header.FindAllSubmatch(dump, -1)
	if len(all) == 0 || !bytes.HasPrefix(dump, all[0][0]) {
		return 0 // the first goroutine of a dump is the caller
	}
	n := 0
	for _, g := range all {
		if bytes.Equal(g[1], all[0][1]) {
			n++
		}
	}
	return n
}
