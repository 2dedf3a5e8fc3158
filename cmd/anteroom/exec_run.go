//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// runExec carries out `anteroom exec`. What cannot work fails before the wait, and the lock is released once nothing
// of the command remains.
func runExec(cmd *cobra.Command, f execFlags, key string, words []string) error {
	cfg, err := f.lock(cmd, key)
	if err != nil {
		return err
	}
	system := ownSystem()
	if err := system.refusal(); err != nil {
		return err
	}
	path, argv, err := f.program(words)
	if err != nil {
		return err
	}
	if f.note == "" {
		f.note = "exec " + filepath.Base(words[0])
		if f.shell || strings.ContainsFunc(f.note, func(r rune) bool { return !unicode.IsPrint(r) }) {
			f.note = "exec" // a script may have secrets in it, and a file name anything
		}
	}
	x, err := begin(cmd, f, cfg)
	if err != nil {
		return err
	}
	defer x.end()
	if lacks := system.shortfall(); lacks != "" {
		x.errs.say("exec promises less on this system: %s", lacks)
	}
	if most := f.mostGrace(); f.grace > most {
		x.errs.say("--grace %v is more than a lease of %v leaves time for (%v): after a loss the command may run "+
			"at the same time as the next holder; --lease %v leaves enough", f.grace, f.lease, most, 15*f.grace)
	}
	hold, err := x.acquire(cmd.Context())
	if err != nil {
		return err
	}
	return x.whileHeld(hold, launch{Path: path, Argv: argv, Grace: f.grace, Slack: f.slack()})
}

// whileHeld runs the command and releases the lock afterwards in every case.
func (x *execution) whileHeld(hold *anteroom.Hold, l launch) error {
	l.Env = x.environment(os.Environ(), hold)
	k := &keeper{execution: x, hold: hold, lease: x.flags.lease}
	status, err := k.run(l)
	held := time.Since(hold.Since())
	lost := x.release(hold)
	switch {
	case k.saidLost:
		return &exitError{status: exitLost, err: err}
	case err != nil:
		return err
	case lost:
		x.errs.say("lock %q was lost while the command ran; the command ended with %d", x.key, status)
		return &exitError{status: exitLost}
	case x.flags.verbose:
		x.errs.say("lock %q released after %s", x.key, rounded(held))
	}
	switch {
	case k.signal != 0:
		return endBy(k.signal, k.byKey)
	case status != 0:
		return &exitError{status: status}
	}
	return nil
}

// environment returns base plus the variables that describe the lock to the command, minus those that are for
// anteroom only. The token of an outer exec never passes for this one's.
func (x *execution) environment(base []string, hold *anteroom.Hold) []string {
	env := without(base, "ANTEROOM_KEY", "ANTEROOM_HOLDER", "ANTEROOM_TOKEN")
	if !x.flags.passEnv {
		env = without(env, redisVariable)
	}
	if !strings.Contains(x.key, "\x00") { // no variable can hold a zero byte
		env = append(env, "ANTEROOM_KEY="+x.key)
	}
	env = append(env, "ANTEROOM_HOLDER="+hold.Holder())
	if token, ok := hold.Token(); ok {
		env = append(env, fmt.Sprintf("ANTEROOM_TOKEN=%d", token))
	}
	return env
}

// without returns the variables of env whose names are not in names.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}
