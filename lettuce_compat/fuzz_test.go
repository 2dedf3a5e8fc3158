package lettucecompat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// FuzzMessage: what is built is valid JSON, carries key and holder and nothing else, and
// is understood again; what others send, whatever it is, is taken or left.
func FuzzMessage(f *testing.F) {
	f.Add("order:42", "host-1-0123456789ab:7", int64(1_700_000_000_000), `{"lockKey":"k","releaseTime":1,"holder":"h"}`)
	f.Add(`","forced":{"key":"aw==","field":"me:1"},"x":"`, "a\"b\\c\r\n\x00\u2028", int64(-1), "forced - 17 k")
	f.Add("\xff\xfe{}", "\xed\xa0\x80", int64(1)<<62, "called WORD 17 1 0 1 k")
	f.Add("", "", int64(0), "retry WORD 25 k")
	f.Fuzz(func(t *testing.T, key, holder string, at int64, foreign string) {
		at %= 1 << 50 // UnixMilli is defined for some hundred million years
		if id, _, _ := strings.Cut(holder, ":"); checkClientID(id) != nil || strings.Trim(strings.TrimPrefix(holder, id), ":0123456789") != "" {
			holder = "host-1-0123456789ab:7"
		}
		message := string(appendRelease(nil, key, []byte(holder), time.UnixMilli(at)))
		var parts map[string]any
		d := json.NewDecoder(strings.NewReader(message))
		d.UseNumber()
		if err := d.Decode(&parts); err != nil || d.More() || !utf8.ValidString(message) {
			t.Fatalf("%q: %v", message, err)
		}
		if len(parts) != 3 || parts["lockKey"] != carried(key) || parts["holder"] != carried(holder) || parts["releaseTime"] == nil {
			t.Fatalf("%q carries %q", message, parts)
		}
		if n, err := parts["releaseTime"].(json.Number).Int64(); err != nil || n != at {
			t.Fatalf("%q: release time %v, want %d", message, n, at)
		}
		heard, valid := DesignDocument.ParseRelease(releasePrefix+key, message)
		if !valid || heard.Key != key || heard.Holder != carried(holder) || heard.At.UnixMilli() != at {
			t.Fatalf("%q is read as %+v, %v", message, heard, valid)
		}
		if _, own := parseMessage(message, "WORD"); own {
			t.Fatalf("%q is taken for a message to a client", message)
		}

		n := uint64(at) % LastNumber
		forced := fmt.Sprintf("forced - %d %s", n, key)
		if m, own := parseMessage(forced, "WORD"); !own || m != (Message{Kind: MessageForced, Key: key, N: n}) {
			t.Fatalf("%q: %v %+v", forced, own, m)
		}

		heard, valid = DesignDocument.ParseRelease(releasePrefix+key, foreign)
		if heard.Key != key || !valid && heard != (Announcement{Key: key}) {
			t.Fatalf("%q is read as %+v, %v", foreign, heard, valid)
		}
		if m, own := parseMessage(foreign, "WORD"); own && (m.Kind == MessageCalled || m.Kind == MessageRetry) && !strings.Contains(foreign, " WORD ") {
			t.Fatalf("%q is taken for %+v", foreign, m)
		}
	})
}

// carried is s as a reader of the JSON gets it: each byte that is not UTF-8 as U+FFFD.
func carried(s string) string { return string([]rune(s)) }

// FuzzKey: the fencing record of every name lies in the name's slot, as a real server
// computes it, and leads back to the name, so that no two names share one.
func FuzzKey(f *testing.F) {
	for _, name := range []string{
		"order:42", "a{t}b", "{}", "{", "}", "a{}b{c}", "{{a}}", "{a}{b}", "", "tag:a{t}b", "{7}:x", "\x00\xff{\xfe}", "anteroom:fence:{a}",
	} {
		f.Add(name)
	}
	server := testredis.Start(f, "--cluster-enabled", "yes").Client(f)
	f.Fuzz(func(t *testing.T, name string) {
		derived := string(appendDerived(nil, fencePrefix, name))
		if back, ok := nameOf(derived); !ok || back != name {
			t.Fatalf("%q becomes %q, which leads back to %q", name, derived, back)
		}
		slot := keySlot(name)
		if got := keySlot(derived); got != slot {
			t.Fatalf("%q is in slot %d, %q in %d", name, slot, derived, got)
		}
		ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
		defer cancel()
		for _, key := range []string{name, derived} {
			if got, err := server.ClusterKeySlot(ctx, key).Result(); err != nil || got != int64(slot) {
				t.Fatalf("%q: slot %d by the server, %d here: %v", key, got, slot, err)
			}
		}
	})
}

// nameOf undoes derivedKey by the forms that its comment describes alone.
func nameOf(derived string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(derived, "anteroom:fence:")
	if !ok {
		return "", false
	}
	if tagged, ok := strings.CutPrefix(rest, "tag:"); ok {
		return tagged, true
	}
	inside, behind, ok := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
	if !ok || rest[0] != '{' {
		return "", false
	}
	if behind == "" {
		return inside, true
	}
	return strings.CutPrefix(behind, ":")
}
