package anteroomcertmagic

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestMain(m *testing.M) {
	silence.Logs()
	child.Run(map[string]child.Role{"obtain": obtain})
	goleak.VerifyTestMain(m)
}

// locker returns one of a Manager of its own, as another process would have it.
func locker(t *testing.T, s *testredis.Server) *Locker {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	m, err := anteroom.NewManager(rdb, anteroom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.CloseWithin(10 * time.Second)
		_ = rdb.Close()
	})
	l, err := New(m, anteroom.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
