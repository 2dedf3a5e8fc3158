package anteroomgocron

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestMain(m *testing.M) {
	silence.Logs()
	child.Run(map[string]child.Role{"schedule": schedule})
	goleak.VerifyTestMain(m)
}

func manager(t testing.TB, addr string) *anteroom.Manager {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	m, err := anteroom.NewManager(rdb, anteroom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.CloseWithin(10 * time.Second)
		_ = rdb.Close()
	})
	return m
}
