package faultnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/faultnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo dials a server that answers every piece of data with the same data.
func echo(t *testing.T) (*faultnet.Network, net.Conn) {
	t.Helper()
	n := faultnet.New(func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			buf := make([]byte, 64)
			for {
				k, err := server.Read(buf)
				if err != nil {
					return
				}
				if _, err = server.Write(buf[:k]); err != nil {
					return
				}
			}
		}()
		return client, nil
	})
	c, err := n.Dial(context.Background(), "tcp", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.CloseAll)
	return n, c
}

func say(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

func hear(c net.Conn) (string, error) {
	buf := make([]byte, 64)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func heard(t *testing.T, c net.Conn, want string) {
	t.Helper()
	if got, err := hear(c); got != want || err != nil {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func TestClean(t *testing.T) {
	n, c := echo(t)
	say(t, c, "a")
	heard(t, c, "a")
	if n.Open() != 1 || n.Dials() != 1 {
		t.Fatalf("%d open, %d dials", n.Open(), n.Dials())
	}
	_ = c.Close()
	if n.Open() != 0 {
		t.Fatal("a closed connection is counted as open")
	}
}

func TestHeldRepliesArriveAfterHeal(t *testing.T) {
	for name, fault := range map[string]func(*faultnet.Network){
		"replies": (*faultnet.Network).HoldReplies, "both": (*faultnet.Network).BlackHole,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, c := echo(t)
				fault(n)
				say(t, c, "a")
				time.AfterFunc(time.Hour, n.Heal)
				start := time.Now()
				heard(t, c, "a")
				if d := time.Since(start); d != time.Hour {
					t.Fatalf("after %v", d)
				}
				say(t, c, "b")
				heard(t, c, "b")
			})
		})
	}
}

func TestDeadlineAndCloseEndAHeldRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		n.HoldReplies()
		say(t, c, "a")
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		start := time.Now()
		if _, err := hear(c); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		_ = c.SetDeadline(time.Time{})
		time.AfterFunc(time.Minute, n.CloseAll)
		if _, err := hear(c); !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := echo(t)
		n.Delay(3 * time.Second)
		start := time.Now()
		say(t, c, "a")
		heard(t, c, "a")
		if d := time.Since(start); d != 3*time.Second {
			t.Fatalf("after %v", d)
		}
	})
}

func TestCutReplies(t *testing.T) {
	n, c := echo(t)
	n.CutReplies(1, 2)
	say(t, c, "abcd")
	heard(t, c, "ab")
	if _, err := hear(c); err != io.EOF {
		t.Fatal(err)
	}
	if n.Open() != 0 {
		t.Fatal("still open")
	}
}

func TestRefuse(t *testing.T) {
	n, c := echo(t)
	n.Refuse()
	_, err := n.Dial(context.Background(), "tcp", "x")
	var op *net.OpError
	if !errors.Is(err, faultnet.ErrRefused) || !errors.As(err, &op) || op.Op != "dial" {
		t.Fatal(err)
	}
	say(t, c, "a")
	heard(t, c, "a")
}

// TestLongPipeline: the peer answers before it has read everything.
func TestLongPipeline(t *testing.T) {
	_, c := echo(t)
	long := make([]byte, 100_000)
	say(t, c, string(long))
	if _, err := io.ReadFull(c, long); err != nil {
		t.Fatal(err)
	}
}

// A dial that is under way when Refuse begins does not escape the CloseAll that follows.
func TestRefuseMeetsADialUnderWay(t *testing.T) {
	var n *faultnet.Network
	n = faultnet.New(func(context.Context, string, string) (net.Conn, error) {
		n.Refuse()
		n.CloseAll()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		return ours, nil
	})
	if c, err := n.Dial(t.Context(), "tcp", ""); !errors.Is(err, faultnet.ErrRefused) {
		_ = c.Close()
		t.Errorf("dialled in spite of Refuse: %v", err)
	}
}
