package scenario

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestStayAwake: there is a loop on each processor, at idle priority, and none is left.
func TestStayAwake(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	all, err := stayAwake()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != runtime.NumCPU() {
		t.Errorf("%d loops for %d processors", len(all), runtime.NumCPU())
	}
	each, err := processors()
	if err != nil {
		t.Fatal(err)
	}
	stat := func(i int) string { return "/proc/" + strconv.Itoa(all[i].Process.Pid) + "/stat" }
	for i := range all {
		text, err := os.ReadFile(stat(i))
		if err != nil {
			t.Fatal(err)
		}
		// The policy is the 41st field; the second one ends with ')'.
		_, rest, _ := strings.Cut(string(text), ") ")
		if policy := strings.Fields(rest)[38]; policy != "5" {
			t.Errorf("a loop has policy %s, not 5, SCHED_IDLE", policy)
		}
		if got := allowed(t, all[i].Process.Pid); got != strconv.Itoa(each[i]) {
			t.Errorf("loop %d is on processor %s, not %d", i, got, each[i])
		}
	}
	all.stop()
	for i := range all {
		if _, err := os.Stat(stat(i)); err == nil {
			t.Error("a loop runs on")
		}
	}
}
