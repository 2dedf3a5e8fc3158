package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// seconds is the value of a flag for a duration, which may be a plain number of seconds, as for flock(1).
type seconds time.Duration

// durationVar adds such a flag. Its default is what d has.
func durationVar(cmd *cobra.Command, d *time.Duration, name, short, usage string) {
	flag := cmd.Flags().VarPF((*seconds)(d), name, short, usage)
	if *d == 0 {
		flag.DefValue = "" // or the help would say 0s
	}
}

// Set parses "2.5s", "1m" or "2.5".
func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, plain := strconv.ParseFloat(text, 64); plain == nil && n <= 1e9 {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return errors.New("must be a duration such as 2.5s, 1m or 2.5, which is seconds")
	}
	*s = seconds(d)
	return nil
}

// String returns the duration with its unit.
func (s *seconds) String() string { return time.Duration(*s).String() }

// Type returns the kind of value for the help.
func (s *seconds) Type() string { return "duration" }
