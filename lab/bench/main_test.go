package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestProgram runs one scenario with the program itself, as a reader of the document does, and reads what it has
// written.
func TestProgram(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	dir := t.TempDir()
	program, results := filepath.Join(dir, "bench"), filepath.Join(dir, "results.json")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program, "-quick", "-rounds", "1", "-only", "^alone$", "-out", results).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	var objects []struct {
		Scenario, Library, Version, Settings string
		Ops                                  float64  `json:"ops_per_s"`
		Commands                             *float64 `json:"redis_commands_per_op"`
		Violations                           *float64
	}
	if err := json.Unmarshal(text, &objects); err != nil {
		t.Fatal(err)
	}
	if want := len(library.All()) + 1; len(objects) != want {
		t.Fatalf("%d objects, not %d", len(objects), want)
	}
	// That versions are known is invariant I4 of package library.
	version := regexp.MustCompile(`^(v\d|go1\.|this tree$)`)
	for _, o := range objects {
		if o.Scenario != "alone" || o.Ops <= 0 || o.Commands == nil || o.Violations == nil || *o.Violations != 0 {
			t.Errorf("%+v", o)
		}
		if !version.MatchString(o.Version) {
			t.Errorf("%s has version %q", o.Library, o.Version)
		}
		if !strings.Contains(string(out), o.Library+" ("+o.Version+"): "+o.Settings) {
			t.Errorf("the settings of %s are not printed", o.Library)
		}
	}
}

// TestOld: the Anteroom of another program is measured beside this one's, which measures itself the same way.
func TestOld(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	dir := t.TempDir()
	program := filepath.Join(dir, "bench")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(old string, more ...string) (string, error) {
		args := []string{"-quick", "-rounds", "2", "-only", "^alone$", "-libraries", "^(anteroom|redislock)$", "-old", old}
		cmd := exec.Command(program, append(args, more...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(program)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "results.json")); err == nil {
		t.Error("results of an old program are in the file, and nobody asked")
	}
	file := filepath.Join(dir, "both.json")
	if out, err := run(program, "-out", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	results, err := measure.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Library)
		if r.Rounds != 2 || r.Figures[measure.OpsPerS] <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(names, ", "); got != "anteroom, anteroom (old), redislock" {
		t.Errorf("measured: %s", got)
	}
	if out, err := run(filepath.Join(dir, "no such")); err == nil || !strings.Contains(out, "no such") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestChoose(t *testing.T) {
	all := []scenario.Scenario{{Name: "a", Quick: true}, {Name: "ab"}, {Name: "b"}}
	for _, c := range []struct {
		quick bool
		only  string
		want  string
	}{{false, "", "a ab b"}, {true, "", "a"}, {false, "a", "a ab"}, {true, "^ab$", "ab"}, {false, "c", ""}, {false, "(", ""}} {
		chosen, err := choose(all, c.quick, c.only)
		var names []string
		for _, s := range chosen {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("quick %v, only %q: %q, %v", c.quick, c.only, got, err)
		}
	}
}

// TestQuickFits: the quick run's rounds take less than 50 s, with room for the time between them.
func TestQuickFits(t *testing.T) {
	quick, err := choose(scenario.Table(), true, "")
	if err != nil {
		t.Fatal(err)
	}
	total := time.Duration(0)
	for _, s := range quick {
		total += scenario.Plan{Quick: true}.Estimate(s)
	}
	if total > 40*time.Second {
		t.Errorf("the rounds alone take %v", total)
	}
}

// Fresh results give the same output as results from the file.
func TestRender_IsOfWhatTheFileHas(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "results.json"), filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("<!-- bench:begin own s -->\n<!-- bench:end -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Five digits are kept, which rounds this one up to where four round up again.
	measured := []measure.Result{{Setup: measure.Setup{Scenario: "s", Library: "l"}, Figures: measure.Figures{growth.HeapPerItem: 2195.4996}}}
	var made []string
	for _, r := range []render{{pages: page}, {pages: page, only: true}} {
		if err := r.write(io.Discard, file, measured); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		made, measured = append(made, string(text)), nil
	}
	if made[0] != made[1] {
		t.Errorf("measured: %s\nfrom the file: %s", made[0], made[1])
	}
}
