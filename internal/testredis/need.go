package testredis

import (
	"fmt"
	"os"
	"os/exec"
)

// Need returns the path of a program that a test runs and that comes with a package of the
// system, named as Debian names it. Without the program CI fails; everybody else is told
// how to get it, and the test is skipped and counted.
func Need(tb TB, program, pkg string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		how := fmt.Sprintf("no %s in PATH: install it with `apt-get install %s` or your system's equivalent", program, pkg)
		if os.Getenv("CI") == "true" {
			tb.Fatal(how)
		}
		countSkip(tb)
		tb.Skip(how)
	}
	return path
}

// countSkip notes a skipped test in the file that ANTEROOM_SKIPPED names, so that
// make test can say how much was not tested.
func countSkip(tb TB) {
	name := os.Getenv("ANTEROOM_SKIPPED")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, tb.Name())
}
