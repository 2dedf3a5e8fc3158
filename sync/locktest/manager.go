package locktest

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Manager is an anteroom.Manager on an embedded server, with the means to make
// things go wrong. Give its embedded Manager to the code under test:
//
//	lt := locktest.New(t, anteroom.Config{})
//	svc := NewService(lt.Manager)
//
// All methods are safe for concurrent use.
type Manager struct {
	*anteroom.Manager
	srv *server
	r   reporter
	log *slog.Logger // for Managers whose Config names none
}

// reporter is where the failures of a Manager's methods go: a testing.TB, or a
// panic where there is none.
type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// panics reports by panicking, for Start.
type panics struct{}

func (panics) Helper() {}

func (panics) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// New returns a Manager on a fresh, empty server of its own, for the test tb. Both
// end with the test: see Stop. A cfg that is not valid ends the test.
//
// It works inside a testing/synctest bubble, where leases and renewals run in
// virtual time, and outside of one, where they run in real time. A Manager that was
// made in a bubble must be used in it only.
//
// A lock that is still held at the end of the test fails it: a Hold that was not
// released, a Lock that was not unlocked, of this Manager or one of Another. The message
// has the key and the place where it was acquired; call sites are always recorded. Who
// lets go when the test's context ends has 2 seconds for it. A Hold that was lost may be
// left alone; what the watchdog had to let go because its goroutine had ended may not.
// AllowLeaks turns that off.
//
// Where cfg.Logger is nil, records go to the test's log, which go test prints when
// the test fails.
func New(tb testing.TB, cfg anteroom.Config, opts ...Option) *Manager {
	tb.Helper()
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	m := start(tb, slog.New(slog.NewTextHandler(tb.Output(), nil)), cfg)
	tb.Cleanup(func() { m.end(tb, o.leaks) })
	return m
}

// Start is New where there is no testing.TB: in Examples, and in programs that
// show something. The caller ends it with Stop. What would end a test panics, a cfg
// that is not valid first of all. Where cfg.Logger is nil, nothing is logged.
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
		_ = srv.stop()
		r.Fatalf("locktest: %v", err)
	}
	return &Manager{Manager: m, srv: srv, r: r, log: log}
}

// Another returns a further Manager on the same server: a second process, as far
// as locks are concerned. It ends with the first one. A cfg that is not valid ends
// the test. Where cfg.Logger is nil, records go where those of the first one go,
// marked with the number of the process.
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

// Down takes the server away: every connection is cut, and new ones are refused,
// for all Managers on it. A command that is under way may have taken effect or not,
// and the library treats it as unknown. The server keeps its memory and its clock:
// leases run on. Down when the server is down does nothing.
func (m *Manager) Down() { m.srv.setDown(true) }

// Up brings the server back, with what it remembers. The library notices by its
// own next try: a waiter within about a second, the subscription within two. Up
// when the server is up does nothing.
func (m *Manager) Up() { m.srv.setDown(false) }

// Stop ends the server and closes all Managers on it, up first if it was down, and
// returns what their Close returned: a lock that is still held is named there. It
// waits for releases that are under way, and up to 2 seconds for each Manager with
// a lock that nobody releases. Afterwards nothing of it runs any more, except for
// callers that are parked in Mutex.Lock, who have no way to be told. New calls Stop
// at the end of the test. Only the first call does anything.
func (m *Manager) Stop() error { return errors.Join(m.srv.stop()...) }
