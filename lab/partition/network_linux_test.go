package partition

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
)

// in calls f on a thread that is on the host. What f opens stays there. The thread comes back and lives on: with it the
// servers and clients would end that it has started (child.EndsWithParent).
func in[T any](t *testing.T, h testredis.Host, f func() (T, error)) (v T) {
	t.Helper()
	done := make(chan error)
	go func() { done <- inNamespace(h.Namespace, func() (err error) { v, err = f(); return err }) }()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return v
}

func inNamespace(name string, f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net") // not /proc/self: the main thread may be away
	if err != nil {
		return err
	}
	defer home.Close()
	ns, err := os.Open("/run/netns/" + name)
	if err != nil {
		return err
	}
	defer ns.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	failed := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		panic(err) // a thread on the wrong host is none for other goroutines
	}
	runtime.UnlockOSThread()
	return failed
}

// What a thread has started would end with the thread, here and there and without a word: servers of other tests.
func TestNetwork_ThreadsComeBack(t *testing.T) {
	t.Parallel()
	h := newNetwork(t).host()
	home, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var sleepers []*exec.Cmd
	for range 30 {
		c := exec.Command("sleep", "100")
		c.SysProcAttr = child.EndsWithParent()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		sleepers = append(sleepers, c)
		there := in(t, h, func() (string, error) { return os.Readlink("/proc/thread-self/ns/net") })
		if there == home {
			t.Fatal("on no other host")
		}
	}
	for _, c := range sleepers {
		// A process that has been killed is a zombie until somebody waits for it.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("a process has ended with its thread: %s, %v", stat, err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range threads {
		// Another test's visit ends soon.
		eventually(t, 10*time.Second, f+" is at home", func() bool {
			at, err := os.Readlink(f)
			return err != nil || at == home
		})
	}
}

// All that the other tests conclude depends on cuts that lose what they say, and nothing else.
func TestNetwork_LosesWhatItSays(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	hosts := []testredis.Host{n.host(), n.host(), n.host()}
	var sockets []net.PacketConn
	for _, h := range hosts {
		c := in(t, h, func() (net.PacketConn, error) { return net.ListenPacket("udp4", address(h)) })
		t.Cleanup(func() { _ = c.Close() })
		sockets = append(sockets, c)
	}
	sent := 0
	arrives := func(from, to int, patience time.Duration) bool {
		sent++
		text := fmt.Sprint("packet ", sent)
		if _, err := sockets[from].WriteTo([]byte(text), sockets[to].LocalAddr()); err != nil {
			t.Fatal(err)
		}
		_ = sockets[to].SetReadDeadline(time.Now().Add(patience))
		got := make([]byte, 100)
		k, _, err := sockets[to].ReadFrom(got)
		if err == nil && string(got[:k]) != text {
			t.Fatalf("%q arrived late", got[:k])
		}
		return err == nil
	}
	// lost is what does not arrive, of all pairs.
	check := func(when string, lost ...[2]int) {
		t.Helper()
		for from := range hosts {
			for to := range hosts {
				if from == to {
					continue
				}
				want, patience := true, 5*time.Second
				for _, l := range lost {
					if l == [2]int{from, to} {
						want, patience = false, 100*time.Millisecond
					}
				}
				if got := arrives(from, to, patience); got != want {
					t.Errorf("%s: a packet from %d to %d arrives: %v", when, from, to, got)
				}
			}
		}
	}
	check("at first")
	n.lose(hosts[:1], hosts[1:2])
	check("one way", [2]int{0, 1})
	n.heal()
	check("healed")
	n.cut(hosts[:1], hosts[1:])
	check("one from two others", [2]int{0, 1}, [2]int{1, 0}, [2]int{0, 2}, [2]int{2, 0})
	n.heal()
	check("healed again")
}

// Of two connections of the same hosts one is cut.
func TestNetwork_CutsOneConnection(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	client, server := n.host(), n.host()
	l := in(t, server, func() (net.Listener, error) { return net.Listen("tcp4", address(server)) })
	defer l.Close()
	var ends [2][2]net.Conn // by connection: the client's and the server's
	for i := range ends {
		ends[i][0] = in(t, client, func() (net.Conn, error) {
			return (&net.Dialer{}).DialContext(context.Background(), "tcp4", address(server))
		})
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ends[i][1] = c
		defer ends[i][0].Close()
		defer c.Close()
	}
	_, port, err := net.SplitHostPort(ends[0][0].LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	n.cutConnection(client, port, server)
	for i, pair := range ends {
		for from := range pair {
			if _, err := pair[from].Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			patience := []time.Duration{100 * time.Millisecond, 5 * time.Second}[i]
			_ = pair[1-from].SetReadDeadline(time.Now().Add(patience))
			if _, err := pair[1-from].Read(make([]byte, 1)); (err == nil) != (i == 1) {
				t.Errorf("connection %d from end %d: %v", i, from, err)
			}
		}
	}
}
