package measure_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// TestHistogram_ErrorBound is I4: of values over ten decades, every quantile lies within
// 3 % of the exact one, and the maximum is exact.
func TestHistogram_ErrorBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var h measure.Histogram
		var values []time.Duration
		scale := math.Pow(10, 1+random.Float64()*8)
		for range 5000 {
			d := time.Duration(scale * math.Exp(random.NormFloat64()*2))
			values = append(values, d)
			h.Record(d)
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999} {
			exact := values[int(q*float64(len(values)))]
			got := h.Quantile(q)
			if off := math.Abs(float64(got-exact)) / math.Max(1, float64(exact)); off > 0.03 {
				t.Errorf("quantile %v of %v is %v, off by %.1f %%", q, exact, got, 100*off)
			}
		}
		if want := values[len(values)-1]; h.Max != want || h.Quantile(1) != want {
			t.Errorf("the maximum is %v and %v, not %v", h.Max, h.Quantile(1), want)
		}
		if h.Total != uint64(len(values)) {
			t.Errorf("%d values, counted %d", len(values), h.Total)
		}
	}
}

// TestHistogram_EveryValue: each single value, even at the bounds of buckets, is reproduced within 3 %; longer ones
// than 18 minutes only as the maximum.
func TestHistogram_EveryValue(t *testing.T) {
	for shift := range 40 {
		for _, around := range []int64{-1, 0, 1} {
			v := time.Duration(max(0, int64(1)<<shift+around))
			var h measure.Histogram
			h.Record(v)
			h.Record(time.Duration(1) << 45) // so that the maximum does not clip it
			if got := h.Quantile(0.4); math.Abs(float64(got-v)) > 0.03*float64(v) {
				t.Errorf("%d comes back as %d", v, got)
			}
		}
	}
	var h measure.Histogram
	h.Record(-time.Second)
	if h.Quantile(0.5) != 0 || h.Total != 1 {
		t.Error("a negative time is not 0")
	}
}

func TestHistogram_Add(t *testing.T) {
	var a, b, both measure.Histogram
	for i := range 1000 {
		d := time.Duration(i * i)
		both.Record(d)
		if i%3 == 0 {
			a.Record(d)
		} else {
			b.Record(d)
		}
	}
	if a.Add(&b); a != both {
		t.Error("the sum of two is not the histogram of both")
	}
	if (&measure.Histogram{}).Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
