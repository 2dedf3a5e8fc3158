package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var initLine = regexp.MustCompile(`(?m)^init github\.com/anteroom/anteroom/(\S+) @.* (\d+) bytes, \d+ allocs$`)

// The demo imports all of the library. Importing one of its packages computes nothing: a program pays for what it uses, and no hash or
// template of ours can end it before its main has begun. What is left are errors and tables.
func TestImportsComputeNothing(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(m[1], "cmd/") || strings.HasPrefix(m[1], "internal/") { // the latter are for tests
			continue
		}
		seen++
		if n, _ := strconv.Atoi(m[2]); n > 4<<10 {
			t.Errorf("the import of %s allocates %d bytes", m[1], n)
		}
	}
	if seen < 3 {
		t.Errorf("%d packages were seen:\n%s", seen, out)
	}
}
