//go:build unix

package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// inside starts exec with the flags and a command that says who it is and then reads, and returns it once that runs.
func inside(t *testing.T, url string, flags ...string) (c *execTool, holder string) {
	t.Helper()
	c = startTool(t, url, append(append([]string{"exec"}, flags...), "k", "--", "sh", "-c", `echo "$ANTEROOM_HOLDER"; read x`)...)
	return c, c.line()
}

func (c *execTool) leave() {
	c.t.Helper()
	_ = c.in.Close()
	c.expect(1) // read's
}

// Those who read are inside together, and one that writes is alone.
func TestExec_Shared(t *testing.T) {
	s, _ := withRedis(t)
	one, holder := inside(t, s.URL(), "-s")
	m, _ := client(t, s, anteroom.Config{})
	info, err := m.Inspect(t.Context(), "k")
	must(t, err)
	if len(info.Holders) != 1 || info.Holders[0].Field != holder || info.Kind != "RWMutex" || info.TTL < 25*time.Second {
		t.Errorf("%+v, want %s and, from the start of the command on, a whole lease", info, holder)
	}
	two, _ := inside(t, s.URL(), "--shared", "--verbose", "-n")
	startTool(t, s.URL(), "exec", "-x", "-n", "k", "--", "true").expect(exitConflict)
	writer := startTool(t, s.URL(), "exec", "--exclusive", "--fencing", "k", "--", "sh", "-c", `echo "$ANTEROOM_TOKEN"; read x`)
	awaitLine(t, m, "k", 1)
	startTool(t, s.URL(), "exec", "-s", "-n", "k", "--", "true").expect(exitConflict) // nobody passes the writer
	one.leave()
	two.leave()
	if token := writer.line(); len(token) != 16 {
		t.Errorf("token %q", token)
	}
	startTool(t, s.URL(), "exec", "-s", "-n", "k", "--", "true").expect(exitConflict)
	writer.leave()
}

// A Semaphore has its units, of which each command takes some.
func TestExec_Units(t *testing.T) {
	s, _ := withRedis(t)
	two, _ := inside(t, s.URL(), "--units", "2", "--of", "3")
	one, _ := inside(t, s.URL(), "--of", "3")
	startTool(t, s.URL(), "exec", "-n", "-E", "9", "--of", "3", "k", "--", "true").expect(9)
	next := startTool(t, s.URL(), "exec", "--of", "3", "k", "--", "echo", "in")
	two.leave()
	if l := next.line(); l != "in" {
		t.Errorf("%q", l)
	}
	next.expect(0)
	one.leave()
}

// lock holds what exec would.
func TestLock_Shared(t *testing.T) {
	s, _ := withRedis(t)
	one, two := startTool(t, s.URL(), "lock", "-s", "k"), startTool(t, s.URL(), "lock", "-s", "k")
	if _, a, _ := one.held(); a == "" {
		t.Error("no holder")
	}
	two.held()
	for _, c := range []*execTool{one, two} {
		c.send(syscall.SIGTERM)
		c.expect(0)
	}
}

// A key has one kind of lock: another one is refused, with words that help.
func TestExec_Shared_OneKeyOneKind_Lab(t *testing.T) {
	s, _ := withRedis(t)
	kinds := []struct{ flags, words string }{
		{"", "k holds a Mutex; it was left alone (for -s, -x and --of it has to be another key)"},
		{"-s", "k holds an RWMutex; it was left alone (it is for -s and -x)"},
		{"--of 2", "k holds a Semaphore; it was left alone (it is for --of)"},
	}
	for _, kind := range kinds {
		c, _ := inside(t, s.URL(), strings.Fields(kind.flags)...)
		for _, other := range kinds {
			words := kind.words
			switch other.flags {
			case kind.flags:
				continue
			case "":
				words = "k holds a lock of another kind; it was left alone (an RWMutex or a Semaphore? See -s, -x and --of)"
			}
			args := append([]string{"exec"}, strings.Fields(other.flags)...)
			startTool(t, s.URL(), append(args, "k", "--", "true")...).expect(exitRefused, words)
		}
		c.leave()
	}
}

// The supervisor counts from the whole lease: a lock that is lost before it has that is waited for again, or nothing runs.
func TestExec_Shared_TheWholeLeaseComesFirst_Lab(t *testing.T) {
	t.Parallel() // it waits for the end of a short lease
	s, rdb := withRedis(t)
	url, network := relay(t, s)
	startTool(t, url, "exec", "-s", "k", "--", "true").expect(0) // loads the scripts
	const renewal = "\r\n$5\r\n30000\r\n"                        // the whole lease
	for _, wait := range []bool{true, false} {
		network.OnRequest(renewal, 1, faultnet.Swallowed)
		args := []string{"exec", "-s", "k", "--", "echo", "ran"}
		if !wait {
			args = append([]string{"exec", "-n"}, args[1:]...)
		}
		c := startTool(t, url, args...)
		for end := time.Now().Add(soon); !locked(t, rdb, "k"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is not granted the lock")
			}
		}
		for end := time.Now().Add(soon); network.Waiting() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not renew the lock")
			}
		}
		must(t, rdb.Del(t.Context(), "k").Err())
		if wait {
			if l := c.line(); l != "ran" {
				t.Errorf("%q", l)
			}
			c.expect(0)
			continue
		}
		c.expect(exitLost, `lock "k" lost before the command started`)
		if l, more := <-c.lines; more {
			t.Errorf("the command ran: %q", l)
		}
	}
}

// What makes no sense of a lock that several may hold is a mistake in the command line, which says why.
func TestExec_Shared_Usage(t *testing.T) {
	t.Setenv(redisVariable, "redis://127.0.0.1:1")
	for _, c := range []struct {
		flags string
		words string
	}{
		{"-s -x", "shared"},
		{"-s --of 2", "shared"},
		{"-x --of 2", "exclusive"},
		{"--of 0", "--of is 0; it must be from 1 to 536870912"},
		{"--of 1099511627777", "--of is 1099511627777"},
		{"--units 2", "--units is for a Semaphore; --of says how many units that has"},
		{"-s --units 1", "--units is for a Semaphore"},
		{"--of 2 --units 3", "--units is 3; it must be from 1 to 2 (--of)"},
		{"--of 2 --units 0", "--units is 0; it must be from 1 to 2 (--of)"},
		{"-s --seize", "--seize is for a Mutex, which has one holder"},
		{"--of 2 --seize", "--seize is for a Mutex"},
		{"-x --note x", "--note is for a Mutex; Redis has no place for a note of the others"},
		{"--of 2 --at-least 1s", "--at-least is for a Mutex; the units of the others are free once they are given back"},
		{"--of 2 --fencing", "--fencing: those who share a Semaphore have no order, and so no tokens"},
		{"-s --dialect redisson", "--dialect redisson has Mutexes only"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"exec"}, strings.Fields(c.flags)...)
		status := run(t.Context(), append(args, "k", "--", "true"), nil, &out, &errs)
		if status != exitUsage || out.Len() != 0 || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%s: exit status %d, %q, %q", c.flags, status, out.String(), errs.String())
		}
	}
}
