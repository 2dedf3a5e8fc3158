package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// A duration is a number of seconds or has units, for each flag.
func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "2.5": 2500 * time.Millisecond, "90": 90 * time.Second, "1m30s": 90 * time.Second, "100ms": 100 * time.Millisecond,
		"-1": -1, "-1s": -1, "1e10": -1, "nan": -1, "-inf": -1, "soon": -1, "": -1, "1 s": -1,
	} {
		var d time.Duration
		err := (*seconds)(&d).Set(text)
		if (err != nil) != (want < 0) || err == nil && d != want {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
	for path, c := range visible(t) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, is := f.Value.(*seconds); !is && f.Value.Type() == "duration" {
				t.Errorf("%s --%s wants a unit", path, f.Name)
			}
		})
	}
}
