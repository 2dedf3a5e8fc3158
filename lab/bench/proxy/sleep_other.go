//go:build !linux

package proxy

import "time"

func preciseSleep() {}

func usualSleep() {}

// sleep returns after d, not earlier.
func sleep(d time.Duration) { time.Sleep(d) }
