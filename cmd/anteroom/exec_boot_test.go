//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// With a limit for the wait, a Redis that is not up yet is waited for, as at boot; both commands that hold a lock do.
func TestExec_WaitsForARedisThatComesUp(t *testing.T) {
	s, rdb := withRedis(t)
	s.Kill()
	run := startTool(t, s.URL(), "exec", "-w", "10m", "k", "--", "echo", "ran")
	holds := startTool(t, s.URL(), "lock", "-w", "10m", "l")
	run.until("Redis does not answer yet; trying again for 10m0s: ")
	holds.until("Redis does not answer yet; trying again for 10m0s: ")
	s.Restart()
	if l := run.line(); l != "ran" {
		t.Errorf("%q", l)
	}
	run.expect(0)
	holds.held()
	if !locked(t, rdb, "l") {
		t.Error("nobody holds the lock")
	}
}

// A Redis that does not come up is said when the wait is over; without a limit, or without a wait, immediately.
func TestExec_GivesUpInALongOutage(t *testing.T) {
	const unreachable = "redis://127.0.0.1:1"
	startTool(t, unreachable, "exec", "-w", "1s", "k", "--", "true"). // time enough for one refusal
										expect(exitUnavailable, "no answer from Redis within 1s (--wait): ", "refused")
	for _, flag := range []string{"--nonblock", "--wait=0", "--fencing"} {
		c := startTool(t, unreachable, "exec", flag, "k", "--", "true")
		c.expect(exitUnavailable, "refused")
		if said := c.errs.String(); strings.Contains(said, "yet") || strings.Contains(said, "--wait") {
			t.Errorf("%s: it said %q", flag, said)
		}
	}
}

// The wait bounds the first attempt, too: a grant that comes later starts nothing, and is released.
func TestExec_TheWaitBoundsTheFirstAttempt(t *testing.T) {
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "k", "--", "true").expect(0) // loads the scripts
	for _, args := range [][]string{{"exec", "-w", "100ms", "slow", "--", "echo", "ran"}, {"lock", "-w", "100ms", "slow"}} {
		network.OnRequest("slow", 1, faultnet.Late(700*time.Millisecond))
		c := startTool(t, url, args...)
		c.expect(exitUnavailable, "no answer from Redis within 100ms (--wait): ")
		if l, ok := <-c.lines; ok {
			t.Errorf("%v: it went on: %q", args, l)
		}
		if locked(t, rdb, "slow") {
			t.Errorf("%v: the late grant is still there", args)
		}
		if said := c.errs.String(); strings.Contains(said, "trying again") {
			t.Errorf("%v: it said %q", args, said)
		}
	}
}
