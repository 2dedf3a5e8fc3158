//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// systemAbilities: nothing here ends the command with its supervisor, or lists processes.
func systemAbilities() abilities {
	_, err := ownProgram()
	return abilities{supervisor: err}
}

// commandAttr gives the command a process group of its own. There is no death signal outside Linux (FreeBSD's is not
// used): if anteroom and its supervisor are killed together, the command continues.
func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: orphans become children of init, and their end is found by polling.
func adopt() {}

// children returns nothing: there is no way to list them.
func children(string) []int { return nil }

// onlyZombies returns false: a zombie counts as a running process.
func onlyZombies(int) bool { return false }

func ownProgram() (string, error) { return os.Executable() }

func showName() {}

func systemSignals() []os.Signal { return nil }
