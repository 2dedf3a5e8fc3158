package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/faultnet"
)

// place gives a redis-server the first processor, and this program the others: its threads, and with them the
// processes that it starts until the binding is undone. This models a Redis on a machine of its own. Otherwise the
// kernel decides, every few milliseconds, whether a client and Redis share a processor, and that affects a round trip
// more than the libraries do. An error says why nothing was moved.
func place(server int) (undo func() error, err error) {
	n := runtime.NumCPU()
	if n < 2 {
		return nil, errors.New("there is one processor")
	}
	bind := func(pid int, processors string) error {
		out, err := exec.Command("taskset", "-a", "-c", "-p", processors, strconv.Itoa(pid)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("taskset: %w: %s", err, out)
		}
		return nil
	}
	threads := runtime.GOMAXPROCS(0)
	undo = func() error {
		runtime.GOMAXPROCS(threads)
		all := fmt.Sprintf("0-%d", n-1)
		return errors.Join(bind(os.Getpid(), all), bind(server, all))
	}
	if err := errors.Join(bind(server, "0"), bind(os.Getpid(), fmt.Sprintf("1-%d", n-1))); err != nil {
		return nil, errors.Join(err, undo())
	}
	runtime.GOMAXPROCS(min(threads, n-1))
	return undo, nil
}

// oneWay is what a far Redis adds to each direction. The runtime's timers make it up to twice that in an idle process;
// the figure ping_p50_us says what it was.
const oneWay = 500 * time.Microsecond

// startFar starts a proxy in a process of its own, so that its processor time is not the client's. It delays the
// traffic to the server at addr like a longer wire.
func startFar(ctx context.Context, addr string, bound time.Duration) (*child.Process, string, error) {
	p, err := child.Start(ctx, "far", addr, bound)
	if err != nil {
		return nil, "", err
	}
	var far string
	if err := p.Receive(&far, startWithin); err != nil {
		return nil, "", errors.Join(err, p.Stop(0))
	}
	return p, far, nil
}

// farRole is the proxy.
func farRole(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var target string
	if err := json.Unmarshal(raw, &target); err != nil {
		return err
	}
	wire := faultnet.New(nil)
	wire.Latency(oneWay, 0, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	if err := l.Send(listener.Addr().String()); err != nil {
		return err
	}
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil // the process ends, and with it its connections
		}
		if err != nil {
			return err
		}
		server, err := wire.Dial(ctx, "tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close() // this ends the other direction
			}()
		}
	}
}
