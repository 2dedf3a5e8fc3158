package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom/internal/screen"
)

var flagWord = regexp.MustCompile(`--[a-z][\w-]*`)

// helpBlock returns a block of the document: the form of a command and its flags, as --help shows them.
func helpBlock(form string, flags *pflag.FlagSet, but func(*pflag.Flag) bool) string {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !but(f) {
			some.AddFlag(f)
		}
	})
	return "```\n" + form + some.FlagUsages() + "```\n"
}

// sameAs reports whether a command has the same flag: the section on lock refers to exec's block for those.
func sameAs(c *cobra.Command, f *pflag.Flag) bool {
	other := c.Flag(f.Name)
	return other != nil && other.Shorthand == f.Shorthand && other.DefValue == f.DefValue && other.Usage == f.Usage
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

// What the document says of commands, flags and exit statuses is a copy of --help, and it names no others.
func TestCLIDocument_IsThatOfHelp(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	must(t, err)
	doc := string(data)
	commands := sections(t)
	for _, m := range regexp.MustCompile(`(?m)^## (anteroom .*)$`).FindAllStringSubmatch(doc, -1) {
		if commands[m[1]] == nil {
			t.Errorf("docs/cli.md describes %q, which does not exist", m[1])
		}
	}
	root, known := visible(t)["anteroom"], map[string]bool{"--help": true}
	common := func(f *pflag.Flag) bool { return f.Name == "json" || f.Name == "timeout" } // in a sentence of their own
	want := map[string]string{"All commands": helpBlock("", root.LocalFlags(), common)}
	root.LocalFlags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
	for name, list := range commands {
		if len(list) > 1 {
			continue // completion: cobra's own
		}
		shared := common
		if name == "anteroom lock" {
			shared = func(f *pflag.Flag) bool { return sameAs(commands["anteroom exec"][0], f) }
		}
		flags := list[0].LocalNonPersistentFlags()
		want[name] = helpBlock(list[0].UseLine()+"\n\n", flags, shared)
		flags.VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
	}
	for heading, block := range want {
		_, section, _ := strings.Cut(doc, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "\n"+block) {
			t.Errorf("docs/cli.md: %q lacks this block:\n%s", heading, block)
		}
	}
	if !strings.Contains(doc, "```\n"+statusHelp+"\n```\n") {
		t.Errorf("docs/cli.md lacks this block:\n%s", statusHelp)
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
