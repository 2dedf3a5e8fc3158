package anteroomotel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A release that is not confirmed says so, and one that does not wait gets an answer too.
func TestRelease_NotConfirmed(t *testing.T) {
	inside(t, func(l *laboratory) {
		m := l.manager()
		failed := func(outcome string) {
			t.Helper()
			rs := l.named(anteroomotel.SpanRelease)
			r := rs[len(rs)-1]
			says(t, r, map[attribute.Key]string{anteroomotel.OutcomeKey: outcome, anteroomotel.ErrorTypeKey: outcome})
			if r.Status().Code != codes.Error || r.Status().Description == "" {
				t.Errorf("%+v", r.Status())
			}
		}
		h := must[*anteroom.Hold](t)(m.Mutex("a").Acquire(bg))
		l.net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		if err := h.Release(ctx); !errors.Is(err, anteroom.ErrUnknown) {
			t.Errorf("%v", err)
		}
		failed("unknown")
		l.net.Heal()
		time.Sleep(10 * time.Second)
		h = must[*anteroom.Hold](t)(m.Mutex("b").Acquire(bg))
		l.refuse(m)
		ctx, cancel = context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		switch err := h.Release(ctx); {
		case errors.Is(err, anteroom.ErrUnknown): // on a connection that was not yet known to be dead
			failed("unknown")
		case errors.Is(err, anteroom.ErrUnavailable):
			failed("unavailable")
		default:
			t.Errorf("%v", err)
		}
		l.net.Heal()
		time.Sleep(10 * time.Second)
	})
}

// A release without a span in its context belongs to the trace of the acquire's caller.
func TestRelease_InTheTraceOfTheCaller(t *testing.T) {
	inside(t, func(l *laboratory) {
		ctx, request := l.request()
		h := must[*anteroom.Hold](t)(l.manager().Mutex("k").Acquire(ctx))
		request.End()
		ok(t, h.Release(bg))
		if r := l.one(anteroomotel.SpanRelease); r.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("it is a child of %v", r.Parent())
		}
	})
}

// While the caller's span is open the loss is an event on it, and nowhere else.
func TestLost_OnTheCallersSpan(t *testing.T) {
	inside(t, func(l *laboratory) {
		ctx, request := l.request()
		m := l.manager()
		h := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(ctx))
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		<-h.Context().Done()
		synctest.Wait()
		if err := h.Release(ctx); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("%v", err)
		}
		request.End()
		if n := len(l.named(anteroomotel.SpanLost)); n != 0 {
			t.Errorf("%d spans beside it", n)
		}
		events := l.one("request").Events()
		if len(events) != 1 || events[0].Name != anteroomotel.SpanLost {
			t.Fatalf("%+v", events)
		}
		set := attribute.NewSet(events[0].Attributes...)
		if v, _ := set.Value(anteroomotel.ReasonKey); v.AsString() != "forced" {
			t.Errorf("%+v", events[0].Attributes)
		}
		r := l.one(anteroomotel.SpanRelease)
		says(t, r, map[attribute.Key]string{anteroomotel.OutcomeKey: "lost", anteroomotel.ErrorTypeKey: "lost"})
		if r.Status().Code != codes.Error {
			t.Errorf("%+v", r.Status())
		}
	})
}

// When the caller's span has ended, or there was none, the loss has a span of its own.
func TestLost_ByItself(t *testing.T) {
	for _, withCaller := range []bool{true, false} {
		inside(t, func(l *laboratory) {
			ctx, request := l.request()
			if !withCaller {
				ctx = bg
			}
			m := l.manager()
			h := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(ctx))
			time.Sleep(time.Second) // the first renewal gives the lease its length
			request.End()
			l.net.Refuse()
			l.net.CloseAll()
			time.Sleep(time.Minute)
			if h.Held() {
				t.Fatal("held")
			}
			s := l.one(anteroomotel.SpanLost)
			says(t, s, map[attribute.Key]string{
				anteroomotel.ReasonKey: "deadline", anteroomotel.ClassKey: "orders", anteroomotel.ErrorTypeKey: "deadline", anteroomotel.GrantKey: firstGrant,
				anteroomotel.TextKey: "its lease ended without a confirmed renewal", anteroomotel.FoundKey: "renewal:renewal_failing,connection:redis_unreachable",
			})
			if s.Status().Code != codes.Error || value(s, anteroomotel.ErrorKey) == "" || value(s, anteroomotel.FailuresKey) == "0" || value(s, anteroomotel.SinceKey) == "" {
				t.Errorf("%+v %+v", s.Status(), s.Attributes())
			}
			linked(t, s, l.one(anteroomotel.SpanAcquire))
			if same := s.Parent().SpanID() == request.SpanContext().SpanID(); same != withCaller {
				t.Errorf("its parent is %v", s.Parent())
			}
		})
	}
}

// The loss of a hold that is nested in the work of another lock links to its own acquire.
func TestLost_LinksToItsOwnAcquire(t *testing.T) {
	inside(t, func(l *laboratory) {
		m := l.manager()
		outer := must[*anteroom.Hold](t)(m.Mutex("outer").Acquire(bg))
		inner := must[*anteroom.Hold](t)(m.Mutex("inner").Acquire(outer.Context()))
		_, err := m.ForceRelease(bg, "outer")
		ok(t, err)
		<-outer.Context().Done()
		synctest.Wait()
		linked(t, l.one(anteroomotel.SpanLost), l.named(anteroomotel.SpanAcquire)[0])
		ok(t, inner.Release(bg))
		linked(t, l.named(anteroomotel.SpanRelease)[0], l.named(anteroomotel.SpanAcquire)[1])
	})
}
