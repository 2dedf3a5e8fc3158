package anteroom_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// overTLS makes a client speak TLS.
func overTLS(c *tls.Config) func(*redis.Options) {
	return func(o *redis.Options) { o.TLSConfig = c }
}

// TestTLS_LocksWork: acquire, wait for another process's message, renew, end a turn, force
// and release, over TLS, with and without certificates of the clients.
func TestTLS_LocksWork(t *testing.T) {
	t.Parallel()
	for name, certificates := range map[string]bool{"server certificate": false, "client certificates": true} {
		t.Run(name, func(t *testing.T) {
			authority := testredis.NewAuthority(t)
			s := testredis.StartTLS(authority, certificates)
			client := func() *tls.Config {
				if certificates {
					return authority.TLSConfig("client")
				}
				return authority.TLSConfig("")
			}
			locksWork(t, s.Client(t, overTLS(client())), s.Client(t, overTLS(client())))
		})
	}
}

// locksWork runs two processes' worth of locking over two clients.
func locksWork(t *testing.T, one, two *redis.Client) {
	t.Helper()
	counts := newCounter()
	// Generous times: a machine that is busy with something else is no fault.
	cfg := anteroom.Config{Observer: hooks(counts), CommandTimeout: 20 * time.Second, Defaults: anteroom.LockConfig{
		LeaseTime: time.Minute, RenewalTime: 200 * time.Millisecond, WatchdogPeriod: 50 * time.Millisecond,
		Fencing: true, MaxHandoffs: 1, MaxHandoffTime: time.Minute,
	}}
	a, eventsA := manager(t, one, cfg)
	b, eventsB := manager(t, two, cfg)
	h := acquire(t, a.Mutex("order:5"))
	eventually(t, "a renewal and a probe", func() bool {
		return counts.get("renewed/renewed") > 0 && counts.get("command/probe") > 0
	})
	ok(t, h.Release(bg))
	holdAndWaitAcrossProcesses(t, a, b)
	endATurn(t, a, b, counts)
	forceRelease(t, a, b, counts)
	for _, rec := range []*recorder{eventsA, eventsB} {
		for _, kind := range []observe.EventKind{observe.EventWarning, observe.EventUnavailable, observe.EventReleaseFailed} {
			if events := rec.of(kind); len(events) != 0 {
				t.Errorf("%s: %+v", kind, events)
			}
		}
	}
}

// TestTLS_ACLUserWorks: the user of docs/operations.md, over TLS. The server's log of
// refusals stays empty.
func TestTLS_ACLUserWorks(t *testing.T) {
	t.Parallel()
	authority := testredis.NewAuthority(t)
	s := testredis.StartTLS(authority, true)
	admin := s.Client(t, overTLS(authority.TLSConfig("admin")))
	applyACL(t, admin, aclBlocks(t)[0])
	user := func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" }
	locksWork(t,
		s.Client(t, user, overTLS(authority.TLSConfig("client"))),
		s.Client(t, user, overTLS(authority.TLSConfig("client"))))
	wantNoRefusals(t, admin)
}

// TestTLS_AnUntrustedClientIsRefused: a server that the client does not trust, a client
// that the server does not trust, and one that does not speak TLS. Nothing is left in Redis.
func TestTLS_AnUntrustedClientIsRefused(t *testing.T) {
	t.Parallel()
	authority, other := testredis.NewAuthority(t), testredis.NewAuthority(t)
	s := testredis.StartTLS(authority, true)
	admin := s.Client(t, overTLS(authority.TLSConfig("admin")))
	foreign := authority.TLSConfig("")
	foreign.Certificates = other.TLSConfig("client").Certificates
	// Where the refusal comes after the first bytes, the outcome is unknown, and Close waits
	// for the clean-up, up to a lease.
	short := anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: pace.Scale(500 * time.Millisecond)}}
	misnamed := authority.TLSConfig("client")
	misnamed.ServerName = "redis.example"
	for name, cfg := range map[string]*tls.Config{
		"wrong CA": other.TLSConfig("client"), "no client certificate": authority.TLSConfig(""),
		"a certificate of another CA": foreign, "another name": misnamed, "no TLS": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m, rec := manager(t, s.Client(t, overTLS(cfg)), short)
			h, err := m.Mutex("k").TryAcquire(bg)
			if h != nil || !errors.Is(err, anteroom.ErrUnavailable) {
				t.Fatalf("%v, %v", h, err)
			}
			eventually(t, "it is reported", func() bool { return len(rec.of(observe.EventUnavailable)) == 1 })
		})
	}
	if n := admin.DBSize(bg).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	// The server still serves those whom it trusts.
	m, _ := manager(t, admin, anteroom.Config{})
	ok(t, acquire(t, m.Mutex("k")).Release(bg))
}
