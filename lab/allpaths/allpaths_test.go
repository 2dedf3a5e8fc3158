package allpaths

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TakeAll itself checks I1 wherever it is called, as in lab/dashboards. This proves that the check can fail.
func TestAllPaths_I1_WhatWasNotCountedIsNamed(t *testing.T) {
	r := Start(t, metrics.Config{})
	if err := r.take(t.Context(), lossPaths[2]); err != nil { // a lease ends
		t.Fatal(err)
	}
	err := r.complete(t.Context(), time.Millisecond)
	if err == nil {
		t.Fatal("one path was enough for everything")
	}
	for what, want := range map[string]bool{
		`"lost_total gone"`: true, `"lost_total deadline"`: false, `"lost_total"`: false, `"redis_command_seconds force"`: true,
		`"events_total clock_jump"`: false, `"held"`: false,
	} {
		if strings.Contains(err.Error(), what) != want {
			t.Errorf("%s is named: %v, want %v: %v", what, !want, want, err)
		}
	}
}

// A path whose series do not move fails, and names them.
func TestAllPaths_APathThatDoesNothingFails(t *testing.T) {
	r := Start(t, metrics.Config{})
	p := r.processes[0]
	if err := p.above(t.Context(), moved{"managers"}, 0); err != nil {
		t.Error(err)
	}
	err := p.within(t.Context(), moved{"lost_total", "gone"}, 0, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "lost_total{gone}") {
		t.Errorf("error %v", err)
	}
}
