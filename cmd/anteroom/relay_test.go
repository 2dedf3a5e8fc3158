//go:build unix

package main

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
)

// relay returns the URL of a relay to a server, and the network between the two, for faults: the tool is a process of
// its own, so faultnet cannot be its dialer.
func relay(t *testing.T, s *testredis.Server) (url string, network *faultnet.Network) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	network = faultnet.New(nil)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := network.Dial(t.Context(), "tcp", s.Addr())
			if err != nil {
				_ = down.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{down, up}, {up, down}} {
				all.Go(func() {
					_, _ = io.Copy(way[1], way[0])
					_, _ = way[0].Close(), way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		network.CloseAll()
		all.Wait()
	})
	return "redis://" + l.Addr().String(), network
}

// An answer that takes longer than the library would wait for one arrives within --timeout.
func TestConnect_TheTimeoutIsTheFlags_Lab(t *testing.T) {
	t.Parallel() // it waits for the answer
	s, rdb := withRedis(t)
	take(t, rdb, "k")
	url, network := relay(t, s)
	network.OnRequest("anteroom:line:", 1, faultnet.Late(2500*time.Millisecond))
	startTool(t, url, "status", "--timeout", "1m", "k").expect(0)
}
