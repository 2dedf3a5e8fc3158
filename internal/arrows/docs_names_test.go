package arrows

import (
	"go/scanner"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kinds are the names on a page that can be checked, each with where it has to exist.
var kinds = []struct {
	what  string
	name  *regexp.Regexp
	words func(*testing.T) map[string]bool
}{
	{"identifier", regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*`), identifiers},
	{"target", regexp.MustCompile(`\bmake ([a-z]+)`), targets},
	{"flag", regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`), literals},
	{"metric", regexp.MustCompile(`\banteroom_[a-z_]+[a-z]\b`), literals},
}

// identifiers returns those of the sources; what a page names of another package is mostly used in one. The peers' tests are
// words of strings, and named without Test.
func identifiers(t *testing.T) map[string]bool {
	all := maps.Clone(tokens(t)[token.IDENT])
	for w := range literals(t) {
		if name, is := strings.CutPrefix(w, "Test"); is {
			all[name] = true
		}
	}
	return all
}

// literals returns the words of the sources' strings.
func literals(t *testing.T) map[string]bool { return tokens(t)[token.STRING] }

var (
	word = regexp.MustCompile(`[\w-]+`)
	// scanned is what tokens returns, made once: it takes seconds.
	scanned map[token.Token]map[string]bool
)

// tokens returns the identifiers of all sources, and the words of their strings.
func tokens(t *testing.T) map[token.Token]map[string]bool {
	if scanned != nil {
		return scanned
	}
	idents, lits := map[string]bool{}, map[string]bool{}
	sources(t, func(_, text string) {
		var s scanner.Scanner
		fset := token.NewFileSet()
		s.Init(fset.AddFile("", fset.Base(), len(text)), []byte(text), nil, 0)
		for {
			switch _, tok, lit := s.Scan(); tok {
			case token.EOF:
				return
			case token.IDENT:
				idents[lit] = true
			case token.STRING:
				for _, w := range word.FindAllString(lit, -1) {
					lits[strings.TrimLeft(w, "-")] = true
				}
			}
		}
	})
	scanned = map[token.Token]map[string]bool{token.IDENT: idents, token.STRING: lits}
	return scanned
}

// targets returns those of the Makefile.
func targets(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		all[m[1]] = true
	}
	return all
}

// TestDocs_NamesExist: what a page for users names in code exists.
func TestDocs_NamesExist(t *testing.T) {
	span := regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	docs := documents(t)
	for _, kind := range kinds {
		words, checked := kind.words(t), 0
		for page, text := range docs {
			if strings.Count(page, "/") > 1 && page != "docs/reference/calls.md" || strings.HasPrefix(page, "lab/") || page == "docs/java.md" {
				continue // for contributors, or in another language
			}
			for _, code := range span.FindAllString(text, -1) {
				if strings.HasPrefix(code, "```") && kind.what == "identifier" {
					continue // a program: tests compile those
				}
				for _, m := range kind.name.FindAllStringSubmatch(strings.Trim(code, "`"), -1) {
					name := m[len(m)-1]
					checked++
					if !words[name] && !slices.Contains(others, name) {
						t.Errorf("%s names the %s %s, which is nowhere: %s", page, kind.what, name, code)
					}
				}
			}
		}
		if checked < 5 {
			t.Errorf("only %d names of kind %s were found", checked, kind.what)
		}
	}
}

// others are names of other programs that no source uses.
var others = []string{
	"OnConnect", "PipelinePoolSize", "DisableCache", "WithDriftFactor", "WithTimeoutFactor", "WithSetNXOnExtend",
	"PrometheusRule", "KillMode", "FairLock", "RFencedLock", "RReadWriteLock", "RSemaphore", "RPermitExpirableSemaphore", "RedissonLockTest",
	"RedissonFairLockTest", "RedissonFencedLockTest", "RedissonReadWriteLockTest", "RedissonSemaphoreTest",
	"RedissonPermitExpirableSemaphoreTest", "Wire_I3_", "IllegalMonitorStateException",
}
