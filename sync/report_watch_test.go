package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Watch yields what there is, a release when its message comes, and a holder that died when its lease ends.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		ctx, stop := context.WithCancel(bg)
		defer stop()
		start, step := time.Now(), 0
		for info, err := range m.Watch(ctx, "k") {
			ok(t, err)
			at := time.Since(start)
			switch {
			case step == 0 && info.Locked:
				step++
				time.AfterFunc(time.Second, func() { _ = h.Release(bg) })
			case step == 1 && !info.Locked:
				if at < time.Second || at > time.Second+10*time.Millisecond {
					t.Errorf("the release after %v", at)
				}
				step++
				s.HSet("k", "somebody", "1")
				s.SetTTL("k", 20*time.Second)
				ok(t, s.client().Publish(bg, "lock:release:k", "{}").Err())
				start = time.Now()
			case step == 2 && info.Locked:
				step++
			case step == 3 && !info.Locked:
				if at < 20*time.Second || at > 20*time.Second+50*time.Millisecond {
					t.Errorf("the end of the lease after %v", at)
				}
				step++
				stop()
			}
		}
		if step != 4 {
			t.Errorf("ended in step %d", step)
		}
	})
}

// An outage is an error once a second; what only a person mends, and Close, end it.
func TestWatch_Errors(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, s.Set("data", "x"))
		for key, want := range map[string]error{"data": anteroom.ErrConfig, "": anteroom.ErrConfig} {
			n := 0
			for _, err := range m.Watch(bg, key) {
				n++
				if !errors.Is(err, want) {
					t.Errorf("%q: %v", key, err)
				}
			}
			if n != 1 {
				t.Errorf("%q: %d times", key, n)
			}
		}
		s.net.Refuse()
		s.net.CloseAll()
		n := 0
		for _, err := range m.Watch(bg, "k") {
			if n++; n == 3 {
				s.net.Heal()
			}
			if err == nil {
				break
			}
			if !errors.Is(err, anteroom.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		time.AfterFunc(time.Second, func() { _ = m.Close(bg) })
		var last error
		for _, err := range m.Watch(bg, "k") {
			last = err
		}
		if !errors.Is(last, anteroom.ErrClosed) {
			t.Errorf("%v", last)
		}
	})
}
