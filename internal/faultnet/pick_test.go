package faultnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// dial opens one more connection through n.
func dial(t *testing.T, n *faultnet.Network) net.Conn {
	t.Helper()
	c, err := n.Dial(context.Background(), "tcp", "x")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// nothingWithin fails the test unless c is silent for d.
func nothingWithin(t *testing.T, c net.Conn, d time.Duration) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(d))
	start := time.Now()
	if got, err := hear(c); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != d {
		t.Fatalf("%q, %v after %v", got, err, time.Since(start))
	}
	_ = c.SetReadDeadline(time.Time{})
}

// What a half-open connection has swallowed never arrives, not even after Heal, and a new connection works.
func TestHalfOpenSwallowsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		say(t, c, "before")
		heard(t, c, "before")
		n.HalfOpen(faultnet.All)
		say(t, c, "swallowed")
		nothingWithin(t, c, time.Hour)
		n.Heal()
		say(t, c, "too")
		nothingWithin(t, c, time.Hour)
		fresh := dial(t, n)
		say(t, fresh, "new")
		heard(t, fresh, "new")
		if n.Open() != 2 {
			t.Fatalf("%d connections are open", n.Open())
		}
	})
}

// Data in flight in either direction is swallowed too.
func TestHalfOpenSwallowsWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, fault := range map[string]func(*faultnet.Network){
			"reply held": (*faultnet.Network).HoldReplies, "request held": (*faultnet.Network).BlackHole,
			"request travels": func(n *faultnet.Network) { n.Latency(time.Minute, 0, 1) },
		} {
			n, c := echo(t)
			fault(n)
			say(t, c, "a")
			read := make(chan error, 1)
			go func() { _, err := hear(c); read <- err }()
			synctest.Wait()
			n.HalfOpen(faultnet.All)
			n.Heal()
			time.Sleep(time.Hour)
			select {
			case err := <-read:
				t.Fatalf("%s: the reader got an error: %v", name, err)
			default:
			}
			_ = c.Close()
			if err := <-read; !errors.Is(err, net.ErrClosed) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// A half-open connection does not notice that its server has closed it, but the server notices that the client does.
func TestHalfOpenDropsTheServersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server net.Conn
		n := faultnet.New(func(context.Context, string, string) (client net.Conn, err error) {
			client, server = net.Pipe()
			return client, nil
		})
		c := dial(t, n)
		n.HalfOpen(faultnet.All)
		_ = server.Close()
		nothingWithin(t, c, time.Minute)
		_ = c.Close()

		c = dial(t, n)
		n.HalfOpen(faultnet.All)
		_ = c.Close()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
	})
}

// Only connections that subscribe, or only those that do not.
func TestPickByUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const subscribe = "*2\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n"
		n, commands := echo(t)
		pubsub := dial(t, n)
		say(t, pubsub, subscribe)
		heard(t, pubsub, subscribe)
		n.HalfOpen(faultnet.PubSub)
		say(t, pubsub, "a")
		nothingWithin(t, pubsub, time.Minute)
		say(t, commands, "a")
		heard(t, commands, "a")
		n.Reset(faultnet.Commands)
		if _, err := hear(commands); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		if _, err := commands.Write([]byte("a")); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		if n.Open() != 1 {
			t.Fatalf("%d connections are open", n.Open())
		}
	})
}

// A reset ends a waiting read, with the system's own error.
func TestResetEndsAWaitingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		n.HoldReplies()
		say(t, c, "a")
		time.AfterFunc(time.Minute, func() { n.Reset(faultnet.All) })
		if _, err := hear(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
	})
}

// Over TCP the server gets an RST: what it had sent is gone, and its next read fails with that.
func TestResetOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() {
		server, err := l.Accept()
		if err == nil {
			defer server.Close()
			_, err = server.Read(make([]byte, 1))
		}
		got <- err
	}()
	n := faultnet.New(nil)
	if _, err := n.Dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	n.Reset(faultnet.All)
	if err := <-got; !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("the server saw %v", err)
	}
}
