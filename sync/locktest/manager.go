package locktest

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Manager is an anteroom.Manager on an embedded server, with methods to make things go wrong. Give its embedded
// Manager to the code under test:
//
//	lt := locktest.NewManager(t, anteroom.Config{})
//	svc := NewService(lt.Manager)
//
// All methods are safe for concurrent use.
type Manager struct {
	*anteroom.Manager
	srv *server
	r   reporter
	log *slog.Logger // for Managers whose Config names none
}

// reporter receives the failures of a Manager's methods: a testing.TB, or a panic if there is none.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// panics reports by panicking, for Start.
type panics struct{}

func (panics) Helper() {}

func (panics) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// NewManager returns a Manager on a fresh, empty server of its own, for the test tb. Both end with the test: see Stop. An
// invalid cfg fails the test.
//
// It works inside a testing/synctest bubble, where leases and renewals run in virtual time, and outside, where they
// run in real time. A Manager created in a bubble must be used only in that bubble.
//
// A lock that is still held at the end of the test fails it: a Hold that was not released, a Lock that was not
// unlocked, of this Manager or of one made by Another. The message has the key and the place where it was acquired;
// call sites are always recorded. After the test's context has ended there are 200 ms to release. A lost Hold need
// not be released; a lock that the watchdog had to end because its goroutine had ended counts as leaked. AllowLeaks
// turns this off.
//
// If cfg.Logger is nil, records go to the test's log, which go test prints if the test fails.
func NewManager(tb testing.TB, cfg anteroom.Config, opts ...Option) *Manager {
	tb.Helper()
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	m := start(tb, slog.New(slog.NewTextHandler(tb.Output(), nil)), cfg)
	tb.Cleanup(func() { m.end(tb, o.leaks) })
	return m
}

// Start is NewManager without a testing.TB: for Examples and demonstrations. The caller must call Stop. What would fail a
// test panics, such as an invalid cfg. If cfg.Logger is nil, nothing is logged.
func Start(cfg anteroom.Config) *Manager {
	return start(panics{}, slog.New(slog.DiscardHandler), cfg)
}

func start(r reporter, log *slog.Logger, cfg anteroom.Config) *Manager {
	r.Helper()
	srv, err := newServer()
	if err != nil {
		r.Fatalf("locktest: %v", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = log
	}
	m, err := srv.attach(cfg)
	if err != nil {
		_, _ = srv.stop()
		r.Fatalf("locktest: %v", err)
	}
	return &Manager{Manager: m, srv: srv, r: r, log: log}
}

// Another returns a further Manager on the same server: for locks, a second process. It ends with the first one. An
// invalid cfg fails the test. If cfg.Logger is nil, records go where those of the first Manager go, marked with the
// number of the process.
func (m *Manager) Another(cfg anteroom.Config) *Manager {
	m.r.Helper()
	if cfg.Logger == nil {
		cfg.Logger = m.log.With("process", m.srv.processes.Add(1)+1)
	}
	other, err := m.srv.attach(cfg)
	if err != nil {
		m.r.Fatalf("locktest: %v", err)
	}
	return &Manager{Manager: other, srv: m.srv, r: m.r, log: m.log}
}

// Down takes the server down: every connection is cut, and new ones are refused, for all Managers on it. A command in
// flight may or may not have taken effect, and the library treats its outcome as unknown. The server keeps its memory
// and its clock: leases run on. Down has no effect if the server is down.
func (m *Manager) Down() { m.srv.setDown(true) }

// Up brings the server back, with its memory. The library notices on its own next attempt: a waiter within about a
// second, the subscription within two. Up has no effect if the server is up.
func (m *Manager) Up() { m.srv.setDown(false) }

// Stop ends the server and closes all Managers on it, after Up if it was down, and returns the errors of their Close:
// a lock that is still held is named there. It waits up to 200 ms for holders, and if there are none, up to 2 seconds
// for releases in flight. Afterwards nothing of it runs any more, except callers parked in Mutex.Lock, which cannot be
// notified. At the end of a test Stop is called by itself. Further calls have no effect.
func (m *Manager) Stop() error {
	_, errs := m.srv.stop()
	return errors.Join(errs...)
}
