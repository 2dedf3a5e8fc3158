package scenario

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent makes the kernel end a loop when this program dies.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// yield lets a process run only when no other wants the processor.
func yield(pid int) error {
	return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}
