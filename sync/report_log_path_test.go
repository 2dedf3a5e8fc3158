package anteroom_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// traced is a handler that adds what a context carries, as handlers for traces do.
type traced struct{ slog.Handler }

type traceKey struct{}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

// A record about a hold belongs to the trace of who acquired it; one about a lock by Lock
// to none. The end of that context is none of the log's business.
func TestLog_HasTheTraceOfWhoAcquired(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, _ := manager(t, s.client(), anteroom.Config{Logger: slog.New(traced{j.logger().Handler()})})
		ctx, cancel := context.WithCancel(context.WithValue(bg, traceKey{}, "4bf92f35"))
		h := must[*anteroom.Hold](t)(m.Mutex("a").Acquire(ctx))
		cancel()
		other := m.Mutex("b")
		other.Lock()
		for _, key := range []string{"a", "b"} {
			_, err := m.ForceRelease(bg, key)
			ok(t, err)
			synctest.Wait() // two losses in parallel are reported in any order
		}
		<-h.Context().Done()
		synctest.Wait()
		other.Unlock()
		lines := j.lines(observe.EventLost)
		if len(lines) != 2 || attrs(lines[0])["trace_id"] != "4bf92f35" || attrs(lines[1])["trace_id"] != "" {
			t.Errorf("%s", strings.Join(lines, "\n"))
		}
	})
}

// A thousand operations write nothing but that the subscription came up.
func TestLog_NoLineForAnOperation(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, _ := manager(t, s.client(), anteroom.Config{Logger: j.logger()})
		mu := m.Mutex("k")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 50 {
					pass(mu)
					ok(t, mu.Do(bg, func(context.Context) error { return nil }))
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		lines := slices.DeleteFunc(j.lines(""), func(line string) bool { return strings.Contains(line, `msg="anteroom: redis client"`) })
		if len(lines) != 1 || attrs(lines[0])["event"] != string(observe.EventSubscriptionUp) {
			t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
		}
	})
}

// hanging is a handler that waits.
type hanging struct {
	slog.Handler
	until chan struct{}
}

func (h hanging) Handle(ctx context.Context, r slog.Record) error {
	<-h.until
	return h.Handler.Handle(ctx, r)
}

// Losses are notified before anybody writes a word of them, and a log that hangs stops nobody. Each event for which the
// queue had no room is counted by one record only, and one that was dropped right before the end by the last.
func TestLog_WhatItDroppedIsSaidOnce_Lab(t *testing.T) {
	for _, closing := range []bool{false, true} {
		t.Run(strconv.FormatBool(closing), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				j := &journal{}
				until := make(chan struct{})
				m, _ := manager(t, s.client(), anteroom.Config{Logger: slog.New(hanging{j.logger().Handler(), until}), Defaults: anteroom.LockConfig{WatchdogPeriod: never}})
				var holds []*anteroom.Hold
				for i := range 1500 {
					holds = append(holds, acquire(t, m.Mutex("k"+strconv.Itoa(i))))
				}
				s.FlushAll()
				for _, h := range holds {
					<-h.Context().Done()
				}
				synctest.Wait()
				if n := len(j.lines("")); n != 0 {
					t.Fatalf("%d lines are there", n)
				}
				if closing {
					go func() { _ = m.Close(bg) }()
					synctest.Wait() // it waits for the log
				}
				close(until)
				synctest.Wait()
				reported, all := len(j.lines(observe.EventLost)), j.buf.String()
				if !closing && (reported < 1000 || !strings.Contains(all, `msg="anteroom: events dropped" count=`+strconv.Itoa(len(holds)-reported))) {
					t.Errorf("%d losses are in the log, the others are not mentioned: …%s", reported, all[max(0, len(all)-300):])
				}
				if !closing { // one event more
					h := acquire(t, m.Mutex("later"))
					s.FlushAll()
					<-h.Context().Done()
					synctest.Wait()
				}
				if n := strings.Count(j.buf.String(), `msg="anteroom: events dropped"`); n != 1 {
					t.Errorf("%d records say that events were dropped", n)
				}
			})
		})
	}
}
