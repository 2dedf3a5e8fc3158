package anteroom_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// What Redisson's dialect cannot give is an error that names the field, and no surprise later.
func TestDialect_WhatItCannotGive_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for field, cfg := range map[string]anteroom.Config{
		"Dialect":  {Dialect: 9},
		"ClientID": {Dialect: anteroom.DialectRedisson, ClientID: "web"},
	} {
		if _, err := anteroom.NewManager(s.Client(t), cfg); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	m, _ := manager(t, s.Client(t), anteroom.Config{Dialect: anteroom.DialectRedisson})
	for _, key := range []string{"redisson_lock_token:{k}", "anteroom:line:{k}"} {
		if _, err := m.NewMutex(anteroom.LockConfig{Key: key}); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := m.Mutex(key).TryAcquire(bg); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("%s: %v", key, err)
		}
	}
	cluster := testredis.StartCluster(t, 1, 0)
	on, _ := manager(t, cluster.Client(t), anteroom.Config{Dialect: anteroom.DialectRedisson})
	if _, err := on.NewMutex(anteroom.LockConfig{Key: "a{b"}); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "Cluster") {
		t.Errorf("a name that Redisson cannot use on a Cluster: %v", err)
	}
	ok(t, must[*anteroom.Hold](t)(m.Mutex("a{b").Acquire(bg)).Release(bg))
}

// Two Managers queue, hand over and hand on tokens in Redisson's dialect as in the other, on a single
// server and through the channels of shards.
func TestDialect_ManagersAmongThemselves_Lab(t *testing.T) {
	t.Parallel()
	cfg := anteroom.Config{Dialect: anteroom.DialectRedisson, Defaults: anteroom.LockConfig{Fencing: true, MaxHandoffs: 3}}
	for name, client := range map[string]func(t *testing.T) func() anteroom.Redis{
		"single": func(t *testing.T) func() anteroom.Redis {
			s := testredis.Start(t)
			return func() anteroom.Redis { return s.Client(t) }
		},
		"cluster": func(t *testing.T) func() anteroom.Redis {
			c := testredis.StartCluster(t, 3, 0)
			return func() anteroom.Redis { return c.Client(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			connect := client(t)
			var last int64 // guarded by the lock
			n, done := 0, make(chan struct{})
			for range 2 {
				m, _ := manager(t, connect(), cfg)
				mu := m.Mutex("k")
				for range 4 {
					go func() {
						defer func() { done <- struct{}{} }()
						for range 50 {
							h, err := mu.Acquire(bg)
							if err != nil {
								t.Error(err)
								return
							}
							if token := tokenOf(h); token <= last {
								t.Errorf("token %d after %d", token, last)
							} else {
								last = token
							}
							n++
							if err := h.Release(bg); err != nil {
								t.Error(err)
								return
							}
						}
					}()
				}
			}
			for range 8 {
				<-done
			}
			if n != 400 || last < 400 {
				t.Errorf("%d acquisitions, the last token is %d", n, last)
			}
			t.Logf("the last token is %d", last)
		})
	}
}
