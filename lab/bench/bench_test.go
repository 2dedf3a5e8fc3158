package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	silence.Logs()
	child.Run(roles)
	goleak.VerifyTestMain(m)
}

// TestProgram runs one scenario with the program itself, as a reader of the document does.
func TestProgram(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	dir := t.TempDir()
	program, file := filepath.Join(dir, "bench"), filepath.Join(dir, "results.json")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program, "-rounds", "1", "-only", "^alone$", "-out", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	results, err := readResults(file)
	if err != nil || len(results) != len(library.All()) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	version := regexp.MustCompile(`^(v\d|go1\.|this tree$)`)
	for _, r := range results {
		if r.Scenario != "alone" || r.Figures[opsPerS] <= 0 || r.Figures[pair] <= 0 || r.Figures[violations] != 0 || !version.MatchString(r.Version) {
			t.Errorf("%+v", r)
		}
		if commands, ok := r.Figures[commandsPerOp]; !ok || strings.HasPrefix(r.Library, library.Anteroom) && r.Library != library.AnteroomLinger && (commands < 1.9 || commands > 2.2) {
			t.Errorf("%s sends %v commands for a pair", r.Library, commands)
		}
	}
}

// Every way to measure gives the figures that it exists for.
func TestScenarios_EachWayToMeasure(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	for _, c := range []struct {
		scenario, library string
		figures           []string
	}{
		{"processes-4", library.Redislock, []string{opsPerS, commandsPerOp, connections, p99, mostToLeastProcess}},
		{"second-process", library.AnteroomFair, []string{opsPerS, redisCPU}},
		{"handover-far", library.Anteroom, []string{handoverP50, roundTrips}},
		{"alone-far", library.Redislock, []string{pair, roundTrip, bytesPerOp, allocsPerOp, clientCPU}},
		{"read-95-of-100-4x4-hold-1ms", library.AnteroomRWMutex, []string{opsPerS, writeP99, commandsPerOp}},
		{"permits-8-16x1-hold-1ms", library.RedissonPermits, []string{opsPerS, mostToLeastProcess}},
		{"held-1000", library.AnteroomFull, []string{heapPerItem, redisPerItem, takenPerS, freedPerS}},
		{"removed-by-HDEL", library.AnteroomFull, []string{removalP50, removalP99}},
		{"removed-by-eviction", library.AnteroomFull, []string{removalP50, removalP99}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			all := scenarios()
			s := all[slices.IndexFunc(all, func(s scenario) bool { return s.name == c.scenario })]
			s.libraries, s.rounds, s.load.Warm, s.load.For = []string{c.library}, 1, 100*ms, 1500*ms
			keys := 50
			if slices.Contains(c.figures, heapPerItem) {
				keys = 1000 // the heap of fewer is lost in what the process frees of its warm-up
			}
			s.load.Keys, s.load.Goroutines = min(s.load.Keys, keys), min(s.load.Goroutines, 50)
			results, notes, err := plan{}.run(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			f := results[0].Figures
			for _, name := range c.figures {
				if f[name] <= 0 {
					t.Errorf("%s is %v; %v", name, f[name], notes)
				}
			}
			if f[violations] != 0 || f[locksLost] != 0 {
				t.Errorf("%v", f)
			}
			// Far is a lock and its unlock of two delayed round trips at least.
			if s.far && c.library == library.Redislock && f[pair] < micros(4*oneWay) {
				t.Errorf("a pair took %v µs, and %v are added", f[pair], 4*oneWay)
			}
		})
	}
}

// careless is a library that does not lock, and one that never returns.
type careless struct{ asleep bool }

func (c careless) Handle(string) library.Handle { return c }

func (careless) Close() error { return nil }

func (c careless) Lock(context.Context) error {
	if c.asleep {
		panic("it ends the goroutine")
	}
	return nil
}

func (careless) Unlock() error { return nil }

// Two goroutines inside are seen, in one process and through a mapped file; a panic is a failure.
func TestLoad_SeesWhatGoesWrong(t *testing.T) {
	l := load{Goroutines: 4, Keys: 1, Hold: ms, For: 50 * ms}
	if sum := l.run(t.Context(), careless{}, nil, nil); sum.Violations == 0 || sum.Ops == 0 || sum.Stuck != 0 {
		t.Errorf("%+v", sum)
	}
	if sum := l.run(t.Context(), careless{asleep: true}, nil, nil); sum.Failures != 4 || !strings.HasPrefix(sum.Failure, "panic: ") {
		t.Errorf("%d failures: %s", sum.Failures, sum.Failure)
	}
	path := filepath.Join(t.TempDir(), "guard")
	var both [2][]guard
	for i := range both {
		var err error
		if both[i], err = mapGuard(path); err != nil {
			t.Fatal(err)
		}
	}
	if !both[0][0].enter(1) || both[1][0].enter(everything) {
		t.Error("two processes are inside, and neither sees it")
	}
}

// The committed pages and charts can be made from the committed results.
func TestRender(t *testing.T) {
	results, err := readResults("results.json")
	if err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	performance := read("../../docs/performance.md")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(docs, "reference"), 0o755),
		os.WriteFile(filepath.Join(docs, "performance.md"), []byte(performance), 0o600), renderFile("results.json", docs),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range []string{"performance.md", "reference/measurements.md"} {
		if read(filepath.Join(docs, page)) != read("../../docs/"+page) {
			t.Errorf("docs/%s is not that of results.json: go run . -render", page)
		}
	}
	for _, c := range charts() {
		if svg := read(filepath.Join(docs, "plots", c.file+".svg")); !strings.Contains(svg, "<svg") {
			t.Errorf("%s: %.80s", c.file, svg)
		}
		read("../../docs/plots/" + c.file + ".svg")
	}
	// What was measured is kept by a run of something else.
	text, _ := json.Marshal(merge(results, nil))
	if again, _ := json.Marshal(results); string(text) != string(again) {
		t.Error("results are lost, or in another order")
	}
}
