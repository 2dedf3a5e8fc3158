package arrows

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// retired are words that once were identifiers, each with what replaces it.
var retired = map[string]string{
	"burn": "discard", "burnt": "leftover", "met": "observed", "tell": "notify", "told": "notified, contended",
	"unlist": "unregister", "look": "retry, check", "lookagain": "retry", "stranger": "foreign", "wish": "pending",
	"wanted": "pending", "doomed": "deleteOnLoss", "deaf": "unsubscribed", "mute": "cannotPublish", "ears": "reach",
	"bell": "signal", "recall": "end", "fits": "suffices", "stands": "inLine", "standing": "inLine", "parcel": "request",
	"trip": "roundTrip", "lane": "sender", "away": "unreachable", "whoever": "the caller",
}

// TestNames_NoRetiredWords: no identifier of the library is one of them. Tests and the laboratories are left out.
func TestNames_NoRetiredWords(t *testing.T) {
	checked := 0
	sources(t, func(name, text string) {
		path, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		if strings.HasSuffix(path, "_test.go") || slices.Contains([]string{"lab", "examples"}, top) {
			return
		}
		var s scanner.Scanner
		fset := token.NewFileSet()
		s.Init(fset.AddFile(path, fset.Base(), len(text)), []byte(text), nil, 0)
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				return
			}
			if tok != token.IDENT {
				continue
			}
			checked++
			if better, is := retired[strings.ToLower(strings.TrimSuffix(lit, "Locked"))]; is {
				t.Errorf("%s: %s is a retired word: %s", fset.Position(pos), lit, better)
			}
		}
	})
	if checked < 10_000 {
		t.Fatalf("only %d identifiers were found: this test reads the wrong files", checked)
	}
}
