package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops what was typed and not read. What is no terminal has nothing to drop.
func forget(in *os.File) {
	raw, err := in.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
}
