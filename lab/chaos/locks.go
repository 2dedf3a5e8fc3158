package main

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom/lab/history"
	anteroom "github.com/anteroom/anteroom/sync"
)

// locks returns the locks of a run. The settings vary by numbers without a common factor, so that every combination
// occurs. Of five a Mutex, an RWMutex, a Mutex, a Semaphore of three units, and a Mutex.
func locks(n int) []anteroom.LockConfig {
	list := make([]anteroom.LockConfig, 0, n)
	for i := range n {
		c := anteroom.LockConfig{
			Key: fmt.Sprintf("chaos:%d", i), Name: "chaos",
			LeaseTime: shortLease + time.Duration(i%3)*(longLease-shortLease)/2, WatchdogPeriod: 500 * time.Millisecond,
			Fair: i%2 == 0, Fencing: i%3 != 2, MaxHandoffs: []int{0, 50, 5}[i%3],
		}
		if c.Fencing {
			c.MaxHandoffs = 50 // more turns, so more tokens from Redis
		}
		switch i % 11 {
		case 3:
			c.MaxHandoffs = -1
		case 5:
			c.MinHold = 60 * time.Millisecond
		case 7:
			c.RenewalTime = -1
		case 9:
			c.Linger = 300 * time.Millisecond
		}
		c.Reentrant = i%7 != 4
		if units(n)[i] > 0 {
			c.MinHold, c.Linger, c.RenewalTime, c.Reentrant, c.MaxHandoffs = 0, 0, 0, false, 0
			c.Fencing = units(n)[i] == history.AllUnits
		}
		list = append(list, c)
	}
	return list
}

// units are those of the locks.
func units(n int) (list []int64) {
	for i := range n {
		list = append(list, []int64{0, history.AllUnits, 0, 3, 0}[i%5])
	}
	return list
}
