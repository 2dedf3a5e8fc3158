package anteroom_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The test binary runs itself again as a worker process where this is set.
const workerEnv = "ANTEROOM_TEST_WORKER"

func TestMain(m *testing.M) {
	silence.Logs()
	if work := os.Getenv(workerEnv); work != "" {
		if err := worker(strings.Fields(work)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// worker is the program of a worker process: "count ADDR DIR FAIR", "spin ADDR FAIR", "all ADDR", or
// "hold ADDR KEY LEASE", "do ADDR KEY LEASE" or "log ADDR KEY LEASE", which is hold with
// the log on standard output.
func worker(args []string) error {
	rdb := redis.NewClient(&redis.Options{Addr: args[1]})
	defer rdb.Close()
	if args[0] == "all" {
		if err := useAll(rdb); err != nil {
			return err
		}
		fmt.Println("all done")
		return nil
	}
	log := slog.New(slog.DiscardHandler)
	if args[0] == "log" {
		log = slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	var turns atomic.Int64
	m, err := anteroom.NewManager(rdb, anteroom.Config{Logger: log, Observer: &observe.Observer{
		Acquired: func(_ string, o observe.Outcome, _ time.Duration) {
			if o == observe.OutcomeGranted {
				turns.Add(1)
			}
		},
	}})
	if err != nil {
		return err
	}
	if args[0] == "count" {
		return errors.Join(count(m, args[2], args[3] == "true"), m.Close(bg))
	}
	if args[0] == "spin" {
		return errors.Join(spin(m, args[2] == "true", &turns), m.Close(bg))
	}
	if args[0] == "do" {
		return do(m, args[2], args[3])
	}
	return hold(m, args[2], args[3])
}

// spin lets 32 goroutines lock and unlock one key, and prints how many turns this process had in
// each of three windows of 2 s, from the first line on standard input on.
func spin(m *anteroom.Manager, fair bool, turns *atomic.Int64) error {
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "spin", Fair: fair})
	if err != nil {
		return err
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	pass(mu) // connections and scripts are there
	fmt.Println("ready")
	if !bufio.NewScanner(os.Stdin).Scan() {
		return io.ErrUnexpectedEOF
	}
	for range 32 {
		wg.Go(func() {
			for !stop.Load() {
				pass(mu)
			}
		})
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	before := int64(0)
	for range 3 {
		<-tick.C
		now := turns.Load()
		fmt.Println(now - before)
		before = now
	}
	stop.Store(true)
	wg.Wait()
	return nil
}

// count increments a counter in a file, with nothing but the lock to protect it,
// and appends its fencing token to the resource's log.
func count(m *anteroom.Manager, dir string, fair bool) error {
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "counter", Fair: fair, Fencing: true, MaxHandoffs: 20})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, processGoroutines)
	for range processGoroutines {
		wg.Go(func() {
			for range processRounds {
				h, err := mu.Acquire(bg)
				if err == nil {
					err = errors.Join(increment(dir, tokenOf(h)), h.Release(bg))
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return errors.Join(<-errs)
}

const (
	processes         = 4
	processGoroutines = 16
	processRounds     = 25
)

func increment(dir string, token int64) error {
	name := filepath.Join(dir, "counter")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "tokens"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, token)
	return errors.Join(err, f.Close())
}

// hold acquires and answers each line on standard input with what Held says.
func hold(m *anteroom.Manager, key, lease string) error {
	d, err := time.ParseDuration(lease)
	if err != nil {
		return err
	}
	mu, err := m.NewMutex(anteroom.LockConfig{Key: key, LeaseTime: d})
	if err != nil {
		return err
	}
	h, err := mu.Acquire(bg)
	if err != nil {
		return err
	}
	fmt.Println("holding")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		// The context is asked first: it must know as well, without help.
		ended := h.Context().Err() != nil
		fmt.Println(h.Held(), ended)
	}
	return nil
}

// do answers each line on standard input with whether the context that Do gives has ended.
func do(m *anteroom.Manager, key, lease string) error {
	d, err := time.ParseDuration(lease)
	if err != nil {
		return err
	}
	mu, err := m.NewMutex(anteroom.LockConfig{Key: key, LeaseTime: d})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(bg, time.Hour) // Do inherits it, by a context of its own
	defer cancel()
	return mu.Do(ctx, func(ctx context.Context) error {
		fmt.Println("holding")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(ctx.Err() != nil)
		}
		return nil
	})
}

// process is a running worker.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	ok(t, err)
	p := &process{Cmd: exec.Command(self)}
	p.Env = append(os.Environ(), workerEnv+"="+strings.Join(args, " "))
	p.Stderr = os.Stderr
	p.in = must[io.WriteCloser](t)(p.StdinPipe())
	p.out = bufio.NewReader(must[io.ReadCloser](t)(p.StdoutPipe()))
	ok(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// ask sends a line and returns the answer; with an empty one it only reads.
func (p *process) ask(t *testing.T, line string) string {
	t.Helper()
	if line != "" {
		_, err := fmt.Fprintln(p.in, line)
		ok(t, err)
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the worker ended: %v", err)
	}
	return strings.TrimSpace(answer)
}

// Exclusion across processes: an unprotected counter in a file is exact, and the
// fenced resource sees tokens that only grow.
func TestSync_I1_ExclusionAcrossProcesses(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, fair := range []string{"false", "true"} {
		t.Run("fair="+fair, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.WriteFile(filepath.Join(dir, "counter"), []byte("0"), 0o600))
			var all []*process
			for range processes {
				all = append(all, start(t, "count", s.Addr(), dir, fair))
			}
			for _, p := range all {
				tail, _ := io.ReadAll(p.out)
				if err := p.Wait(); err != nil {
					t.Fatalf("worker: %v: %s", err, tail)
				}
			}
			want := processes * processGoroutines * processRounds
			if got := string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "counter")))); got != strconv.Itoa(want) {
				t.Fatalf("counter %s, want %d", got, want)
			}
			last, n := int64(0), 0
			for line := range bytes.Lines(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "tokens")))) {
				token, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
				ok(t, err)
				if token <= last {
					t.Fatalf("the resource saw token %d after %d", token, last)
				}
				last, n = token, n+1
			}
			if n != want {
				t.Fatalf("%d tokens, want %d", n, want)
			}
		})
	}
}

// Two processes whose goroutines never stop asking take turns, however much of the processor each
// gets: one that is stopped for a while delays both alike. How long a turn lasts is tested in virtual time.
func TestTurnsBetweenTwoProcesses_Lab(t *testing.T) {
	s := testredis.Start(t)
	for _, fair := range []string{"false", "true"} {
		t.Run("fair="+fair, func(t *testing.T) {
			a, b := start(t, "spin", s.Addr(), fair), start(t, "spin", s.Addr(), fair)
			a.ask(t, "")
			b.ask(t, "")
			for _, p := range []*process{a, b} {
				_, err := fmt.Fprintln(p.in, "go")
				ok(t, err)
			}
			x, y := 0, 0
			for range 3 {
				x += must[int](t)(strconv.Atoi(a.ask(t, "")))
				y += must[int](t)(strconv.Atoi(b.ask(t, "")))
				t.Logf("%d and %d turns", x, y)
			}
			ok(t, errors.Join(a.Wait(), b.Wait()))
			if min(x, y)*100 < 30*(x+y) {
				t.Errorf("%d and %d turns", x, y)
			}
		})
	}
}

func TestAKilledHolderFreesTheLockWithinOneLease(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	lease := pace.Scale(2 * time.Second)
	p := start(t, "hold", s.Addr(), "k", lease.String())
	if got := p.ask(t, ""); got != "holding" {
		t.Fatal(got)
	}
	m, _ := manager(t, s.Client(t), anteroom.Config{})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: lease})
	if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
		t.Fatalf("%v", err)
	}
	begin := time.Now()
	ok(t, p.Process.Kill())
	h := acquire(t, mu)
	if took := time.Since(begin); !pace.Within(took, lease+lease/4) {
		t.Fatalf("free only %v after the kill", took)
	}
	ok(t, h.Release(bg))
}

// The third part of the promise: a stopped holder can't be notified, but the first
// thing that asks after it runs again gets the right answer.
func TestPromise_AStoppedHolderKnowsWhenItRunsAgain_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{})
	lease := pace.Scale(time.Second)
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: lease})
	for range 3 {
		p := start(t, "hold", s.Addr(), "k", lease.String())
		if got := p.ask(t, ""); got != "holding" {
			t.Fatal(got)
		}
		if got := p.ask(t, "?"); got != "true false" {
			t.Fatalf("before: %s", got)
		}
		ok(t, p.Process.Signal(child.SIGSTOP))
		h := acquire(t, mu) // its lease has ended
		_, err := fmt.Fprintln(p.in, "?")
		ok(t, err)
		ok(t, p.Process.Signal(child.SIGCONT))
		if got := p.ask(t, ""); got != "false true" {
			t.Fatalf("the first answer after SIGCONT (Held, Context ended): %s", got)
		}
		ok(t, h.Release(bg))
		ok(t, p.Process.Kill())
	}
}

// The same for the context that Do gives: work under Do has nothing else to ask. The
// question races with the goroutine that would notify, so it is put several times.
func TestPromise_AStoppedDoKnowsWhenItRunsAgain_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{})
	lease := pace.Scale(300 * time.Millisecond)
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: lease})
	for range 10 {
		p := start(t, "do", s.Addr(), "k", lease.String())
		if got := p.ask(t, ""); got != "holding" {
			t.Fatal(got)
		}
		ok(t, p.Process.Signal(child.SIGSTOP))
		h := acquire(t, mu) // its lease has ended
		_, err := fmt.Fprintln(p.in, "?")
		ok(t, err)
		ok(t, p.Process.Signal(child.SIGCONT))
		if got := p.ask(t, ""); got != "true" {
			t.Fatalf("the first answer after SIGCONT, whether the context has ended: %s", got)
		}
		_ = h.Release(bg) // on a slow machine its own short lease may be over
		ok(t, p.Process.Kill())
	}
}

// The first two parts on a real server and its clock.
func TestPromise_OnARealServer_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	rival, _ := manager(t, s.Client(t), anteroom.Config{})
	cfg := anteroom.LockConfig{Key: "k", LeaseTime: pace.Scale(time.Second), WatchdogPeriod: 200 * time.Millisecond}
	for i := range 5 {
		lines := faultnet.New(nil)
		m, _ := manager(t, s.Client(t, func(o *redis.Options) { o.Dialer = lines.Dial; o.ReadTimeout = pace.Scale(500 * time.Millisecond) }), anteroom.Config{})
		h := acquire(t, mutex(t, m, cfg))
		notices := make(chan time.Time, 1)
		go func() { <-h.Context().Done(); notices <- time.Now() }()
		lines.BlackHole()
		var granted time.Time
		for granted.IsZero() { // a rival that hammers the key
			if h2, err := mutex(t, rival, cfg).TryAcquire(bg); err == nil {
				if h.Context().Err() == nil || h.Held() {
					t.Fatalf("round %d: both hold the lock", i)
				}
				granted = time.Now()
				ok(t, h2.Release(bg))
			}
		}
		// The goroutine that waits may be kept waiting for a processor.
		if late := (<-notices).Sub(granted); late >= 0 && !pace.Within(late, 20*time.Millisecond) {
			t.Fatalf("round %d: notified %v after a rival had the lock", i, late)
		}
		lines.Heal()
		_ = h.Release(bg)
	}
	// Neither a renewal nor the end of a lease finds what these notice.
	cfg.LeaseTime = 10 * pace.Hang
	slow := anteroom.LockConfig{Key: "forced", LeaseTime: 10 * pace.Hang, WatchdogPeriod: 2 * pace.Hang}
	noticed := func(what string, h *anteroom.Hold) {
		t.Helper()
		select {
		case <-h.Context().Done():
		case <-time.After(pace.Hang):
			t.Fatalf("%s is not noticed", what)
		}
	}
	for range 5 {
		m, _ := manager(t, s.Client(t), anteroom.Config{})
		h := acquire(t, mutex(t, m, cfg))
		ok(t, rdb.FlushAll(bg).Err())
		noticed("a removal", h)
		_ = h.Release(bg)
		h = acquire(t, mutex(t, m, slow))
		eventually(t, "the own channel is subscribed", func() bool {
			n, err := rdb.PubSubNumSub(bg, "anteroom:client:"+m.ClientID()).Result()
			return err == nil && n["anteroom:client:"+m.ClientID()] == 1
		})
		broken, err := rival.ForceRelease(context.Background(), "forced")
		if err != nil || len(broken) != 1 {
			t.Fatalf("%q, %v", broken, err)
		}
		noticed("ForceRelease", h)
		_ = h.Release(bg)
	}
}
