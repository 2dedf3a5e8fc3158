package faultnet_test

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// A fate applies to the request that it names, that many times, and to no other.
func TestFates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, want := range map[string]struct {
			fate faultnet.Fate
			err  error
		}{
			"lost": {faultnet.Lost, io.EOF}, "shot": {faultnet.Shot, syscall.ECONNRESET}, "swallowed": {faultnet.Swallowed, os.ErrDeadlineExceeded},
		} {
			n, c := echo(t)
			n.OnRequest("key", 1, want.fate)
			say(t, c, "other")
			heard(t, c, "other")
			if n.Waiting() != 1 {
				t.Fatalf("%s: %d requests are waited for", name, n.Waiting())
			}
			say(t, c, "the key")
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if got, err := hear(c); got != "" || !errors.Is(err, want.err) {
				t.Fatalf("%s: %q, %v", name, got, err)
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if got, err := hear(c); got != "" || err == nil {
				t.Fatalf("%s: read again: %q, %v", name, got, err)
			}
			c = dial(t, n)
			say(t, c, "the key")
			heard(t, c, "the key")
			if n.Waiting() != 0 {
				t.Fatalf("%s: %d requests are waited for", name, n.Waiting())
			}
		}
	})
}

func TestALateReplyKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		n.OnRequest("key", 2, faultnet.Late(time.Minute))
		start := time.Now()
		say(t, c, "key")
		heard(t, c, "key")
		if d := time.Since(start); d != time.Minute {
			t.Fatalf("after %v", d)
		}
		n.Heal() // the second one is no longer needed
		say(t, c, "key")
		heard(t, c, "key")
		if d := time.Since(start); d != time.Minute {
			t.Fatalf("after %v", d)
		}
	})
}

// Latency delays both directions, within its jitter, varies from reply to reply, and is the same for the same seed.
func TestLatencyWithJitter(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			n, c := echo(t)
			n.Latency(100*time.Millisecond, 50*time.Millisecond, seed)
			for range 20 {
				start := time.Now()
				say(t, c, "a")
				heard(t, c, "a")
				d := time.Since(start)
				if d < 100*time.Millisecond || d > 300*time.Millisecond {
					t.Fatalf("a round trip of %v", d)
				}
				all = append(all, d)
			}
			n.Heal()
			start := time.Now()
			say(t, c, "a")
			heard(t, c, "a")
			if d := time.Since(start); d != 0 {
				t.Fatalf("%v after Heal", d)
			}
		})
		return all
	}
	first, again, other := draw(1), draw(1), draw(2)
	distinct := map[time.Duration]bool{}
	same := true
	for i, d := range first {
		distinct[d] = true
		same = same && d == other[i]
		if d != again[i] {
			t.Fatalf("the same seed gave %v and %v", d, again[i])
		}
	}
	if len(distinct) < 10 || same {
		t.Fatalf("no jitter: %v", first)
	}
}

// Data that is written while other data travels arrives after it.
func TestLatencyKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		n.Latency(100*time.Millisecond, 100*time.Millisecond, 7)
		want := ""
		for i := range 20 {
			s := string(rune('a' + i))
			say(t, c, s)
			want += s
			time.Sleep(10 * time.Millisecond)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
	})
}
