package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is what became of one mutant.
type verdict string

const (
	caught       verdict = "caught"
	survived     verdict = "SURVIVED"
	doesNotApply verdict = "does not apply"
	doesNotBuild verdict = "does not build"
	hung         verdict = "hangs"
	notRun       verdict = "does not run" // skipped, or no such test
)

// hangAfter is the time limit where hanging is a way to fail. The tests of such mutants
// take less than a second.
const hangAfter = 20 * time.Second

// runner runs the tests of one checkout.
type runner struct {
	root  string
	limit time.Duration // of one run of go test, the building not included
	find  bool          // run all tests of the package, and say which of them fail
}

// goTest runs named tests of a package and returns what they printed, and whether go
// test ended with status 0. overlay may be empty.
func (r *runner) goTest(ctx context.Context, folder, overlay string, race bool, tests []string) (string, bool, error) {
	args := []string{"test", "-count=1", "-vet=off", "-v", "-timeout", r.limit.String()}
	if !r.find {
		args = append(args, "-run", pattern(tests))
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	cmd.Dir = r.root
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return "", false, errors.Join(err, ctx.Err())
	}
	return string(out), err == nil, nil
}

// try applies m and runs its tests. detail says more where it is not caught.
func (r *runner) try(ctx context.Context, m mutant) (v verdict, detail string, err error) {
	text, err := m.apply(r.root)
	if err != nil {
		return doesNotApply, err.Error(), nil //nolint:nilerr // the verdict says it
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, filepath.Join(r.root, m.file), text)
	if err != nil {
		return "", "", err
	}
	limited := *r
	if m.hangs {
		limited.limit = min(r.limit, hangAfter)
	}
	out, ok, err := limited.goTest(ctx, m.folder(), overlay, m.race, m.tests)
	if err != nil {
		return "", "", err
	}
	if r.find {
		for _, match := range failedTest.FindAllStringSubmatch(out, -1) {
			detail += match[1] + " "
		}
		if detail == "" || panicked.MatchString(out) {
			detail += "\n" + tail(out)
		}
		return judge(m, out, ok), detail, nil
	}
	v = judge(m, out, ok)
	if v == caught {
		return v, "", nil
	}
	return v, tail(out), nil
}

// writeOverlay puts text in the place of the file in what go test sees.
func writeOverlay(dir, file, text string) (string, error) {
	changed := filepath.Join(dir, "mutated"+filepath.Ext(file))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	passedTest = regexp.MustCompile(`(?m)^--- PASS: (\w+)`)
	panicked   = regexp.MustCompile(`(?m)^(panic|fatal error): `)
)

// judge reads the verdict off what go test printed. All named tests must fail, each by its
// own word, or the program must have fallen over, which leaves no word to the others. One
// that only left a goroutine behind does not count.
func judge(m mutant, out string, ok bool) verdict {
	switch {
	case strings.Contains(out, "panic: test timed out after"):
		if m.hangs {
			return caught
		}
		return hung
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return doesNotBuild
	case !ok && (len(named(failedTest, out, m.tests)) == len(m.tests) || panicked.MatchString(out)):
		return caught
	case len(named(passedTest, out, m.tests)) > 0:
		return survived
	}
	return notRun
}

// named returns which of the tests the expression finds in out.
func named(re *regexp.Regexp, out string, tests []string) []string {
	var found []string
	for _, match := range re.FindAllStringSubmatch(out, -1) {
		if slices.Contains(tests, match[1]) && !slices.Contains(found, match[1]) {
			found = append(found, match[1])
		}
	}
	return found
}

// tail returns the end of an output, for a person who wants to know why.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// baseline runs every named test on the sources as they are, a package at a time. All
// must pass.
func (r *runner) baseline(ctx context.Context, list []mutant) error {
	type suite struct {
		folder string
		race   bool
	}
	tests := map[suite][]string{}
	var order []suite
	for _, m := range list {
		s := suite{m.folder(), m.race}
		if _, known := tests[s]; !known {
			order = append(order, s)
		}
		for _, t := range m.tests {
			if !slices.Contains(tests[s], t) {
				tests[s] = append(tests[s], t)
			}
		}
	}
	for _, s := range order {
		out, ok, err := r.goTest(ctx, s.folder, "", s.race, tests[s])
		if err != nil {
			return err
		}
		passed := named(passedTest, out, tests[s])
		if !ok || len(passed) != len(tests[s]) {
			missing := slices.DeleteFunc(tests[s], func(t string) bool { return slices.Contains(passed, t) })
			return fmt.Errorf("%s: of the named tests these do not pass as they are: %v\n%s", s.folder, missing, tail(out))
		}
	}
	return nil
}
