//go:build !linux

package testredis

import "syscall"

// sysProcAttr is empty where the system has no way to end a child with its parent.
func sysProcAttr() *syscall.SysProcAttr { return nil }
