package scenario

import "github.com/anteroom/anteroom/lab/bench/measure"

// Value returns a figure of r, including derived ones, and whether there is one.
func Value(r measure.Result, name measure.Figure) (float64, bool) { return value(r, name) }
