package fence_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/anteroom/anteroom/fence"
	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// database is a running one. Its fields go to child processes as JSON.
type database struct {
	Guard       fence.SQL
	Driver, DSN string

	others  []string             // further DSNs, of drivers that speak otherwise
	waiting string               // how many transactions wait for another, if the database says so
	levels  []sql.IsolationLevel // beside the default
}

func (d database) open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sqlite(t *testing.T) database {
	return database{
		Guard: fence.SQL{Dialect: fence.SQLite}, Driver: "sqlite",
		DSN: filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(120000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)",
	}
}

func postgresql(t *testing.T) database {
	initdb := find(t, "postgresql", "initdb", "/usr/lib/postgresql/*/bin")
	s := newServer(t, "postgres")
	s.run(initdb, "-D", s.dir, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
	addr := s.serve("pgx", "postgres://postgres@%s/postgres", func(port string) *exec.Cmd {
		return exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", s.dir, "-p", port, "-F",
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	})
	return database{
		Guard: fence.SQL{Dialect: fence.PostgreSQL}, Driver: "pgx", DSN: addr,
		others:  []string{addr + "?default_query_exec_mode=simple_protocol", addr + "?default_query_exec_mode=exec"},
		waiting: "SELECT count(*) FROM pg_locks WHERE NOT granted",
		levels:  []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
	}
}

func mariadb(t *testing.T) database {
	mariadbd := find(t, "mariadb-server", "mariadbd", "/usr/sbin")
	s := newServer(t, "mysql")
	s.run(find(t, "mariadb-server", "mariadb-install-db", "/usr/bin"), "--no-defaults", "--datadir="+s.dir)
	addr := s.serve("mysql", "root@tcp(%s)/test", func(port string) *exec.Cmd {
		return exec.Command(mariadbd, "--no-defaults", "--datadir="+s.dir, "--skip-grant-tables", "--bind-address=127.0.0.1",
			"--port="+port, "--socket="+filepath.Join(s.dir, "s"), "--innodb-flush-log-at-trx-commit=0")
	})
	return database{
		Guard: fence.SQL{Dialect: fence.MySQL}, Driver: "mysql", DSN: addr,
		others:  []string{addr + "?clientFoundRows=true", addr + "?interpolateParams=true"},
		waiting: "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'",
		levels:  []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
	}
}

// find returns a program of a system's package, which is in PATH or in a folder.
func find(t *testing.T, pkg, name, folder string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return path
		}
	}
	paths, _ := filepath.Glob(filepath.Join(folder, name))
	if len(paths) == 0 {
		testredis.Missing(t, pkg)
	}
	return slices.Max(paths)
}

// server is a database server with a folder of its own.
type server struct {
	t   *testing.T
	dir string
	as  *syscall.Credential // nil: as we are
}

// newServer makes the folder. The servers refuse root, so for root it belongs to an account.
func newServer(t *testing.T, account string) *server {
	dir, err := os.MkdirTemp("", "anteroom-"+account+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{t: t, dir: dir}
	if os.Getuid() == 0 {
		u, err := user.Lookup(account)
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers on Unix
		gid, _ := strconv.Atoi(u.Gid)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// prepare makes cmd run as the account, and end with us.
func (s *server) prepare(cmd *exec.Cmd) *bytes.Buffer {
	cmd.SysProcAttr = child.EndsWithParent()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = s.as
	cmd.Dir = s.dir
	said := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = said, said
	return said
}

func (s *server) run(path string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(path, args...)
	said := s.prepare(cmd)
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s", path, err, said)
	}
}

// serve starts the server, and returns its DSN when it accepts connections. A port that was free a moment ago may be
// taken before the server binds it, so a failed start is tried on another port.
func (s *server) serve(driver, dsn string, command func(port string) *exec.Cmd) string {
	s.t.Helper()
	for try := 0; ; try++ {
		addr, err := s.launch(driver, dsn, command)
		if err == nil {
			return addr
		}
		if try == 4 {
			s.t.Fatal(err)
		}
	}
}

func (s *server) launch(driver, dsn string, command func(port string) *exec.Cmd) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := command(port)
	said := s.prepare(cmd)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	end := func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // PostgreSQL ends its children, too
		select {
		case <-ended:
		case <-time.After(pace.Hang):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	dsn = fmt.Sprintf(dsn, addr)
	db, err := sql.Open(driver, dsn)
	if err != nil {
		end()
		return "", err
	}
	defer db.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(pace.Hang); ; {
		if err := db.Ping(); err == nil {
			s.t.Cleanup(end)
			return dsn, nil
		} else if time.Now().After(limit) {
			end()
			return "", fmt.Errorf("it does not serve: %w\n%s", err, said)
		}
		select {
		case <-tick.C:
		case <-ended:
			return "", fmt.Errorf("it ended immediately:\n%s", said)
		}
	}
}
