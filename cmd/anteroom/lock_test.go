//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// held returns the words that lock prints once it has the lock.
func (c *execTool) held() (key, holder, token string) {
	c.t.Helper()
	words := strings.Split(c.line(), "  ")
	if len(words) != 3 {
		c.t.Fatalf("%q", words)
	}
	return words[0], words[1], words[2]
}

// lock says what it holds, holds it until a signal or the end of its input, and releases it.
func TestLock_HoldsUntilASignal(t *testing.T) {
	s, rdb := withRedis(t)
	for name, end := range map[string]func(c *execTool){
		"INT":  func(c *execTool) { c.send(syscall.SIGINT) },
		"TERM": func(c *execTool) { c.send(syscall.SIGTERM) },
		"HUP":  func(c *execTool) { c.send(syscall.SIGHUP) },
		"EOF":  func(c *execTool) { _ = c.in.Close() },
	} {
		c := startTool(t, s.URL(), "lock", "--until-eof", "--fencing", "k "+name)
		key, holder, token := c.held()
		if n, err := strconv.ParseInt(token, 10, 64); key != `"k `+name+`"` || err != nil || n <= 0 {
			t.Errorf("%s: %q, token %q", name, key, token)
		}
		if n, err := rdb.HGet(t.Context(), "k "+name, holder).Result(); err != nil || n != "1 note: lock" {
			t.Errorf("%s: the holder %q is %q in Redis: %v", name, holder, n, err)
		}
		end(c)
		c.expect(0)
		if locked(t, rdb, "k "+name) || c.errs.String() != "" {
			t.Errorf("%s: the lock is still there, or it said %q", name, c.errs)
		}
	}
}

// The end of the input ends the wait, too: then it is as without a wait.
func TestLock_TheEndOfTheInputEndsTheWait(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "taken")
	waiting := startTool(t, s.URL(), "lock", "--until-eof", "--verbose", "taken")
	waiting.until("waiting")
	_ = waiting.in.Close()
	waiting.expect(exitConflict, `lock "taken" is still held after `)
	ended := startTool(t, s.URL(), "lock", "--until-eof", "-E", "3", "taken") // ended, perhaps, before it was asked
	_ = ended.in.Close()
	ended.expect(3)
	free := startTool(t, s.URL(), "lock", "--until-eof", "free")
	_ = free.in.Close()
	free.held()
	free.expect(0)

	unreachable := startTool(t, "redis://127.0.0.1:1", "lock", "--until-eof", "-w", "10m", "k")
	unreachable.until("trying again")
	_ = unreachable.in.Close()
	unreachable.expect(exitUnavailable, "no answer from Redis before standard input ended: ", "refused")
}

// afterward writes what it is given a while after the lock k is free.
type afterward struct {
	strings.Builder
	free func() bool
}

func (w *afterward) Write(p []byte) (int, error) {
	for !w.free() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // longer than all else takes
	return w.Builder.Write(p)
}

// A hold that ends immediately is announced, however late the announcement gets a processor.
func TestLock_AHoldThatEndsImmediatelyIsAnnounced(t *testing.T) {
	s, rdb := withRedis(t)
	out := &afterward{free: func() bool { return rdb.Exists(context.Background(), "k").Val() == 0 }}
	if code := run(t.Context(), []string{"lock", "--redis", s.URL(), "--until-eof", "k"}, strings.NewReader(""), out, io.Discard); code != 0 {
		t.Fatal(code)
	}
	if !strings.HasPrefix(out.String(), "k  ") {
		t.Errorf("it said %q", out.String())
	}
}

// Without --until-eof an input that ends, such as the null device of a service, ends nothing.
func TestLock_AnInputThatEnds(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "lock", "--lease", "3s", "k")
	_ = c.in.Close()
	if _, _, token := c.held(); token != "-" {
		t.Errorf("token %q without --fencing", token)
	}
	ttl := rdb.PTTL(t.Context(), "k").Val()
	for end := time.Now().Add(soon); ; { // a renewal has come
		if now := rdb.PTTL(t.Context(), "k").Val(); now > ttl {
			break
		} else if ttl = now; time.Now().After(end) {
			t.Fatalf("the lock is not renewed; it said %q", c.errs)
		}
	}
	c.send(syscall.SIGTERM)
	c.expect(0)
}

// The token that it prints is the one that status shows.
func TestLock_StatusShowsItsToken(t *testing.T) {
	s, _ := withRedis(t)
	c := startTool(t, s.URL(), "lock", "--fencing", "k")
	_, _, token := c.held()
	if list, _ := answersTo(t, s, 0, "k"); list[0].Token == nil || strconv.FormatInt(*list[0].Token, 10) != token {
		t.Errorf("lock says token %s, status %+v", token, list[0])
	}
}

// A loss ends it immediately with a status and a reason of its own, whatever becomes of its output.
func TestLock_Loss(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "lock", "--lease", "2s", "k")
	c.held()
	must(t, rdb.Del(t.Context(), "k").Err())
	c.expect(exitLost, `lock "k" lost: `)

	c = startTool(t, s.URL(), "lock", "--lease", "1h", "k")
	c.held()
	if code, _, errs := tool(t, s, "release", "--force", "--yes", "k"); code != 0 {
		t.Fatalf("exit status %d, %q", code, errs)
	}
	c.expect(exitLost, `lock "k" lost: released by force`)

	c = startTool(t, s.URL(), "lock", "--lease", "1h", "k")
	c.held()
	must(t, rdb.Del(t.Context(), "k").Err())
	c.send(syscall.SIGTERM) // the release finds the loss
	c.expect(exitLost, `lock "k" lost: `)
}

// What cannot be written, and a lock that somebody else has.
func TestLock_Statuses(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "taken")
	startTool(t, s.URL(), "lock", "-n", "taken").expect(exitConflict)
	startTool(t, s.URL(), "lock", "-w", "1s", "-E", "0", "taken").expect(0)
	startTool(t, "redis://127.0.0.1:1", "lock", "k").expect(exitUnavailable, "refused")
	startTool(t, s.URL(), "lock", "--lease", "0", "k").expect(exitUsage, "--lease")
	startTool(t, s.URL(), "lock", "k", "l").expect(exitUsage, "give one KEY")
	waiting := startTool(t, s.URL(), "lock", "--verbose", "taken")
	waiting.until("waiting")
	waiting.send(syscall.SIGTERM)
	waiting.expect(128 + 15)

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no full device here")
	}
	defer full.Close()
	cmd := exec.Command(os.Args[0], "lock", "k")
	cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+s.URL())
	cmd.Stdout = full
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitOutput || locked(t, rdb, "k") {
		t.Errorf("on a full disk: %v, the lock is there: %v", err, locked(t, rdb, "k"))
	}
}
