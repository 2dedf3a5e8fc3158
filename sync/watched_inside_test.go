package anteroom

import (
	"context"
	"testing"

	"github.com/anteroom/anteroom/watchdog"
)

// A grant whose lease has ended, because its turn is being extended or its release is under
// way, is not among those that the watchdog visits: it would put its next visit off for a
// period.
func TestWatched_AGrantBetweenTwoLeasesIsNotListed(t *testing.T) {
	m := insideManager(t, Config{})
	mu := m.Mutex("k")
	mu.Lock()
	g := mu.find().cur.Load()
	look := func() watchdog.Facts {
		facts := []watchdog.Facts{{ID: g.n}}
		(&services{m: m}).LookupAll(facts)
		return facts[0]
	}
	if f := look(); f.ID != g.n || f.Lost {
		t.Errorf("held: %+v", f)
	}
	g.lease.Load().End()
	if f := look(); f.ID != 0 {
		t.Errorf("without a lease: %+v", f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Close(ctx)
}
