//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// commandAttr gives the command a process group of its own. There is no death signal
// outside of Linux (FreeBSD's is not used): if anteroom and its supervisor are killed at
// once, the command goes on.
func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: orphans become children of init, and their end is found by asking.
func adopt() {}

// children cannot be listed.
func children(string) []int { return nil }

// onlyZombies cannot be found out: a zombie counts as one who runs.
func onlyZombies(int) bool { return false }

func ownProgram() (string, error) { return os.Executable() }

func showName() {}

func systemSignals() []os.Signal { return nil }
