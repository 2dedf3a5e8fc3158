//go:build !linux

package scenario

import "syscall"

// endWithParent is empty where the system cannot end a child with its parent.
func endWithParent() *syscall.SysProcAttr { return nil }

// yield lets a process run rarely when another wants the processor.
func yield(pid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
