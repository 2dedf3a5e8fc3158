//go:build unix

package main

import "syscall"

func init() { stepDownSignal = syscall.SIGUSR1 }
