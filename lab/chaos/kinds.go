package main

import (
	"time"

	"github.com/anteroom/anteroom/lab/history"
)

// kind is one kind of fault.
type kind struct {
	name string
	// server: the fault hits the server. One server fault and one process fault may be active at the same time; two
	// of the same sort are not.
	server bool
	// first: it hits whoever is first in line then.
	first bool
	// atLeast and upTo are how long it lasts.
	atLeast, upTo time.Duration
	do            func(*history.Lab, step) error
}

// The leases of a run are 1 to 2 s. longer is longer than a lease.
const (
	shortLease = time.Second
	longLease  = 2 * time.Second
	longer     = longLease + 200*time.Millisecond
)

// kinds are all of them.
var kinds = []kind{
	{"Redis SIGSTOP", true, false, longer, longer + time.Second, func(l *history.Lab, s step) error { return l.StopServer(s.lasts) }},
	{"Redis SIGKILL and restart empty", true, false, 0, 0, func(l *history.Lab, _ step) error { return l.Restart(true) }},
	{"Redis SIGKILL and restart with AOF", true, false, 0, 0, func(l *history.Lab, _ step) error { return l.Restart(false) }},
	{"FLUSHALL", true, false, 0, 0, func(l *history.Lab, _ step) error { return l.FlushAll() }},
	{"DEL", true, false, 0, 0, each((*history.Lab).Delete)},
	{"overwritten with a string", true, false, 100 * time.Millisecond, 400 * time.Millisecond, func(l *history.Lab, s step) error { return l.Overwrite(s.keys[0], s.lasts) }},
	{"ForceRelease", true, false, 0, 0, each((*history.Lab).ForceRelease)},
	{"SCRIPT FLUSH", true, false, 0, 0, func(l *history.Lab, _ step) error { return l.ForgetScripts() }},
	{"pub/sub connections killed", true, false, 0, 0, func(l *history.Lab, _ step) error { return l.KillSubscribers() }},
	{"CLIENT PAUSE", true, false, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.PauseClients(s.lasts) }},
	{"out of memory", true, false, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.OutOfMemory(s.lasts) }},
	{"READONLY", true, false, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.ReadOnly(s.lasts) }},
	{"ACL change", true, false, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.Forbid(s.lasts) }},

	suffered(history.ReplyLost, 200*time.Millisecond, 800*time.Millisecond),
	suffered(history.ReplyLate, 200*time.Millisecond, 1500*time.Millisecond),
	suffered(history.Reset, 100*time.Millisecond, 300*time.Millisecond),
	suffered(history.HalfOpen, 200*time.Millisecond, 1500*time.Millisecond),
	suffered(history.BlackHole, longer, longer+500*time.Millisecond),
	suffered(history.Latency, 300*time.Millisecond, 900*time.Millisecond),
	suffered(history.Starved, 200*time.Millisecond, 800*time.Millisecond),
	suffered(history.StopTheWorld, 200*time.Millisecond, 1200*time.Millisecond),
	{"holder SIGSTOP", false, false, longer, longer + 500*time.Millisecond, func(l *history.Lab, s step) error { return l.StopWorker(s.worker, s.lasts) }},
	{"process SIGKILL", false, false, 0, 0, func(l *history.Lab, s step) error { return l.KillWorker(s.worker) }},

	first("SIGSTOP across a call", 50*time.Millisecond, 900*time.Millisecond, func(l *history.Lab, s step) error { return l.StopWorker(s.worker, s.lasts) }),
	first("SIGSTOP", longer, longer+500*time.Millisecond, func(l *history.Lab, s step) error { return l.StopWorker(s.worker, s.lasts) }),
	first("SIGKILL", 0, 0, func(l *history.Lab, s step) error { return l.KillWorker(s.worker) }),
	first("half-open", 200*time.Millisecond, 1500*time.Millisecond, func(l *history.Lab, s step) error { return l.Suffer(s.worker, history.HalfOpen, s.lasts) }),
}

// first is a fault of whoever is first in line for one of the keys that single goroutines use, when it begins.
func first(name string, atLeast, upTo time.Duration, do func(*history.Lab, step) error) kind {
	return kind{"first in line: " + name, false, true, atLeast, upTo, func(l *history.Lab, s step) (err error) {
		if s.worker, err = l.FirstInLine(s.line); err != nil {
			return err
		}
		return do(l, s)
	}}
}

// suffered is a fault that a worker injects into itself.
func suffered(f history.FaultKind, atLeast, upTo time.Duration) kind {
	return kind{string(f), false, false, atLeast, upTo, func(l *history.Lab, s step) error { return l.Suffer(s.worker, f, s.lasts) }}
}

// each is a fault of several keys.
func each(f func(*history.Lab, int) error) func(*history.Lab, step) error {
	return func(l *history.Lab, s step) error {
		for _, key := range s.keys {
			if err := f(l, key); err != nil {
				return err
			}
		}
		return nil
	}
}
