//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// runExec fails: without process groups and signals a command could run on without its lock.
func runExec(*cobra.Command, execFlags, string, []string) error {
	return errors.New("exec needs process groups and signals, which this system does not have")
}

// supervisorCommands returns nothing: there is nothing to supervise.
func supervisorCommands() []*cobra.Command { return nil }
