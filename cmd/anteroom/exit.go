package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// The exit statuses that are the tool's own. They lie where sysexits.h has them (64 and
// from 69 on), so that they are told apart from what most programs answer.
const (
	exitFailed      = 1  // any failure that has no status of its own
	exitUsage       = 64 // EX_USAGE: the command line is wrong; nothing was done
	exitUnavailable = 69 // EX_UNAVAILABLE: Redis was not reached, or does not serve us
)

// exitError ends a command with an exit status of its own. Without an error nothing is
// printed: the command has said what there is to say.
type exitError struct {
	status int
	err    error
	// die ends this process in another way, by a signal. Where it returns, it could not,
	// and status does. It is nil where the status is all.
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
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// redisError gives an error of the library its exit status: a Redis that did not answer,
// or may have done so unheard, is exitUnavailable. Every other error is returned as it is.
func redisError(err error) error {
	if errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, anteroom.ErrUnknown) {
		return &exitError{status: exitUnavailable, err: err}
	}
	return err
}

// began makes every error that comes before the command's own work a usage error: an
// unknown command or flag, a wrong number of arguments. It returns what gives the exit
// status of such an error. A command that has a PersistentPreRun of its own has to check
// its flag groups there itself.
func began(root *cobra.Command) (judge func(error) error) {
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
	return func(err error) error {
		if err == nil || started {
			return err
		}
		return &exitError{status: exitUsage, err: fmt.Errorf("%w; see anteroom --help", err)}
	}
}

// status returns the exit status of an error that run has got, and whether the error is
// still to be printed.
func status(err error) (code int, say bool) {
	if err == nil {
		return 0, false
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status, e.err != nil
	}
	return exitFailed, true
}
