package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// hostile are texts that a foreign client may put into Redis: terminal commands in seven and in eight bits, bytes that
// are not UTF-8, an override of the writing direction, and text that looks like a line or a column of ours.
var hostile = []string{
	"k\x1b[2J", "k\x1b]0;title\x07", "k\u009b31m", "k\x9b31m", "k\r\n2026 k", "k\tx", "k\x00", "k\x7f", "\xff\xfe",
	"k\u202e", "k\u2028", "k\u200b", "k\U000e0041", "k held", "a  b", `k"`, `k\`, "", "-",
}

// printable fails the test if a text contains anything but line ends that a terminal would take for a command.
func printable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q is printed as it is in %q", r, text)
		}
	}
}

func TestShown_O1(t *testing.T) {
	for _, s := range hostile {
		got := shown(s)
		printable(t, got)
		if got == s || !strings.HasPrefix(got, `"`) {
			t.Errorf("%q is shown as %s", s, got)
		}
		printable(t, excerpt(s))
		printable(t, harmless(s))
	}
	for _, s := range []string{"order:42", "{tag}:é", "注文", "a'b", "%s"} {
		if shown(s) != s || harmless(s) != s {
			t.Errorf("%q is shown as %s and %s", s, shown(s), harmless(s))
		}
	}
	if got := excerpt(strings.Repeat("x", 1000)); len(got) > 250 || !strings.Contains(got, "1000 bytes") {
		t.Errorf("an excerpt of a long text: %s", got)
	}
}

func TestWriteJSON_O1(t *testing.T) {
	for _, s := range hostile {
		var out bytes.Buffer
		if err := writeJSON(&out, keyOf(s)); err != nil {
			t.Fatal(err)
		}
		printable(t, out.String())
		var back keyJSON
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("%q: %v", out.String(), err)
		}
		if back.Base64 != nil {
			back.Key = string(back.Base64)
		}
		if back.Key != s {
			t.Errorf("%q is read as %q", s, back.Key)
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteJSON_AFullDiskHasItsExitStatus(t *testing.T) {
	if code, say := status(writeJSON(full{}, keyOf("k"))); code != exitOutput || !say {
		t.Errorf("exit status %d, said %v", code, say)
	}
}
