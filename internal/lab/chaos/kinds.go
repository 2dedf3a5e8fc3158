package main

import (
	"time"

	"github.com/anteroom/anteroom/internal/lab/history"
)

// kind is one kind of fault.
type kind struct {
	name string
	// server: the fault hits the server. One server fault and one process fault may be active at the same time; two
	// of the same sort are not.
	server bool
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
	{"Redis SIGSTOP", true, longer, longer + time.Second, func(l *history.Lab, s step) error { return l.StopServer(s.lasts) }},
	{"Redis SIGKILL and restart empty", true, 0, 0, func(l *history.Lab, _ step) error { return l.Restart(true) }},
	{"Redis SIGKILL and restart with AOF", true, 0, 0, func(l *history.Lab, _ step) error { return l.Restart(false) }},
	{"FLUSHALL", true, 0, 0, func(l *history.Lab, _ step) error { return l.FlushAll() }},
	{"DEL", true, 0, 0, each((*history.Lab).Delete)},
	{"overwritten with a string", true, 100 * time.Millisecond, 400 * time.Millisecond, func(l *history.Lab, s step) error { return l.Overwrite(s.keys[0], s.lasts) }},
	{"ForceRelease", true, 0, 0, each((*history.Lab).ForceRelease)},
	{"SCRIPT FLUSH", true, 0, 0, func(l *history.Lab, _ step) error { return l.ForgetScripts() }},
	{"pub/sub connections killed", true, 0, 0, func(l *history.Lab, _ step) error { return l.KillSubscribers() }},
	{"CLIENT PAUSE", true, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.PauseClients(s.lasts) }},
	{"out of memory", true, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.OutOfMemory(s.lasts) }},
	{"READONLY", true, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.ReadOnly(s.lasts) }},
	{"ACL change", true, 200 * time.Millisecond, 900 * time.Millisecond, func(l *history.Lab, s step) error { return l.Forbid(s.lasts) }},

	suffered(history.ReplyLost, 200*time.Millisecond, 800*time.Millisecond),
	suffered(history.ReplyLate, 200*time.Millisecond, 1500*time.Millisecond),
	suffered(history.Reset, 100*time.Millisecond, 300*time.Millisecond),
	suffered(history.HalfOpen, 200*time.Millisecond, 1500*time.Millisecond),
	suffered(history.BlackHole, longer, longer+500*time.Millisecond),
	suffered(history.Latency, 300*time.Millisecond, 900*time.Millisecond),
	suffered(history.Starved, 200*time.Millisecond, 800*time.Millisecond),
	suffered(history.StopTheWorld, 200*time.Millisecond, 1200*time.Millisecond),
	{"holder SIGSTOP", false, longer, longer + 500*time.Millisecond, func(l *history.Lab, s step) error { return l.StopWorker(s.worker, s.lasts) }},
	{"process SIGKILL", false, 0, 0, func(l *history.Lab, s step) error { return l.KillWorker(s.worker) }},
}

// suffered is a fault that a worker injects into itself.
func suffered(f history.FaultKind, atLeast, upTo time.Duration) kind {
	return kind{string(f), false, atLeast, upTo, func(l *history.Lab, s step) error { return l.Suffer(s.worker, f, s.lasts) }}
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
