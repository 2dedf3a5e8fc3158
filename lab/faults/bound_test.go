package faults_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bound is a sum of the letters of docs/guarantees.md with factors, such as "D + 2C". It is printed as it is, and
// checked as a time.
//
//	L lease   R renewal   M margin   W watchdog's period   C command's time limit
//	D duration of the fault   B longest pause between two attempts of an acquire
//
// atOnce is without Redis: no time but the slack.
type bound string

const atOnce bound = "at once"

// of returns the bound's time for a fault, on an idle machine: see cell.bound.
func (b bound) of(f *fault) time.Duration {
	letters := map[string]time.Duration{
		"L": lease, "R": renewal, "M": margin, "W": period, "C": f.timeout, "D": f.lasts, "B": backoff,
	}
	var sum time.Duration
	if b == atOnce {
		return 0
	}
	for term := range strings.SplitSeq(strings.ReplaceAll(string(b), "− ", "+ −"), " + ") {
		sign := time.Duration(1)
		if rest, minus := strings.CutPrefix(term, "−"); minus {
			sign, term = -1, rest
		}
		digits := strings.TrimRight(term, "LRMWCDB")
		factor := 1
		if digits != "" {
			var err error
			if factor, err = strconv.Atoi(digits); err != nil {
				panic(fmt.Sprintf("bound %q: %v", b, err))
			}
		}
		d, known := letters[term[len(digits):]]
		if !known {
			panic(fmt.Sprintf("bound %q: what is %q?", b, term))
		}
		sum += sign * time.Duration(factor) * d
	}
	return sum
}
