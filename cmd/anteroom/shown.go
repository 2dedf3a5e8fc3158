package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Keys, holders and messages come from anyone who can write to Redis, and answers from servers and proxies. All that
// is printed of them passes through this file, so that none of it is a command to a terminal or resembles a line of
// ours.

// shown returns s as a word for display: unchanged, or quoted as in Go if it is empty or contains a space, a
// quotation mark, a backslash, or anything unprintable.
func shown(s string) string {
	plain := func(r rune) bool {
		return unicode.IsGraphic(r) && unicode.IsPrint(r) && !strings.ContainsRune(" \"\\", r)
	}
	if s == "" || s == "-" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// excerpt is shown for a text that may be long.
func excerpt(s string) string {
	const most = 200
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
}

// harmless returns the text of an error with everything unprintable escaped, except line ends.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// writeJSON writes v as one line. Beyond what JSON requires, it escapes unprintable characters, because the line may
// be read on a terminal.
func writeJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return printed(fmt.Fprintln(w, b.String()))
}

// keyJSON is a key in a line of JSON.
type keyJSON struct {
	Key string `json:"key"`
	// Base64 is the exact key if JSON cannot represent it: bytes that are not UTF-8 are U+FFFD in Key.
	Base64 []byte `json:"key_base64,omitempty"`
}

func keyOf(key string) keyJSON {
	if utf8.ValidString(key) {
		return keyJSON{Key: key}
	}
	return keyJSON{Key: key, Base64: []byte(key)}
}

// printed maps a failure to write to exitOutput: a program that reads the output must not take half of it for all.
func printed(_ int, err error) error {
	if err != nil {
		return &exitError{status: exitOutput, err: fmt.Errorf("output: %w", err)}
	}
	return nil
}
