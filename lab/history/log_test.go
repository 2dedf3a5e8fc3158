package history

import (
	"path/filepath"
	"sync"
	"testing"
)

// Every event is read back whole, even if many goroutines write and pages fill up.
func TestLog_KeepsEveryEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := NewLog(path)
	if err != nil {
		t.Fatal(err)
	}
	event := func(w uint32, i uint64) Event {
		return Event{
			Kind: Checked, Locked: i%2 == 0, Key: 7, Proc: 9, Client: w, Hold: i, Grant: 5,
			Token: int64(i) << 20, At: -1, Deadline: int64(i), Since: int64(w),
		}
	}
	const writers, each = 4, pageSlots/4 + 1000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				l.Add(event(uint32(w), uint64(i)))
			}
		})
	}
	wg.Wait()
	// What was stored is in the file already, as after a kill.
	events, err := ReadLog(path)
	if err != nil || len(events) != writers*each {
		t.Fatalf("%d events, want %d: %v", len(events), writers*each, err)
	}
	next := map[uint32]uint64{}
	for _, e := range events {
		i := next[e.Client]
		next[e.Client]++
		if want := event(e.Client, i); e != want {
			t.Fatalf("%+v, want %+v", e, want)
		}
	}
}
