package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom/internal/screen"
)

var (
	flagRow  = regexp.MustCompile("(?m)^\\| (?:`-(\\w)`, )?`--([\\w-]+)` \\| (?:`([^`]*)` )?\\| (.+) \\|$")
	flagWord = regexp.MustCompile(`--[a-z][\w-]*`)
)

// below returns the section of docs/cli.md under a heading, up to the next one of its level.
func below(t *testing.T, doc, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(doc, "\n## "+heading+"\n")
	if !found {
		t.Errorf("docs/cli.md has no section %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// documented returns the flags that the tables of a section name, as "n name default".
func documented(text string) (flags []string) {
	for _, m := range flagRow.FindAllStringSubmatch(text, -1) {
		flags = append(flags, m[1]+" "+m[2]+" "+m[3])
	}
	slices.Sort(flags)
	return flags
}

// described returns a flag in the same form. An empty or off value is no default worth naming.
func described(f *pflag.Flag) string {
	value := f.DefValue
	if slices.Contains([]string{"false", "0", "0s"}, value) {
		value = ""
	}
	return f.Shorthand + " " + f.Name + " " + value
}

// sameAs reports whether a command has the same flag: the section on lock refers to exec's table for those.
func sameAs(c *cobra.Command, f *pflag.Flag) bool {
	other := c.Flag(f.Name)
	return other != nil && described(other) == described(f)
}

// sections returns the commands by the section that documents them: that of the first-level command, for its
// subcommands too.
func sections(t *testing.T) map[string][]*cobra.Command {
	t.Helper()
	all := map[string][]*cobra.Command{}
	for path, c := range visible(t) {
		words := strings.Fields(path)
		if len(words) > 1 && words[1] != "help" { // its text is that of --help
			name := words[0] + " " + words[1]
			all[name] = append(all[name], c)
		}
	}
	return all
}

// ownFlags returns the flags that a text names, except those of a command that exec runs.
func ownFlags(text string) (flags []string) {
	for line := range strings.Lines(text) {
		ours, _, _ := strings.Cut(line, " -- ")
		flags = append(flags, flagWord.FindAllString(ours, -1)...)
	}
	return flags
}

// The document names every command and every flag with its short form and its default, and no others.
func TestCLIDocument_FlagsAndCommands(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	must(t, err)
	doc := string(data)
	commands := sections(t)
	for _, m := range regexp.MustCompile(`(?m)^## (anteroom .*)$`).FindAllStringSubmatch(doc, -1) {
		if commands[m[1]] == nil {
			t.Errorf("docs/cli.md describes %q, which does not exist", m[1])
		}
	}
	known := map[string]bool{}
	for name, list := range commands {
		if len(list) > 1 {
			continue // completion: cobra's own
		}
		text, want := below(t, doc, name), []string{}
		list[0].LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			known["--"+f.Name] = true
			common := f.Name == "help" || f.Name == "json" || f.Name == "timeout"
			if !common && (name != "anteroom lock" || !sameAs(commands["anteroom exec"][0], f)) {
				want = append(want, described(f))
			}
		})
		if !strings.Contains(text, "```\n"+list[0].UseLine()+"\n```") {
			t.Errorf("%s is not introduced by %q", name, list[0].UseLine())
		}
		slices.Sort(want)
		if got := documented(text); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: docs/cli.md has the flags\n%q\nand the command has\n%q", name, got, want)
		}
	}
	if got := documented(below(t, doc, "Common flags")); !slices.Equal(got, []string{" cacert ", " cert ", " dialect document", " json ", " key ", " redis ", " timeout 5s", " version ", "h help "}) {
		t.Errorf("common flags: %q", got)
	}
	for _, common := range []string{"--redis", "--dialect", "--cacert", "--cert", "--key", "--version", "--help"} {
		known[common] = true
	}
	for _, word := range ownFlags(doc) {
		if !known[word] {
			t.Errorf("docs/cli.md names %s, which no command has", word)
		}
	}
}

// --help is enough to use a command: it says what the command does and with which exit statuses, and has examples
// that a shell and the command understand.
func TestHelp_OfEveryCommand(t *testing.T) {
	for name, list := range sections(t) {
		if len(list) > 1 {
			continue // completion: cobra's own
		}
		c := list[0]
		out, errs := new(screen.Screen), new(screen.Screen)
		args := append(strings.Fields(name)[1:], "--help")
		if code := run(t.Context(), args, nil, out, errs); code != 0 || errs.String() != "" {
			t.Errorf("%s: exit status %d, %q", name, code, errs.String())
		}
		help := out.String()
		if !strings.Contains(help, "exit status") || !strings.Contains(help, "Usage:\n  "+c.UseLine()+"\n") {
			t.Errorf("%s: the help says too little:\n%s", name, help)
		}
		for line := range strings.Lines(help) {
			if len(line) > 101 { // a wide terminal's line
				t.Errorf("%s: %d characters: %s", name, len(line), line)
			}
		}
		if !strings.Contains(c.Example, "  "+name+" ") {
			t.Errorf("%s: no example:\n%s", name, help)
		}
		for _, word := range ownFlags(c.Example) {
			if c.Flag(strings.TrimPrefix(word, "--")) == nil {
				t.Errorf("%s: an example uses %s, which it does not have", name, word)
			}
		}
	}
}
