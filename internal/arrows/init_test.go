package arrows

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var initLine = regexp.MustCompile(`(?m)^init ` + regexp.QuoteMeta(module) + `(\S+) @.* (\d+) bytes, \d+ allocs$`)

// Importing a package of the library computes nothing: a program pays for what it uses, and no hash or template of ours can end it
// before its main has begun. What is left are errors and tables.
func TestImportsComputeNothing(t *testing.T) {
	demo := filepath.Join(t.TempDir(), "demo") // it imports all of the library
	if out, err := exec.Command("go", "build", "-o", demo, module+"cmd/demo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(demo, "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(m[1], "cmd/") {
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
