// Package recipe has a lock for readers and writers, which Anteroom has not.
package recipe

import "errors"

type RWMutex struct{}

func NewRWMutex(any, string) *RWMutex { return nil }

func (*RWMutex) Lock() error    { return errors.ErrUnsupported }
func (*RWMutex) Unlock() error  { return errors.ErrUnsupported }
func (*RWMutex) RLock() error   { return errors.ErrUnsupported }
func (*RWMutex) RUnlock() error { return errors.ErrUnsupported }
