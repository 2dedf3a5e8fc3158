package proxy

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
)

// bound is generous, because the race detector and small machines are slow.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	child.Run(map[string]child.Role{RoleName: Role})
	goleak.VerifyTestMain(m)
}

// serve accepts connections and runs f on each, until the test ends.
func serve(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				f(conn)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

func through(t *testing.T, target string, oneWay time.Duration) *Proxy {
	t.Helper()
	p, err := Start(t.Context(), Plan{target, oneWay}, bound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, bound)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(bound))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestProxy_I1_NothingIsEarly(t *testing.T) {
	const oneWay = 20 * time.Millisecond
	p := through(t, serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) }), oneWay)
	conn := dial(t, p.Addr())
	for range 5 {
		sent := time.Now()
		if _, err := conn.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(sent); took < 2*oneWay {
			t.Errorf("a round trip took %v, less than twice %v", took, oneWay)
		}
	}
}

func TestProxy_I2_WhatComesIsWhatWasSent(t *testing.T) {
	p := through(t, serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) }), time.Millisecond)
	var wg sync.WaitGroup
	for n := range 8 {
		conn := dial(t, p.Addr())
		sent := make([]byte, 200_000)
		r := rand.New(rand.NewPCG(uint64(n), 0))
		for i := range sent {
			sent[i] = byte(r.Uint32())
		}
		wg.Go(func() { _, _ = conn.Write(sent) })
		wg.Go(func() {
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("connection %d: other bytes came back, %v", n, err)
			}
		})
	}
	wg.Wait()
}

func TestProxy_I3_EndsArePassedOn(t *testing.T) {
	ended := make(chan string, 1)
	p := through(t, serve(t, func(c net.Conn) {
		if _, err := c.Write([]byte("bye")); err != nil {
			t.Error(err)
		}
		all, _ := io.ReadAll(c)
		ended <- string(all)
	}), time.Millisecond)
	conn := dial(t, p.Addr())
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if got := <-ended; got != "last words" {
		t.Errorf("the server got %q before the end", got)
	}
	// And in the other direction.
	p = through(t, serve(t, func(c net.Conn) { _, _ = c.Write([]byte("bye")) }), time.Millisecond)
	if got, err := io.ReadAll(dial(t, p.Addr())); err != nil || string(got) != "bye" {
		t.Errorf("the client got %q, %v", got, err)
	}
}

// Without a server the proxy closes the connection.
func TestProxy_NoServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	p := through(t, l.Addr().String(), 0)
	if _, err := dial(t, p.Addr()).Read(make([]byte, 1)); err == nil {
		t.Error("something came from nowhere")
	}
}
