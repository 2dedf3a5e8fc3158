//go:build unix

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// aLease is in the command that makes a new hold whole and in no other: the default lease, in milliseconds.
const aLease = "\r\n$5\r\n30000\r\n"

// Whoever was granted the lock gets its whole lease, or goes on waiting: an answer that is lost just then does not make it
// somebody else's.
func TestExec_TheFirstExtensionIsRepeated(t *testing.T) {
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "k", "--", "true").expect(0) // loads the scripts
	m, _ := client(t, s, anteroom.Config{})
	for _, fate := range []faultnet.Fate{faultnet.Swallowed, faultnet.Shot, faultnet.Lost} {
		for _, args := range [][]string{{"exec", "-E", "0"}, {"exec", "-w", "10m", "-E", "0", "--at-least", "1s"}} {
			h := hold(t, m.Mutex("k"))
			c := startTool(t, url, slices.Concat(args, []string{"k", "--", "echo", "ran"})...)
			awaitLine(t, m, "k", 1)
			network.OnRequest(aLease, 1, fate)
			must(t, h.Release(t.Context()))
			if l := c.line(); l != "ran" {
				t.Errorf("%v: %q", args, l)
			}
			c.expect(0)
			rdb.Del(t.Context(), "k") // what --at-least has left
		}
	}
}

// A lock that is gone before the command starts is waited for again; without a wait that is a loss.
func TestExec_GoneBeforeTheStart(t *testing.T) {
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "k", "--", "true").expect(0) // loads the scripts
	gone := func(args ...string) *execTool {
		network.OnRequest("gone", 1, faultnet.Late(600*time.Millisecond))
		c := startTool(t, url, slices.Concat(args, []string{"gone", "--", "echo", "ran"})...)
		for end := time.Now().Add(execPatience); !locked(t, rdb, "gone"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not ask")
			}
		}
		must(t, rdb.Del(t.Context(), "gone").Err())
		return c
	}
	c := gone("exec")
	if l := c.line(); l != "ran" {
		t.Errorf("%q", l)
	}
	c.expect(0)
	gone("exec", "-n").expect(exitLost, `lock "gone" lost before the command started`)
}

// A Redis that came up and has answered that the lock is taken was not away at the end of the wait.
func TestExec_TakenIsNotAway(t *testing.T) {
	t.Parallel() // it waits
	s := testredis.Start(t)
	s.Kill()
	c := startTool(t, s.URL(), "exec", "-w", "3s", "-E", "42", "k", "--", "echo", "ran")
	c.until("Redis does not answer yet")
	s.Restart()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	take(t, rdb, "k")
	c.expect(42)
}
