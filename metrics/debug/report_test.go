package debug_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestConfig_BoundsAreNamed(t *testing.T) {
	for field, cfg := range map[string]debug.Config{
		"Events is -1": {Events: -1}, "Events is 10001": {Events: 10_001},
		"Refresh is 499ms": {Refresh: 499 * time.Millisecond}, "Refresh is 1h0m1s": {Refresh: time.Hour + time.Second},
	} {
		if p, err := debug.New(cfg); p != nil || !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, %v", cfg, p, err)
		}
	}
}

// lockOf returns the lock with a key.
func lockOf(t testing.TB, r debug.Report, key string) debug.Lock {
	t.Helper()
	i := slices.IndexFunc(r.Locks, func(l debug.Lock) bool { return l.Key == key })
	if i < 0 {
		t.Fatalf("no %s among %d locks", key, len(r.Locks))
	}
	return r.Locks[i]
}

// What the page says of real locks agrees with their Managers.
func TestReport_AgreesWithSnapshot(t *testing.T) {
	srv, begun := server(t), time.Now()
	p := newPage(t, debug.Config{})
	long := anteroom.LockConfig{Name: "orders", LeaseTime: time.Hour, RenewalTime: 20 * time.Minute, Fencing: true, WatchdogPeriod: 250 * time.Millisecond}
	one := manager(t, srv, p, anteroom.Config{ClientID: "one", RecordCallSites: true, Defaults: long})
	two := manager(t, srv, p, anteroom.Config{ClientID: "two", Defaults: anteroom.LockConfig{Name: "reports"}})
	mu := one.Mutex("order:42")
	h := acquire(t, mu)
	waiters := park(t, one, mu, 7)
	fixed, err := two.Mutex("backup").Acquire(bg, anteroom.Lease(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := two.Mutex("order:43")
	h43 := acquire(t, one.Mutex("order:43"))
	waiter43 := park(t, two, elsewhere, 1)
	eventually(t, "its refusal", func() bool {
		return slices.ContainsFunc(two.Snapshot(), func(s observe.State) bool { return s.HeldBy == h43.Holder() })
	})
	eventually(t, "the first renewals, which give the leases their length", func() bool {
		return !slices.ContainsFunc(one.Snapshot(), func(s observe.State) bool { return time.Until(s.Deadline) < 30*time.Minute })
	})

	before := time.Now()
	r := report(t, p, "")
	after := time.Now()
	if r.Held != 3 || r.Waiting != 8 || r.Keys != 4 || len(r.Locks) != 4 || r.LocksNotShown != 0 || len(r.Managers) != 2 {
		t.Errorf("%+v", r)
	}
	if m := r.Managers[0]; m.ClientID != one.ClientID() || m.Held != 2 || m.Waiting != 7 || !m.CallSitesRecorded || m.Closed {
		t.Errorf("%+v", m)
	}
	if m := r.Managers[1]; m.ClientID != two.ClientID() || m.Held != 1 || m.Waiting != 1 || m.CallSitesRecorded {
		t.Errorf("%+v", m)
	}
	for i := range r.Classes {
		if c := &r.Classes[i]; c.OldestHoldSeconds < c.OldestWaitSeconds && c.Class == "orders" || c.OldestWaitSeconds < 0 || c.OldestHoldSeconds > after.Sub(begun).Seconds()+.01 {
			t.Errorf("%+v", *c)
		}
		r.Classes[i].OldestHoldSeconds, r.Classes[i].OldestWaitSeconds = 0, 0
	}
	if want := []debug.Class{{Class: "orders", Held: 2, Waiting: 7}, {Class: "reports", Held: 1, Waiting: 1}}; !reflect.DeepEqual(r.Classes, want) {
		t.Errorf("classes %+v", r.Classes)
	}
	s := one.Snapshot()[0]
	l := lockOf(t, r, "order:42")
	if l.Manager != one.ClientID() || l.Class != "orders" || l.Status != "owned" || l.Lost || l.KeyHash != observe.KeyHash("order:42") || l.KeyQuoted || l.KeyBytes != 8 {
		t.Errorf("%+v", l)
	}
	token, _ := h.Token()
	if o := l.Owner; o.Goroutine != s.Goroutine || o.Kind != "hold" || o.CallSite != s.CallSite || o.CallSite == "" || o.Count != 1 ||
		o.Token != token || o.Token == 0 || o.Since.Sub(s.Since).Abs() > time.Millisecond ||
		o.HeldSeconds < before.Sub(s.Since).Seconds()-.01 || o.HeldSeconds > after.Sub(s.Since).Seconds()+.01 {
		t.Errorf("%+v, want %+v", o, s)
	}
	if le := l.Lease; le.Holder != h.Holder() || le.LengthSeconds != 3600 || le.HandOffs != 0 || le.NextRenewal == nil ||
		le.Deadline.Sub(s.Deadline).Abs() > time.Millisecond || le.LeftSeconds > s.Deadline.Sub(before).Seconds()+.01 ||
		*le.NextRenewalSeconds < 600 || *le.NextRenewalSeconds > 1200 {
		t.Errorf("%+v, want %+v", le, s)
	}
	if l.Waiting != 7 || len(l.Waiters) != 5 || l.WaitersNotShown != 2 {
		t.Fatalf("%d waiting, %d listed, %d not shown", l.Waiting, len(l.Waiters), l.WaitersNotShown)
	}
	for i, w := range l.Waiters {
		if want := s.Waiters[i]; w.Goroutine != want.Goroutine || w.Kind != "hold" || w.CallSite != want.CallSite || w.CallSite == "" || w.WaitingSeconds > want.Waiting.Seconds()+.001 { // rounded
			t.Errorf("waiter %d: %+v, want %+v", i, w, want)
		}
	}
	if l := lockOf(t, r, "backup"); l.Lease.NextRenewal != nil || l.Owner.Token != 0 || l.Owner.CallSite != "" {
		t.Errorf("%+v", l)
	}
	i := slices.IndexFunc(r.Locks, func(l debug.Lock) bool { return l.Key == "order:43" && l.Manager == two.ClientID() })
	if l := r.Locks[i]; l.Status != "acquiring" || l.HeldBy != h43.Holder() || l.Ahead == nil || *l.Ahead != 0 || l.Owner != nil || l.Lease != nil {
		t.Errorf("%+v", l)
	}
	if l := lockOf(t, r, "order:42"); l.Ahead != nil {
		t.Errorf("the holder waits in line: %+v", l)
	}
	if page := get(t, p, "/").Body.String(); !strings.Contains(page, "this process is first") {
		t.Error("nothing says that a process waits in line")
	}
	if page := get(t, p, "/").Body.String(); !strings.Contains(page, "Call sites are not recorded by every Manager") {
		t.Error("nothing says that a Manager does not record call sites")
	}

	eventually(t, "verdicts of all checks", func() bool { return len(lockOf(t, report(t, p, "key=order:42"), "order:42").Checks) == 3 })
	eventually(t, "the checks of the process", func() bool { return len(report(t, p, "").Managers[0].Checks) >= 2 })
	waiters.end()
	waiter43.end()
	p.Detach(two)
	if r := report(t, p, ""); len(r.Managers) != 1 || r.Held != 2 || r.Waiting != 0 {
		t.Errorf("after Detach: %+v", r)
	}
	if err := errors.Join(h.Release(bg), h43.Release(bg), fixed.Release(bg)); err != nil {
		t.Error(err)
	}
	eventually(t, "an empty page", func() bool { return report(t, p, "").Keys == 0 })
}

// The locks of several Managers are in the order that they would have in one.
func TestReport_OrderAcrossManagers(t *testing.T) {
	p := newPage(t, debug.Config{})
	now := time.Now()
	bad := []observe.VerdictState{{Check: "renewal", Health: "unhealthy"}}
	wait := func(d time.Duration) []observe.WaiterState { return []observe.WaiterState{{Waiting: d}} }
	a := &fixed{observe.Survey{ClientID: "a", States: []observe.State{
		{Key: "1 lost", Status: "lost", Waiters: wait(2)},
		{Key: "3 waits long", Waiters: wait(9)},
		{Key: "6 old", Granted: now.Add(-time.Hour)},
		{Key: "9 nothing"},
	}}}
	b := &fixed{observe.Survey{ClientID: "b", States: []observe.State{
		{Key: "2 unhealthy", Verdicts: bad, Waiters: wait(1)},
		{Key: "4 waits", Waiters: wait(5)},
		{Key: "5 begins to wait", Waiters: wait(0)},
		{Key: "7 young", Granted: now},
		{Key: "8 nothing"},
	}}}
	p.Attach(a)
	p.Attach(a)
	p.Attach(b)
	for n := 1; n <= 9; n++ {
		r := report(t, p, fmt.Sprint("limit=", n))
		if len(r.Locks) != n || r.LocksNotShown != 9-n {
			t.Errorf("%d locks and %d not shown of %d", len(r.Locks), r.LocksNotShown, n)
		}
		for i, l := range r.Locks {
			if !strings.HasPrefix(l.Key, fmt.Sprint(i+1)) {
				t.Errorf("place %d of %d is that of %q", i+1, n, l.Key)
			}
		}
	}
}

func TestReport_Filters(t *testing.T) {
	p := newPage(t, debug.Config{})
	s := observe.Survey{Counts: map[string]observe.Count{"orders": {Held: 2}, "reports": {Held: 1}}}
	for _, k := range [][2]string{{"order:1", "orders"}, {"order:2\xff", "orders"}, {"order:3", "reports"}} {
		s.States = append(s.States, observe.State{Key: k[0], Class: k[1]})
		p.OnEvent(observe.Event{Kind: observe.EventLost, Key: k[0], Class: k[1]})
	}
	p.OnEvent(observe.Event{Kind: observe.EventSubscriptionDown})
	p.Attach(&fixed{s})
	for query, want := range map[string]int{
		"": 3, "class=orders": 2, "key=order": 3, "key=order:2%ff": 1, "key=order:2%fe": 0, "class=orders&key=order:3": 0, "class=order": 0,
	} {
		r := report(t, p, query)
		events := want
		if query == "" {
			events++ // that of no lock
		}
		if r.Keys != want || len(r.Locks) != want || len(r.Events) != events || r.Held != 3 {
			t.Errorf("%q: %d keys, %d locks, %d events, %d held", query, r.Keys, len(r.Locks), len(r.Events), r.Held)
		}
	}
	// The link beside a key finds it, whatever bytes it consists of.
	if body := get(t, p, "/").Body.String(); !strings.Contains(body, `href="?key=order%3A2%FF"`) {
		t.Error("no link with the key's own bytes")
	}
}

func TestHideKeys_NoKeyIsShownAndNoneCanBeFoundOut(t *testing.T) {
	const key = "customer:ada@example.org"
	p := newPage(t, debug.Config{HideKeys: true})
	p.Attach(&fixed{observe.Survey{States: []observe.State{{
		Key: key, Class: "customers", Status: "owned", Verdicts: []observe.VerdictState{{Check: "connection", Health: "unhealthy", Reason: "PING failed", Err: errors.New("no " + key), ErrText: "no (withheld)"}},
	}}}})
	p.OnEvent(observe.Event{
		Kind: observe.EventRecovery, Key: key, Check: "connection", Text: "PING failed", Err: fmt.Errorf("no answer about %q", key), ErrText: `no answer about "(withheld)"`,
	})
	hash := observe.KeyHash(key)
	for _, query := range []string{"", "format=json", "key=" + hash, "format=json&key=" + hash[:3]} {
		body := get(t, p, "/?"+query).Body.String()
		if strings.Contains(body, "ada") || !strings.Contains(body, hash) || strings.Count(body, "(withheld)") != 2 {
			t.Errorf("%q: %s", query, body)
		}
	}
	for _, guess := range []string{"c", "customer:", key} {
		if r := report(t, p, "key="+urlQuery(guess)); r.Keys != 0 || len(r.Events) != 0 {
			t.Errorf("the beginning %q of a hidden key finds %d keys and %d events", guess, r.Keys, len(r.Events))
		}
	}
}

// The library's own words stay as they are, whatever a hidden key is called.
func TestHideKeys_AKeyEatsNoFileName(t *testing.T) {
	const text = "held for 23s, taken at /srv/leader.go:12"
	p := newPage(t, debug.Config{HideKeys: true})
	p.Attach(&fixed{observe.Survey{States: []observe.State{{
		Key: "leader", Class: "c", Status: "owned", Verdicts: []observe.VerdictState{{Check: "holder", Health: "unhealthy", Reason: text}},
	}}}})
	p.OnEvent(observe.Event{Kind: observe.EventAlert, Key: "leader", Check: "holder", Text: text, CallSite: "/srv/leader.go:12"})
	r := report(t, p, "")
	if e := r.Events[0]; e.Text != text || e.CallSite != "/srv/leader.go:12" {
		t.Errorf("%+v", e)
	}
	if c := r.Locks[0].Checks[0]; c.Reason != text {
		t.Errorf("%+v", c)
	}
}

func TestEvents_NewestFirstAndBounded(t *testing.T) {
	p := newPage(t, debug.Config{Events: 3})
	if body := get(t, p, "/").Body.String(); !strings.Contains(body, "None yet") {
		t.Error("an empty page does not say why")
	}
	var want []string
	for i := range 8 {
		p.OnEvent(observe.Event{
			Kind: observe.EventAlert, At: time.Now(), ClientID: "w", Key: fmt.Sprint("k", i), Class: "c", Holder: "w:1", Check: "holder", Reason: "gone",
			Since: time.Now(), Owners: 2, Text: "text", CallSite: "/a/b/c.go:7", Err: errors.New("why"),
		})
		want = append([]string{fmt.Sprint("k", i)}, want...)
		r := report(t, p, "events=3")
		var got []string
		for _, e := range r.Events {
			got = append(got, e.Key)
		}
		if !slices.Equal(got, want[:min(3, len(want))]) || r.EventsSeen != int64(i+1) {
			t.Errorf("%v of %d, want the first three of %v", got, r.EventsSeen, want)
		}
	}
	e := report(t, p, "events=1").Events[0]
	if e.Kind != "alert" || e.Manager != "w" || e.Class != "c" || e.Holder != "w:1" || e.Check != "holder" || e.Reason != "gone" || e.Since == nil ||
		e.Owners != 2 || e.Text != "text" || e.CallSite != "/a/b/c.go:7" || e.Error != "why" || e.At.IsZero() || e.AgoSeconds > 60 {
		t.Errorf("%+v", e)
	}
}

// A loss is on the page for a minute with its cause, however many events come after it.
func TestLost_ForAMinuteWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, debug.Config{Events: 1})
		p.Attach(&fixed{})
		p.OnEvent(observe.Event{Kind: observe.EventLost, At: time.Now(), ClientID: "w", Key: "order:42", Class: "orders", Holder: "w:1", Reason: observe.LostGone, Text: "Redis had no such holder"})
		p.OnEvent(observe.Event{Kind: observe.EventWarning, At: time.Now(), ClientID: "w", Key: "order:43", Class: "orders"})
		for _, c := range []struct {
			after time.Duration
			query string
			lost  int
		}{{0, "", 1}, {0, "class=orders&key=order", 1}, {0, "key=order:43", 0}, {59 * time.Second, "", 1}, {2 * time.Second, "", 0}} {
			time.Sleep(c.after)
			r, page := report(t, p, c.query), get(t, p, "/?"+c.query).Body.String()
			if len(r.Lost) != c.lost || r.LostNotShown != 0 || strings.Contains(page, "Lost in the last minute") != (c.lost > 0) ||
				strings.Contains(page, "reason <b>gone</b> <span class=\"text\">Redis had no such holder") != (c.lost > 0) {
				t.Errorf("%q, %v later: %+v and %d more", c.query, c.after, r.Lost, r.LostNotShown)
			}
		}
	})
}

// No 0 hides the hand-overs through Redis, each of which is a grant of its own.
func TestPage_HandOffsAreThoseWithinTheProcess(t *testing.T) {
	p := newPage(t, debug.Config{})
	p.Attach(&fixed{observe.Survey{States: []observe.State{
		{Key: "passed on", Status: "owned", Holder: "w:1", HandOffs: 3}, {Key: "granted", Status: "owned", Holder: "w:2"},
	}}})
	page := get(t, p, "/").Body.String()
	if n := strings.Count(page, "hand-offs"); n != 1 || !strings.Contains(page, "3 hand-offs within this process this turn") {
		t.Errorf("hand-offs are %d times on the page", n)
	}
}

// What an RWMutex and a Semaphore have of Redis, and who uses it, is on the page.
func TestReport_Units(t *testing.T) {
	srv := server(t)
	p := newPage(t, debug.Config{})
	m := manager(t, srv, p, anteroom.Config{})
	two, err := m.Semaphore("sem", 5).Acquire(bg, 2)
	if err != nil {
		t.Fatal(err)
	}
	var readers []*anteroom.Hold
	for range 3 {
		h, err := m.RWMutex("rw").RAcquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, h)
	}
	r := report(t, p, "")
	if u := lockOf(t, r, "sem").Units; u == nil || *u != (debug.Units{Has: 2, Used: 2, Capacity: 5}) {
		t.Errorf("%+v", u)
	}
	if u := lockOf(t, r, "rw").Units; u == nil || *u != (debug.Units{Has: 1, Used: 1, Capacity: 1 << 20, Readers: 3}) {
		t.Errorf("%+v", u)
	}
	if c := r.Classes[0]; c.Held != 2 {
		t.Errorf("%+v", c)
	}
	page := get(t, p, "/").Body.String()
	for _, words := range []string{"<dt>Units<dd><b>2</b> in use of 2 here, 5 in all\n", "<dt>Units<dd><b>1</b> in use of 1 here, 1048576 in all; 3 readers\n"} {
		if !strings.Contains(page, words) {
			t.Errorf("the page does not say %q", words)
		}
	}
	for _, h := range append(readers, two) {
		if err := h.Release(bg); err != nil {
			t.Error(err)
		}
	}
}

// The page in docs names every field of the JSON, and no others.
func TestDocs_EveryFieldIsNamed(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/debug-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## JSON\n")
	part, _, _ = strings.Cut(part, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z][a-z_]+)`").FindAllStringSubmatch(part, -1) {
		named[m[1]] = true
	}
	have := map[string]bool{}
	fields(reflect.TypeFor[debug.Report](), have)
	for name := range have {
		if !named[name] {
			t.Errorf("docs/reference/debug-json.md does not name %s", name)
		}
	}
	for name := range named {
		if !have[name] {
			t.Errorf("docs/reference/debug-json.md names %s, which does not exist", name)
		}
	}
}

// fields adds the names of all fields of t in JSON.
func fields(t reflect.Type, names map[string]bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		fields(t.Elem(), names)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if name := f.Tag.Get("json"); name != "" {
				names[name] = true
			}
			if f.IsExported() {
				fields(f.Type, names)
			}
		}
	}
}
