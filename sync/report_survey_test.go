package anteroom_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// park lets n goroutines wait for mu, a second apart, until ctx ends.
func park(ctx context.Context, wg *sync.WaitGroup, mu *anteroom.Mutex, n int) {
	for range n {
		wg.Go(func() {
			if h, err := mu.Acquire(ctx); err == nil {
				_ = h.Release(bg)
			}
		})
		time.Sleep(time.Second)
	}
}

// keysOf joins the keys of a Survey's states.
func keysOf(s observe.Survey) string {
	var list []string
	for _, st := range s.States {
		list = append(list, st.Key)
	}
	return strings.Join(list, " ")
}

// What a Survey lists comes in the order of its worth, whatever its bound; what it leaves
// out is counted.
func TestSurvey_ListsWhatMattersMost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{ClientID: "worker-1"})
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		var holds []*anteroom.Hold
		// quiet:0 is granted first; of the busy ones the last begins to wait first.
		for i := range 3 {
			holds = append(holds, acquire(t, mutex(t, m, anteroom.LockConfig{Key: fmt.Sprintf("quiet:%d", i), Name: "quiet"})))
			time.Sleep(time.Second)
		}
		for i := range 3 {
			mu := mutex(t, m, anteroom.LockConfig{Key: fmt.Sprintf("busy:%d", 2-i), Name: "busy"})
			holds = append(holds, acquire(t, mu))
			park(ctx, &wg, mu, 3)
		}
		// Its field is overwritten: the watchdog finds that before the lock is lost.
		bad := mutex(t, m, anteroom.LockConfig{Key: "spoilt", Name: "quiet"})
		holds = append(holds, acquire(t, bad))
		s.HSet("spoilt", "foreign", "1")
		time.Sleep(12 * time.Second)

		const order = "spoilt busy:2 busy:1 busy:0 quiet:0 quiet:1 quiet:2"
		for max := range 9 {
			survey := m.Survey(observe.SurveyOptions{MaxKeys: max, MaxWaiters: 2})
			want := strings.Fields(order)
			if max > 0 {
				want = want[:min(max, len(want))]
			}
			if got := keysOf(survey); got != strings.Join(want, " ") || survey.Keys != 7 {
				t.Errorf("the first %d are %q of %d, want %q", max, got, survey.Keys, want)
			}
			if !reflect.DeepEqual(survey.Counts, m.Counts()) {
				t.Errorf("counts %v, want %v", survey.Counts, m.Counts())
			}
		}
		survey := m.Survey(observe.SurveyOptions{
			Match:      func(class, key string) bool { return class == "busy" && key > "busy:0" },
			MaxWaiters: 2,
		})
		if got := keysOf(survey); got != "busy:2 busy:1" || survey.Keys != 2 || survey.Counts["quiet"].Held != 4 {
			t.Errorf("of the busy ones %q, %d in all, counts %v", got, survey.Keys, survey.Counts)
		}
		for _, st := range survey.States {
			if len(st.Waiters) != 2 || st.Waiting != 3 || st.Waiters[0].Waiting < st.Waiters[1].Waiting {
				t.Errorf("%s: %d waiters of %d are listed: %v", st.Key, len(st.Waiters), st.Waiting, st.Waiters)
			}
		}
		if survey.ClientID != m.ClientID() || survey.CallSites || survey.Closed || len(survey.Verdicts) == 0 {
			t.Errorf("%+v", survey)
		}
		cancel()
		wg.Wait()
		for _, h := range holds {
			_ = h.Release(bg)
		}
	})
}

// A Survey without bounds says what Snapshot says.
func TestSurvey_AgreesWithSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		if list, err := json.Marshal(m.Snapshot()); err != nil || string(list) != "[]" {
			t.Errorf("of nothing %s, %v", list, err)
		}
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		mu := m.Mutex("a")
		h := acquire(t, mu)
		other := acquire(t, m.Mutex("b"))
		park(ctx, &wg, mu, 3)
		time.Sleep(20 * time.Second)
		survey := m.Survey(observe.SurveyOptions{})
		if snapshot := m.Snapshot(); !reflect.DeepEqual(survey.States, snapshot) || !survey.CallSites {
			t.Errorf("survey %+v\nsnapshot %+v", survey.States, snapshot)
		}
		st := survey.States[0]
		if st.Kind != "hold" || st.Lease != 30*time.Second || !st.Granted.Equal(st.Since) || st.Waiting != 3 || !strings.Contains(st.CallSite, "_test.go:") {
			t.Errorf("%+v", st)
		}
		cancel()
		wg.Wait()
		ok(t, errors.Join(h.Release(bg), other.Release(bg)))
		ok(t, m.Close(bg))
		if survey := m.Survey(observe.SurveyOptions{}); !survey.Closed || survey.Keys != 0 || len(survey.States) != 0 {
			t.Errorf("after Close: %+v", survey)
		}
	})
}

// Who waits for another process learns which.
func TestSurvey_NamesTheHolderElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		park(ctx, &wg, b.Mutex("k"), 1)
		synctest.Wait()
		states := b.Snapshot()
		if len(states) != 1 || states[0].Status != "acquiring" || states[0].HeldBy != h.Holder() {
			t.Errorf("%+v, want one that waits for %s", states, h.Holder())
		}
		ok(t, h.Release(bg))
		wg.Wait()
		h = acquire(t, b.Mutex("k"))
		if states := b.Snapshot(); len(states) != 1 || states[0].HeldBy != "" || states[0].Holder != h.Holder() {
			t.Errorf("%+v", states)
		}
		cancel()
		ok(t, h.Release(bg))
	})
}

// Events of several Managers can be distinguished.
func TestEvents_NameTheirManager(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{ClientID: "worker-7"})
		h := acquire(t, m.Mutex("k"))
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		<-h.Context().Done()
		synctest.Wait()
		if lost := rec.of(observe.EventLost); len(lost) != 1 || lost[0].ClientID != m.ClientID() {
			t.Errorf("%+v", lost)
		}
		_ = h.Release(bg)
	})
}

// What other places show of keys agrees with the log.
func TestPersonal_KeysCanBeTakenOut(t *testing.T) {
	if a, b := observe.KeyHash("order:42"), observe.KeyHash("order:43"); a == b || strings.Contains(a, "42") {
		t.Errorf("%q and %q", a, b)
	}
	const echoed = "ERR unknown command 'evalsha', with args beginning with: 'ord"
	e := observe.Event{Kind: observe.EventUnavailable, Key: "order:42", Err: errors.New(`refused "order:42": ` + echoed)}
	if err := anteroom.WithoutNames(e.Err, e.Key, e.Holder); err != `refused "(withheld)": ERR unknown command 'evalsha', with arguments (withheld)` {
		t.Errorf("the error of an event: %q", err)
	}
	v := observe.VerdictState{Check: "connection", Reason: "PING failed", Err: errors.New(`no "order:42": ` + echoed)}
	if err := anteroom.WithoutNames(v.Err, "order:42"); err != `no "(withheld)": ERR unknown command 'evalsha', with arguments (withheld)` {
		t.Errorf("the error of a verdict: %q", err)
	}
	// A short name may be a part of a long one.
	e = observe.Event{Kind: observe.EventUnavailable, Key: "web-1", Holder: "web-1-0a1b2c:7", Err: errors.New("ERR no web-1-0a1b2c:7")}
	if err := anteroom.WithoutNames(e.Err, e.Key, e.Holder); err != "ERR no (withheld)" {
		t.Errorf("a name within a name: %q", err)
	}
}

// A key that is called like one of our words, or like a file, changes nothing about them.
func TestPersonal_AKeyEatsNoWordOfOurs(t *testing.T) {
	for _, key := range []string{"leader", "holder", "message", "reconnect", "malformed"} {
		const text = "a published message did not arrive: reconnect the holder: leader.go:12"
		for _, check := range []string{"holder", "connection", "lock_status", "renewal", "recovery"} {
			e := observe.Event{Kind: observe.EventRecovery, Key: key, Check: check, Text: text, Err: fmt.Errorf("%w (reply)", lettucecompat.ErrMalformed)}
			if err := anteroom.WithoutNames(e.Err, key); err != "malformed reply (reply)" {
				t.Errorf("%s, %s: %q", key, check, err)
			}
		}
	}
}
