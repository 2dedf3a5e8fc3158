//go:build !linux

package child

import "syscall"

// sysProcAttr is empty where the system cannot end a child with its parent; a child
// then ends when its standard input does.
func sysProcAttr() *syscall.SysProcAttr { return nil }
