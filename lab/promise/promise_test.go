package promise_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/promise"
)

// The leases here are longer than those measured by make promise, and the margin is the largest one: a goroutine ends
// a context, and on a busy test machine that goroutine may be late. A question needs no goroutine.
const (
	testLease  = 3 * time.Second
	testMargin = testLease / 10
	testLook   = time.Second // WatchdogPeriod and CommandTimeout, where only the watchdog tells
)

func renewed() promise.Library { return promise.Anteroom(testLease, testMargin) }

func unrenewed() promise.Library {
	return promise.AnteroomUnrenewed(10*time.Second, testLook, testLook)
}

func TestMain(m *testing.M) {
	promise.Main(renewed(), naive())
	goleak.VerifyTestMain(m)
}

// tries is how often a round is run until every context was in time. A machine that is busy with other tests may
// delay the goroutine that ends contexts by a whole margin; it does not do so three times in a row.
const tries = 3

// judged fails the test unless every lease of samples was lost as promised. It returns false, without failing the
// test, if only contexts were too late and another try is left.
func judged(t *testing.T, lib promise.Library, loss string, samples []promise.Sample, last bool) bool {
	t.Helper()
	c, q := promise.Collect(lib.Name, loss, samples)
	for _, d := range []promise.Distribution{c, q} {
		t.Logf("%s, %s, by %s: n %d, early %d, least %v, median %v, greatest %v, broken %d",
			d.Library, d.Loss, d.Told(), d.N, d.Early, d.At(0), d.At(0.5), d.At(1), d.Broken)
		if d.Untold > 0 || d.Revived > 0 {
			t.Errorf("%s, by %s: %d of %d were never told, %d said \"held\" after \"lost\"", d.Loss, d.Told(), d.Untold, d.N, d.Revived)
		}
	}
	// With fewer than half of the leases lost in the tested way, the test would prove little.
	if (c.N+q.N)*2 < len(samples) {
		t.Errorf("%s: %d of %d holds were lost before anything was done to them", loss, len(samples)-c.N-q.N, len(samples))
	}
	if q.Broken > 0 {
		t.Errorf("%s: %d of %d answered \"held\" when it was too late; no slowness of the machine explains that", loss, q.Broken, q.N)
	}
	if c.Broken > 0 && last {
		t.Errorf("%s: %d of %d contexts had not ended when it was too late: the goroutine that ends them got no processor for a whole margin of %v, or it does not end them in time", loss, c.Broken, c.N, testMargin)
	}
	return c.Broken == 0
}

// The first part: a rival that hammers the key gets it only after the holder was notified.
func TestExpiry_IsToldBeforeARivalHasTheLock(t *testing.T) {
	t.Parallel()
	for how, name := range []string{promise.CutOff: "cut off", promise.Stopped: "Redis stopped"} {
		s := testredis.Start(t)
		for try := range tries {
			samples, err := promise.Expiry(renewed(), s, 80, promise.Outage(how))
			if err != nil {
				t.Fatal(err)
			}
			if judged(t, renewed(), name, samples, try == tries-1) {
				break
			}
		}
	}
}

// The second part: a removal is reported within W + C, found by the watchdog alone if nothing is renewed.
func TestRemoval_IsToldWithinItsBound(t *testing.T) {
	t.Parallel()
	type result struct {
		samples []promise.Sample
		err     error
	}
	results := make([]result, len(promise.Removals()))
	libs := make([]promise.Library, len(promise.Removals()))
	var wg sync.WaitGroup
	for i, kind := range promise.Removals() {
		libs[i] = unrenewed()
		if kind == promise.Flushed || kind == promise.Restarted {
			libs[i] = renewed()
		}
		s := testredis.Start(t)
		wg.Go(func() { results[i].samples, results[i].err = promise.Removed(libs[i], s, 20, kind) })
	}
	wg.Wait()
	for i, kind := range promise.Removals() {
		if results[i].err != nil {
			t.Errorf("%v: %v", kind, results[i].err)
			continue
		}
		judged(t, libs[i], kind.String(), results[i].samples, true)
	}
}

// The third part: after a process was stopped for longer than its leases, the first question to each hold gets the
// right answer, whichever question it is.
func TestStoppedHolder_KnowsAtTheFirstQuestion(t *testing.T) {
	t.Parallel()
	samples, err := promise.Paused(renewed(), testredis.Start(t), 100)
	if err != nil {
		t.Fatal(err)
	}
	judged(t, renewed(), "stopped", samples, true)
}

// A lock that breaks all parts of the promise is detected in every hold.
func TestALockThatTellsLateIsFoundOut(t *testing.T) {
	t.Parallel()
	plan := promise.Plan{Leases: 5, Holds: 10, Failed: func(err error) { t.Log("repeated:", err) }}
	for _, kind := range promise.Kinds {
		if kind.Removal && kind.Name != "removal, DEL" {
			continue
		}
		both, err := promise.Measure(t, naive(), kind, plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range both {
			t.Logf("%+v", d)
			if d.N == 0 || d.Broken != d.Judged || d.Judged == 0 && d.Loss != "stopped holder" || d.At(0) <= 0 {
				t.Errorf("%s, by %s: %d of %d are found out; the least figure is %v", d.Loss, d.Told(), d.Broken, d.N, d.At(0))
			}
		}
	}
}

// A round that cannot be carried out is repeated, and in the end an error.
func TestALibraryThatCannotBeMeasuredIsAnError(t *testing.T) {
	lib := naive()
	lib.Connect = func(string, faultnet.DialFunc) (promise.Client, error) { return nil, errors.New("no way") }
	failed := 0
	_, err := promise.Measure(t, lib, promise.Kinds[0], promise.Plan{Leases: 1, Holds: 2, Failed: func(error) { failed++ }})
	if err == nil || !strings.Contains(err.Error(), "no way") || failed == 0 {
		t.Fatalf("%v after %d failures", err, failed)
	}
}

// A holder's process that cannot carry out its order ends, and says so.
func TestAnUnknownLibraryIsAnError(t *testing.T) {
	lib := renewed()
	lib.Name = "unknown"
	if _, err := promise.Paused(lib, testredis.Start(t), 2); err == nil || !strings.Contains(err.Error(), `no library "unknown"`) {
		t.Fatal(err)
	}
}

func TestDistribution(t *testing.T) {
	var samples []promise.Sample
	for i := range 100 {
		samples = append(samples, promise.Sample{ByContext: true, Told: true, Figure: time.Duration(i+1) * time.Millisecond, Judged: true, Broken: i == 7})
	}
	samples = append(samples, promise.Sample{Early: true}, promise.Sample{Judged: true, Broken: true}, promise.Sample{Told: true, Figure: -time.Second, Revived: true})
	c, q := promise.Collect("lib", "loss", samples)
	if c.N != 100 || c.Broken != 1 || c.Judged != 100 || c.At(0) != time.Millisecond || c.At(1) != 100*time.Millisecond || c.At(0.99) != 99*time.Millisecond {
		t.Errorf("context: %+v", c)
	}
	if q.N != 2 || q.Early != 1 || q.Untold != 1 || q.Broken != 1 || q.Revived != 1 || q.At(0.5) != -time.Second {
		t.Errorf("question: %+v", q)
	}
	var b strings.Builder
	promise.Print(&b, []promise.Distribution{c, q})
	want := "| lib | loss | context | 100 | 1.0 | 51.0 | 99.0 | 100.0 | 1 | 0 | 0 |\n| lib | loss | question | 2 | -1000.0 | -1000.0 | -1000.0 | -1000.0 | 1 | 1 | 1 |\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	promise.PrintSpread(&b, [][]promise.Distribution{{c}, {c}})
	if want = "| lib | loss | context | 200 | 1.0 | 51.0 … 51.0 | 99.0 … 99.0 | 100.0 | 2 | 0 |\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s", b.String())
	}
}
