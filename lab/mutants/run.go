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

// verdict is the result of one mutant.
type verdict string

const (
	caught       verdict = "caught"
	survived     verdict = "SURVIVED"
	doesNotApply verdict = "does not apply"
	doesNotBuild verdict = "does not build"
	hung         verdict = "hangs"
	notRun       verdict = "does not run" // skipped, or no such test
)

// hangAfter is the time limit if hanging is a way to fail. The tests of such mutants take less than a second.
const hangAfter = 20 * time.Second

// runner runs the tests of one checkout.
type runner struct {
	root  string
	limit time.Duration // of one run of go test, without the build
	find  bool          // run all tests of the package, and report which fail
}

// goTest runs named tests of a package and returns their output, and whether go test ended with status 0. overlay may
// be empty; without builds it uses the user's build cache.
func (r *runner) goTest(ctx context.Context, folder, overlay string, builds *cache, race bool, tests []string) (string, bool, error) {
	args := []string{"test", "-count=1", "-vet=off", "-v", "-timeout", r.limit.String()}
	if !r.find {
		args = append(args, "-run", "^("+strings.Join(tests, "|")+")$")
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	cmd.Dir = r.root
	if builds != nil {
		cmd.Env = append(os.Environ(), "GOCACHE="+builds.dir)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return "", false, errors.Join(err, ctx.Err())
	}
	return string(out), err == nil, nil
}

// try applies m and runs its tests. detail says more if it is not caught.
func (r *runner) try(ctx context.Context, m mutant, builds *cache) (v verdict, detail string, err error) {
	text, err := m.apply(r.root)
	if err != nil {
		return doesNotApply, err.Error(), nil //nolint:nilerr // the verdict reports it
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	defer func() { err = errors.Join(err, builds.sweep()) }()
	overlay, err := writeOverlay(dir, filepath.Join(r.root, m.file), text)
	if err != nil {
		return "", "", err
	}
	limited := *r
	if m.hangs {
		limited.limit = min(r.limit, hangAfter)
	}
	out, ok, err := limited.goTest(ctx, m.folder(), overlay, builds, m.race, m.tests)
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

// writeOverlay makes go test see text in place of the file.
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

// judge derives the verdict from the output of go test. All named tests must fail, each by its own result, or the
// program must have crashed, after which the others have no result. A mutant that only leaks a goroutine does not
// count.
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

// named returns the tests that the expression finds in out.
func named(re *regexp.Regexp, out string, tests []string) []string {
	var found []string
	for _, match := range re.FindAllStringSubmatch(out, -1) {
		if slices.Contains(tests, match[1]) && !slices.Contains(found, match[1]) {
			found = append(found, match[1])
		}
	}
	return found
}

// tail returns the end of an output, to show the reason.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// baseline runs every named test on the unchanged sources, one package at a time. All must pass.
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
		out, ok, err := r.goTest(ctx, s.folder, "", nil, s.race, tests[s])
		if err != nil {
			return err
		}
		passed := named(passedTest, out, tests[s])
		if !ok || len(passed) != len(tests[s]) {
			missing := slices.DeleteFunc(tests[s], func(t string) bool { return slices.Contains(passed, t) })
			return fmt.Errorf("%s: these named tests do not pass on the unchanged sources: %v\n%s", s.folder, missing, tail(out))
		}
	}
	return nil
}
