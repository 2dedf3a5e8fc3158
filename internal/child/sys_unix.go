//go:build unix

package child

import "syscall"

// The signals that stop a process and continue it. Tests that use these names compile on every system.
const (
	SIGSTOP = syscall.SIGSTOP
	SIGCONT = syscall.SIGCONT
)

// AwaitStop returns when a child that was sent SIGSTOP has stopped.
func AwaitStop(pid int) error {
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != syscall.EINTR {
			return err
		}
	}
}
