package anteroomotel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestAcquire_I3_ThroughRedis(t *testing.T) {
	inside(t, func(l *laboratory) {
		ctx, request := l.request()
		h := must[*anteroom.Hold](t)(l.manager().Mutex("order:42").Acquire(ctx))
		a := l.one(anteroomotel.SpanAcquire)
		says(t, a, map[attribute.Key]string{
			anteroomotel.ClassKey: "orders", anteroomotel.OperationKey: "acquire", anteroomotel.ModeKey: "non-fair", anteroomotel.OutcomeKey: "acquired",
			anteroomotel.ViaKey: "redis", anteroomotel.HandOffsKey: "0", anteroomotel.GrantKey: firstGrant, anteroomotel.ErrorTypeKey: "",
		})
		if a.Parent().SpanID() != request.SpanContext().SpanID() || a.Status().Code != codes.Unset || a.SpanKind() != trace.SpanKindInternal {
			t.Errorf("parent %v, status %v, kind %v", a.Parent(), a.Status(), a.SpanKind())
		}
		if a.InstrumentationScope().Name != anteroomotel.ScopeName || a.InstrumentationScope().Version == "" {
			t.Errorf("scope: %+v", a.InstrumentationScope())
		}
		if got := trace.SpanFromContext(h.Context()); got != request {
			t.Errorf("I3: the work's span is %v, want the caller's", got.SpanContext())
		}
		ok(t, h.Release(ctx))
		r := l.one(anteroomotel.SpanRelease)
		says(t, r, map[attribute.Key]string{anteroomotel.OperationKey: "release", anteroomotel.OutcomeKey: "released", anteroomotel.ClassKey: "orders"})
		if r.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Errorf("the release is a child of %v", r.Parent())
		}
		linked(t, r, a)
		request.End()
	})
}

// The span's duration is the wait; the release records how long the lock was held.
func TestAcquire_HandedOff(t *testing.T) {
	inside(t, func(l *laboratory) {
		m := l.manager()
		mu := must[*anteroom.Mutex](t)(m.NewMutex(anteroom.LockConfig{Key: "k", Name: "fair ones", Fair: true, MaxHandoffTime: time.Hour}))
		first := must[*anteroom.Hold](t)(mu.Acquire(bg))
		got := make(chan *anteroom.Hold)
		go func() { got <- must[*anteroom.Hold](t)(mu.Acquire(bg)) }()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		ok(t, first.Release(bg))
		second := <-got
		a := l.named(anteroomotel.SpanAcquire)[1]
		says(t, a, map[attribute.Key]string{anteroomotel.ModeKey: "fair", anteroomotel.ViaKey: "handoff", anteroomotel.HandOffsKey: "1", anteroomotel.GrantKey: firstGrant})
		if d := a.EndTime().Sub(a.StartTime()); d != 1500*time.Millisecond {
			t.Errorf("the wait is %v long", d)
		}
		if a.Parent().IsValid() {
			t.Error("without a caller's span it is no root")
		}
		says(t, l.one(anteroomotel.SpanRelease), map[attribute.Key]string{anteroomotel.OutcomeKey: "handed_off", anteroomotel.HeldKey: "1.5"})
		ok(t, second.Release(bg))
		if rs := l.named(anteroomotel.SpanRelease); len(rs) == 2 {
			linked(t, rs[1], a)
		}
	})
}

func TestAcquire_Failures(t *testing.T) {
	inside(t, func(l *laboratory) {
		m, other := l.manager(), l.manager()
		h := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(bg))
		mu := other.Mutex("k")
		last := func(err error, outcome, op string, code codes.Code) {
			t.Helper()
			if err == nil {
				t.Fatal("acquired")
			}
			list := l.named(anteroomotel.SpanAcquire)
			s := list[len(list)-1]
			says(t, s, map[attribute.Key]string{anteroomotel.OutcomeKey: outcome, anteroomotel.OperationKey: op, anteroomotel.ViaKey: "", anteroomotel.GrantKey: ""})
			if s.Status().Code != code || (value(s, anteroomotel.ErrorTypeKey) != "") != (code == codes.Error) || (s.Status().Description == "") == (code == codes.Error) {
				t.Errorf("%s: status %+v, error.type %q", outcome, s.Status(), value(s, anteroomotel.ErrorTypeKey))
			}
		}
		_, err := mu.TryAcquire(bg)
		last(err, "refused", "try acquire", codes.Unset)
		_, err = mu.Acquire(bg, anteroom.Wait(time.Second))
		last(err, "cancelled", "acquire", codes.Unset)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		_, err = mu.Acquire(ctx)
		last(err, "cancelled", "acquire", codes.Unset)
		err = mu.Do(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		last(err, "cancelled", "do", codes.Unset)
		ctx, cancel = context.WithCancel(bg)
		time.AfterFunc(time.Second, cancel) // during the wait
		_, err = mu.Acquire(ctx)
		last(err, "cancelled", "acquire", codes.Unset)
		_, err = mu.Acquire(bg, anteroom.Wait(-1))
		last(err, "failed", "acquire", codes.Error)
		ok(t, l.Set("text", "no lock"))
		_, err = other.Mutex("text").Acquire(bg)
		last(err, "failed", "acquire", codes.Error)
		synctest.Wait() // nothing of it is under way any more, so the next finds a connection
		l.net.HoldReplies()
		_, err = other.Mutex("free").TryAcquire(bg)
		last(err, "unknown", "try acquire", codes.Error)
		l.net.Heal()
		l.net.Refuse()
		_, err = l.manager().Mutex("j").TryAcquire(bg) // a Manager without connections
		last(err, "unavailable", "try acquire", codes.Error)
		ctx, cancel = context.WithTimeout(bg, time.Second)
		_, err = l.manager().Mutex("j").Acquire(ctx) // the cancellation is not the reason
		cancel()
		last(err, "unavailable", "acquire", codes.Error)
		l.net.Heal()
		time.Sleep(10 * time.Second)
		ok(t, h.Release(bg))
		ok(t, other.Close(bg))
		_, err = mu.Acquire(bg)
		last(err, "failed", "acquire", codes.Error)
	})
}

// A nested acquire and its release have spans of their own, linked to each other.
func TestAcquire_Nested(t *testing.T) {
	inside(t, func(l *laboratory) {
		mu := l.manager().Mutex("k")
		ok(t, mu.Do(bg, func(ctx context.Context) error {
			inner, err := mu.TryAcquire(ctx)
			ok(t, err)
			return inner.Release(ctx)
		}))
		as, rs := l.named(anteroomotel.SpanAcquire), l.named(anteroomotel.SpanRelease)
		if len(as) != 2 || len(rs) != 2 {
			t.Fatalf("%d acquires, %d releases", len(as), len(rs))
		}
		says(t, as[0], map[attribute.Key]string{anteroomotel.OperationKey: "do", anteroomotel.ViaKey: "redis"})
		says(t, as[1], map[attribute.Key]string{anteroomotel.OperationKey: "try acquire", anteroomotel.ViaKey: "reentry"})
		says(t, rs[0], map[attribute.Key]string{anteroomotel.OperationKey: "release", anteroomotel.OutcomeKey: "nested"})
		says(t, rs[1], map[attribute.Key]string{anteroomotel.OperationKey: "do", anteroomotel.OutcomeKey: "released"})
		linked(t, rs[0], as[1])
		linked(t, rs[1], as[0])
	})
}

func TestLocks_I4_HaveSpansByOption(t *testing.T) {
	use := func(t *testing.T, mu *anteroom.Mutex) {
		locked := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		locked(func() { locked(func() {}) })
		if !mu.TryLock() {
			t.Error("TryLock")
		}
		mu.Unlock()
	}
	inside(t, func(l *laboratory) {
		use(t, l.manager().Mutex("k"))
		if n := len(l.spans.Started()); n != 0 {
			t.Errorf("I4: %d spans", n)
		}
	})
	inside(t, func(l *laboratory) {
		m := l.manager(anteroomotel.WithLocks())
		mu := m.Mutex("k")
		use(t, mu)
		as, rs := l.named(anteroomotel.SpanAcquire), l.named(anteroomotel.SpanRelease)
		if len(as) != 3 || len(rs) != 3 {
			t.Fatalf("%d acquires, %d releases", len(as), len(rs))
		}
		says(t, as[0], map[attribute.Key]string{anteroomotel.OperationKey: "lock", anteroomotel.ViaKey: "redis"})
		says(t, as[1], map[attribute.Key]string{anteroomotel.OperationKey: "lock", anteroomotel.ViaKey: "reentry"})
		says(t, as[2], map[attribute.Key]string{anteroomotel.OperationKey: "try lock", anteroomotel.OutcomeKey: "acquired"})
		says(t, rs[0], map[attribute.Key]string{anteroomotel.OperationKey: "unlock", anteroomotel.OutcomeKey: "nested"})
		says(t, rs[1], map[attribute.Key]string{anteroomotel.OperationKey: "unlock", anteroomotel.OutcomeKey: "released"})
		if as[0].Parent().IsValid() || as[0].SpanContext().TraceID() == rs[0].SpanContext().TraceID() {
			t.Error("they are no roots")
		}
		other := l.manager(anteroomotel.WithLocks()).Mutex("k")
		mu.Lock()
		if other.TryLock() {
			t.Error("two holders")
		}
		as = l.named(anteroomotel.SpanAcquire)
		says(t, as[len(as)-1], map[attribute.Key]string{anteroomotel.OutcomeKey: "refused"})
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		time.Sleep(time.Second)
		if mu.TryLock() {
			t.Error("entered a lost lock again")
		}
		as = l.named(anteroomotel.SpanAcquire)
		says(t, as[len(as)-1], map[attribute.Key]string{anteroomotel.OutcomeKey: "failed"})
		mu.Unlock()
		says(t, l.one(anteroomotel.SpanLost), map[attribute.Key]string{anteroomotel.ReasonKey: "forced"})
	})
}

// A caller that is not sampled creates no span, whatever happens to its lock.
func TestSampling_I4_NothingOfWhatIsNotSampled(t *testing.T) {
	inside(t, func(l *laboratory) {
		ctx, request := l.request()
		m := l.manager()
		h := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(ctx))
		request.End()
		ok(t, h.Release(bg))
		h = must[*anteroom.Hold](t)(m.Mutex("k").Acquire(ctx))
		_, err := m.ForceRelease(bg, "k")
		ok(t, err)
		<-h.Context().Done()
		synctest.Wait()
		if !errors.Is(h.Release(bg), anteroom.ErrLost) || len(l.spans.Started()) != 0 {
			t.Errorf("%d spans", len(l.spans.Started()))
		}
	}, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
}

// I2: neither key nor holder, whatever a server may answer.
func TestSpans_I2_NameNoKeyAndNoHolder(t *testing.T) {
	for _, keys := range []bool{false, true} {
		inside(t, func(l *laboratory) {
			var opts []anteroomotel.Option
			if keys {
				opts = append(opts, anteroomotel.WithKeys())
			}
			m := l.manager(opts...)
			ok(t, l.Set("customer:anna", "no lock"))
			if _, err := m.Mutex("customer:anna").Acquire(bg); err == nil || !strings.Contains(err.Error(), "customer:anna") {
				t.Fatalf("%v", err)
			}
			l.Del("customer:anna")
			h := must[*anteroom.Hold](t)(m.Mutex("customer:anna").Acquire(bg))
			l.SetError("ERR unknown command 'evalsha', with args beginning with: '1' 'customer:anna' '" + h.Holder() + "' ")
			time.Sleep(time.Minute)
			_ = h.Release(bg)
			l.SetError("")
			seen := 0
			for _, s := range l.spans.Ended() {
				for _, a := range append(s.Attributes(), attribute.String("status", s.Status().Description)) {
					text := a.Value.String()
					if strings.Contains(text, "anna") && (!keys || a.Key != anteroomotel.KeyKey) || strings.Contains(text, m.ClientID()) {
						t.Errorf("I2: %s names it: %s=%s", s.Name(), a.Key, text)
					}
				}
				if (value(s, anteroomotel.KeyKey) == "customer:anna") != keys {
					t.Errorf("%s with the key: %v", s.Name(), keys)
				}
				seen++
			}
			if seen < 4 || len(l.named(anteroomotel.SpanLost)) != 1 {
				t.Errorf("only %d spans", seen)
			}
		})
	}
}

// Many goroutines, some of which give up: each acquire and each release has exactly one span.
func TestSpans_I1_ConcurrentUse(t *testing.T) {
	inside(t, func(l *laboratory) {
		mu := l.manager().Mutex("k")
		const each, goroutines = 20, 10
		counts := make([]int, goroutines)
		together(goroutines, func(i int) {
			for range each {
				h, err := mu.Acquire(bg, anteroom.Wait(time.Duration(i+1)*time.Millisecond))
				if err != nil {
					continue
				}
				time.Sleep(time.Millisecond)
				counts[i]++
				ok(t, h.Release(bg))
			}
		})
		acquired := 0
		for _, n := range counts {
			acquired += n
		}
		got := 0
		for _, s := range l.named(anteroomotel.SpanAcquire) {
			if value(s, anteroomotel.OutcomeKey) == "acquired" {
				got++
			}
		}
		if n := len(l.named(anteroomotel.SpanAcquire)); n != each*goroutines || got != acquired || len(l.named(anteroomotel.SpanRelease)) != acquired {
			t.Errorf("I1: %d acquires for %d calls, %d acquired of %d, %d releases", n, each*goroutines, got, acquired, len(l.named(anteroomotel.SpanRelease)))
		}
	})
}
