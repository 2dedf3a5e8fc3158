package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// interrupted runs a script at a terminal as a shell's job, presses a key when the screen shows r11dy, and returns
// what the screen showed until the job ended. The script has the tool as $TOOL; its status follows the word status.
// over returns when nothing of the job runs any more: a command that dies may still read what is typed.
func interrupted(t *testing.T, url, shell, script, key string, over func()) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip("needs", shell)
	}
	file := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(file, []byte(script), 0o600))
	c := newScreen(t, url, `trap : INT QUIT; set -m; ulimit -c 0; export TOOL="$0"; `+shell+` `+file+`; echo "status $?."; echo e$((1+1))d; read y; echo "[$y]"`)
	c.until("r11dy")
	c.press(key)
	c.until("e2d")
	over()
	c.press("more\n")
	c.until("[more]") // the terminal is the shell's again
	return c.screen()
}

// blocking is a command that blocks in its first round, in a builtin: dash loses an INT that arrives while it starts
// a process.
const blocking = `sh -c 'echo r$(($1+10))dy; test $1 != 1 || read x' sh`

// A key that ends the command ends the script that started exec, as if the script had started the command itself, or
// flock(1). (No key ends bash by QUIT.)
func TestExec_X4_InterruptEndsTheScript(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "taken")
	loop := `for i in 1 2; do "$TOOL" exec --lease 10m k -- ` + blocking + ` $i; done; echo went-on`
	for name, c := range map[string]struct{ shell, script, key, status string }{
		"dash":         {"dash", loop, "\x03", "130"},
		"bash":         {"bash", loop, "\x03", "130"},
		"quit":         {"dash", loop, "\x1c", "131"},
		"xargs":        {"bash", `printf '1\n2\n' | xargs -o -n 1 "$TOOL" exec --lease 10m k -- ` + blocking + `; echo went-on`, "\x03", "130"},
		"exec in exec": {"bash", `for i in 1 2; do "$TOOL" exec --lease 10m --pass-env k -- "$TOOL" exec --lease 10m l -- ` + blocking + ` $i; done; echo went-on`, "\x03", "130"},
		"pipeline":     {"bash", `for i in 1 2; do "$TOOL" exec --lease 10m k -- ` + blocking + ` $i | cat; done; echo went-on`, "\x03", "130"},
		"waiting":      {"bash", `for i in 1 2; do echo r$((i+10))dy; "$TOOL" exec taken -- true; done; echo went-on`, "\x03", "130"},
	} {
		t.Run(name, func(t *testing.T) {
			// The key may end the script itself, which then does not wait for exec. Its lease outlasts the bound, which only a hang breaks.
			got := interrupted(t, s.URL(), c.shell, c.script, c.key, func() {
				for end := time.Now().Add(2 * time.Minute); locked(t, rdb, "k") || locked(t, rdb, "l"); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("the lock is still there")
					}
				}
			})
			if strings.Contains(got, "r12dy") || strings.Contains(got, "went-on") || !strings.Contains(got, "status "+c.status+".") {
				t.Errorf("the script went on: %q", got)
			}
		})
	}
}

// A script or a command that catches the key continues.
func TestExec_X4_InterruptThatIsCaught(t *testing.T) {
	s, _ := withRedis(t)
	for name, script := range map[string]string{
		"by the script":  `trap 'echo caught' INT; for i in 1 2; do "$TOOL" exec k -- ` + blocking + ` $i; done; echo went-on`,
		"by the command": `for i in 1 2; do "$TOOL" exec k -- bash -c "trap 'echo caught; exit 3' INT; ` + strings.ReplaceAll(blocking, "$", `\$`) + ` $i"; done; echo went-on`,
	} {
		t.Run(name, func(t *testing.T) {
			got := interrupted(t, s.URL(), "bash", script, "\x03", func() {})
			if strings.Count(got, "caught") != 1 || !strings.Contains(got, "r12dy") || !strings.Contains(got, "went-on") {
				t.Errorf("%q", got)
			}
		})
	}
}
