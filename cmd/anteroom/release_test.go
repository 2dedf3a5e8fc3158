package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/screen"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The holder is notified through its own Manager's channel, not by its watchdog's next check or a renewal, which are
// minutes away; and a waiter is admitted.
func TestRelease_NotifiesTheHolderAndLetsTheNextIn(t *testing.T) {
	s := testredis.Start(t)
	locks := anteroom.LockConfig{LeaseTime: time.Hour, WatchdogPeriod: 10 * time.Minute}
	m, losses := client(t, s, anteroom.Config{Defaults: locks})
	other, _ := client(t, s, anteroom.Config{Defaults: locks})
	h := hold(t, m.Mutex("order:42"))
	next := make(chan *anteroom.Hold, 1)
	go func() {
		got, err := other.Mutex("order:42").Acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		next <- got
	}()
	awaitLine(t, m, "order:42", 1)
	// The Manager must listen on its own channel before it can be notified.
	awaitOwnChannel(t, s, m.ClientID())

	code, out, errs := tool(t, s, "release", "--force", "--yes", "order:42")
	if code != 0 || out != "released order:42, which was held by "+h.Holder()+"\n" ||
		!strings.Contains(errs, "order:42 is held by "+h.Holder()) || !strings.Contains(errs, "waiting in line: 1; listening for its release: 0") {
		t.Fatalf("exit status %d, %q, %q", code, out, errs)
	}
	select {
	case e := <-losses:
		if e.Reason != observe.LostForced || e.Key != "order:42" || !errors.Is(context.Cause(h.Context()), anteroom.ErrLost) {
			t.Errorf("%+v, cause %v", e, context.Cause(h.Context()))
		}
	case <-time.After(soon):
		t.Error("the holder was not notified")
	}
	select {
	case got := <-next:
		must(t, got.Release(t.Context()))
	case <-time.After(soon):
		t.Error("nobody is let in")
	}
	_ = h.Release(t.Context())
}

// awaitOwnChannel waits until a Manager listens on its own channel.
func awaitOwnChannel(t *testing.T, s *testredis.Server, id string) {
	t.Helper()
	rdb := s.Client(t)
	name := "anteroom:client:" + id
	for end := time.Now().Add(soon); rdb.PubSubNumSub(t.Context(), name).Val()[name] == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the Manager does not listen")
		}
	}
}

// Without a yes nothing happens: neither without --force, nor where no question can be asked.
func TestRelease_O2_NothingWithoutAYes(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.HSet(t.Context(), "k", "me:1763776900000017", 1).Err())
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	for _, c := range []struct {
		in    io.Reader
		words string
		args  []string
	}{
		{nil, "add --force", []string{"k"}},
		{nil, "add --force", []string{"--yes", "k"}},
		{nil, "use --yes", []string{"--force", "k"}},
		{strings.NewReader("y\n"), "use --yes", []string{"--force", "k"}},
		{null, "use --yes", []string{"--force", "k"}},
	} {
		var out, errs screen.Screen
		code := run(t.Context(), append([]string{"release", "--redis", s.URL()}, c.args...), c.in, &out, &errs)
		if code != exitUsage || out.String() != "" || !strings.Contains(errs.String(), c.words) || strings.Contains(errs.String(), "is held") || gone(t, rdb, "k") {
			t.Errorf("%q: exit status %d, %q, %q", c.args, code, out.String(), errs.String())
		}
	}
}

// The holder changes between the last inspection and the command: it names the holder that it broke.
func TestRelease_NamesWhomItBroke(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	m, _ := client(t, s, anteroom.Config{})
	var out, errs bytes.Buffer
	r := &release{op: &operator{m: m}, key: "k", errs: &errs}
	must(t, rdb.HSet(t.Context(), "k", "before:1763776900000017", 1).Err())
	if held, err := r.inspect(t.Context()); err != nil || len(held) != 1 {
		t.Fatalf("%v, %v", held, err)
	}
	must(t, rdb.HDel(t.Context(), "k", "before:1763776900000017").Err())
	must(t, rdb.HSet(t.Context(), "k", "after:1763776900000018", 1).Err())
	must(t, r.breakLock(t.Context(), &out))
	if out.String() != "released k, which was held by after:1763776900000018\n" || !gone(t, rdb, "k") {
		t.Errorf("%q", out.String())
	}
	if err := r.breakLock(t.Context(), &out); err == nil || !strings.Contains(errs.String(), "k is free: nothing was released") {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// A free lock is reported, and the exit status is not that of a success.
func TestRelease_OfWhatIsFree(t *testing.T) {
	s := testredis.Start(t)
	code, out, errs := tool(t, s, "release", "--force", "--yes", "k")
	if code != exitNone || out != "" || errs != "k is free: nothing was released\n" {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
}

// What MinHold keeps is held by nobody, before and after.
func TestRelease_OfWhatMinHoldKeeps(t *testing.T) {
	s := testredis.Start(t)
	must(t, s.Client(t).HSet(t.Context(), "k", "me:1763776900000017:kept", 1).Err())
	code, out, errs := tool(t, s, "release", "--force", "--yes", "k")
	if code != 0 || out != "released k, which MinHold kept for me:1763776900000017:kept\n" || !strings.Contains(errs, "k is no longer held; MinHold keeps it taken") {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
}

// Fields written by others are released too, after a report of what that cannot do.
func TestRelease_O1_OddHolders(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	for _, name := range hostile {
		if name == "" {
			continue
		}
		must(t, rdb.HSet(t.Context(), name, name, 1, "me:1763776900000017:kept", 1).Err())
		code, out, errs := tool(t, s, "release", "--force", "--yes", "--", name)
		if code != 0 || !gone(t, rdb, name) || !strings.Contains(errs, "which cannot be notified") || !strings.Contains(errs, "is no longer held") ||
			!strings.Contains(errs, "lease left: unlimited") || !strings.Contains(out, " and ") {
			t.Errorf("%q: exit status %d, %q, %q", name, code, out, errs)
		}
		printable(t, out+errs)
		if strings.Count(out, "\n") != 1 || strings.Count(errs, "\n") != 3 {
			t.Errorf("%q: %q, %q", name, out, errs)
		}
	}
}
