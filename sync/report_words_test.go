package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// Every way in which something goes wrong, as its error reads: one prefix, no package of
// ours beside it, one line, no repetition.
func TestErrors_HaveOnePrefixAndRepeatNothing(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	folder := path.Dir(here)
	seen := map[string]string{}
	read := func(t *testing.T, what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error", what)
			return
		}
		text := strings.ReplaceAll(err.Error(), folder, "") // a call site is wherever the checkout lies
		seen[what] = text
		words := strings.Split(strings.TrimPrefix(text, "anteroom: "), ": ")
		for i, w := range words {
			for _, other := range words[:i] {
				if w == other {
					t.Errorf("%s: %q says %q twice", what, text, w)
				}
			}
		}
		if strings.Count(text, "anteroom") != 1 || strings.Contains(text, "lettucecompat") || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", what, text)
		}
	}
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		other, _ := manager(t, s.client(), anteroom.Config{})
		_, err := anteroom.NewManager(nil, anteroom.Config{})
		read(t, "no client", err)
		_, err = anteroom.NewManager(s.client(), anteroom.Config{ClientID: "a b"})
		read(t, "a bad Config", err)
		_, err = anteroom.NewManager(s.client(), anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: 1}})
		read(t, "bad Defaults", err)
		_, err = m.NewMutex(anteroom.LockConfig{Key: "k", LeaseTime: 1})
		read(t, "a bad LockConfig", err)
		read(t, "Validate", anteroom.LockConfig{}.Validate())
		read(t, "an empty key", panics(t, m.Mutex("").Lock))
		read(t, "Unlock of what is not locked", panics(t, m.Mutex("k").Unlock))

		mu := m.Mutex("k")
		h := acquire(t, mu)
		_, err = other.Mutex("k").TryAcquire(bg)
		read(t, "TryAcquire of a held lock", err)
		_, err = other.Mutex("k").Acquire(bg, anteroom.Wait(time.Second))
		read(t, "Wait is over", err)
		ctx, cancel := context.WithCancelCause(bg)
		cancel(fmt.Errorf("shutting down: %w", &anteroom.Error{Op: "release", Key: "x", Err: anteroom.ErrLost}))
		_, err = mu.Acquire(ctx)
		read(t, "an ended context with a cause of ours", err)
		read(t, "Extend out of bounds", h.Extend(bg, 1))
		read(t, "Destroy", m.Destroy("k"))
		read(t, "Unlock of a Hold", panics(t, mu.Unlock))
		ok(t, h.Release(bg))
		read(t, "Release twice", h.Release(bg))
		read(t, "Err after Release", h.Err())

		err = mu.Do(bg, func(ctx context.Context) error {
			s.Del("k")
			<-ctx.Done()
			return context.Cause(ctx)
		})
		read(t, "Do that returns its loss", err)
		err = mu.Do(bg, func(ctx context.Context) error {
			s.Del("k")
			<-ctx.Done()
			return fmt.Errorf("charging: %w", context.Cause(ctx))
		})
		read(t, "Do that wraps its loss", err)
		err = mu.Do(bg, func(ctx context.Context) error {
			s.Del("k")
			<-ctx.Done()
			return errors.New("the card was refused")
		})
		read(t, "Do that fails and is lost", err)
		if !errors.Is(err, anteroom.ErrLost) || !strings.HasPrefix(err.Error(), "the card was refused: ") {
			t.Errorf("%v", err)
		}

		ok(t, s.Set("data", "x"))
		_, err = m.Mutex("data").Acquire(bg)
		read(t, "a key of another type", err)
		_, err = m.Inspect(bg, "data")
		read(t, "Inspect of another type", err)

		h = acquire(t, mu)
		s.net.BlackHole()
		_, err = m.Mutex("silent").TryAcquire(bg)
		read(t, "no answer", err)
		_, err = m.Inspect(bg, "k")
		read(t, "Inspect without an answer", err)
		_, err = m.ForceRelease(bg, "k")
		read(t, "ForceRelease without an answer", err)
		read(t, "Extend without an answer", h.Extend(bg, time.Minute))
		limit, end := context.WithTimeout(bg, 2*time.Second)
		read(t, "Release without an answer", h.Release(limit))
		end()
		s.net.Heal()
		time.Sleep(time.Minute)
		h = acquire(t, mu)
		s.net.Refuse()
		s.net.CloseAll()
		_, _ = m.Mutex("unreachable").TryAcquire(bg) // over a connection that is cut
		time.Sleep(time.Minute)
		_, err = m.Mutex("unreachable").TryAcquire(bg)
		read(t, "no connection", err)
		<-h.Context().Done()
		read(t, "the cause of a loss by deadline", context.Cause(h.Context()))
		read(t, "Release of a loss by deadline", h.Release(bg))
		s.net.Heal()
		time.Sleep(time.Minute)

		h = acquire(t, mu)
		limit, end = context.WithTimeout(bg, time.Second)
		defer end()
		read(t, "Close under a hold", m.Close(limit))
		read(t, "Release after Close", h.Release(bg))
		_, err = mu.Acquire(bg)
		read(t, "Acquire after Close", err)
		time.Sleep(time.Minute)
	})
	for what, want := range map[string]string{
		"no connection":            `anteroom: try acquire "unreachable": redis unavailable: dial tcp`,
		"bad Defaults":             "anteroom: new manager: bad configuration: Defaults.LeaseTime is",
		"Do that wraps its loss":   `charging: anteroom: hold "k": lock lost: Redis no longer has it`,
		"Unlock of a Hold":         `anteroom: unlock "k": not held: it is a Hold's, to be released by Hold.Release, which was acquired by goroutine `,
		"no answer":                `anteroom: try acquire "silent": redis unavailable: outcome unknown: `,
		"Validate":                 "anteroom: validate: bad configuration: Key is empty",
		"a key of another type":    `anteroom: acquire "data": bad configuration: WRONGTYPE`,
		"Err after Release":        `anteroom: hold "k": not held: it was released`,
		"Do that returns its loss": `anteroom: hold "k": lock lost: Redis no longer has it`,
	} {
		if !strings.HasPrefix(seen[what], want) {
			t.Errorf("%s: %q does not begin with %q", what, seen[what], want)
		}
	}
}

// Event.String is one line for people, and names neither key nor holder.
func TestEvent_String(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := observe.Event{
		Kind: observe.EventLost, Class: "orders", Key: "customer:anna", Holder: "web-7:12", ClientID: "web-7", Since: at, CallSite: "/srv/order.go:7",
		Text: "Redis no longer has it", Err: errors.New("ERR no\n'customer:anna' of web-7:12"),
	}
	e.ErrText = anteroom.WithoutNames(e.Err, e.Key, e.Holder, e.ClientID)
	want := "orders lost key_hash=" + observe.KeyHash("customer:anna") + ": Redis no longer has it; ERR no '(withheld)' of (withheld); since 2026-03-01T12:00:00Z; at /srv/order.go:7"
	if got := fmt.Sprint(e); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (observe.Event{Kind: observe.EventSubscriptionUp}).String(); got != "subscription_up" {
		t.Errorf("%q", got)
	}
}

// A subscription that comes up, at first or again, is for those who search for it.
func TestLog_ASubscriptionIsNoNews(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, rec := manager(t, s.client(), anteroom.Config{Logger: j.logger()})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		synctest.Wait()
		s.net.CloseAll()
		time.Sleep(10 * time.Second)
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		time.Sleep(10 * time.Second)
		lines := j.lines(observe.EventSubscriptionUp)
		if len(lines) != 2 || !strings.Contains(lines[0], "level=DEBUG") || !strings.Contains(lines[1], "level=DEBUG") || len(rec.of(observe.EventSubscriptionUp)) != 2 {
			t.Errorf("%v", lines)
		}
	})
}
