package measure

import (
	"runtime"
	"syscall"
	"time"
)

// usage is what this process had used at one moment.
type usage struct {
	cpu            time.Duration
	objects, bytes uint64
}

func readUsage() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{cpu: cpuTime(), objects: m.Mallocs, bytes: m.TotalAlloc}
}

// cpuTime returns the processor time of the process, in user and in system mode.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
