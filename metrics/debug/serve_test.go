package debug_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/anteroom/anteroom/metrics/debug"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestPage_I1_ReadOnly(t *testing.T) {
	p := newPage(t, debug.Config{})
	for _, method := range []string{
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect, "PURGE",
	} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, request(method, "/"))
		if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status %d, Allow %q", method, rec.Code, rec.Header().Get("Allow"))
		}
	}
	head := httptest.NewRecorder()
	p.ServeHTTP(head, request(http.MethodHead, "/"))
	n, err := strconv.Atoi(head.Header().Get("Content-Length"))
	if err != nil || n == 0 || head.Body.Len() != 0 || head.Code != http.StatusOK {
		t.Errorf("HEAD: status %d, Content-Length %q, %d bytes", head.Code, head.Header().Get("Content-Length"), head.Body.Len())
	}
}

func TestPage_Headers(t *testing.T) {
	p := newPage(t, debug.Config{})
	for target, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/?format=html": "text/html; charset=utf-8",
		"/?format=fragment": "text/html; charset=utf-8", "/?format=json": "application/json",
		"/?format=xml": "text/plain; charset=utf-8",
	} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, request(http.MethodGet, target))
		for name, value := range map[string]string{
			"Content-Type": want, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := rec.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", target, name, got, value)
			}
		}
		if rec.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", target)
		}
	}
}

func TestPage_BadParametersAreNamed(t *testing.T) {
	p := newPage(t, debug.Config{Events: 50})
	for query, words := range map[string]string{
		"format=xml": `format is "xml"`, "limit=0": "limit", "limit=501": "from 1 to 500", "limit=many": "limit",
		"waiters=-1": "waiters", "waiters=1001": "from 1 to 1000", "events=51": "from 0 to 50",
		"class=%zz": "invalid query", "key=" + strings.Repeat("k", 1025): "key has 1025 bytes",
		"limit=%3Cscript%3E": `limit is "<script>"`, // harmless: plain text, and nosniff
	} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, request(http.MethodGet, "/?"+query))
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), words) {
			t.Errorf("%s: status %d, %q", query, rec.Code, rec.Body)
		}
	}
}

// evil is what a program, a server or another client may put into any text.
var evil = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style></script><b>`,
	`javascript:alert(1)`, "{{.Held}}", "\xff\xfe\x00", "a\u202eb\u2028c\x1b[31m", "line\nbreak\ttab", "&lt;b&gt;", strings.Repeat("k", 70_000),
}

// hostile is a Manager whose texts are all evil.
func hostile(p *debug.Page) *fixed {
	s := observe.Survey{ClientID: "worker-1", Counts: map[string]observe.Count{}}
	now := time.Now()
	for _, e := range evil {
		verdict := observe.VerdictState{Check: "holder", Health: "unhealthy", Finding: "holder_gone", Reason: e, At: now}
		s.Counts[e[:min(len(e), 64)]] = observe.Count{Held: 1, Waiting: 1}
		s.Verdicts = append(s.Verdicts, verdict)
		s.States = append(s.States, observe.State{
			Key: e, Class: e[:min(len(e), 64)], Status: "owned", Holder: "worker-1:1", HeldBy: e, CallSite: e, Kind: "hold",
			Since: now, Deadline: now, NextRenewal: now, Lease: time.Second, Waiting: 1, Verdicts: []observe.VerdictState{verdict},
			Waiters: []observe.WaiterState{{Kind: "lock", CallSite: e}},
		})
		s.States = append(s.States, observe.State{Key: e, Status: "acquiring", HeldBy: e})
		p.OnEvent(observe.Event{
			Kind: observe.EventLost, At: now, Key: e, Class: e, Holder: e, Text: e, CallSite: e, Err: errors.New(e), ErrText: e, ClientID: "worker-1",
		})
	}
	return &fixed{s}
}

func TestPage_I2_EverythingIsEscaped(t *testing.T) {
	for _, hide := range []bool{false, true} {
		p := newPage(t, debug.Config{HideKeys: hide})
		p.Attach(hostile(p))
		empty := get(t, newPage(t, debug.Config{}), "/").Body.String()
		queries := []string{"?waiters=10"}
		for _, e := range evil {
			q := "&class=" + urlQuery(e[:min(len(e), 64)]) + "&key=" + urlQuery(e[:min(len(e), 100)])
			queries = append(queries, "?format=html"+q, "?format=json"+q)
		}
		for _, query := range queries {
			body := get(t, p, "/"+query).Body.String()
			if !utf8.ValidString(body) {
				t.Errorf("%.80s: not UTF-8", query)
			}
			if strings.ContainsAny(body, "\x00\x1b\u202e\u2028") {
				t.Errorf("%.80s: characters that do not print", query)
			}
			if strings.Contains(query, "json") {
				if !json.Valid([]byte(body)) {
					t.Errorf("%.80s: no JSON", query)
				}
				continue
			}
			for _, tag := range []string{"<script", "<style", "</script", "</style", "<img", `href="javascript`} {
				if got, want := strings.Count(body, tag), strings.Count(empty, tag); got != want {
					t.Errorf("%.80s: %q is there %d times, want %d", query, tag, got, want)
				}
			}
			if m := attribute.FindString(values.ReplaceAllString(body, "=v")); m != "" {
				t.Errorf("%.80s: %q", query, m)
			}
		}
	}
}

// attribute finds what can only come from unescaped text, once the values of attributes are removed.
var (
	values    = regexp.MustCompile(`="[^"<>]*"`)
	attribute = regexp.MustCompile(`<[^<>]*\s(?:on\w+|style|src)=[^<>]*>`)
)

func urlQuery(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

func TestPage_I3_ThePolicyAllowsThePageAndNothingElse(t *testing.T) {
	rec := get(t, newPage(t, debug.Config{}), "/")
	body := rec.Body.String()
	between := func(tag string) string {
		_, rest, _ := strings.Cut(body, "<"+tag+">")
		text, _, ok := strings.Cut(rest, "</"+tag+">")
		if !ok || len(text) < 100 {
			t.Fatalf("no %s on the page", tag)
		}
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := "default-src 'none'; script-src " + between("script") + "; style-src " + between("style") +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
	if got := rec.Header().Get("Content-Security-Policy"); got != want {
		t.Errorf("the policy is\n%s, want\n%s", got, want)
	}
	for _, foreign := range []string{"http://", "https://", "src=", "@import", "url("} {
		if strings.Contains(body, foreign) {
			t.Errorf("the page holds %q", foreign)
		}
	}
}

// many is a Manager with more of everything than an answer lists.
func many(n int) *fixed {
	s := observe.Survey{ClientID: "worker-1", Counts: map[string]observe.Count{}}
	waiters := make([]observe.WaiterState, n)
	for i := range waiters {
		waiters[i] = observe.WaiterState{Goroutine: int64(i), Kind: "lock", Waiting: time.Second, CallSite: "/home/app/orders/handle.go:42"}
	}
	for i := range n {
		class := fmt.Sprintf("class-%d", i%1000)
		c := s.Counts[class]
		s.Counts[class] = observe.Count{Held: c.Held + 1, Waiting: c.Waiting + n}
		s.States = append(s.States, observe.State{
			Key: fmt.Sprintf("order:%d", i), Class: class, Status: "owned", Holder: "worker-1:7", Since: time.Now(),
			Waiting: n, Waiters: waiters,
		})
	}
	return &fixed{s}
}

func TestPage_I4_AnAnswerIsBounded_Lab(t *testing.T) {
	const n, managers, events = 100_000, 300, 500
	p := newPage(t, debug.Config{Events: events})
	p.Attach(many(n))
	for range managers - 1 {
		p.Attach(&fixed{})
	}
	for i := range 2 * events {
		p.OnEvent(observe.Event{Kind: observe.EventWarning, Key: fmt.Sprint(i), Text: strings.Repeat("x", 100_000), Err: errors.New(strings.Repeat("y", 100_000))})
	}
	for i := range events {
		p.OnEvent(observe.Event{Kind: observe.EventLost, At: time.Now(), Key: fmt.Sprint(i), Text: strings.Repeat("x", 100_000)})
	}
	for _, c := range []struct {
		query          string
		limit          int
		locks, waiters int
		events         int
	}{
		{"", 300 << 10, 50, 250, 20},
		{"limit=500&waiters=1000", 3 << 20, 500, 5000, 20},
		{"limit=1&events=0", 100 << 10, 1, 5, 0},
	} {
		r := report(t, p, c.query)
		waiters, left := 0, 0
		for _, l := range r.Locks {
			waiters, left = waiters+len(l.Waiters), left+l.WaitersNotShown
		}
		if len(r.Locks) != c.locks || r.LocksNotShown != n-c.locks || r.Keys != n || waiters != c.waiters || left != c.locks*n-c.waiters {
			t.Errorf("%q: %d locks, %d not shown, of %d; %d waiters, %d not shown", c.query, len(r.Locks), r.LocksNotShown, r.Keys, waiters, left)
		}
		if len(r.Classes) != 100 || r.ClassesNotShown != 900 || len(r.Managers) != 100 || r.ManagersNotShown != managers-100 {
			t.Errorf("%q: %d classes and %d, %d Managers and %d", c.query, len(r.Classes), r.ClassesNotShown, len(r.Managers), r.ManagersNotShown)
		}
		if len(r.Events) != c.events || r.EventsNotShown != events-c.events || r.EventsSeen != 3*events {
			t.Errorf("%q: %d events, %d not shown, of %d", c.query, len(r.Events), r.EventsNotShown, r.EventsSeen)
		}
		if len(r.Lost) != 20 || r.LostNotShown != events-20 {
			t.Errorf("%q: %d losses, %d not shown", c.query, len(r.Lost), r.LostNotShown)
		}
		body := get(t, p, "/?"+c.query).Body
		t.Logf("%q: %d bytes", c.query, body.Len())
		if body.Len() > c.limit {
			t.Errorf("%q: %d bytes, want at most %d", c.query, body.Len(), c.limit)
		}
		if words := fmt.Sprintf("%d are not shown", n-c.locks); !strings.Contains(body.String(), words) {
			t.Errorf("%q: nothing says %q", c.query, words)
		}
	}
}

// The cost of an answer is known only when it is complete: 500 locks take longer to write than to find.
func TestPage_ThePaceIsThatOfTheWholeAnswer(t *testing.T) {
	p := newPage(t, debug.Config{Refresh: time.Second})
	p.Attach(many(10))
	p.OnEvent(observe.Event{Kind: observe.EventLost, Key: "k"})
	for _, target := range []string{"/", "/?format=fragment"} {
		_, rest, ok := strings.Cut(get(t, p, target).Body.String(), `data-refresh-ms="`)
		ms, _, _ := strings.Cut(rest, `"`)
		if n, err := strconv.Atoi(ms); !ok || err != nil || n < 1000 || strings.Contains(rest, "<article") || strings.Contains(rest, "<li>") {
			t.Errorf("%s: asks again after %q ms, and after that come %d bytes", target, ms, len(rest))
		}
	}
}

// stuck is a client that reads nothing until it is freed.
type stuck struct {
	http.ResponseWriter
	begun, free chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	close(s.begun)
	<-s.free
	return s.ResponseWriter.Write(b)
}

func TestPage_I5_AClientThatHangsDelaysNobody(t *testing.T) {
	p := newPage(t, debug.Config{})
	p.Attach(many(10))
	s := stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.ServeHTTP(s, request(http.MethodGet, "/"))
	}()
	<-s.begun
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.OnEvent(observe.Event{Kind: observe.EventLost, Key: "k"})
		if r := report(t, p, ""); len(r.Locks) != 10 || len(r.Events) != 1 {
			t.Errorf("%d locks, %d events", len(r.Locks), len(r.Events))
		}
		m := &fixed{}
		p.Attach(m)
		p.Detach(m)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("somebody waits for a client that hangs")
	}
	close(s.free)
	<-ended
}

// gate is a Source that returns when the test allows it.
type gate struct{ asked, free chan struct{} }

func (g gate) Survey(observe.SurveyOptions) observe.Survey {
	g.asked <- struct{}{}
	<-g.free
	return observe.Survey{}
}

// A request that waits for its turn ends with its client, and the next one gets its own turn.
func TestPage_OneAnswerAtATime(t *testing.T) {
	p := newPage(t, debug.Config{})
	g := gate{make(chan struct{}, 2), make(chan struct{})}
	p.Attach(g)
	first := make(chan struct{})
	go func() { defer close(first); get(t, p, "/") }()
	<-g.asked
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		p.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/").WithContext(ctx))
	}()
	leave()
	<-left // although the first has not been answered
	select {
	case <-g.asked:
		t.Error("two answers were made in parallel")
	default:
	}
	close(g.free)
	<-first
	get(t, p, "/")
}
