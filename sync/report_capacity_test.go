package anteroom_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// capacityTexts returns the events about capacities, without the kind of words that they share.
func (r *recorder) capacityTexts(t *testing.T) (texts []string) {
	t.Helper()
	for _, e := range r.of(observe.EventCapacity) {
		if e.Key != "k" || e.Class != "default" {
			t.Errorf("%+v", e)
		}
		texts = append(texts, e.Text)
	}
	return texts
}

func theCapacityIs(here, there int64) string {
	return fmt.Sprintf("the capacity is %d here and %d in another process: the lesser one, %d, counts", here, there, min(here, there))
}

func theCapacityIsAgain(here, there int64) string {
	return fmt.Sprintf("no other process has been seen for 30s that counts with %d: the capacity that counts here is %d", there, here)
}

// A rolling deploy changes a capacity: each process says once what it and another one count with, however often holds come and
// go, and once that it is over.
func TestCapacity_ADeployIsTwoEvents(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		type process struct {
			m        *anteroom.Manager
			rec      *recorder
			capacity int64
			quit     chan struct{}
		}
		var all []*process
		var working sync.WaitGroup
		for i := range 4 {
			p := &process{capacity: 3 + int64(i%2)*2, quit: make(chan struct{})}
			p.m, p.rec = manager(t, s.client(), anteroom.Config{})
			all = append(all, p)
			for g := range 2 {
				working.Go(func() {
					for turn := 0; ; turn++ {
						select {
						case <-p.quit:
							return
						default:
						}
						h := must[theHold](t)(p.m.Semaphore("k", p.capacity).Acquire(bg, int64(1+(turn+g)%3)))
						time.Sleep(time.Duration(1+(i+turn)%7) * time.Millisecond)
						ok(t, h.Release(bg))
						time.Sleep(time.Duration((3*i+turn)%20) * time.Millisecond)
					}
				})
			}
		}
		time.Sleep(300 * time.Millisecond)
		for _, p := range all {
			want := theCapacityIs(p.capacity, 8-p.capacity)
			if texts := p.rec.capacityTexts(t); !slices.Equal(texts, []string{want}) {
				t.Errorf("with %d: %d events %q, want %q", p.capacity, len(texts), texts, want)
			}
			close(p.quit)
		}
		working.Wait()
		time.Sleep(20 * time.Second) // the difference has not been seen for that long
		for _, p := range all {
			if texts := p.rec.capacityTexts(t); len(texts) != 1 {
				t.Errorf("with %d: %q", p.capacity, texts)
			}
		}
		time.Sleep(time.Minute)
		for _, p := range all {
			if texts := p.rec.capacityTexts(t); len(texts) != 2 || texts[1] != theCapacityIsAgain(p.capacity, 8-p.capacity) {
				t.Errorf("with %d, after the deploy: %q", p.capacity, texts)
			}
		}
	})
}

// A difference lasts as long as it is seen: by whatever is stated.
func TestCapacity_ItLastsAsLongAsItIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, rec := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		few := must[theHold](t)(b.Semaphore("k", 2).Acquire(bg, 1))
		many := must[theHold](t)(a.Semaphore("k", 5).Acquire(bg, 1))
		for range 20 {
			time.Sleep(15 * time.Second)
			if _, err := a.Semaphore("k", 5).TryAcquire(bg, 1); err == nil {
				t.Error("a third of two")
			}
		}
		if texts := rec.capacityTexts(t); !slices.Equal(texts, []string{theCapacityIs(5, 2)}) {
			t.Errorf("%q", texts)
		}
		ok(t, few.Release(bg))
		time.Sleep(2 * time.Minute)
		if texts := rec.capacityTexts(t); !slices.Equal(texts, []string{theCapacityIs(5, 2), theCapacityIsAgain(5, 2)}) {
			t.Errorf("%q", texts)
		}
		ok(t, many.Release(bg))
	})
}
