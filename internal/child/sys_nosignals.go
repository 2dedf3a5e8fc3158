//go:build !unix

package child

import (
	"errors"
	"syscall"
)

// Signals that this system does not have. Sending one is an error, so a test that needs it fails and does not pass
// untested.
const (
	SIGSTOP = syscall.Signal(0x13)
	SIGCONT = syscall.Signal(0x12)
)

// AwaitStop is an error: no process stops here.
func AwaitStop(int) error { return errors.ErrUnsupported }
