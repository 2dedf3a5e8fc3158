package anteroom_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A process that allows no algorithm but those of FIPS 140 (Go then panics at each SHA-1) has all kinds of locks, in both
// dialects, and what an operator asks of them.
func TestFIPS_OnlyItsAlgorithms(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	self, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"=all "+s.Addr(), "GODEBUG=fips140=only")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("all done")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// useAll uses each kind of lock in both dialects.
func useAll(rdb *redis.Client) error {
	for _, d := range []anteroom.Dialect{anteroom.DialectDesignDocument, anteroom.DialectRedisson} {
		if err := useDialect(rdb, d); err != nil {
			return err
		}
	}
	return nil
}

func useDialect(rdb *redis.Client, d anteroom.Dialect) error {
	m, err := anteroom.NewManager(rdb, anteroom.Config{Dialect: d})
	if err != nil {
		return err
	}
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "fenced", Fencing: true})
	if err != nil {
		return err
	}
	check := func(context.Context) error { _, err := m.Inspect(bg, "fenced"); return err }
	all := []func() error{
		func() error { return mu.Do(bg, check) },
		func() error { return m.Mutex("plain").Do(bg, check) },
	}
	if d == anteroom.DialectDesignDocument {
		all = append(all,
			func() error { return m.RWMutex("rw").Do(bg, check) },
			func() error { return m.RWMutex("rw").RDo(bg, check) },
			func() error { return m.Semaphore("sem", 2).Do(bg, 1, check) })
	}
	for _, do := range all {
		if err := do(); err != nil {
			return err
		}
	}
	h, err := mu.Acquire(bg)
	if err != nil {
		return err
	}
	if err := h.Extend(bg, time.Minute); err != nil {
		return err
	}
	if _, err := m.ForceRelease(bg, "fenced"); err != nil {
		return err
	}
	return m.Close(bg)
}
