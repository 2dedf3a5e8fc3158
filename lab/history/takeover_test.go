package history

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The units of a process that is stopped or killed, and of one whose writer waits behind, go to the next process when
// their lease ends, and nobody uses them twice.
func TestLab_UnitsOfAProcessThatStops(t *testing.T) {
	const lease = 1500 * time.Millisecond
	for name, fault := range map[string]func(l *Lab, i int, taken func()) error{
		"SIGSTOP": (*Lab).StopWorkerUntil,
		"SIGKILL": func(l *Lab, i int, _ func()) error { return l.KillWorker(i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := NewLab(t, Setup{
				Locks: []anteroom.LockConfig{{Key: "units", LeaseTime: lease, WatchdogPeriod: 500 * time.Millisecond}}, Units: []int64{1},
				Processes: 3, Goroutines: 1, Load: LoadKeep, Seed: 1,
			})
			holder := func(not string) string { // a client: a process that was killed is started again as another one
				for end := time.Now().Add(pace.Hang); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
					for _, field := range l.Admin.HKeys(t.Context(), "units").Val() {
						if l.of(field) >= 0 && field != not {
							return field
						}
					}
				}
				t.Fatal("nobody has the units")
				return ""
			}
			for range 3 {
				first := holder("")
				time.Sleep(lease / 2) // its lease is the whole one
				begin, ended := time.Now(), make(chan error, 1)
				until, taken := context.WithCancel(t.Context())
				go func() { ended <- fault(l, l.of(first), func() { <-until.Done() }) }()
				holder(first)
				if took := time.Since(begin); !pace.Within(took, lease+time.Second) {
					t.Errorf("the units were free after %v", took)
				}
				taken()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			o := l.Finish(pace.Scale(10 * time.Second))
			if len(o.Findings)+o.Stuck+len(o.Leaks)+len(o.Problems) > 0 || o.Acquisitions == 0 { // one that is killed may have written nothing
				t.Fatalf("%d acquisitions, %d stuck, %v %v %v", o.Acquisitions, o.Stuck, o.Findings, o.Leaks, o.Problems)
			}
		})
	}
}
