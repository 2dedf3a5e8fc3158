package faults_test

import (
	"slices"
	"strings"
)

// expectation is what a cell must observe.
type expectation struct {
	left  string // in Redis, at once
	steps []want
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

// expected returns what is expected of a cell.
func expected(f *fault, op *operation) expectation { return expectations[op.name][f.name] }

// expectations is by operation and fault.
var expectations = map[string]map[string]expectation{
	"acquire": expectAcquire, "wait": expectWait, "call": expectCall, "renew": expectRenew, "release": expectRelease, "hand-off": expectHandOff,
}
