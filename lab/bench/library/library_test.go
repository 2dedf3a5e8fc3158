package library

import (
	"bufio"
	"context"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// What clients leave running after Close fails these tests.
func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, lib Library, addr string) Client {
	t.Helper()
	c, err := lib.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// again is how long to wait before a peer is asked once more.
const again = 3 * time.Second

// lock locks, by Anteroom at the first attempt. A peer is asked again if it has not returned for long: rueidislock
// now and then leaves a waiter asleep whose lock was released, for good if nobody else uses the key. That is not what
// is tested here.
func lock(ctx context.Context, lib Library, h Handle) error {
	for slices.Contains(Peers(), lib.Name) && ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, again)
		err := h.Lock(try)
		late := try.Err() != nil
		if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") { // redislock, of a lock of ours: it has to ask again
			late = true
			time.Sleep(20 * time.Millisecond)
		}
		if err == nil || !late {
			// rueidislock's lock ends with the context with which it was acquired.
			context.AfterFunc(ctx, cancel)
			return err
		}
		cancel()
	}
	return h.Lock(ctx)
}

// work increments a counter in two steps, by goroutines of two clients if the library is for several processes, and
// fails if an increment is lost.
func work(t *testing.T, lib Library, clients ...Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const goroutines, times = 4, 15
	var counter atomic.Int64
	var all sync.WaitGroup
	for i := range goroutines {
		h := clients[i%len(clients)].Handle("work:" + lib.Name)
		all.Go(func() {
			for range times {
				if err := lock(ctx, lib, h); err != nil {
					t.Error(err)
					return
				}
				n := counter.Load()
				runtime.Gosched()
				counter.Store(n + 1)
				if err := h.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if all.Wait(); counter.Load() != goroutines*times {
		t.Errorf("%d of %d increments", counter.Load(), goroutines*times)
	}
}

// stringHolders are Managers that also respect the string of another
var stringHolders = Library{Name: "strings", Open: func(addr string) (Client, error) {
	return openAnteroom(defaults.client(addr), anteroom.Config{Defaults: anteroom.LockConfig{StringHolders: true}}, nil)
}}

// A fleet that changes over, docs/migrating.md: programs of another library and of this one share a lock.
func TestLibraries_ShareWithAFleetThatChangesOver(t *testing.T) {
	s := testredis.Start(t)
	for _, name := range []string{Redsync, Redislock} {
		t.Run(name, func(t *testing.T) {
			lib, err := For(name, Short)
			if err != nil {
				t.Fatal(err)
			}
			work(t, lib, open(t, lib, s.Addr()), open(t, stringHolders, s.Addr()))
		})
	}
}

// Commands that clients send now and then, not for a lock; the last three for one that a loaded machine makes old.
var ownSender = []string{"publish", "client|setname", "client|tracking", "ping", "hexists"}

var shown = regexp.MustCompile(`^\+\S+ \[\d+ (\S+)\] "([^"]*)"(?: "([^"]*)")?`)

// TestSends: what clients send, according to MONITOR, is what Sends says, and no script calls any of it.
func TestSends(t *testing.T) {
	addr := testredis.Start(t).Addr()
	for _, name := range append(All(), AnteroomRWMutex, RedissonScripts, RWMutex) {
		if lib, err := For(name, Short); err != nil || lib.Settings == "" || lib.Name != name || !lib.Local && len(lib.Sends) == 0 {
			t.Errorf("%s: %+v, %v", name, lib, err)
		} else if !lib.Local {
			t.Run(name, func(t *testing.T) { sends(t, lib, addr) })
		}
	}
}

func sends(t *testing.T, lib Library, addr string) {
	c := open(t, lib, addr)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	in := bufio.NewReader(conn)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatal(line, err)
	}
	work(t, lib, c)
	// The server shows commands in its order, so all of the work's come before this one.
	rdb := defaults.client(addr)
	defer rdb.Close()
	if err := rdb.Echo(t.Context(), "mark").Err(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		m := shown.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		verb := strings.ToLower(m[2])
		if slices.Contains([]string{"client", "script", "pubsub"}, verb) {
			verb += "|" + strings.ToLower(m[3])
		}
		listed := slices.Contains(lib.Sends, verb)
		switch {
		case verb == "echo":
			if seen < 2 {
				t.Errorf("%d commands", seen)
			}
			return
		case m[1] == "lua" && listed:
			t.Errorf("its scripts call %s, which then counts as sent", verb)
		case m[1] != "lua" && !listed && !slices.Contains(ownSender, verb):
			t.Errorf("it sends %s", verb)
		case m[1] != "lua":
			seen++
		}
	}
}
