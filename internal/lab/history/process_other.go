//go:build !linux

package history

import "syscall"

// sysProcAttr is empty where the system cannot end a child with its parent; a worker
// then ends when its standard input does.
func sysProcAttr() *syscall.SysProcAttr { return nil }
