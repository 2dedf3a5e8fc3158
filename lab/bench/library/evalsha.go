package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// evalshaPoll is how long a handle waits between attempts.
const evalshaPoll = time.Millisecond

// evalsha is the floor: Anteroom's own script with the arguments of its TryLock, which does not stand in line, and of its
// Unlock, sent by two bare EVALSHA of go-redis. Nothing renews, so a lock lasts for Anteroom's first lease of 2 s. No
// release is announced, and of an answer only granted or refused is looked at.
func evalsha() Library {
	return evalshaWith(Evalsha, "go-redis with ContextTimeoutEnabled", mindful)
}

// evalshaOnDefaults is the floor of a client with go-redis' defaults.
func evalshaOnDefaults() Library {
	return evalshaWith(EvalshaDefaults, "go-redis' default options", defaults)
}

func evalshaWith(name, client string, options func(addr string) *redis.Options) Library {
	return Library{
		Name: name, Module: "github.com/redis/go-redis/v9", Sends: []string{"evalsha", "hello", "client|setinfo"},
		Settings: "Anteroom's script and arguments by two bare EVALSHA; a refused one is tried again after 1 ms; " + client,
		Open: func(addr string) (Client, error) {
			lock, unlock, err := listen(addr)
			if err != nil {
				return nil, err
			}
			first, err := strconv.ParseUint(unlock.args[argNumber].(string), 10, 64)
			if err != nil {
				return nil, err
			}
			return &evalshaClient{rdb: redis.NewClient(options(addr)), lock: lock, unlock: unlock, first: first}, nil
		},
	}
}

// call is one EVALSHA as Anteroom sent it.
type call struct {
	sha  string
	keys []string
	args []any
}

// Arguments of a statement: who says it, under which number, and the number of what it has.
const (
	argClient = iota
	argNumber
	argSince
)

// spyKey is what listen locked; handles substitute their own.
const spyKey = "bench:evalsha"

// listen locks and unlocks with Anteroom and returns what it sent, so that the pair stays the same as Anteroom's. The
// scripts are then on the server.
func listen(addr string) (lock, unlock call, err error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	s := &spy{}
	rdb.AddHook(s)
	m, err := anteroom.NewManager(rdb, anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return lock, unlock, err
	}
	mu := m.Mutex(spyKey)
	pair := func() {
		if mu.TryLock() {
			mu.Unlock()
		}
	}
	pair() // loads the scripts
	s.forget()
	pair()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		return lock, unlock, err
	}
	seen := s.forget()
	if len(seen) != 2 {
		return lock, unlock, fmt.Errorf("a lock and an unlock of Anteroom sent %d scripts about it, not 2", len(seen))
	}
	return seen[0], seen[1], nil
}

// spy records the script calls about one lock, that of listen.
type spy struct {
	mu    sync.Mutex
	calls []call // guarded by mu
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (s *spy) note(cmd redis.Cmder) {
	args := cmd.Args() // evalsha, digest, number of keys, keys, arguments
	if len(args) < 5 || args[0] != "evalsha" || args[3] != spyKey {
		return
	}
	made := call{sha: args[1].(string), args: slices.Clone(args[3:])}
	for range args[2].(int) {
		made.keys, made.args = append(made.keys, made.args[0].(string)), made.args[1:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, made)
}

// forget returns the recorded calls and starts over.
func (s *spy) forget() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.calls
	s.calls = nil
	return seen
}

type evalshaClient struct {
	rdb          *redis.Client
	lock, unlock call
	first        uint64 // numbers of statements are greater
	handles      atomic.Uint64
}

func (c *evalshaClient) Close() error { return c.rdb.Close() }

// Handle prepares everything that does not change, so that the floor is as low as possible. Each handle is a client
// of its own.
func (c *evalshaClient) Handle(key string) Handle {
	client := c.lock.args[argClient].(string)
	own := client + strconv.FormatUint(c.handles.Add(1), 10)
	return &evalshaHandle{c: c, lock: c.lock.with(key, client, own), unlock: c.unlock.with(key, client, own), n: c.first}
}

// with returns the call with another key and client.
func (c call) with(key, client, own string) call {
	c.keys, c.args = slices.Clone(c.keys), slices.Clone(c.args)
	for i, k := range c.keys {
		c.keys[i] = strings.Replace(k, spyKey, key, 1)
	}
	for i, a := range c.args {
		if s, ok := a.(string); ok {
			c.args[i] = strings.Replace(strings.Replace(s, client, own, 1), spyKey, key, 1)
		}
	}
	return c
}

type evalshaHandle struct {
	c            *evalshaClient
	lock, unlock call
	n            uint64 // of the last statement
}

// state numbers a statement; since 0: the client has nothing.
func (h *evalshaHandle) state(ctx context.Context, c call, since uint64) (any, error) {
	h.n++
	if since == 0 {
		since = h.n
	}
	c.args[argNumber], c.args[argSince] = strconv.FormatUint(h.n, 10), strconv.FormatUint(since, 10)
	return h.c.rdb.EvalSha(ctx, c.sha, c.keys, c.args...).Result()
}

func (h *evalshaHandle) Lock(ctx context.Context) error {
	for {
		answer, err := h.state(ctx, h.lock, 0)
		if err != nil || !isNo(answer) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(evalshaPoll)
	}
}

var errNotThere = errors.New("the lock was not there")

func (h *evalshaHandle) Unlock() error {
	answer, err := h.state(context.Background(), h.unlock, h.n)
	if err == nil && isNo(answer) {
		err = errNotThere
	}
	return err
}

// isNo reports whether the script has said refused or lost. Where it has done what was asked, it returns a number.
func isNo(answer any) bool {
	_, list := answer.([]any)
	return list
}
