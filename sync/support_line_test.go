package anteroom_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// lineOf is the line of a lock whose key has no braces.
func lineOf(key string) string { return "anteroom:line:{" + key + "}" }

// spot is a place as the line has it.
type spot struct {
	seq    int
	client string
	n      uint64 // of the command that made or last confirmed it
	word   string // the secret
}

// field is what holds the lock once the place is called.
func (p spot) field() string { return lettucecompat.NewField(p.client, p.n) }

// spots returns the places in line for key, the first one first.
func (s *embedded) spots(key string) []spot {
	var list []spot
	fields, err := s.HKeys(lineOf(key))
	if err != nil {
		return nil
	}
	for _, f := range fields {
		seq, err := strconv.Atoi(strings.TrimPrefix(f, "p"))
		if f[0] != 'p' || err != nil {
			continue
		}
		words := strings.Fields(s.HGet(lineOf(key), f))
		n, _ := strconv.ParseUint(words[1], 10, 64)
		list = append(list, spot{seq, words[0], n, words[4]})
	}
	slices.SortFunc(list, func(a, b spot) int { return a.seq - b.seq })
	return list
}

// holders returns the fields of a lock.
func (s *embedded) holders(key string) []string {
	fields, _ := s.HKeys(key)
	return fields
}

// waiting starts an Acquire that has to wait, and returns when it waits in line. What it gets
// arrives on the channel.
func (s *embedded) waiting(t *testing.T, ctx context.Context, mu *anteroom.Mutex, opts ...anteroom.AcquireOption) <-chan *anteroom.Hold {
	t.Helper()
	before := len(s.spots(mu.Key()))
	got := make(chan *anteroom.Hold, 1)
	go func() {
		if h, err := mu.Acquire(ctx, opts...); err == nil {
			got <- h
		}
		close(got)
	}()
	s.settle()
	if now := len(s.spots(mu.Key())); now != before+1 {
		t.Fatalf("%d places, want %d: %v", now, before+1, s.spots(mu.Key()))
	}
	return got
}

// settle lets what is under way arrive: commands, messages, and the subscription of a new
// Manager.
func (s *embedded) settle() {
	time.Sleep(5 * time.Millisecond)
	synctest.Wait()
}

// nothing fails where something is left in Redis for key.
func (s *embedded) nothing(t *testing.T, key string) {
	t.Helper()
	if s.Exists(key) || s.Exists(lineOf(key)) {
		line, _ := s.HKeys(lineOf(key))
		t.Errorf("left behind: holders %v, line %v", s.holders(key), line)
	}
}

// traffic counts the scripts that a client sends, and says which.
type traffic struct {
	redis.Hook
	mu    sync.Mutex
	calls map[string]int
}

func (c *traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.note(cmd)
		return next(ctx, cmd)
	}
}

func (c *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (c *traffic) note(cmd redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	if strings.HasPrefix(cmd.Name(), "eval") {
		c.calls["script"]++
		if args := cmd.Args(); len(args) > 1 { // one that was withdrawn has none
			c.calls[fmt.Sprint(args[1])]++
		}
	}
}

// take returns how many scripts were sent since the last call.
func (c *traffic) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls["script"]
	c.calls = nil
	return n
}

// sayCalled sends a message like that of a call of the place at, whose number and word the test may have changed.
func (s *embedded) sayCalled(at spot, token int64) {
	s.Publish("anteroom:client:"+at.client, fmt.Sprintf("called %s %d 1 %d 0 k", at.word, at.n, token))
	s.settle()
}

// give does what a call does, but for the message.
func (s *embedded) give(at spot, lease time.Duration) {
	s.Del("k")
	s.HSet("k", at.field(), "1")
	s.SetTTL("k", lease)
	s.Del(lineOf("k"))
}

// isIn returns the hold that has arrived by now, or fails.
func isIn(t *testing.T, got <-chan *anteroom.Hold) *anteroom.Hold {
	t.Helper()
	synctest.Wait()
	select {
	case h, in := <-got:
		if !in {
			t.Fatal("its Acquire has failed")
		}
		return h
	default:
		t.Fatal("it is not in")
		return nil
	}
}

// isOut fails if a hold has arrived.
func isOut(t *testing.T, got <-chan *anteroom.Hold) {
	t.Helper()
	synctest.Wait()
	select {
	case h, in := <-got:
		t.Fatalf("it is in: %v, %v", h, in)
	default:
	}
}

// addPlace puts a place of another client into the empty line of k, behind those that this has put there. It was
// confirmed life-alive ago.
func (s *embedded) addPlace(client string, alive time.Duration) {
	seq := len(s.spots("k")) + 1
	s.HSet(lineOf("k"), ":", fmt.Sprintf("1 %d %d 0 0", seq, seq), "c"+client, strconv.Itoa(seq),
		fmt.Sprint("p", seq), fmt.Sprintf("%s 1700000000000000 2000 %d word", client, time.Now().Add(alive).UnixMilli()))
}
