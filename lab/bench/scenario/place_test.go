package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// allowed returns where the threads of a process may run, in the kernel's notation, each answer once.
func allowed(t *testing.T, pid int) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("process %d has no threads, %v", pid, err)
	}
	var all []string
	for _, file := range files {
		var text []byte
		if text, err = os.ReadFile(file); err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(text), "Cpus_allowed_list:")
		list, _, _ := strings.Cut(rest, "\n")
		if list = strings.TrimSpace(list); !slices.Contains(all, list) {
			all = append(all, list)
		}
	}
	if len(all) == 0 {
		t.Fatalf("process %d has ended: %v", pid, err)
	}
	return strings.Join(all, " and ")
}

// server starts one if processes can be placed.
func server(t *testing.T) (s *testredis.Server, processorsOf []int) {
	t.Helper()
	all, err := processors()
	if err != nil || len(all) < 2 {
		t.Skipf("%v, %v: nothing can be placed", all, err)
	}
	return testredis.Start(t), all
}

// others returns the kernel's notation for all processors but the first, if they are consecutive.
func others(t *testing.T, all []int) string {
	t.Helper()
	first, last := all[1], all[len(all)-1]
	if last-first != len(all)-2 {
		t.Skipf("processors %v have gaps", all)
	}
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// TestPlace: within a placed scenario Redis has the first processor, and this program and its children have the
// others; afterwards everything is as before.
func TestPlace(t *testing.T) {
	redis, all := server(t)
	before, threads := allowed(t, os.Getpid()), runtime.GOMAXPROCS(0)
	// A thread that existed before is bound too, and freed.
	blocked, done := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		// Ending with the thread locked would end the thread, and with it the server, if that thread started it
		// (Pdeathsig).
		defer runtime.UnlockOSThread()
		defer close(done)
		<-blocked
	}()
	undo, err := place(redis.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := allowed(t, redis.Pid()), fmt.Sprint(all[0]); got != want {
		t.Errorf("Redis has processors %s, not %s", got, want)
	}
	if got, want := allowed(t, os.Getpid()), others(t, all); got != want {
		t.Errorf("the program has processors %s, not %s", got, want)
	}
	if got, want := runtime.GOMAXPROCS(0), min(threads, len(all)-1); got != want {
		t.Errorf("%d threads may be at work, not %d", got, want)
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	close(blocked)
	<-done
	for _, pid := range []int{os.Getpid(), redis.Pid()} {
		if got := allowed(t, pid); got != before {
			t.Errorf("afterwards a process has processors %s, not %s", got, before)
		}
	}
	if got := runtime.GOMAXPROCS(0); got != threads {
		t.Errorf("afterwards %d threads may be at work, not %d", got, threads)
	}
	// A server that has ended is no error.
	if undo, err = place(redis.Pid()); err != nil {
		t.Fatal(err)
	}
	redis.Kill()
	if err := undo(); err != nil {
		t.Error(err)
	}
}

// TestPlan_PlacesAndTakesBack: only scenarios that ask for it are placed, and the following ones are not.
func TestPlan_PlacesAndTakesBack(t *testing.T) {
	_, all := server(t)
	before := allowed(t, os.Getpid())
	var seen []string
	s := Scenario{
		Name: "s", Libraries: []string{library.Mutex}, Rounds: 1, For: time.Second,
		Measure: func(context.Context, Round) (measure.Figures, error) {
			seen = append(seen, allowed(t, os.Getpid()))
			return measure.Figures{}, nil
		},
	}
	for _, s.Placed = range []bool{false, true, false} {
		o, err := Plan{}.Run(t.Context(), s)
		if err != nil || len(o.Notes) > 0 {
			t.Errorf("%q, %v", o.Notes, err)
		}
	}
	if want := []string{before, others(t, all), before}; !slices.Equal(seen, want) {
		t.Errorf("rounds ran on processors %q, not %q", seen, want)
	}
}

// TestTable_Placed: scenarios that count round trips of one goroutine are judged with Redis on a processor of its
// own, and are also shown, without a target, wherever the kernel puts it.
func TestTable_Placed(t *testing.T) {
	for _, name := range []string{"alone", "handover"} {
		placed, err := Find(name)
		if err != nil || !placed.Placed || len(placed.Targets) == 0 {
			t.Errorf("%s: %+v, %v", name, placed, err)
		}
		anywhere, err := Find(name + "-anywhere")
		if err != nil || anywhere.Placed || len(anywhere.Targets) > 0 || !slices.Contains(anywhere.Libraries, library.Anteroom) {
			t.Errorf("%s-anywhere: %+v, %v", name, anywhere, err)
		}
	}
	for _, s := range Table() {
		if judged := slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Figure == handover.RoundTrips }); judged && !s.Placed && s.Name != "handover-1ms" {
			t.Errorf("%s is not placed", s.Name)
		}
	}
}

// A processor that is requested but has been taken away meanwhile is omitted.
func TestBind_WhatIsThere(t *testing.T) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	all, err := processors()
	if err != nil {
		t.Fatal(err)
	}
	if err := bind(c.Process.Pid, append(all, 1000)); err != nil {
		t.Error(err)
	}
}
