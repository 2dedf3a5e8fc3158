package anteroom_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// journal is a log that is read afterwards, one line a record, as slog's own text handler
// writes it.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns the records of one kind, or all with "" but the warning that the embedded server does not know CLIENT TRACKING.
func (j *journal) lines(kind observe.EventKind) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for _, l := range strings.Split(strings.TrimSpace(j.buf.String()), "\n") {
		if l != "" && (kind == "" && !strings.Contains(l, "CLIENT TRACKING") || attrs(l)["event"] == string(kind)) {
			lines = append(lines, l)
		}
	}
	return lines
}

var attribute = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S*)`)

// attrs reads a record.
func attrs(line string) map[string]string {
	m := map[string]string{}
	for _, a := range attribute.FindAllStringSubmatch(line, -1) {
		m[a[1]] = a[2]
		if s, err := strconv.Unquote(a[2]); err == nil {
			m[a[1]] = s
		}
	}
	return m
}

// play plays a case in virtual time and returns its first record and its first event.
func (c logCase) play(t *testing.T) (line string, e observe.Event) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, rec := manager(t, s.client(), anteroom.Config{Logger: j.logger(), Defaults: anteroom.LockConfig{WatchdogPeriod: max(c.locks.WatchdogPeriod, 5*time.Second)}})
		locks := c.locks
		locks.Key, locks.Name = "order:42", "orders"
		defer func() { s.net.Heal(); time.Sleep(2 * time.Second) }() // go-redis continues dialing
		c.run(t, s, m, mutex(t, m, locks))
		synctest.Wait()
		lines, events := j.lines(c.kind), rec.of(c.kind)
		if len(lines) != 1 || len(events) != 1 {
			t.Fatalf("%s: %d records, %d events, want one:\n%s", c.name, len(lines), len(events), strings.Join(j.lines(""), "\n"))
		}
		line, e = lines[0], events[0]
	})
	return line, e
}

// shown is what the table shows of a record: not what every record of a kind has, and no
// moment, since they are those of the run.
func shown(line string) string {
	var parts []string
	for _, a := range attribute.FindAllStringSubmatch(line, -1) {
		switch a[1] {
		case "unconfirmed_for":
			d, _ := time.ParseDuration(a[2])
			parts = append(parts, a[1]+"="+d.Round(100*time.Millisecond).String())
		case "time", "msg", "class", "key_hash", "grant", "since", "last_confirmed", "deadline", "lease", "owners":
		default:
			parts = append(parts, a[0])
		}
	}
	return strings.Join(parts, " ")
}

// alike makes two records of one case comparable: renewals are jittered, so durations and
// the number of failures differ; that there were none is distinguished.
func alike(record string) string {
	// A try that the deadline cut short has the shorter words.
	record = strings.ReplaceAll(record, "context deadline exceeded", "no answer within the command's time limit (1s)")
	record = regexp.MustCompile(`unconfirmed_for=\S+`).ReplaceAllString(record, "unconfirmed_for=…")
	record = regexp.MustCompile(`held for [0-9.hmsµ]+`).ReplaceAllString(record, "held for …")
	return regexp.MustCompile(`failures=[1-9]\d*`).ReplaceAllString(record, "failures=…")
}

const logTable = "<!-- What the log says: TestLog_SaysWhatTheDocumentSays. ANTEROOM_UPDATE=1 writes the middle column. -->\n"

var logRow = regexp.MustCompile("(?m)^\\| (.+?) \\| `([^|]*)` \\| (.+) \\|$")

const logDocument = "../docs/reference/log-records.md"

// splitLogDocument returns the document up to the table, the table, and what follows.
func splitLogDocument(t *testing.T) (before, table, after string) {
	t.Helper()
	before, table, found := strings.Cut(string(must[[]byte](t)(os.ReadFile(logDocument))), logTable)
	table, after, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/reference/log-records.md has lost its table")
	}
	return before + logTable, table, "\n\n" + after
}

// documented returns the records that the table shows, by what happened.
func documented(t *testing.T) map[string]string {
	t.Helper()
	_, table, _ := splitLogDocument(t)
	rows := map[string]string{}
	for _, row := range logRow.FindAllStringSubmatch(table, -1) {
		rows[row[1]] = row[2]
	}
	return rows
}

// The table in docs/reference/log-records.md shows what the log really says in each case, for each
// reason of a loss.
func TestLog_SaysWhatTheDocumentSays(t *testing.T) {
	rows := documented(t)
	reasons := map[string]bool{}
	for _, c := range logCases {
		line, _ := c.play(t)
		reasons[attrs(line)["reason"]] = true
		if got := shown(line); alike(got) != alike(rows[c.name]) {
			t.Errorf("%s: the log says\n%s\nand docs/reference/log-records.md\n%s", c.name, got, rows[c.name])
			rows[c.name] = got
		}
	}
	for _, r := range observe.Labels().Losses {
		if !reasons[string(r)] {
			t.Errorf("no case is lost by %s", r)
		}
	}
	if len(rows) != len(logCases)+1 || rows[stoppedProcess] == "" { // TestLog_AStoppedProcess has one of its own
		t.Errorf("the table has %d rows for %d cases", len(rows), len(logCases))
	}
	if os.Getenv("ANTEROOM_UPDATE") == "1" && t.Failed() {
		before, table, after := splitLogDocument(t)
		table = logRow.ReplaceAllStringFunc(table, func(row string) string {
			m := logRow.FindStringSubmatch(row)
			return fmt.Sprintf("| %s | `%s` | %s |", m[1], rows[m[1]], m[3])
		})
		ok(t, os.WriteFile(logDocument, []byte(before+table+after), 0o644))
	}
}

const stoppedProcess = "this process was stopped for longer than a lease"

// A process that was stopped finds the loss by itself, and its log says that nothing was
// tried, which distinguishes this loss from one by Redis.
func TestLog_AStoppedProcess(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	const lease = 2 * time.Second // as long as that of a call, which it may have still
	p := start(t, "log", s.Addr(), "order:42", lease.String())
	if got := p.ask(t, ""); got != "holding" {
		t.Fatal(got)
	}
	ok(t, p.Process.Signal(child.SIGSTOP))
	time.Sleep(lease) // real time: that of a stopped process and of its lease
	ok(t, p.Process.Signal(child.SIGCONT))
	line := ""
	for attrs(line)["event"] != string(observe.EventLost) {
		line = p.ask(t, "")
	}
	row := attrs(documented(t)[stoppedProcess])
	for _, name := range []string{"event", "reason", "text", "failures"} {
		if got := attrs(line)[name]; got != row[name] || got == "" {
			t.Errorf("%s is %q, docs/reference/log-records.md says %q:\n%s", name, got, row[name], line)
		}
	}
	if d, _ := time.ParseDuration(attrs(line)["unconfirmed_for"]); d < lease/2 || d > lease {
		t.Errorf("not confirmed for %v, of a lease of %v:\n%s", d, lease, line)
	}
}

// What a record says of a loss is true, and the Event has the same for programs.
func TestLog_TheFactsOfALoss(t *testing.T) {
	i := slices.IndexFunc(logCases, func(c logCase) bool { return c.name == "Redis is unreachable for a lease" })
	line, e := logCases[i].play(t)
	a := attrs(line)
	moment := func(name string) time.Time { return must[time.Time](t)(time.Parse(time.RFC3339Nano, a[name])) }
	same := func(at time.Time, name string) bool { return at.Truncate(time.Millisecond).Equal(moment(name)) }
	length := func(name string) time.Duration { return must[time.Duration](t)(time.ParseDuration(a[name])) }

	if a["level"] != "ERROR" || a["msg"] != "anteroom: lost" || a["class"] != "orders" || a["key_hash"] == "" || a["grant"] != "1000000000000001" || a["owners"] != "1" {
		t.Errorf("who: %s", line)
	}
	// 30 s of lease, of which 1.5 s are the margin, count from the last confirmed renewal.
	if length("lease") != 30*time.Second || length("unconfirmed_for") != 28500*time.Millisecond {
		t.Errorf("how long: %s", line)
	}
	if !moment("since").Equal(moment("deadline")) || moment("since").Sub(moment("last_confirmed")) != length("unconfirmed_for") {
		t.Errorf("when: %s", line)
	}
	// A renewal is due within 10 s and repeated after at most 2.5 s.
	if n := must[int](t)(strconv.Atoi(a["failures"])); n < 7 || n != e.Failures {
		t.Errorf("%d failures in the log, %d in the event", n, e.Failures)
	}
	if !strings.Contains(a["err"], "refused") || a["found"] != "renewal:renewal_failing,connection:redis_unreachable" {
		t.Errorf("why: %s", line)
	}
	if e.Reason != observe.LostDeadline || !same(e.Since, "since") || !same(e.LastConfirmed, "last_confirmed") ||
		!same(e.Deadline, "deadline") || e.Lease != 30*time.Second || e.Found != a["found"] || e.Owners != 1 || e.Text != a["text"] {
		t.Errorf("the event %+v\nthe record %s", e, line)
	}
}

// The kinds of records that a user can cause, read with a key and a client ID that one recognizes.
func TestLog_NamesNoKeyAndNoHolder(t *testing.T) {
	for _, logKeys := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			j := &journal{}
			m, _ := manager(t, s.client(), anteroom.Config{Logger: j.logger(), LogKeys: logKeys, ClientID: "web-7-31337-9f3c2a1b00de"})
			h := held(t, mutex(t, m, anteroom.LockConfig{Key: "customer:anna", WatchdogPeriod: time.Second}))
			s.HSet("customer:anna", "somebody:else", "1")
			time.Sleep(5 * time.Second)
			_, err := m.ForceRelease(bg, "customer:anna")
			ok(t, err)
			<-h.Context().Done()
			synctest.Wait()
			all := strings.Join(j.lines(""), "\n")
			if n := len(j.lines(observe.EventLost)); n != 1 {
				t.Fatalf("%d losses:\n%s", n, all)
			}
			if strings.Contains(all, "anna") != logKeys || strings.Contains(all, "-31337") || strings.Contains(all, "somebody") {
				t.Errorf("LogKeys %v:\n%s", logKeys, all)
			}
		})
	}
}

// What the watchdog had found of a hold is reported with its loss, although it forgets the hold
// before the loss is reported.
func TestLost_SaysWhatWasFoundOfTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, seen := manager(t, s.client(), anteroom.Config{Observer: hooks(slowToHearOfLosses{})})
		h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: 10 * time.Second}))
		time.Sleep(20 * time.Second)
		must[[]string](t)(m.ForceRelease(bg, "k"))
		<-h.Context().Done()
		time.Sleep(2 * time.Minute)
		if lost := seen.of(observe.EventLost); len(lost) != 1 || lost[0].Found != "holder:over_max_hold" {
			t.Errorf("%v, found %q", lost, lost[0].Found)
		}
	})
}

// slowToHearOfLosses is an Observer that is reported a loss a minute before others are.
type slowToHearOfLosses struct{}

func (slowToHearOfLosses) Lost(string, observe.LossReason) { time.Sleep(time.Minute) }

// Close reports what it gives up before it ends the watchdog, which knows more of it.
func TestLost_ByCloseSaysWhatWasFoundOfTheHold(t *testing.T) {
	for range 30 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, seen := manager(t, s.client(), anteroom.Config{})
			acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: 10 * time.Second}))
			time.Sleep(20 * time.Second)
			ctx, cancel := context.WithCancel(bg)
			cancel()
			_ = m.Close(ctx)
			time.Sleep(time.Minute)
			if lost := seen.of(observe.EventLost); len(lost) != 1 || lost[0].Found != "holder:over_max_hold" {
				t.Fatalf("%v, found %q", lost, lost[0].Found)
			}
		})
	}
}

// What was held against one owner is not reported of the next.
func TestLost_AccusesNobodyOfWhatAnEarlierOwnerDid(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, seen := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: 10 * time.Second, Recovery: anteroom.RecoverNotify})
		first := acquire(t, mu)
		next := make(chan *anteroom.Hold)
		go func() { h, _ := mu.Acquire(bg); next <- h }()
		time.Sleep(20*time.Second + time.Millisecond) // between two checks by the watchdog
		ok(t, first.Release(bg))
		h := <-next
		time.Sleep(time.Millisecond)
		must[[]string](t)(m.ForceRelease(bg, "k"))
		<-h.Context().Done()
		synctest.Wait()
		if lost := seen.of(observe.EventLost); len(lost) != 1 || lost[0].Found != "" {
			t.Errorf("%v, found %q", lost, lost[0].Found)
		}
	})
}
