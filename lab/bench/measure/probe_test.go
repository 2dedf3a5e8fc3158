package measure_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

func probe(t *testing.T, addr string) *measure.Probe {
	t.Helper()
	p, err := measure.NewProbe(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func read(t *testing.T, p *measure.Probe) measure.Reading {
	t.Helper()
	r, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProbe_CountsNothingOfItsOwn is I6: readings of an otherwise unused server differ by nothing, and of a used one
// by exactly its use.
func TestProbe_CountsNothingOfItsOwn(t *testing.T) {
	s := testredis.Start(t)
	p := probe(t, s.Addr())
	first := read(t, p)
	for range 5 {
		if r := read(t, p); r.Bytes != first.Bytes || r.Executed != first.Executed || r.Clients != 0 {
			t.Fatalf("%d bytes, %d commands, %d clients", r.Bytes-first.Bytes, r.Executed-first.Executed, r.Clients)
		}
	}
	rdb := s.Client(t, func(o *redis.Options) { o.PoolSize = 1 })
	if err := rdb.Set(t.Context(), "k", "12345", 0).Err(); err != nil {
		t.Fatal(err)
	}
	begin := read(t, p)
	for range 10 {
		if err := rdb.Eval(t.Context(), "return redis.call('get', KEYS[1])", []string{"k"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	f := read(t, p).PerOp(begin, 10, []string{"eval"})
	// EVAL and the GET inside; the request has 5 parts of known length, the answer one.
	const bytes = len("*4\r\n$4\r\neval\r\n$34\r\nreturn redis.call('get', KEYS[1])\r\n$1\r\n1\r\n$1\r\nk\r\n") + len("$5\r\n12345\r\n")
	if f[measure.CommandsPerOp] != 1 || f[measure.ExecutedPerOp] != 2 || math.Abs(f[measure.BytesPerOp]-float64(bytes)) > 1 || f[measure.Connections] != 1 {
		t.Errorf("%v, not 1 command, 2 executed, about %d bytes, 1 connection", f, bytes)
	}
}

// TestRound measures a library from end to end.
func TestRound(t *testing.T) {
	s := testredis.Start(t)
	load := measure.Load{Goroutines: 1, Keys: 1, Prefix: "r"}
	// The server is queried before the window begins and after it has ended, and the goroutine may lose the processor
	// in between, for longer than a tenth of the window. That is chance: one of several rounds is right, unless the
	// counting is wrong.
	var f measure.Figures
	right := false
	for range 10 {
		var failure string
		var err error
		f, failure, err = measure.Round(t.Context(), s.Addr(), named(t, library.Evalsha), load, 20*time.Millisecond, 100*time.Millisecond)
		if err != nil || failure != "" {
			t.Fatal(err, failure)
		}
		// Each edge of the window cuts an acquisition in two.
		if n, ops := f[measure.CommandsPerOp], f[measure.OpsPerS]/10; math.Abs(n-2) <= 0.1+4/ops {
			right = true
			break
		}
	}
	if !right {
		t.Errorf("%v commands for an acquisition, not 2", f[measure.CommandsPerOp])
	}
	for _, name := range []measure.Figure{measure.OpsPerS, measure.P50US, measure.P99US, measure.MaxUS, measure.BytesPerOp, measure.AllocsPerOp, measure.Connections} {
		if f[name] <= 0 {
			t.Errorf("%s is %v", name, f[name])
		}
	}
	if f[measure.Violations] != 0 || f[measure.Failures] != 0 {
		t.Errorf("%v", f)
	}
	// A library that always fails has figures that say so.
	broken := library.Library{Name: "broken", Open: func(string) (library.Client, error) {
		return fake{lock: func(context.Context) error { return context.DeadlineExceeded }, unlock: nothing}, nil
	}}
	f, failure, err := measure.Round(t.Context(), s.Addr(), broken, load, time.Millisecond, 300*time.Millisecond)
	if err != nil || failure == "" || f[measure.Failures] == 0 || f[measure.OpsPerS] != 0 {
		t.Errorf("%v, %q, %v", f, failure, err)
	}
	if _, ok := f[measure.P50US]; ok {
		t.Error("a wait that nobody had")
	}
}
