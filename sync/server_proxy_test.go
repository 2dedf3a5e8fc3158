package anteroom_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// proxy hides a Cluster behind one address, as some managed services do: it sends each command to the node that has the
// first key, and knows no CLUSTER. Answers go back as they are, MOVED and CROSSSLOT among them. A connection that
// subscribes is one of the first node's from then on.
type proxy struct {
	t     *testing.T
	nodes []string
	of    func(key string) int // the node that has a key
	wg    sync.WaitGroup
}

func startProxy(t *testing.T, c *testredis.Cluster) (addr string) {
	t.Helper()
	p := &proxy{t: t}
	index := map[*testredis.Server]int{}
	for i, n := range c.Masters() {
		p.nodes = append(p.nodes, n.Addr())
		index[n] = i
	}
	var mu sync.Mutex
	known := map[string]int{}
	p.of = func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		i, ok := known[key]
		if !ok {
			i = index[c.Master(c.Slot(key))]
			known[key] = i
		}
		return i
	}
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() }) // clients are closed by then
	return l.Addr().String()
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	conns, readers := make([]net.Conn, len(p.nodes)), make([]*bufio.Reader, len(p.nodes))
	for i, addr := range p.nodes {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			p.t.Error(err)
			return
		}
		defer c.Close()
		conns[i], readers[i] = c, bufio.NewReader(c)
	}
	in := bufio.NewReader(client)
	for {
		raw, words, err := readReply(in)
		if err != nil {
			return // the client has gone
		}
		to := []int{0}
		switch name := strings.ToLower(words[0]); name {
		case "subscribe":
			_, _ = conns[0].Write(raw)
			p.wg.Go(func() { _, _ = io.Copy(client, readers[0]) })
			_, _ = io.Copy(conns[0], in)
			return
		case "cluster":
			_, _ = client.Write([]byte("-ERR unknown command 'cluster'\r\n"))
			continue
		case "evalsha", "eval":
			to[0] = p.of(words[3])
		case "publish", "pubsub", "ping":
		case "hello", "client", "script":
			to = []int{0, 1, 2}
		default:
			to[0] = p.of(words[1])
		}
		var answer []byte
		for _, i := range to {
			_, _ = conns[i].Write(raw)
			if answer, _, err = readReply(readers[i]); err != nil {
				return
			}
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

// readReply reads one value of the protocol. It returns its bytes, and of an array the bulk strings.
func readReply(r *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	raw = line
	n, _ := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, nil, err
		}
		return append(raw, body...), []string{string(body[:n])}, nil
	case '%', '|':
		n *= 2
	case '*', '~', '>':
	default:
		return raw, nil, nil
	}
	for range n {
		more, word, err := readReply(r)
		if err != nil {
			return nil, nil, err
		}
		raw, words = append(raw, more...), append(words, word...)
	}
	return raw, words, nil
}

// A Cluster of three behind one address: locks of all slots are renewed, removed and handed over as on one server, and
// the user is notified once what to do.
func TestAClusterBehindAProxy_Lab(t *testing.T) {
	t.Parallel()
	addr := startProxy(t, testredis.StartCluster(t, 3, 0))
	connect := func() *redis.Client {
		rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	cfg := anteroom.Config{CommandTimeout: pace.Scale(time.Second), Defaults: anteroom.LockConfig{
		LeaseTime: time.Hour, RenewalTime: 500 * time.Millisecond, WatchdogPeriod: 200 * time.Millisecond, Fencing: true,
	}}
	one, rec := manager(t, connect(), cfg)
	two, _ := manager(t, connect(), cfg)
	ok(t, one.Ping(bg, "key:0"))
	const keys = 12 // some of each node
	var holds []*anteroom.Hold
	for i := range keys {
		holds = append(holds, acquire(t, one.Mutex(fmt.Sprint("key:", i))))
	}

	// Renewals, in batches of keys of all nodes at first.
	began := holds[0].Deadline()
	for _, h := range holds {
		eventually(t, "it is renewed", func() bool { return h.Deadline().After(began.Add(time.Second)) })
	}

	// Who waits in another process is called, whichever node its channel's subscription is on.
	var waiters sync.WaitGroup
	for i, before := range holds {
		waiters.Go(func() {
			h, err := two.Mutex(before.Key()).Acquire(bg)
			if err != nil {
				t.Error(err)
				return
			}
			if tokenOf(h) <= tokenOf(before) {
				t.Errorf("%d: token %d after %d", i, tokenOf(h), tokenOf(before))
			}
			if err := h.Release(bg); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all wait in line", func() bool { return len(two.Snapshot()) == keys })
	rdb := connect()
	removed := holds[7]
	ok(t, rdb.Del(bg, "key:7").Err())
	select {
	case <-removed.Context().Done():
	case <-time.After(pace.Hang):
		t.Error("the removal is not reported")
	}
	for i, h := range holds {
		if err := h.Release(bg); errors.Is(err, anteroom.ErrLost) != (i == 7) {
			t.Errorf("%d: %v", i, err)
		}
	}
	called := make(chan struct{})
	go func() { waiters.Wait(); close(called) }()
	select {
	case <-called:
	case <-time.After(pace.Hang):
		t.Fatal("the others have not got their locks: they were not called")
	}
	var lost []observe.Event
	for _, e := range rec.of(observe.EventWarning) {
		if strings.Contains(e.Text, "Redis Cluster") {
			lost = append(lost, e)
		}
	}
	if len(lost) != 1 {
		t.Errorf("warnings: %+v", rec.of(observe.EventWarning))
	}
}
