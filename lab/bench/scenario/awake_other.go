//go:build !linux

package scenario

import "syscall"

// yield lets a process run rarely when another wants the processor.
func yield(pid int) error { return syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
