package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

// The time to live of a lock that is held without an end, once a second: ours beside Redisson's, both with
// the default lease of 30 s, which both renew after 10 s. docs/java.md says what it looks like.
func TestSeries_TheTimeToLiveOfAHeldLock(t *testing.T) {
	server := testredis.Start(t)
	s := stage{t, redissons[0], server.URL()}
	j := s.java()
	h := acquire(t, s.manager().Mutex("ours"))
	j.do("t", "lock", "theirs")
	rdb := server.Client(t)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	series := map[string][]string{}
	for range 30 {
		<-tick.C
		for _, key := range []string{"ours", "theirs"} {
			ttl := rdb.PTTL(bg, key).Val()
			series[key] = append(series[key], fmt.Sprint(ttl.Milliseconds()))
			if ttl < 18*time.Second || ttl > 30*time.Second {
				t.Errorf("%s: %v", key, ttl)
			}
		}
	}
	must(t, h.Release(bg))
	t.Log("Anteroom: " + strings.Join(series["ours"], " "))
	t.Log("Redisson: " + strings.Join(series["theirs"], " "))
}
