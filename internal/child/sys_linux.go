package child

import "syscall"

// EndsWithParent makes the kernel end a process, stopped or not, when its parent dies. To
// the kernel that is the thread that has started it.
func EndsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
