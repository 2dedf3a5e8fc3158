package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// Open returns a Manager on the Redis that url names, with a client of its own, which
// Close closes. The forms are
//
//	redis://[[user]:password@]host[:port][/db]        one server
//	rediss://...                                      the same with TLS
//	unix://[[user]:password@]/path/to/socket[?db=n]   one server, local socket
//	redis+sentinel://[[user]:password@]host[:port],.../master-name[/db]
//	rediss+sentinel://...                             the hosts are the Sentinels
//	redis+cluster://[[user]:password@]host[:port],...
//	rediss+cluster://...                              some nodes of a Cluster
//
// docs/operations.md §4 has their options (certificates, pool, times) and the settings
// that the client has otherwise. Characters such as / ? # @ in a password are written as
// %2F %3F %23 %40.
//
// Open asks Redis whether it answers, within ctx and at most 5 seconds, or CommandTimeout
// where that is longer, and takes up to a second more to find out why not; ctx plays no part
// later. So a wrong address, password or certificate shows immediately: the error names the
// address and what the server says. Ping checks what an ACL allows. It
// returns an *Error: ErrConfig for a url or cfg that is wrong, and for what Redis refuses;
// ErrUnavailable where Redis does not answer. Nothing is left running then. No error holds
// a part of url that may be a password. A program that must start while Redis is unreachable
// makes a client of its own, for NewManager.
//
// For this client go-redis writes no lines about a Redis that cannot be reached; events say
// it. The logger of go-redis, which is one for the process, stays as it is.
func Open(ctx context.Context, url string, cfg Config) (*Manager, error) {
	const op = "open"
	rdb, err := lettucecompat.Open(url, lettucecompat.Options{
		// An answer may take as long as the longest of these.
		CommandTimeout: max(cfg.CommandTimeout, cfg.Defaults.ReplicaTimeout), MaxInFlight: cfg.MaxInFlight,
	})
	if err != nil {
		return nil, newError(op, "", configError("url", "is wrong: %v", err))
	}
	m, err := newManager(op, rdb, cfg)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	m.client = rdb
	if err := m.wire.Greet(ctx, m.patience()); err != nil {
		_ = m.close(context.Background(), false) // nothing is held, so it waits for nobody
		guess, why := lettucecompat.Diagnose(ctx, url, err)
		return nil, notReached(op, "", why, guess)
	}
	if cfg.Attach != nil {
		cfg.Attach(m)
	}
	return m, nil
}

// outlived notes that g is held although Close has ended: its late release needs the
// client. A command that is under way may still make the lease longer.
func (m *Manager) outlived(g *lock.Held) {
	end := g.Lease().Deadline().Add(g.Terms().Margin + 2*g.Settings().Timeout)
	m.mu.Lock()
	defer m.mu.Unlock()
	if end.After(m.clientUntil) {
		m.clientUntil = end
	}
}

// closeClient closes the client of Open: immediately, or when the last lease that was left
// has ended by itself. A release that comes after that would find nothing.
func (m *Manager) closeClient() {
	if m.client == nil {
		return
	}
	m.mu.Lock()
	left := time.Until(m.clientUntil)
	m.mu.Unlock()
	end := func() {
		m.wire.Close() // waits for releases under way
		_ = m.client.Close()
	}
	if left <= 0 {
		end()
		return
	}
	time.AfterFunc(left, end)
}
