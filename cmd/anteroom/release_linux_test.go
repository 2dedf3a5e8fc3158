package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/anteroom/anteroom/internal/testredis"
)

// newTerminal returns both ends of a terminal: the user's, and a program's standard input.
func newTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	must(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// askedTo runs a release at a terminal, and gives an answer to each question.
func askedTo(t *testing.T, s *testredis.Server, status int, key string, answers ...func() string) (out, errs string) {
	t.Helper()
	person, program := newTerminal(t)
	w := &watching{t: t, status: make(chan int, 1)}
	w.begin(func(ctx context.Context) int {
		return run(ctx, []string{"release", "--force", "--redis", s.URL(), key}, program, &w.out, &w.errs)
	})
	for i, answer := range answers {
		w.await(&w.errs, "[y/N]", i+1)
		_, err := person.WriteString(answer())
		must(t, err)
	}
	w.ends(status)
	return w.out.String(), w.errs.String()
}

func says(text string) func() string { return func() string { return text } }

// The user is shown who holds the lock, and only a yes releases it.
func TestRelease_O2_AsksAtATerminal(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	const holder = "web-7-31337-9f3c2a1b00de:1763776900000017"
	must(t, rdb.HSet(t.Context(), "k", holder, 1).Err())
	for _, no := range []string{"\n", "n\n", "no\n", "yes please\n", "\x04"} {
		out, errs := askedTo(t, s, exitNone, "k", says(no))
		if out != "" || gone(t, rdb, "k") || !strings.Contains(errs, "k is held by "+holder+" (host web-7, pid 31337)") {
			t.Errorf("%q: %q, %q", no, out, errs)
		}
	}
	for _, yes := range []string{"y\n", "YES\n"} {
		must(t, rdb.HSet(t.Context(), "k", holder, 1).Err())
		if out, errs := askedTo(t, s, 0, "k", says(yes)); out != "released k, which was held by "+holder+"\n" || !gone(t, rdb, "k") {
			t.Errorf("%q: %q, %q", yes, out, errs)
		}
	}
	if out, errs := askedTo(t, s, exitNone, "k"); out != "" || errs != "k is free: nothing was released\n" {
		t.Errorf("%q, %q", out, errs)
	}
}

// A yes is about the holders that were shown. A new holder is shown, and the question repeated.
func TestRelease_O2_AsksAgainAboutAnother(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.HSet(t.Context(), "k", "first:1763776900000017", 1).Err())
	change := func() string {
		must(t, rdb.Del(t.Context(), "k").Err())
		must(t, rdb.HSet(t.Context(), "k", "second:1763776900000017", 1).Err())
		return "y\n"
	}
	out, errs := askedTo(t, s, exitNone, "k", change, says("n\n"))
	if out != "" || gone(t, rdb, "k") || !strings.Contains(errs, "the holder has changed\nk is held by second:1763776900000017") {
		t.Errorf("%q, %q", out, errs)
	}
	vanish := func() string {
		must(t, rdb.Del(t.Context(), "k").Err())
		return "y\n"
	}
	out, errs = askedTo(t, s, exitNone, "k", vanish)
	if out != "" || !strings.HasSuffix(errs, "the holder has changed\nk is free: nothing was released\n") {
		t.Errorf("%q, %q", out, errs)
	}
}

// Input typed before the question is no answer: the holder had not been shown yet.
func TestRelease_O2_AnAnswerBeforeTheQuestionIsNone(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.HSet(t.Context(), "k", "first:1763776900000017", 1).Err())
	person, program := newTerminal(t)
	_, err := person.WriteString("y\n")
	must(t, err)
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		n, err := unix.IoctlGetInt(int(program.Fd()), unix.TIOCINQ)
		must(t, err)
		if n > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what was typed has not arrived")
		}
	}
	w := &watching{t: t, status: make(chan int, 1)}
	w.begin(func(ctx context.Context) int {
		return run(ctx, []string{"release", "--force", "--redis", s.URL(), "k"}, program, &w.out, &w.errs)
	})
	w.await(&w.errs, "[y/N]", 1)
	_, err = person.WriteString("n\n")
	must(t, err)
	w.ends(exitNone)
	if gone(t, rdb, "k") {
		t.Errorf("it is released: %q, %q", w.out.String(), w.errs.String())
	}
}
