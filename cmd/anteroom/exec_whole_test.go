//go:build unix

package main

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// aNote is in the command that makes the lease of a new hold whole, with its note, and in no other.
const aNote = "\r\n$4\r\nnote\r\n"

// The process that was granted the lock gets its whole lease, or continues waiting: an answer that is lost just then does not
// make it somebody else's.
func TestExec_TheWholeLeaseWithoutAnAnswer_Lab(t *testing.T) {
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "k", "--", "true").expect(0) // loads the scripts
	m, _ := client(t, s, anteroom.Config{})
	for _, fate := range []faultnet.Fate{faultnet.Swallowed, faultnet.Shot, faultnet.Lost} {
		for _, args := range [][]string{{"exec", "-E", "0"}, {"exec", "-w", "10m", "-E", "0", "--at-least", "1s"}} {
			h := hold(t, m.Mutex("k"))
			c := startTool(t, url, slices.Concat(args, []string{"k", "--", "echo", "ran"})...)
			awaitLine(t, m, "k", 1)
			network.OnRequest(aNote, 1, fate)
			must(t, h.Release(t.Context()))
			if l := c.line(); l != "ran" {
				t.Errorf("%v: %q", args, l)
			}
			c.expect(0)
			rdb.Del(t.Context(), "k") // what --at-least has left
		}
		network.OnRequest(aNote, 1, fate)
		startTool(t, url, "exec", "-n", "-E", "0", "k", "--", "echo", "ran").expect(exitUnavailable, "k")
	}
}

// A lock that is gone before the command starts is waited for again.
func TestExec_GoneBeforeTheStart(t *testing.T) {
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "k", "--", "true").expect(0) // loads the scripts
	other := hold(t, func() *anteroom.Mutex { m, _ := client(t, s, anteroom.Config{}); return m.Mutex("gone") }())
	late := answerTime() / 2 // time enough to delete the lock, and for the tool to notice that
	c := startTool(t, url, "exec", "gone", "--", "echo", "ran")
	m, _ := client(t, s, anteroom.Config{})
	awaitLine(t, m, "gone", 1)
	network.OnRequest(aNote, 1, faultnet.Late(late))
	must(t, other.Release(t.Context()))
	for end := time.Now().Add(execPatience); ; time.Sleep(5 * time.Millisecond) {
		if h, err := m.Inspect(t.Context(), "gone"); err == nil && h.Locked && h.InLine == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is not granted the lock")
		}
	}
	must(t, rdb.Del(t.Context(), "gone").Err())
	if l := c.line(); l != "ran" {
		t.Errorf("%q", l)
	}
	c.expect(0)
}

// --seize takes the lock from its holder, which learns of it; others see by the note what runs.
func TestExec_Seize(t *testing.T) {
	s, _ := withRedis(t)
	m, _ := client(t, s, anteroom.Config{})
	h := hold(t, m.Mutex("k"))
	c := startTool(t, s.URL(), "exec", "--seize", "k", "--", "sh", "-c", "echo in; read x")
	if l := c.line(); l != "in" {
		t.Errorf("%q", l)
	}
	<-h.Context().Done()
	if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("the holder: %v", err)
	}
	info, err := m.Inspect(t.Context(), "k")
	must(t, err)
	if info.Holders[0].Note != "exec sh" {
		t.Errorf("%+v", info)
	}
	c.send(syscall.SIGTERM)
	c.expect(128 + 15)
	for _, note := range []string{"two\nlines", strings.Repeat("x", 257)} {
		startTool(t, s.URL(), "exec", "--note", note, "k", "--", "true").expect(exitUsage, "--note")
	}
}

// A Redis that came up and has answered that the lock is taken was not unreachable at the end of the wait.
func TestExec_TakenIsNotUnreachable_Lab(t *testing.T) {
	t.Parallel() // it waits
	s, rdb := withRedis(t)
	take(t, rdb, "k")
	url, network := relay(t, s)
	network.Refuse()
	c := startTool(t, url, "exec", "-w", "3s", "-E", "42", "k", "--", "echo", "ran")
	c.until("Redis does not answer yet")
	network.Heal()
	c.expect(42)
}
