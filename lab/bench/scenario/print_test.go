package scenario

import "testing"

func TestCompact(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.000123: "0.00012", 0.896: "0.896", 0.5: "0.5", 1: "1", 1.999: "2", 9.876: "9.88", 45.67: "45.7", 999.4: "999",
		1000: "1,000", 1234567.8: "1,234,568",
	} {
		if got := compact(v); got != want {
			t.Errorf("%v is printed as %s, not %s", v, got, want)
		}
	}
}
