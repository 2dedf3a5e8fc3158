package faults_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// document says what is expected of each cell: a row of the section of its operation.
const document = "../../docs/reference/fault-matrix.md"

// expectation is what a cell must observe.
type expectation struct {
	steps       []want
	left, later string // in Redis, at once and after a lease
}

// want is what one caller gets, and within which time. If the load of the machine or chance decides between answers,
// got names all.
type want struct {
	name, got string
	within    bound
}

// or separates answers between which the load, or chance in the pauses between attempts, decides.
const or = " or "

func (w want) allows(got string) bool { return slices.Contains(strings.Split(w.got, or), got) }

// expectations reads the document: the table of the faults, then a section for each operation with a row for each
// fault. The result is by operation and fault.
func expectations(t *testing.T) map[string]map[string]expectation {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	var rows []string
	for _, f := range faults {
		lasts := "–"
		if f.lasts > 0 {
			lasts = f.lasts.String()
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %v |\n", f.name, f.about, lasts, f.timeout))
	}
	if want := "| fault | what is done | D | C |\n|---|---|---|---|\n" + strings.Join(rows, ""); !strings.Contains(sections[0], want) {
		t.Errorf("%s does not have the table of the faults, which is\n%s", document, want)
	}
	all := map[string]map[string]expectation{}
	for _, section := range sections[1:] {
		title, body, _ := strings.Cut(section, "\n")
		i := slices.IndexFunc(operations, func(op *operation) bool { return strings.EqualFold(op.name, title) })
		if i < 0 || !strings.Contains(body, operations[i].about[1:]+".\n") {
			t.Fatalf("%s: the section %q is of no operation, or does not say what that is", document, title)
		}
		cells := map[string]expectation{}
		for line := range strings.Lines(body) {
			columns := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
			if len(columns) != 5 || columns[0] == "fault" {
				continue
			}
			cells[columns[0]] = expect(t, columns)
		}
		for _, f := range faults {
			if _, ok := cells[f.name]; !ok {
				t.Errorf("%s: nothing is expected of %s at %s", document, f.name, title)
			}
		}
		all[operations[i].name] = cells
	}
	if len(all) != len(operations) {
		t.Errorf("%s: %d sections for %d operations", document, len(all), len(operations))
	}
	return all
}

// expect reads one row: the fault, what the callers get, within what, what is left at once and after a lease.
func expect(t *testing.T, columns []string) expectation {
	t.Helper()
	e := expectation{left: columns[3], later: columns[4]}
	got, within := strings.Split(columns[1], "<br>"), strings.Split(columns[2], "<br>")
	if len(got) != len(within) {
		t.Fatalf("%s: %d callers and %d bounds in %q", document, len(got), len(within), columns)
	}
	for i := range got {
		w := want{within: bound(strings.Trim(within[i], "–"))}
		w.name, w.got, _ = strings.Cut(got[i], ": ")
		e.steps = append(e.steps, w)
	}
	return e
}
