package renewal

import (
	"syscall"
	"time"
	"unsafe"
)

// Clocks of clock_gettime(2) that the standard library does not name.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspended returns how long the machine has been suspended in all since it started: the
// boot-time clock counts that and the monotonic one does not. It is 0 where the kernel
// has no such clock. The order of the readings makes it a little too small at worst.
func suspended() time.Duration {
	boot, ok := clockGettime(clockBoottime)
	mono, _ := clockGettime(clockMonotonic)
	if !ok {
		return 0
	}
	return boot - mono
}

func clockGettime(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano()), errno == 0
}
