package faults_test

import (
	"time"

	"github.com/anteroom/anteroom/lab/history"
)

// moment is a reading of the host's monotonic clock, which all processes of a cell share.
type moment int64

func now() moment { return moment(history.Now()) }

// at converts a local time that has a monotonic reading.
func at(t time.Time) moment { return moment(history.At(t)) }

func (m moment) sub(earlier moment) time.Duration { return time.Duration(m - earlier) }

func (m moment) add(d time.Duration) moment { return m + moment(d) }

// sleepUntil is for a fault's own duration: only time has to pass.
func sleepUntil(m moment) { time.Sleep(m.sub(now())) }
