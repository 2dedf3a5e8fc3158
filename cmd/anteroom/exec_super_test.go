//go:build unix

package main

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A keeper that was stopped between the grant and the start has no lock to run the command under.
func TestExec_X2_NoStartAfterTheLease(t *testing.T) {
	theirIn, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c := exec.Command(os.Args[0], supervisorCommand, "3", "4")
	c.ExtraFiles = []*os.File{theirIn, theirOut}
	out := &screenTail{}
	c.Stdout, c.Stderr = out, out
	c.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	start := launch{Path: sh, Argv: []string{"sh", "-c", "trap '' TERM; echo ran"}, Grace: time.Hour}
	if err := gob.NewEncoder(orders).Encode(superOrder{Kind: orderStart, Start: &start}); err != nil {
		t.Fatal(err)
	}
	var r superReport
	dec := gob.NewDecoder(in)
	if err := dec.Decode(&r); err != nil || r != (superReport{Kind: reportEnded, Lost: true}) {
		t.Errorf("it reports %+v, %v", r, err)
	}
	if err := dec.Decode(&r); !errors.Is(err, io.EOF) {
		t.Errorf("it reports also %+v, %v", r, err)
	}
	_ = orders.Close()
	if err := c.Wait(); err != nil || !strings.Contains(out.String(), "not started") || strings.Contains(out.String(), "ran") {
		t.Errorf("%v, %q", err, out)
	}
}

// Arguments that are too long for the pipe wait for a slow supervisor, longer than any later order would.
func TestExec_X4_ASlowSupervisorGetsAllArguments(t *testing.T) {
	t.Parallel() // it waits for longer than orderTime
	in, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := &supervisorProcess{orders: orders, enc: gob.NewEncoder(orders)}
	got := make(chan error, 1)
	go func() {
		time.Sleep(orderTime + 100*time.Millisecond)
		got <- gob.NewDecoder(in).Decode(new(superOrder))
	}()
	s.order(superOrder{Kind: orderStart, Start: &launch{Argv: []string{strings.Repeat("x", 1<<20)}}, Valid: execPatience})
	_ = orders.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
