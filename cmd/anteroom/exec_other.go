//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// systemAbilities: without process groups and signals a command could run on without its lock.
func systemAbilities() abilities {
	return abilities{supervisor: errors.New("it has no process groups and no signals")}
}

// runExec fails.
func runExec(*cobra.Command, execFlags, string, []string) error { return ownSystem().refusal() }

// supervisorCommands returns nothing: there is nothing to supervise.
func supervisorCommands() []*cobra.Command { return nil }

// endingSignals end the wait for a lock, and lock.
var endingSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// endBy is the result of a signal that ended the wait for the lock.
func endBy(n syscall.Signal, _ bool) *exitError { return &exitError{status: exitSignalBase + int(n)} }
