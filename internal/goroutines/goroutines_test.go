package goroutines

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/petermattis/goid"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parkHere blocks where the dump can name it.
func parkHere(id chan<- int64, until <-chan struct{}) {
	id <- goid.Get()
	<-until
}

// TestRead_ThisProcess looks at two goroutines of this very process: one that has
// ended and one that is blocked in a channel receive.
func TestRead_ThisProcess(t *testing.T) {
	t.Parallel()
	ids, until := make(chan int64), make(chan struct{})
	gone := make(chan struct{})
	var ended int64
	go func() { defer close(gone); ended = goid.Get() }()
	<-gone
	go parkHere(ids, until)
	parked := <-ids
	defer close(until)

	// An ended goroutine closes its channel before it ends, and a parked one signals its
	// id before it parks: the dump is repeated until both have got there.
	for {
		g := Inspect(time.Now(), []int64{ended, parked})
		if !g.Complete || len(g.States) != 2 {
			t.Fatalf("the scan brought %+v", g)
		}
		if p := g.States[parked]; !g.States[ended].Ended || p.State != "chan receive" {
			runtime.Gosched()
			continue
		}
		p := g.States[parked]
		if p.Ended || !p.Parked() || p.Waited != 0 {
			t.Errorf("the parked goroutine reads %+v", p)
		}
		if !strings.Contains(p.Frame, "parkHere") || !strings.Contains(p.Frame, "goroutines_test.go:") {
			t.Errorf("it is said to be in %q", p.Frame)
		}
		return
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const dump = `goroutine 1 [running]:
main.main()
	/src/main.go:10 +0x1d

goroutine 22 gp=0xc000007c00 m=nil [chan receive (durable), 5 minutes, locked to thread, synctest bubble 3]:
runtime.gopark(0x0?, 0x0?)
	/go/src/runtime/proc.go:435 +0xce fp=0xc00009 sp=0xc00008 pc=0x43
example.com/app.(*Job).run.func1({0x1, 0x2})
	/src/app/job.go:77 +0x2a
created by example.com/app.Start in goroutine 1
	/src/app/start.go:5 +0x11

goroutine 23 [sync.Mutex.Lock, 1201 minutes]:
internal/sync.runtime_SemacquireMutex(0x1)
	/go/src/runtime/sema.go:95 +0x25
sync.(*Mutex).Lock(...)
	/go/src/sync/mutex.go:46
example.com/app.work(...)
	/src/app/work.go:9

goroutine 24 [select (no cases)]:
runtime.gopark()
	/go/src/runtime/proc.go:435 +0xce
created by main.main in goroutine 1
	/src/main.go:3 +0x1

goroutine 25 [chan receive (nil chan) (leaked)]:
goroutine running on other thread; stack unavailable

goroutine 27 [chan receive]:
github.com/anteroom/anteroom/queue.(*Waiter).park(...)
	/anteroom/queue/waiter.go:138
github.com/anteroom/anteroom/sync.(*Mutex).Lock(0x1)
	/anteroom/sync/mutex.go:102 +0x1
sync.(*Cond).Wait(0x1)
	/go/src/sync/cond.go:71 +0x1
example.com/app.inner(...)
	/src/app/inner.go:5 +0x3
github.com/anteroom/anteroom/sync.(*Mutex).Do(0x1)
	/anteroom/sync/do.go:52 +0x1
github.com/anteroom/anteroom/sync_test.TestIt(0x1)
	/anteroom/sync/it_test.go:7 +0x1

goroutine 28 [sleep]:
time.Sleep(0x1)
	/go/src/runtime/time.go:1 +0x1
github.com/anteroom/anteroom/sync_test.TestThat(0x1)
	/anteroom/sync/that_test.go:8 +0x1
github.com/anteroom/anteroom/sync.(*Mutex).Do(0x1)
	/anteroom/sync/do.go:52 +0x1
main.main()
	/src/main.go:10 +0x1d

goroutine 29 [select, 2 minutes labels:{"job": "a]b, 9 minutes", "k": "v"}]:
main.main()
	/src/main.go:11 +0x1d

goroutine x [running]:
goroutine 26 [running
not a header`
	got := parse([]byte(dump), []int64{1, 22, 23, 24, 25, 26, 27, 28, 29, 99})
	for id, want := range map[int64]Goroutine{
		1:  {State: "running", Frame: "main.main (/src/main.go:10)"},
		22: {State: "chan receive", Waited: 5 * time.Minute, Frame: "example.com/app.(*Job).run.func1 (/src/app/job.go:77)"},
		23: {State: "sync.Mutex.Lock", Waited: 1201 * time.Minute, Frame: "example.com/app.work (/src/app/work.go:9)"},
		24: {State: "select (no cases)"},
		25: {State: "chan receive (nil chan)"},
		26: {Ended: true},
		27: {State: "chan receive", Frame: "github.com/anteroom/anteroom/queue.(*Waiter).park (/anteroom/queue/waiter.go:138)", Caller: "/src/app/inner.go:5"},
		28: {State: "sleep", Frame: "github.com/anteroom/anteroom/sync_test.TestThat (/anteroom/sync/that_test.go:8)", Caller: "/src/main.go:10"},
		29: {State: "select", Waited: 2 * time.Minute, Frame: "main.main (/src/main.go:11)"},
		99: {Ended: true},
	} {
		if got[id] != want {
			t.Errorf("goroutine %d reads %+v, want %+v", id, got[id], want)
		}
	}
	if len(got) != 10 {
		t.Errorf("%d goroutines for 9 questions", len(got))
	}
	if at := got[27].At(); at != "/src/app/inner.go:5" {
		t.Errorf("a goroutine in Lock is said to be at %q", at)
	}
	if at := got[28].At(); at != got[28].Frame {
		t.Errorf("a goroutine that sleeps is said to be at %q", at)
	}
	if s := got[24].String(); s != `is in "select (no cases)" for less than a minute` {
		t.Errorf("without a frame: %q", s)
	}
	if s := got[99].String(); s != "has ended" {
		t.Errorf("ended: %q", s)
	}
	for _, busy := range []string{"running", "runnable", "syscall", ""} {
		if (Goroutine{State: busy}).Parked() {
			t.Errorf("%q counts as parked", busy)
		}
	}
}

// TestRead_Limits: no scan above the limit, and a buffer that grows up to its cap.
func TestRead_Limits(t *testing.T) {
	t.Parallel()
	asked := []int64{7}
	g := Read(time.Now(), asked, MaxCount+1, func([]byte) int {
		t.Error("the dump was taken above the limit")
		return 0
	})
	if g.Complete || g.Reason == "" || len(g.States) != 1 {
		t.Errorf("above the limit: %+v", g)
	}

	text := "goroutine 7 [running]:\nmain.f()\n\t/f.go:1 +0x1\n\n" + strings.Repeat("x", 1<<20)
	var sizes []int
	g = Read(time.Now(), asked, 1, func(buf []byte) int {
		sizes = append(sizes, len(buf))
		return copy(buf, text)
	})
	if !g.Complete || g.States[7].State != "running" || len(sizes) != 4 {
		t.Errorf("grown over %v: %+v", sizes, g)
	}

	largest := 0
	g = Read(time.Now(), asked, 1, func(buf []byte) int {
		largest = max(largest, len(buf))
		return len(buf) // however large, the dump fills it
	})
	if g.Complete || g.Reason == "" || largest != maxDump {
		t.Errorf("cut short at %d: %+v", largest, g)
	}
}
