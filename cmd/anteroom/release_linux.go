package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget discards input that was typed and not read. It does nothing unless in is a terminal.
func forget(in *os.File) {
	raw, err := in.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
}
