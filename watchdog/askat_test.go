package watchdog

import (
	"fmt"
	"testing"
	"time"
)

// TestAskAt: when Redis is asked next, counted from its last good word, with the default
// period of 5 s and ticks of 0.5 s.
func TestAskAt(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		known, renewal, local, period time.Duration
		want                          time.Duration
		why                           string
	}{
		{0, 10 * s, 5 * s, 5 * s, 5 * s, "one question lies between two renewals, a period from each"},
		{0, 15 * s, 5 * s, 5 * s, 5 * s, "two of them, counted back from the renewal"},
		{0, 9200 * time.Millisecond, 5 * s, 5 * s, 5 * s, "a tick between the first moment that will do and the last"},
		{0, 9970 * time.Millisecond, 5 * s, 5 * s, 5 * s, "the last moment is a tick"},
		{30 * time.Millisecond, 9990 * time.Millisecond, 5 * s, 5 * s, 5 * s, "between 4.99 s and 5.03 s lies a tick"},
		{130 * time.Millisecond, 10100 * time.Millisecond, 5 * s, 5 * s, 5100 * time.Millisecond, "no tick lies there, so it is the finest one"},
		{130 * time.Millisecond, 10130 * time.Millisecond, 5 * s, 5 * s, 5130 * time.Millisecond, "no choice: that very moment"},
		{0, 4 * s, 5 * s, 5 * s, 5500 * time.Millisecond, "the renewal comes first; a tick later it has failed"},
		{0, 5 * s, 5 * s, 5 * s, 5500 * time.Millisecond, "the same at the last moment"},
		{0, 100 * time.Millisecond, 5 * s, 5 * s, 5100 * time.Millisecond, "an early renewal counts from its own moment"},
		{0, -time.Minute, 5 * s, 5 * s, 5 * s, "a renewal that is overdue allows no more"},
		{0, never, 4 * s, 5 * s, 4 * s, "without a renewal one visit serves for look and question"},
		{0, never, 9 * s, 5 * s, 5 * s, "a look that is later does not delay it"},
		{0, never, 4700 * time.Millisecond, 5 * s, 4500 * time.Millisecond, "such holds meet at a tick"},
		{0, never, 700 * time.Millisecond, s, 650*time.Millisecond + 50*time.Millisecond, "a short period meets at the finest tick"},
	} {
		t.Run(fmt.Sprint(c.known, c.renewal, c.local, c.period), func(t *testing.T) {
			if got := askAt(c.known, c.renewal, c.local, c.period, 500*time.Millisecond); got != c.want {
				t.Errorf("asked at %v, want %v: %s", got, c.want, c.why)
			}
		})
	}
}
