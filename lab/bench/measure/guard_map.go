package measure

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapGuards returns n guards shared by all processes that map the same file. It creates the file if it does not
// exist. Call unmap when no goroutine uses them any more.
func MapGuards(path string, n int) (guards []Guard, unmap func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	size := n * int(unsafe.Sizeof(Guard{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*Guard)(unsafe.Pointer(&data[0])), n), func() error { return unix.Munmap(data) }, nil
}
