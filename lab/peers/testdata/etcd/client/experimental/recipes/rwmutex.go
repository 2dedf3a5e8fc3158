// Package recipe has etcd's lock for readers and writers, by Anteroom's.
package recipe

import (
	"go.etcd.io/etcd/client/v3/concurrency"

	anteroom "github.com/anteroom/anteroom/sync"
)

type RWMutex struct{ rw *anteroom.RWMutex }

func NewRWMutex(s *concurrency.Session, pfx string) *RWMutex {
	return &RWMutex{s.RWMutex(s.Prefix + pfx)}
}

func (m *RWMutex) Lock() error    { m.rw.Lock(); return nil }
func (m *RWMutex) Unlock() error  { m.rw.Unlock(); return nil }
func (m *RWMutex) RLock() error   { m.rw.RLock(); return nil }
func (m *RWMutex) RUnlock() error { m.rw.RUnlock(); return nil }
