//go:build !linux

package child

import "syscall"

// EndsWithParent is empty where the system cannot end a process with its parent. A child then ends with its standard
// input.
func EndsWithParent() *syscall.SysProcAttr { return nil }
