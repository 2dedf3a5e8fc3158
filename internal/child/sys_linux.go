package child

import "syscall"

// EndsWithParent makes the kernel kill a process, stopped or not, when its parent dies. For the kernel the parent is
// the thread that started the process.
func EndsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
