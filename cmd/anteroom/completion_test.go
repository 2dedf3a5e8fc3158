package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// visible returns the commands that help lists, including the one for completion, by path.
func visible(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	root := rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	all := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		c.InitDefaultHelpFlag()
		all[c.CommandPath()] = c
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return all
}

// noFiles ends a completion for which the shell must not offer file names.
var noFiles = fmt.Sprintf(":%d", cobra.ShellCompDirectiveNoFileComp)

// completed returns the completion of a command line: the words, and the directive.
func completed(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), append([]string{cobra.ShellCompNoDescRequestCmd}, args...), nil, &out, &errs); code != 0 {
		t.Fatalf("%q: exit status %d, %q", args, code, errs.String())
	}
	words = strings.Fields(out.String())
	return words[:len(words)-1], words[len(words)-1]
}

// Commands and flags are offered; file names only where the command line of another program begins.
func TestCompletion_Words(t *testing.T) {
	all := visible(t)
	words, _ := completed(t, "")
	for path, c := range all {
		args := strings.Fields(strings.TrimPrefix(path, "anteroom"))
		if len(args) == 1 && !slices.Contains(words, args[0]) {
			t.Errorf("%s is not offered: %q", args[0], words)
		}
		flags, _ := completed(t, append(args, "--")...)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !slices.Contains(flags, "--"+f.Name) {
				t.Errorf("%s: --%s is not offered: %q", path, f.Name, flags)
			}
		})
		if len(args) != 1 || args[0] == "exec" || args[0] == "help" || c.HasSubCommands() {
			continue
		}
		if words, directive := completed(t, append(args, "")...); len(words) != 0 || directive != noFiles {
			t.Errorf("%s: after it %q are offered, and %s", path, words, directive)
		}
	}
	if all["anteroom exec"] != nil {
		for directive, args := range map[string][]string{noFiles: {"exec", ""}, ":0": {"exec", "k", "--", "cat", ""}} {
			if _, got := completed(t, args...); got != directive {
				t.Errorf("%q continues with %s, want %s", args, got, directive)
			}
		}
	}
	if slices.Contains(words, supervisorCommand) {
		t.Errorf("an inner command is offered: %q", words)
	}
}

// Each shell's script is printed and names the tool.
func TestCompletion_Scripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"completion", shell}, nil, &out, &errs)
		if code != 0 || errs.Len() != 0 || !strings.Contains(out.String(), cobra.ShellCompRequestCmd) || !strings.Contains(out.String(), "anteroom") {
			t.Errorf("%s: exit status %d, %.100q, %q", shell, code, out.String(), errs.String())
		}
	}
}

// The part of the package bash-completion that the script uses, for machines without it.
const bashCompletion = `
_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
__ltrim_colon_completions() { :; }
compopt() { :; }
complete_line() {
	COMP_WORDS=(anteroom "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=63; COMPREPLY=()
	__start_anteroom
	printf '%s\n' "${COMPREPLY[@]}"
}
`

// A real bash sources the script and completes with it.
func TestCompletion_InABash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	dir := t.TempDir()
	// The script calls the command by its name.
	command := fmt.Sprintf("#!/bin/sh\n%s=1 GORACE=atexit_sleep_ms=0 exec %q \"$@\"\n", asCommand, os.Args[0])
	must(t, os.WriteFile(filepath.Join(dir, "anteroom"), []byte(command), 0o700))
	for line, want := range map[string]string{
		"st":            "status ",
		"rel":           "release ",
		"status --js":   "--json ",
		"watch --cou":   "--count ",
		"status order:": "",
		"completion z":  "zsh ",
	} {
		cmd := exec.Command(bash, "--norc", "-c", "source <(anteroom completion bash)\n"+bashCompletion+"complete_line "+line)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimRight(string(out), "\n"); err != nil || strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q is completed to %q, want %q: %v", line, got, want, err)
		}
	}
}
