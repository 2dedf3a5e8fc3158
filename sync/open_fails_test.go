package anteroom_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// saying listens and says text to everybody who connects: immediately, or after the first bytes of a client. Then it closes,
// or, where it is silent, keeps the connection.
func saying(t *testing.T, text string, asked, silent bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		_ = l.Close()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if asked {
					_, _ = c.Read(make([]byte, 4096))
				}
				_, _ = c.Write([]byte(text))
				if silent {
					<-ended
				}
			}()
		}
	}()
	return l.Addr().String()
}

const denied = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for " +
	"the default user. In this mode connections are only accepted from the loopback interface. If you want to connect " +
	"from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode.\r\n"

// TestOpen_OneDiagnosis_Lab: every failed handshake reads as the address, what the server says, and only then a guess.
func TestOpen_OneDiagnosis_Lab(t *testing.T) {
	t.Parallel()
	locked := testredis.Start(t, "--requirepass", "hunter1")
	open := testredis.Start(t)
	secure := testredis.StartTLS(testredis.NewAuthority(t), false)
	sentinel := testredis.StartSentinel(t)
	hosts, _ := strings.CutPrefix(sentinel.URL(), "redis+sentinel://")
	hosts, master, _ := strings.Cut(hosts, "/")
	one, _, _ := strings.Cut(hosts, ",")
	for _, c := range []struct {
		name, url string
		err       error
		text      string // with the hosts of the URL as @
	}{
		{"refused", "redis://127.0.0.1:1", anteroom.ErrUnavailable, "dial tcp @: connect: connection refused: check host and port"},
		{"protected", "redis://" + saying(t, denied, false, false), anteroom.ErrConfig, "@ says: DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user: set a password, or connect from the server's own machine"},
		{"full", "redis://" + saying(t, "-ERR max number of clients reached\r\n", false, false), anteroom.ErrUnavailable, "@ says: ERR max number of clients reached"},
		{"no password", "redis://" + locked.Addr(), anteroom.ErrConfig, "@ says: NOAUTH Authentication required: give the Redis client a user name and password"},
		{"wrong password", "redis://:hunter2@" + locked.Addr(), anteroom.ErrConfig, "@ says: WRONGPASS invalid username-password pair or user is disabled: the Redis client's user name or password is wrong"},
		{"no such database", "redis://" + open.Addr() + "/99", anteroom.ErrConfig, "@ says: ERR DB index is out of range"},
		{"a Sentinel", "redis://" + one, anteroom.ErrConfig, "@ is a Sentinel: the URL is redis+sentinel://@/name-of-the-master"},
		{"another name", "redis+sentinel://" + hosts + "/typo", anteroom.ErrConfig, `no Sentinel at @ knows "typo"`},
		{"no Sentinel", "redis+sentinel://" + open.Addr() + "/" + master, anteroom.ErrConfig, "@ is no Sentinel: for one server the URL is redis://@"},
		{"Sentinels unreachable", "redis+sentinel://127.0.0.1:1,127.0.0.1:2/" + master, anteroom.ErrUnavailable, "dial tcp 127.0.0.1:1: connect: connection refused; dial tcp 127.0.0.1:2: connect: connection refused: check host and port"},
		{"no Cluster", "redis+cluster://" + open.Addr(), anteroom.ErrConfig, "@ is no Cluster: for one server the URL is redis://@"},
		{"TLS", "redis://" + secure.Addr(), anteroom.ErrConfig, "@ speaks TLS: the URL must begin with rediss"},
		{"no TLS", "rediss://" + open.Addr(), anteroom.ErrConfig, "@ does not speak TLS: the URL must begin with redis"},
		{"HTTP", "redis://" + saying(t, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", true, false), anteroom.ErrConfig, "@ speaks HTTP: it is no Redis"},
		{"closes", "redis://" + saying(t, "", false, false), anteroom.ErrUnavailable, "@ closes the connection: check host and port, and that both sides speak TLS or neither does"},
		{"silent", "redis://" + saying(t, "", false, true), anteroom.ErrUnavailable, "@ does not answer: check host and port, and that both sides speak TLS or neither does"},
		{"silent, over TLS", "rediss://" + saying(t, "", false, true), anteroom.ErrUnavailable, "@ does not answer: check host and port, and that both sides speak TLS or neither does"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(bg, patience)
			defer cancel()
			began := time.Now()
			m, err := anteroom.Open(ctx, c.url, quiet(anteroom.Config{}))
			took := time.Since(began)
			if err == nil {
				ok(t, m.Close(ctx))
				t.Fatal("no error")
			}
			_, at, _ := strings.Cut(c.url, "://")
			at = at[strings.Index(at, "@")+1:]
			at, _, _ = strings.Cut(at, "/")
			text := strings.ReplaceAll(err.Error(), strings.ReplaceAll(at, ",", ", "), "@")
			t.Logf("after %v: %s", took.Round(time.Millisecond), text)
			want := "anteroom: open: " + strings.TrimPrefix(c.err.Error(), "anteroom: ") + ": " + c.text
			if !errors.Is(err, c.err) || text != want {
				t.Errorf("%s\nwant %s", text, want)
			}
			if !pace.Within(took, 6500*time.Millisecond) {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestOpen_AMasterOutOfReach_Lab: Sentinels name an address that is none for this machine.
func TestOpen_AMasterOutOfReach_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	for _, n := range s.Nodes() {
		n.Kill()
	}
	_, err := anteroom.Open(bg, s.URL(), quiet(anteroom.Config{}))
	if !errors.Is(err, anteroom.ErrUnavailable) || !strings.Contains(err.Error(), `unavailable: the master of "anteroom", as Sentinel says: dial tcp `) ||
		!strings.HasSuffix(err.Error(), "connection refused: this machine cannot reach it") {
		t.Error(err)
	}
}
