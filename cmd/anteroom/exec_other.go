//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// lookAtSystem: without process groups and signals a command could run on without its lock.
func lookAtSystem() abilities {
	return abilities{supervisor: errors.New("it has no process groups and no signals")}
}

// runExec fails.
func runExec(*cobra.Command, execFlags, string, []string) error { return ownSystem().refusal() }

// supervisorCommands returns nothing: there is nothing to supervise.
func supervisorCommands() []*cobra.Command { return nil }
