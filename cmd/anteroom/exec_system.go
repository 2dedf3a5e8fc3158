package main

import (
	"fmt"
	"runtime"
	"strings"
)

// abilities are what exec needs of the system it runs on.
type abilities struct {
	supervisor error // why none can be started, nil if one can
	death      bool  // the kernel kills the command when its supervisor ends
	listing    bool  // processes can list their descendants
}

// ownSystem returns the abilities of this system. Tests put others here.
var ownSystem = systemAbilities

// refusal returns the error of a system on which a command could run on without its lock.
func (a abilities) refusal() error {
	if a.supervisor == nil {
		return nil
	}
	return &exitError{status: exitCannotRun, err: fmt.Errorf("exec cannot keep its promise on this system (%s), so it runs nothing: %w", runtime.GOOS, a.supervisor)}
}

// shortfall names the promises that do not hold on this system, "" if all do.
func (a abilities) shortfall() string {
	var all []string
	if !a.death {
		all = append(all, "if anteroom and its supervisor are killed together, the command continues without the lock")
	}
	if !a.listing {
		all = append(all, "a process that has ended keeps the lock until its parent has waited for it")
	}
	return strings.Join(all, "; ")
}
