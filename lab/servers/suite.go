package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is a package, by its folder from lab, whose tests run on each server: those that start one.
type suite struct {
	name   string
	folder string
	skip   string   // tests that are no part of it
	args   []string // of the test binary, or of the program if it is one
	// program says that the folder is a program, which passes by its exit status.
	program bool

	binary string
}

// suiteLimit bounds one suite on one server.
const suiteLimit = 15 * time.Minute

// outputTime is how long the output of a program that was ended is awaited: a child of its may have it open still.
const outputTime = 10 * time.Second

// suites returns what runs on each server: all of it, or what make lab has the time for, which is without the loads.
func suites(short bool) []suite {
	if short {
		return []suite{
			{name: "wire", folder: "../lettuce_compat"},
			{name: "lock", folder: "../sync", skip: "^Test(Line|Turns|CleanUps|AHungNode|Hammer)"},
		}
	}
	return []suite{
		{name: "wire", folder: "../lettuce_compat"},
		{name: "lock", folder: "../sync"},
		{name: "tool", folder: "../cmd/anteroom"},
		{name: "conformance", folder: "conformance"},
		{name: "chaos", folder: "chaos", program: true, args: []string{"-for", "20s", "-seed", "1"}},
	}
}

// build makes the suite's binary, with the race detector, in dir, and selects its tests.
func (s *suite) build(ctx context.Context, dir string) error {
	s.binary = filepath.Join(dir, s.name)
	if s.program {
		return run(ctx, s.folder, "go", "build", "-race", "-o", s.binary, ".")
	}
	tests, err := serverTests(s.folder)
	if err != nil {
		return err
	}
	if len(tests) == 0 {
		return fmt.Errorf("no test of %s starts a server", s.folder)
	}
	s.args = append(slices.Clone(s.args), "-test.v", "-test.timeout", suiteLimit.String(), "-test.run", "^("+strings.Join(tests, "|")+")$")
	if s.skip != "" {
		s.args = append(s.args, "-test.skip", s.skip)
	}
	return run(ctx, s.folder, "go", "test", "-race", "-c", "-o", s.binary, ".")
}

// row says how one suite ended on one server.
type row struct {
	server, version, suite string
	passed, failed         int
	skipped                []string // the reasons
	output                 string   // of what failed
	took                   time.Duration
}

// String is the line that is printed when the suite has ended.
func (r row) String() string {
	s := fmt.Sprintf("%s (%s): %s: %d passed, %d failed, %d skipped, %v",
		r.server, r.version, r.suite, r.passed, r.failed, len(r.skipped), r.took.Round(time.Second))
	if r.output != "" {
		s += "\n" + r.output
	}
	return s
}

// run runs the suite with the program in bin as redis-server.
func (s *suite) run(ctx context.Context, bin string) row {
	ctx, cancel := context.WithTimeout(ctx, suiteLimit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, s.args...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = outputTime
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	r := row{suite: s.name}
	if !s.program {
		r = outcome(out)
		r.suite = s.name
	} else if err == nil {
		r.passed = 1
	}
	// A panic, a leak or a time limit ends the binary without a failed test.
	if err != nil && r.failed == 0 {
		r.failed, r.output = 1, fmt.Sprintf("%v\n%s", err, tail(out))
	}
	if err == nil && r.passed == 0 {
		r.failed, r.output = 1, "no test ran"
	}
	r.took = time.Since(begun)
	return r
}

var (
	current = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(\S+)`)
	said    = regexp.MustCompile(`^ +\w+\.go:\d+: (.*)`)
	verdict = regexp.MustCompile(`^( *)--- (PASS|FAIL|SKIP): (\S+)`)
)

// outcome reads what go test -v has printed: the tests that passed and failed, and each skip, also of a part of a test,
// with its reason, which is the last thing that the test said.
func outcome(out []byte) (r row) {
	words := map[string][]string{} // by test
	test := ""
	var failures strings.Builder
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := current.FindStringSubmatch(line); m != nil {
			test = m[1]
			continue
		}
		m := verdict.FindStringSubmatch(line)
		if m == nil {
			words[test] = append(words[test], line)
			continue
		}
		whole := m[1] == ""
		switch {
		case m[2] == "SKIP":
			why := "no reason"
			for _, w := range words[m[3]] {
				if s := said.FindStringSubmatch(w); s != nil {
					why = s[1]
				}
			}
			r.skipped = append(r.skipped, why)
		case m[2] == "FAIL":
			fmt.Fprintf(&failures, "%s\n%s\n", line, strings.Join(words[m[3]], "\n"))
			if whole {
				r.failed++
			}
		case whole:
			r.passed++
		}
	}
	r.output = failures.String()
	return r
}

// tail returns the end of an output.
func tail(out []byte) []byte {
	const most = 4000
	return out[max(0, len(out)-most):]
}
