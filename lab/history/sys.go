package history

import (
	"os"

	"golang.org/x/sys/unix"
)

func clockMonotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no CLOCK_MONOTONIC: " + err.Error())
	}
	return ts.Nano()
}

// mapFile maps the beginning of a file, so that what is stored there is the kernel's.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// mapZeros maps memory of zeros that may only be read.
func mapZeros(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func unmap(mem []byte) error { return unix.Munmap(mem) }
