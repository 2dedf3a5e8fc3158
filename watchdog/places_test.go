package watchdog

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPlaces_FindsWhatIsDue: against a plain map, over holds that come, go and are given
// other moments, exactly those are found whose moment has come, and none after the one
// that soonest tells.
func TestPlaces_FindsWhatIsDue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p places
	moments := map[*hold]time.Duration{}
	for now := range time.Duration(3000) {
		for range rng.IntN(16) {
			h := new(hold)
			moments[h] = now + time.Duration(rng.IntN(500))
			p.add(h, moments[h])
		}
		for h := range moments {
			switch rng.IntN(200) {
			case 0:
				p.remove(h)
				if delete(moments, h); h.place >= 0 {
					t.Fatal("a hold that was removed has a place")
				}
			case 1:
				moments[h] = now + time.Duration(rng.IntN(500))
				p.set(h, moments[h])
			}
		}
		if now == 2000 {
			p = p.clone()
		}
		want, first := 0, never
		for _, at := range moments {
			if first = min(first, at); at <= now {
				want++
			}
		}
		if soonest := p.soonest(); soonest > first {
			t.Fatalf("soonest tells %v, the first is at %v", soonest, first)
		}
		found := 0
		for h := range p.due(now) {
			if at, there := moments[h]; !there || at > now {
				t.Fatalf("at %v a hold was found whose moment is %v, %v", now, at, there)
			}
			found++
			moments[h] = now + 1 + time.Duration(rng.IntN(500))
			p.set(h, moments[h])
		}
		if found != want {
			t.Fatalf("at %v %d holds were found, want %d", now, found, want)
		}
	}
	if len(p.list) < 2*stretch {
		t.Fatalf("%d holds are too few for this test", len(p.list))
	}
	p.allDue()
	found := 0
	for range p.due(0) {
		found++
	}
	if found != len(moments) {
		t.Errorf("%d of %d holds are due", found, len(moments))
	}
}
