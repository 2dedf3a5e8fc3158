//go:build !linux

package scenario

import "errors"

var errNotBound = errors.New("this system binds no process to a processor")

func processors() ([]int, error) { return nil, errNotBound }

func bind(int, []int) error { return errNotBound }
