package promise

import "syscall"

// sysProcAttr makes the kernel end a holder's process, stopped or not, with its parent.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
