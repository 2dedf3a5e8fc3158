package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The tool's own exit statuses. They are those of sysexits.h (64 and from 69 on), to be distinct from those of most
// programs.
const (
	exitFailed      = 1  // any failure that has no status of its own
	exitUsage       = 64 // EX_USAGE: the command line is wrong; nothing was done
	exitUnavailable = 69 // EX_UNAVAILABLE: Redis was not reached, or does not serve us
)

// statusHelp lists them all, for the help of root.
const statusHelp = `Exit status
  0      done; exec: that of its command
  1      none held (status -q, release), not all shown (list), too few (watch), a problem (doctor),
         or any other failure
  64     wrong command line, or no terminal to ask at; nothing was done
  69     Redis does not answer
  74     the output could not be written
  75     exec, lock: somebody else has the lock; -E changes this status
  76     exec, lock: the lock was lost
  77     Redis refuses: a permission, a password, or what is at the key is no lock of this kind
  126    exec: the command, or exec on this system, cannot run
  127    exec: there is no such command
  128+n  signal n ended the wait, or exec's command`

// exitError ends a command with an exit status. Without an error nothing is printed: the command has said everything
// already.
type exitError struct {
	status int
	err    error
	usage  bool // the command line is wrong
	// die ends this process by a signal instead. If it returns, that was not possible, and status applies. It is nil
	// if only the status matters.
	die func()
}

// Error returns the reason's text.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

// Unwrap returns the reason.
func (e *exitError) Unwrap() error { return e.err }

// usageError is an error in the command line.
func usageError(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...), usage: true}
}

// redisError maps an error of the library to an exit status: exitUnavailable if Redis did not answer, or may have
// answered unheard. Every other error is returned unchanged.
func redisError(err error) error {
	if errors.Is(err, anteroom.ErrUnavailable) {
		return &exitError{status: exitUnavailable, err: err}
	}
	return err
}

// diagnosis says why the Redis that cmd names did not serve, as far as that can be found out; "" where it is not about that.
func diagnosis(cmd *cobra.Command, code int, err error) string {
	if code == exitUsage || code != exitUnavailable && !strings.Contains(err.Error(), "unknown command") { // cobra says that, too
		return ""
	}
	url, _, wrong := address(cmd)
	if wrong != nil {
		return ""
	}
	_, why := lettucecompat.Diagnose(cmd.Context(), url, err)
	return why.Error()
}

// began makes every error before the command's own work a usage error: an unknown command or flag, a wrong number of
// arguments. judge gives such an error its exit status, and adds the form of the command to every usage error. A command with a
// PersistentPreRun of its own must check its flag groups there itself.
func began(root *cobra.Command) (judge func(*cobra.Command, error) error) {
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return err
		}
		if err := cmd.ValidateFlagGroups(); err != nil {
			return err
		}
		started = true
		return nil
	}
	return func(cmd *cobra.Command, err error) error {
		if e, ok := errors.AsType[*exitError](err); err == nil || started && !(ok && e.usage) {
			return err
		}
		// cobra lists the commands that may be meant after tabs, which are escaped in what is printed.
		text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\t", "        ")
		return usageError("%s\nusage: %s; see %s --help", text, cmd.UseLine(), cmd.CommandPath())
	}
}

// status returns the exit status for an error returned to run, and whether the error must still be printed.
func status(err error) (code int, say bool) {
	if err == nil {
		return 0, false
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status, e.err != nil
	}
	return exitFailed, true
}
