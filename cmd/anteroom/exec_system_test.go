//go:build unix

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
)

// What a system lacks is said at the start, and a system without supervisors runs nothing.
func TestExec_X2_ASystemThatLacksSomethingIsSaid(t *testing.T) {
	s := testredis.Start(t)
	for _, c := range []struct {
		lacks  string
		status int
		words  []string
	}{
		{"nothing", 0, nil},
		{"death", 0, []string{"promises less on this system", "continues without the lock\n"}},
		{"listing", 0, []string{"promises less on this system", "a process that has ended keeps the lock"}},
		{"death, listing", 0, []string{"continues without the lock; a process that has ended"}},
		{"death, listing, supervisor", exitCannotRun, []string{"cannot keep its promise on this system", "for a test"}},
	} {
		cmd := exec.Command(os.Args[0], "exec", "k", "--", "echo", "ran")
		cmd.Env = []string{systemLacks + "=" + c.lacks}
		tool := startCommand(t, cmd, s.URL())
		tool.expect(c.status, c.words...)
		if c.words == nil && tool.errs.String() != "" {
			t.Errorf("lacks %s: it said %q", c.lacks, tool.errs)
		}
		if line, ran := <-tool.lines; ran != (c.status == 0) {
			t.Errorf("lacks %s: the command said %q", c.lacks, line)
		}
	}
}

// A refusal comes before Redis is asked, so before anybody waits.
func TestExec_X2_ARefusalComesFirst(t *testing.T) {
	cmd := exec.Command(os.Args[0], "exec", "k", "--", "true")
	cmd.Env = []string{systemLacks + "=supervisor"}
	startCommand(t, cmd, "redis://127.0.0.1:1").expect(exitCannotRun, "cannot keep its promise")
}
