package lettucecompat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/testredis"
)

// speaker is a server that answers each command with what it is to say.
type speaker struct {
	says  func(conn int, word string) string // "": nothing
	dials atomic.Int64
	fails atomic.Bool // a dial does
	all   sync.WaitGroup
}

func (s *speaker) connect(context.Context) (net.Conn, error) {
	if s.fails.Load() {
		return nil, errors.New("dial refused")
	}
	n := int(s.dials.Add(1))
	mine, theirs := net.Pipe()
	s.all.Go(func() {
		defer theirs.Close()
		out := make(chan string, 1000) // as a socket has room
		defer close(out)
		go func() {
			for text := range out {
				if _, err := io.WriteString(theirs, text); err != nil {
					_ = theirs.Close()
				}
			}
		}()
		for r := bufio.NewReader(theirs); ; {
			args, err := readCommand(r)
			if err != nil {
				return
			}
			switch text := s.says(n, args[len(args)-1]); text {
			case "":
			case "close":
				return
			default:
				out <- text
			}
		}
	})
	return mine, nil
}

// readCommand reads a command as a server does.
func readCommand(r *bufio.Reader) ([]string, error) {
	size := func(kind byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || line[0] != kind {
			return 0, errors.Join(err, errReply)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := size('*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := size('$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// echo answers as ECHO does.
func echo(_ int, word string) string { return bulk(word) }

func nodeOn(t testing.TB, connect func(context.Context) (net.Conn, error)) *node {
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c, err := New(rdb, Options{ClientID: "c", CommandTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(c, connect)
	t.Cleanup(func() { n.close(); c.Close(); _ = rdb.Close() })
	return n
}

// spoken is a node on a speaker, in virtual time.
func spoken(t *testing.T, says func(conn int, word string) string, test func(t *testing.T, n *node, s *speaker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &speaker{says: says}
		n := nodeOn(t, s.connect)
		test(t, n, s)
		n.close()
		s.all.Wait()
	})
}

// word is a script that returns its argument.
var word = &script{source: "return ARGV[1]"}

// ask sends a command, and returns what is known of it.
func (n *node) ask(ctx context.Context, limit time.Duration, said string) (Outcome, any, error) {
	cmd := &redisCmd{script: word, sources: true, timeout: limit, end: time.Now().Add(limit)}
	cmd.add("0", said)
	if _, err := n.do(ctx, cmd); err != nil {
		cmd.SetErr(err)
	}
	o, err := cmd.result(cmd.hasLeft())
	return o, cmd.Val(), err
}

func (n *node) mustEcho(t testing.TB, word string) {
	t.Helper()
	if o, v, err := n.ask(context.Background(), time.Second, word); o != OutcomeOK || v != word {
		t.Errorf("%q is answered %v, %v, %v", word, o, v, err)
	}
}

// Nobody gets the answer of another, whoever leaves, and whatever becomes of the connections.
func TestNode_NobodyGetsTheAnswerOfAnother(t *testing.T) {
	s := testredis.Start(t)
	n := nodeOn(t, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Addr())
	})
	admin := s.Client(t)
	var right, left, unsent, unknown atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for g := range 64 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(10) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel)
				}
				word := fmt.Sprintf("%d.%d", g, i)
				switch o, v, err := n.ask(ctx, time.Second, word); {
				case o == OutcomeOK && v != word:
					t.Errorf("%v in place of %v", v, word)
				case o == OutcomeOK:
					right.Add(1)
				case errors.Is(err, context.Canceled):
					left.Add(1)
				case o == OutcomeUnknown:
					unknown.Add(1)
				default:
					unsent.Add(1)
				}
				cancel()
			}
		})
	}
	for range 40 {
		time.Sleep(25 * time.Millisecond)
		_ = admin.Do(context.Background(), "client", "kill", "type", "normal", "skipme", "yes").Err()
	}
	close(stop)
	all.Wait()
	t.Logf("right %d, left %d, not sent %d, unknown %d", right.Load(), left.Load(), unsent.Load(), unknown.Load())
	if right.Load() == 0 || left.Load() == 0 || unknown.Load() == 0 {
		t.Error("something has not happened")
	}
}

// What is no reply to a command ends the connection, and the command is unknown. The next one is answered on another connection.
func TestNode_ASpoiledReplyEndsTheConnection(t *testing.T) {
	for name, text := range map[string]string{
		"a kind that there is not": "!3\r\nabc\r\n", "a push": ">1\r\n$1\r\na\r\n", "a map": "%1\r\n:1\r\n:2\r\n", "a length of 2^62": "$4611686018427387904\r\n",
		"so many elements": "*4611686018427387904\r\n", "less than none": "$-2\r\n", "no number": ":1a\r\n", "no end": "$1\r\nabc", "a line without a return": "+OK\n",
		"too deep": strings.Repeat("*1\r\n", 20), "two replies": ":1\r\n:2\r\n", "no first byte": "\r\n", "the end": "close",
	} {
		t.Run(name, func(t *testing.T) {
			spoken(t, func(conn int, word string) string {
				if conn == 1 {
					return text
				}
				return echo(conn, word)
			}, func(t *testing.T, n *node, s *speaker) {
				o, v, err := n.ask(t.Context(), time.Second, "a")
				if two := name == "two replies"; two && (o != OutcomeOK || v != int64(1)) || !two && o != OutcomeUnknown {
					t.Errorf("%v, %v, %v", o, v, err)
				}
				synctest.Wait()
				n.mustEcho(t, "b")
				if d := s.dials.Load(); d != 2 {
					t.Errorf("%d connections", d)
				}
			})
		})
	}
}

// Every reply that a script has, in pieces of any size.
func TestNode_RepliesInPieces(t *testing.T) {
	spoken(t, func(int, string) string { return "" }, func(t *testing.T, n *node, s *speaker) {
		const text = "*5\r\n:-7\r\n$3\r\na\r\n\r\n*2\r\n+OK\r\n-ERR no\r\n$-1\r\n*-1\r\n"
		mine, theirs := net.Pipe()
		n.connect = func(context.Context) (net.Conn, error) { return mine, nil }
		go func() {
			r := bufio.NewReader(theirs)
			for size := 1; size <= len(text); size++ {
				if _, err := readCommand(r); err != nil {
					return
				}
				for rest := text; rest != ""; {
					k := min(size, len(rest))
					_, _ = io.WriteString(theirs, rest[:k])
					rest = rest[k:]
				}
			}
			_ = theirs.Close()
		}()
		for range len(text) {
			o, v, err := n.ask(t.Context(), time.Second, "a")
			all, _ := v.([]any)
			if o != OutcomeOK || len(all) != 5 || all[0] != int64(-7) || all[1] != "a\r\n" || fmt.Sprint(all[2:]) != "[[OK ERR no] <nil> <nil>]" {
				t.Fatalf("%v, %q, %v", o, v, err)
			}
		}
	})
}

// A connection that does not answer is passed after a moment, and ended when nothing has come for a time limit. Only those are unknown
// whose commands travel on it.
func TestNode_AHungConnectionIsPassed(t *testing.T) {
	spoken(t, func(conn int, word string) string {
		if conn == 1 {
			return ""
		}
		return echo(conn, word)
	}, func(t *testing.T, n *node, s *speaker) {
		first := make(chan Outcome, 1)
		begin := time.Now()
		go func() { o, _, _ := n.ask(t.Context(), time.Second, "a"); first <- o }()
		synctest.Wait()
		time.Sleep(leastSlow + 1)
		for i := range 100 {
			n.mustEcho(t, strconv.Itoa(i))
		}
		if d := time.Since(begin); d > 2*leastSlow {
			t.Errorf("the others took %v", d)
		}
		if o := <-first; o != OutcomeUnknown || time.Since(begin) != time.Second {
			t.Errorf("the first one: %v after %v", o, time.Since(begin))
		}
		n.mustEcho(t, "b")
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.conns) != 1 || s.dials.Load() != 2 {
			t.Errorf("%d of %d connections are left", len(n.conns), s.dials.Load())
		}
	})
}

// A hung connection is kept while no other can be made, as to a master whose Sentinels do not answer: it may only have been slow.
func TestNode_AHungConnectionIsKeptWhileNoOtherIsThere(t *testing.T) {
	for _, back := range []string{"it answers", "another is there"} {
		t.Run(back, func(t *testing.T) {
			var goOn chan struct{}
			spoken(t, func(conn int, word string) string {
				if word == "late" {
					<-goOn
				}
				return echo(conn, word)
			}, func(t *testing.T, n *node, s *speaker) {
				goOn = make(chan struct{})
				defer close(goOn)
				n.mustEcho(t, "a")
				s.fails.Store(true)
				if o, _, _ := n.ask(t.Context(), time.Second, "late"); o != OutcomeUnknown {
					t.Errorf("the late one: %v", o)
				}
				if o, _, _ := n.ask(t.Context(), time.Second, "b"); o != OutcomeFailed {
					t.Errorf("one behind it: %v", o)
				}
				dials := int64(1)
				if back == "it answers" {
					goOn <- struct{}{}
					synctest.Wait()
				} else {
					s.fails.Store(false)
					dials = 2
				}
				n.mustEcho(t, "c")
				n.mu.Lock()
				defer n.mu.Unlock()
				if len(n.conns) != 1 || s.dials.Load() != dials {
					t.Errorf("%d of %d connections are left", len(n.conns), s.dials.Load())
				}
			})
		})
	}
}

// What cannot be sent beside it fails as if it were not there, and it ends with the last use of its node.
func TestNode_NobodyWaitsForAHungConnection(t *testing.T) {
	spoken(t, func(conn int, word string) string {
		if word == "late" {
			return ""
		}
		return echo(conn, word)
	}, func(t *testing.T, n *node, s *speaker) {
		n.mustEcho(t, "a")
		s.fails.Store(true)
		if o, _, _ := n.ask(t.Context(), time.Second, "late"); o != OutcomeUnknown {
			t.Errorf("the late one: %v", o)
		}
		begin := time.Now()
		if o, _, err := n.ask(t.Context(), time.Second, "b"); o != OutcomeFailed || err == nil || err.Error() != "dial refused" || time.Since(begin) > 0 {
			t.Errorf("one behind it: %v, %v after %v", o, err, time.Since(begin))
		}
		n.retire(nil)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.conns) != 0 {
			t.Errorf("%d connections are left", len(n.conns))
		}
	})
}

// A caller whose write hangs leaves at its limit, though no other connection can be made.
func TestNode_AWriteThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mine, theirs := net.Pipe()
		defer theirs.Close()
		dialled := false
		n := nodeOn(t, func(context.Context) (net.Conn, error) {
			if dialled {
				return nil, errStale
			}
			dialled = true
			return mine, nil
		})
		defer n.close()
		go func() { // answers one command, and reads no more
			_, _ = readCommand(bufio.NewReaderSize(theirs, 1<<10))
			_, _ = io.WriteString(theirs, bulk("a"))
		}()
		n.mustEcho(t, "a")
		synctest.Wait() // its writer is done: the next caller writes
		begin := time.Now()
		if o, _, _ := n.ask(t.Context(), time.Second, "b"); o != OutcomeUnknown || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", o, time.Since(begin))
		}
	})
}

// A server that hangs holds nobody beyond his limit, or his context. What waits for a connection then was never sent.
func TestNode_AServerThatHangs(t *testing.T) {
	spoken(t, func(int, string) string { return "" }, func(t *testing.T, n *node, s *speaker) {
		cause := errors.New("enough")
		type end struct {
			o    Outcome
			err  error
			took time.Duration
		}
		ask := func(ctx context.Context, limit time.Duration) <-chan end {
			out, begin := make(chan end, 1), time.Now()
			go func() { o, _, err := n.ask(ctx, limit, "a"); out <- end{o, err, time.Since(begin)} }()
			synctest.Wait()
			return out
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := ask(t.Context(), 300*time.Millisecond), ask(ctx, time.Second)
		time.Sleep(leastSlow + 1)
		c := ask(t.Context(), time.Second) // on a second connection
		time.Sleep(leastSlow + 1)
		d, e := ask(t.Context(), 100*time.Millisecond), ask(ctx, time.Second)
		cancel(cause)
		for what, got := range map[string]struct {
			end
			o    Outcome
			took time.Duration
			err  error
		}{
			"sent": {<-a, OutcomeUnknown, 300 * time.Millisecond, ErrTimeout}, "left": {<-b, OutcomeUnknown, 2*leastSlow + 2, cause},
			"on the second": {<-c, OutcomeUnknown, time.Second, ErrTimeout}, "not sent": {<-d, OutcomeFailed, 100 * time.Millisecond, ErrTimeout},
			"left, and not sent": {<-e, OutcomeFailed, 0, cause},
		} {
			if got.end.o != got.o || got.end.took != got.took || !errors.Is(got.end.err, got.err) {
				t.Errorf("%s: %+v, want %v after %v, %v", what, got.end, got.o, got.took, got.err)
			}
		}
	})
}

// Who cannot be connected was not sent, and knows it immediately.
func TestNode_NoConnection(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		s.fails.Store(true)
		begin := time.Now()
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if o, _, err := n.ask(t.Context(), time.Second, "a"); o != OutcomeFailed || classify(err) != classUnreachable {
					t.Errorf("%v, %v", o, err)
				}
			})
		}
		all.Wait()
		if d := time.Since(begin); d != 0 {
			t.Errorf("they waited for %v", d)
		}
		s.fails.Store(false)
		n.mustEcho(t, "b")
	})
}

// What waits for a connection, and is left, is not sent on the one that comes then.
func TestNode_WhoHasLeftIsNotSent(t *testing.T) {
	var heard sync.Map
	spoken(t, func(conn int, word string) string {
		heard.Store(word, true)
		return echo(conn, word)
	}, func(t *testing.T, n *node, s *speaker) {
		dialed := make(chan struct{})
		n.connect = func(ctx context.Context) (net.Conn, error) {
			<-dialed
			return s.connect(ctx)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := make(chan Outcome, 2)
		go func() { o, _, _ := n.ask(ctx, time.Second, "left"); out <- o }()
		go func() { o, _, _ := n.ask(t.Context(), 10*time.Millisecond, "late"); out <- o }()
		for range 2 { // first the late one, which the alarm finds
			if o := <-out; o != OutcomeFailed {
				t.Error(o)
			}
			cancel()
		}
		close(dialed)
		n.mustEcho(t, "b")
		for _, word := range []string{"left", "late", "ping"} {
			if _, was := heard.Load(word); was {
				t.Errorf("%q was sent", word)
			}
		}
	})
}

// A connection that is being made while others are retired is made anew.
func TestNode_RetiredWhileItIsMade(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		first := true
		n.connect = func(ctx context.Context) (net.Conn, error) {
			nc, err := s.connect(ctx)
			if first {
				first = false
				n.retire(nil)
			}
			return nc, err
		}
		n.mustEcho(t, "a")
		if d := s.dials.Load(); d != 2 {
			t.Errorf("%d connections", d)
		}
	})
}

// An owner that keeps nothing has no connection when nothing is under way.
func TestNode_KeepsNothing(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		n.mustEcho(t, "a")
		n.keepNothing()
		for range 3 {
			n.mustEcho(t, "b")
			n.mu.Lock()
			if len(n.conns) > 0 {
				t.Error("a connection is kept")
			}
			n.mu.Unlock()
		}
	})
}

// unwritten is a connection that takes nothing.
type unwritten struct{ net.Conn }

func (unwritten) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// What the connection has taken nothing of was not sent.
func TestNode_NothingWritten(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		n.connect = func(ctx context.Context) (net.Conn, error) {
			nc, err := s.connect(ctx)
			return unwritten{nc}, err
		}
		if o, _, err := n.ask(t.Context(), time.Second, "a"); o != OutcomeFailed || classify(err) != classUnreachable {
			t.Errorf("%v, %v", o, err)
		}
		cmd := &redisCmd{script: word, sources: true, timeout: time.Second, end: time.Now().Add(time.Second)}
		cmd.add("0", "a").fill()
		cmd.Args() // a hook has them, and may send them by itself
		_, err := n.do(t.Context(), cmd)
		cmd.SetErr(err)
		if o, err := cmd.result(nil); o != OutcomeUnknown {
			t.Errorf("what others have taken: %v, %v", o, err)
		}
	})
}

// A connection that nobody uses ends, also if nobody asks for another.
func TestNode_AnIdleConnectionEnds(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		n.mu.Lock()
		n.idles = 10 * time.Minute
		n.mu.Unlock()
		count := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.conns)
		}
		for range 3 {
			n.mustEcho(t, "a")
			time.Sleep(n.idles - time.Second)
		}
		if count() != 1 || s.dials.Load() != 1 {
			t.Errorf("%d of %d connections", count(), s.dials.Load())
		}
		time.Sleep(3 * time.Second)
		if count() != 0 {
			t.Error("it is kept")
		}
	})
}

// The second connection is not kept when the first is enough again.
func TestNode_TheSecondIsNotKept(t *testing.T) {
	spoken(t, func(conn int, word string) string {
		if word == "slow" {
			time.Sleep(4 * leastSlow)
		}
		return echo(conn, word)
	}, func(t *testing.T, n *node, s *speaker) {
		slow := make(chan Outcome)
		go func() { o, _, _ := n.ask(t.Context(), time.Second, "slow"); slow <- o }()
		time.Sleep(leastSlow + 1)
		n.mustEcho(t, "a")
		if o := <-slow; o != OutcomeOK {
			t.Error(o)
		}
		for at := time.Duration(0); at <= secondIdle; at += secondIdle / 10 {
			n.mu.Lock()
			if len(n.conns) != 2 {
				t.Errorf("%d connections after %v", len(n.conns), at)
			}
			n.mu.Unlock()
			n.mustEcho(t, "b")
			time.Sleep(secondIdle / 10)
		}
		n.mustEcho(t, "c")
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.conns) != 1 {
			t.Errorf("%d connections", len(n.conns))
		}
	})
}

// Many share one connection, whose answers come together.
func TestNode_ManyShareAConnection(t *testing.T) {
	spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() { n.mustEcho(t, strconv.Itoa(i)) })
		}
		all.Wait()
		if d := s.dials.Load(); d != 1 {
			t.Errorf("%d connections", d)
		}
	})
}

// A connection that is to be used no more answers what is under way, and is left.
func TestNode_RetiredConnections(t *testing.T) {
	for name, retire := range map[string]func(n *node){
		"told": func(n *node) { n.retire(nil) },
		"too old": func(n *node) {
			n.mu.Lock()
			n.lasts = time.Second
			n.mu.Unlock()
			time.Sleep(1001 * time.Millisecond)
		},
		"a demoted master": func(n *node) {
			if _, _, err := n.ask(context.Background(), time.Second, "readonly"); err == nil {
				panic("no error")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoken(t, func(conn int, word string) string {
				if word == "readonly" {
					return "-READONLY You can't write against a read only replica.\r\n"
				}
				return echo(conn, word)
			}, func(t *testing.T, n *node, s *speaker) {
				n.mustEcho(t, "a")
				retire(n)
				n.mustEcho(t, "b")
				if d := s.dials.Load(); d != 2 {
					t.Errorf("%d connections", d)
				}
			})
		})
	}
	t.Run("keep", func(t *testing.T) {
		spoken(t, echo, func(t *testing.T, n *node, s *speaker) {
			n.mustEcho(t, "a")
			n.retire(func(net.Conn) bool { return true })
			n.mustEcho(t, "b")
			if d := s.dials.Load(); d != 1 {
				t.Errorf("%d connections", d)
			}
		})
	})
}

// The end of the node ends whoever waits, and every connection.
func TestNode_Close(t *testing.T) {
	spoken(t, func(int, string) string { return "" }, func(t *testing.T, n *node, s *speaker) {
		out, ends := make(chan error, 20), map[Outcome]int{}
		var mu sync.Mutex
		for range 20 {
			go func() {
				o, _, err := n.ask(context.Background(), time.Minute, "a")
				mu.Lock()
				ends[o]++
				mu.Unlock()
				out <- err
			}()
			time.Sleep(time.Millisecond) // some of them wait
		}
		n.close()
		for range 20 {
			if err := <-out; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		if ends[OutcomeUnknown] == 0 || ends[OutcomeFailed] == 0 || len(ends) != 2 {
			t.Errorf("%v: what was sent is unknown, and what was not has failed", ends)
		}
		if o, _, err := n.ask(context.Background(), time.Second, "b"); o != OutcomeFailed || !errors.Is(err, ErrClosed) {
			t.Errorf("%v, %v", o, err)
		}
	})
}

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// Commands whose callers the same read has woken share a write.
func TestNode_ManyShareAWrite(t *testing.T) {
	s := testredis.Start(t)
	var writes atomic.Int64
	n := nodeOn(t, func(ctx context.Context) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
		return counted{nc, &writes}, err
	})
	n.mustEcho(t, "first")
	const callers, rounds = 64, 50
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range rounds {
				n.mustEcho(t, strconv.Itoa(i))
			}
		})
	}
	all.Wait()
	if w := writes.Load(); 2*w > callers*rounds {
		t.Errorf("%d writes of %d commands", w, callers*rounds)
	}
}

// A write may last, until replies are read: so another one reads them.
func TestNode_WhoWritesDoesNotRead(t *testing.T) {
	n := nodeOn(t, nil)
	writer, other := &call{wake: make(chan wakeUp, 2)}, &call{wake: make(chan wakeUp, 2)}
	c := &conn{n: n, calls: []*call{writer, other}, writer: writer, reading: true}
	n.mu.Lock()
	defer n.mu.Unlock()
	c.passReadingLocked(&call{over: true})
	if len(writer.wake) != 0 || len(other.wake) != 1 {
		t.Errorf("%d, %d are to read", len(writer.wake), len(other.wake))
	}
}
