package anteroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// Answers as servers and proxies give them, with the key, the holder and the client id in
// every place where one of them might repeat an argument.
var telltale = []string{
	"ERR unknown command 'evalsha', with args beginning with: '177d' '1' '%[1]s' '%[2]s' ",
	"ERR unknown command `evalsha`, with args beginning with: `%.20[1]s`, `%.12[2]s`, ",
	"NOPERM User bob has no permissions to access the '%[1]s' key",
	"NOPERM No permissions to access the channel \"lock:release:%[1]s\" of %[3]s",
	"proxy: bad request {key=%[1]q holder=%[2]q}",
	"publishing the probe: ERR unknown command 'publish', with args beginning with: 'anteroom:client:%[3]s' '{}' ",
}

// logged returns the records of e, and, where they name no keys, what the Event that OnEvent gets says of itself.
func logged(t *testing.T, logKeys bool, e observe.Event) string {
	return records(t, logKeys, e, "")
}

func records(t *testing.T, logKeys bool, e observe.Event, named string) string {
	t.Helper()
	var out bytes.Buffer
	all := &slog.HandlerOptions{Level: slog.Level(-100), ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindTime { // its digits may be those of a process id
			return slog.Time(a.Key, time.Time{})
		}
		return a
	}}
	p := report.New(report.Config{
		ClientID: "web-7-31337-9f3c2a1b00de", LogKeys: logKeys, Words: wordsOf,
		Logger: slog.New(slog.NewMultiHandler(slog.NewJSONHandler(&out, all), slog.NewTextHandler(&out, all))),
		OnEvent: func(e observe.Event) {
			if !logKeys {
				out.WriteString(e.String())
			}
		},
	})
	p.Start()
	p.Raise(context.Background(), e, named)
	p.Stop()
	return out.String()
}

// Every kind of event, those included that a test cannot cause, with texts and errors that
// name what they must not.
func TestLog_NoKindOfEventNamesAKey(t *testing.T) {
	const client = "web-7-31337-9f3c2a1b00de"
	for _, key := range []string{"customer:anna", "k", "a\"b\r\n\x00\xffc"} {
		holder := client + ":17"
		for _, kind := range observe.Labels().Events {
			for _, answer := range telltale {
				text := fmt.Sprintf(answer, key, holder, client)
				if key == "k" && !strings.Contains(answer, "'%[1]s'") && !strings.Contains(answer, "with args") {
					continue // one letter is found between quotation marks only
				}
				e := observe.Event{
					Kind: kind, Key: key, Class: "orders", Holder: holder, Reason: observe.LostGone, Check: "connection",
					Text: "a text of ours", Err: joined(ErrUnavailable, errors.New(text)), Since: time.Now(), ClientID: client,
				}
				got := logged(t, false, e)
				for _, name := range []string{"anna", "'k'", "\x00", `\x00`, `u0000`, "web-7", "-31337"} {
					if strings.Contains(got, name) {
						t.Fatalf("%s: the record of %q names %q:\n%s", kind, key, name, got)
					}
				}
				if !strings.Contains(got, "key_hash="+observe.KeyHash(key)) {
					t.Fatalf("%s: the key's hash is missing:\n%s", kind, got)
				}
			}
		}
	}
}

// Names are taken out of what others have said, not out of our own words: a key may be
// called like a file, a word of ours, or a part of one.
func TestLog_AKeyEatsNoWordOfOurs(t *testing.T) {
	for _, key := range []string{"leader", "lock", "lost", "given up", "unavailable", "time limit", "released"} {
		for _, text := range []string{"held for 23s, taken at /srv/leader.go:12: stop_renewing: acted", "given up by the watchdog; the lock is lost, released at time limit"} {
			e := observe.Event{
				Kind: observe.EventLost, Key: key, Text: text, CallSite: "/srv/leader.go:12",
				Err: joined(ErrUnavailable, ErrLost, fmt.Errorf("%w (1s)", lettucecompat.ErrTimeout), errors.New("ERR no such key: "+key)),
			}
			got := logged(t, false, e)
			for _, want := range []string{text, "redis unavailable: lock lost: no answer within the command's time limit (1s): ERR no such key: (withheld)"} {
				if strings.Count(got, want) != 3 { // JSON, text, String
					t.Errorf("the key %q has eaten a part of %q:\n%s", key, want, got)
				}
			}
		}
	}
}

// The text of a deadlock names several keys: in words only where keys are shown.
func TestLog_DeadlockTextsAreMadeTwice(t *testing.T) {
	e, named := observe.Event{Kind: observe.EventDeadlock, Key: "anna", Text: "of the key with hash 1"}, `of "anna" and "berta"`
	if got := records(t, false, e, named); strings.Contains(got, "anna") || strings.Contains(got, "berta") {
		t.Errorf("%s", got)
	}
	if got := records(t, true, e, named); !strings.Contains(got, "berta") {
		t.Errorf("with LogKeys: %s", got)
	}
}

// What an operator needs of an answer is still there.
func TestLog_AnAnswerKeepsItsMeaning(t *testing.T) {
	for _, answer := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"dial tcp 10.0.0.7:6379: connect: connection refused",
	} {
		got := logged(t, false, observe.Event{Kind: observe.EventUnavailable, Key: "k", Holder: "web-7-31337-9f3c2a1b00de:1", Err: errors.New(answer)})
		if !strings.Contains(got, answer) {
			t.Errorf("%s became:\n%s", answer, got)
		}
	}
	got := logged(t, true, observe.Event{Kind: observe.EventUnavailable, Key: "customer:anna", Err: errors.New("ERR no 'customer:anna' of web-7-31337-9f3c2a1b00de")})
	if !strings.Contains(got, `err="ERR no 'customer:anna' of (withheld)"`) {
		t.Errorf("with LogKeys:\n%s", got)
	}
}

// A flood of forged notices leaves nothing in memory: a live key remembers one, and none is
// made for them.
func TestSecurity_RememberedNoticesAreBounded(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	for n := range uint64(10_000) {
		m.locks.Heard(lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: fmt.Sprint("k", n), N: n})
	}
	if KeepsAny(m) {
		t.Error("something is kept")
	}
}
