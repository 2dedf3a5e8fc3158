package debug_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/metrics/debug"
	"github.com/anteroom/anteroom/sync/observe"
)

// slow is a Source whose Survey takes time, which it adds up.
type slow struct {
	takes time.Duration
	spent atomic.Int64
	asked atomic.Int64
}

func (s *slow) Survey(observe.SurveyOptions) observe.Survey {
	s.asked.Add(1)
	time.Sleep(s.takes)
	s.spent.Add(int64(s.takes))
	return observe.Survey{Counts: map[string]observe.Count{"orders": {Held: int(s.asked.Load())}}}
}

// status requests the page once.
func status(p http.Handler, target string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, request(http.MethodGet, target))
	return rec
}

// Whatever the clients do: in a minute, three seconds go into answers.
func TestPage_I6_ATwentiethOfAProcessor(t *testing.T) {
	for name, c := range map[string]struct {
		clients int
		target  func(client int) string
	}{
		"one that reloads in a loop": {1, func(int) string { return "/" }},
		"many with one question":     {20, func(int) string { return "/?format=json" }},
		"many with as many":          {50, func(i int) string { return fmt.Sprintf("/?limit=%d", i+1) }},
		"too many":                   {150, func(i int) string { return fmt.Sprintf("/?limit=%d", i+1) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPaced(t, debug.Config{})
				s := &slow{takes: 50 * time.Millisecond}
				p.Attach(s)
				began := time.Now()
				end := began.Add(2 * time.Minute)
				var wg sync.WaitGroup
				var answers atomic.Int64
				for i := range c.clients {
					wg.Go(func() {
						for time.Now().Before(end) {
							rec := status(p, c.target(i))
							switch rec.Code {
							case http.StatusOK:
								answers.Add(1)
							case http.StatusServiceUnavailable:
								after, err := strconv.Atoi(rec.Header().Get("Retry-After"))
								if err != nil || after < 1 || after > 2 {
									t.Errorf("I6: Retry-After is %q", rec.Header().Get("Retry-After"))
								}
								time.Sleep(500 * time.Millisecond) // ignoring Retry-After
							default:
								t.Errorf("status %d", rec.Code)
							}
						}
					})
				}
				wg.Wait()
				share := float64(s.spent.Load()) / float64(time.Since(began))
				t.Logf("%d answers, %d made, %.2f %% of a processor", answers.Load(), s.asked.Load(), 100*share)
				if share > 1.0/20+.001 {
					t.Errorf("I6: the answers cost %.1f %% of a processor", 100*share)
				}
				if share < .9/20 {
					t.Errorf("it pauses for longer than it has to: %.1f %%", 100*share)
				}
			})
		})
	}
}

// Those with the same query share an answer, but none is older than its request.
func TestPage_I6_TheSameQuestionIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, debug.Config{})
		s := &slow{takes: 100 * time.Millisecond}
		p.Attach(s)
		get(t, p, "/") // so that the others have to wait
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if r := report(t, p, ""); r.Held != 2 {
					t.Errorf("an answer from the %d. time of asking", r.Held)
				}
			})
		}
		wg.Wait()
		if r := report(t, p, ""); r.Held != 3 {
			t.Errorf("an answer that is older than its question: %d", r.Held)
		}
		for _, question := range []string{"limit=7", "limit=8"} {
			wg.Go(func() {
				if n := len(get(t, p, "/?"+question).Body.String()); n == 0 {
					t.Error("no answer")
				}
			})
		}
		wg.Wait()
		if n := s.asked.Load(); n != 5 {
			t.Errorf("asked %d times, want 5: twenty questions are one, two others are two", n)
		}
	})
}

// A request that waits too long gets a Retry-After. An answer that took very long because the process was stopped
// delays others by a minute at most.
func TestPage_I6_TheWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced(t, debug.Config{})
		s := &slow{takes: time.Hour}
		p.Attach(s)
		get(t, p, "/")
		began := time.Now()
		rec := status(p, "/")
		if took := time.Since(began); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "50" || took != 10*time.Second {
			t.Errorf("status %d after %v, Retry-After %q", rec.Code, took, rec.Header().Get("Retry-After"))
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		began = time.Now()
		p.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/").WithContext(ctx))
		if took := time.Since(began); took != time.Second {
			t.Errorf("a client that left was waited for: %v", took)
		}
		s.takes = time.Millisecond
		time.Sleep(49 * time.Second)
		get(t, p, "/")
	})
}

// A Source that panics blocks neither the turn nor the page.
func TestPage_APanicGivesTheTurnBack(t *testing.T) {
	p := newPage(t, debug.Config{})
	p.Attach(broken{})
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			status(p, "/")
		}()
	}
}

type broken struct{}

func (broken) Survey(observe.SurveyOptions) observe.Survey { panic("broken") }
