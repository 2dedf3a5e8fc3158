package lettucecompat_test

import (
	"testing"
	"time"
)

// TestWire_I3_ConfirmedOnlyByMaster: a key that needs no longer time to live gets none, and still only a master's word confirms it: a
// replica may be behind a master that has given the lock to another.
func TestWire_I3_ConfirmedOnlyByMaster(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	b.put(t, "k", hash{me(1): "1"}, 2*lease)
	r := renews("k", 1)
	want(t, "of a master", c.Extend(ctx, r, 0).Outcome, ok)
	if err := b.raw.ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil { // of a master that is unreachable
		t.Fatal(err)
	}
	want(t, "of a replica", c.Extend(ctx, r, 0).Outcome, failed)
	confirm := asks("k", 2)
	confirm.Have, confirm.Keep, confirm.Since = place, 1, number(1)
	want(t, "a call that is found there", c.Do(ctx, confirm).Outcome, failed)
	b.wantTTL(t, "k", 2*lease-margin, 2*lease+time.Second)
}
