//go:build !linux

package promise

import "syscall"

// sysProcAttr is empty where the system has no way to end a child with its parent.
func sysProcAttr() *syscall.SysProcAttr { return nil }
