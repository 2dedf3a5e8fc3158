package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// ofOld marks a library that Plan.Old measures.
const ofOld = " (old)"

// withOld adds each Anteroom of the old program behind the one of this program.
func withOld(libs []library.Library) (all []library.Library) {
	for _, lib := range libs {
		all = append(all, lib)
		if strings.HasPrefix(lib.Name, library.Anteroom) {
			lib.Name += ofOld
			lib.Settings = "as " + strings.TrimSuffix(lib.Name, ofOld) + ", by the old program"
			all = append(all, lib)
		}
	}
	return all
}

// apart measures one round in a process of its own, which starts a redis-server of its own: the old program for its
// libraries, and this one again for the others, so that neither has an advantage. The old program uses its own idea
// of the scenario.
func (p Plan) apart(ctx context.Context, s Scenario, lib library.Library, note func(string)) (measure.Figures, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name, old := strings.CutSuffix(lib.Name, ofOld)
	if old {
		program = p.Old
	}
	file, err := os.CreateTemp("", "anteroom-bench-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	args := []string{"-only", exactly(s.Name), "-libraries", exactly(name), "-rounds", "1", "-out", file.Name()}
	if p.Quick {
		args = append(args, "-quick")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = child.EndsWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its redis-server
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, text)
	}
	for line := range strings.Lines(string(text)) {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), "note: "); ok {
			note(said)
		}
	}
	results, err := measure.ReadJSON(file)
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("%s measured %d libraries, not %s alone", program, len(results), name)
	}
	return results[0].Figures, nil
}

func exactly(name string) string { return "^" + regexp.QuoteMeta(name) + "$" }
