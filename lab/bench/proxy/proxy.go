package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/anteroom/anteroom/internal/child"
)

// RoleName is the proxy's child role.
const RoleName = "proxy"

// Plan is the configuration of a proxy.
type Plan struct {
	Target string        // where connections are passed on to
	OneWay time.Duration // how long each piece of data waits
}

// Proxy is a running proxy.
type Proxy struct {
	p    *child.Process
	addr string
}

// Start starts a proxy, which ends with ctx, and after bound.
func Start(ctx context.Context, plan Plan, bound time.Duration) (*Proxy, error) {
	p, err := child.Start(ctx, RoleName, plan, bound)
	if err != nil {
		return nil, err
	}
	var addr string
	if err := p.Receive(&addr, bound); err != nil {
		return nil, errors.Join(err, p.Stop(0))
	}
	return &Proxy{p, addr}, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.addr }

// Close ends the proxy and with it every connection.
func (p *Proxy) Close() error { return p.p.Stop(5 * time.Second) }

// Role is the child's side.
func Role(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	if plan.OneWay < 0 {
		return fmt.Errorf("a delay of %v", plan.OneWay)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	// The two sleepers each keep one of the runtime's processors while they sleep. Without others nothing would poll
	// for data meanwhile, and round trips would take ten times as long.
	runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	there, back := newLine(plan.OneWay), newLine(plan.OneWay)
	go there.run()
	go back.run()
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
		server, err := net.Dial("tcp", plan.Target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go there.carry(server, client)
		go back.carry(client, server)
	}
}
