package history

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
)

// The faults of a laboratory. Each is recorded, so that the judge knows its possible effects, returns when it is
// over, and reports an error if it did not take place.

// removal runs a command that may remove locks. did is what its answer says.
func (l *Lab) removal(key int, what string, f func(context.Context) (did bool, err error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
	defer cancel()
	r := Removal{Key: key, From: Now(), What: what}
	did, err := f(ctx)
	r.To, r.Certain = Now(), did && err == nil
	l.removed(r)
	return err
}

// FlushAll removes every key.
func (l *Lab) FlushAll() error {
	return l.removal(AllKeys, "FLUSHALL", func(ctx context.Context) (bool, error) { return true, l.Admin.FlushAll(ctx).Err() })
}

// Delete removes the key of a lock, as a foreign client would.
func (l *Lab) Delete(key int) error {
	return l.removal(key, "DEL", func(ctx context.Context) (bool, error) {
		n, err := l.Admin.Del(ctx, l.Setup.Locks[key].Key).Result()
		return n > 0, err
	})
}

// ForceRelease releases a lock as an operator would.
func (l *Lab) ForceRelease(key int) error {
	return l.removal(key, "ForceRelease", func(ctx context.Context) (bool, error) {
		broken, err := l.Operator.ForceRelease(ctx, l.Setup.Locks[key].Key)
		return len(broken) > 0, err
	})
}

// Overwrite puts a string at the key of a lock, for d.
func (l *Lab) Overwrite(key int, d time.Duration) error {
	name := l.Setup.Locks[key].Key
	err := l.removal(key, "SET", func(ctx context.Context) (bool, error) {
		return true, l.Admin.Set(ctx, name, "overwritten", 0).Err()
	})
	if err != nil {
		return err
	}
	time.Sleep(d)
	// Nobody can have acquired the lock meanwhile, so this is not a second removal.
	return l.Admin.Del(context.Background(), name).Err()
}

// ForgetScripts flushes the script cache.
func (l *Lab) ForgetScripts() error { return l.Admin.ScriptFlush(context.Background()).Err() }

// KillSubscribers kills all subscription connections.
func (l *Lab) KillSubscribers() error {
	n, err := l.Admin.ClientKillByFilter(context.Background(), "TYPE", "pubsub").Result()
	if err == nil && n == 0 {
		err = fmt.Errorf("nobody was subscribed")
	}
	return err
}

// unserved runs f, waits for d, and runs the function that undoes f. Meanwhile Redis serves nobody, or not what they
// need.
func (l *Lab) unserved(what string, d time.Duration, f, undo func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d+pace.Hang)
	defer cancel()
	from := Now()
	defer func() { l.away(AllProcs, from, false, what) }()
	err := f(ctx)
	if err == nil {
		time.Sleep(d)
	}
	if undo == nil {
		return err
	}
	if undone := undo(ctx); err == nil {
		err = undone
	}
	return err
}

// PauseClients makes Redis answer nobody for d.
func (l *Lab) PauseClients(d time.Duration) error {
	return l.unserved("CLIENT PAUSE", d, func(ctx context.Context) error {
		return l.Admin.Do(ctx, "client", "pause", d.Milliseconds()).Err()
	}, nil)
}

// OutOfMemory makes Redis refuse commands that need memory, for d.
func (l *Lab) OutOfMemory(d time.Duration) error {
	set := func(bytes string) func(context.Context) error {
		return func(ctx context.Context) error { return l.Admin.ConfigSet(ctx, "maxmemory", bytes).Err() }
	}
	return l.unserved("OOM", d, set("1"), set("0"))
}

// ReadOnly makes the server a replica of a master that does not exist, for d.
func (l *Lab) ReadOnly(d time.Duration) error {
	return l.unserved("READONLY", d,
		func(ctx context.Context) error { return l.Admin.ReplicaOf(ctx, "127.0.0.1", "1").Err() },
		func(ctx context.Context) error { return l.Admin.ReplicaOf(ctx, "NO", "ONE").Err() })
}

// Forbid revokes the workers' right to run scripts, for d.
func (l *Lab) Forbid(d time.Duration) error {
	rights := func(rule string) func(context.Context) error {
		return func(ctx context.Context) error { return l.Admin.ACLSetUser(ctx, workerUser, rule).Err() }
	}
	return l.unserved("ACL", d, rights("-@scripting"), rights("+@scripting"))
}

// StopServer stops the redis-server with SIGSTOP for d.
func (l *Lab) StopServer(d time.Duration) error {
	return l.unserved("SIGSTOP of Redis", d,
		func(context.Context) error { l.Server.Pause(); return nil },
		func(context.Context) error { l.Server.Resume(); return nil })
}

// Restart kills the redis-server and starts it again: with its append-only file, which is written before anything is
// answered, or empty.
func (l *Lab) Restart(empty bool) error {
	from := Now()
	l.Server.Kill()
	var err error
	if empty {
		err = l.removeData()
	}
	l.Server.Restart()
	l.away(AllProcs, from, false, "restart")
	if empty {
		l.removed(Removal{Key: AllKeys, From: from, To: Now(), Certain: err == nil, What: "restart with empty memory"})
	}
	return err
}

// Suffer makes worker i inject a fault into itself, for d.
func (l *Lab) Suffer(i int, kind FaultKind, d time.Duration) error {
	p := l.Worker(i)
	proc := p.Plan.Proc
	if kind == Starved {
		proc = AllProcs // Redis loses the processors too
	}
	from := Now()
	defer func() { l.away(proc, from, false, string(kind)) }()
	return p.Suffer(kind, d)
}

// StopWorker stops worker i with SIGSTOP for d.
func (l *Lab) StopWorker(i int, d time.Duration) error {
	return l.StopWorkerUntil(i, func() { time.Sleep(d) })
}

// StopWorkerUntil stops worker i with SIGSTOP until wait returns.
func (l *Lab) StopWorkerUntil(i int, wait func()) error {
	p := l.Worker(i)
	from := Now()
	defer func() { l.away(p.Plan.Proc, from, true, "SIGSTOP") }()
	if err := p.Signal(child.SIGSTOP); err != nil {
		return err
	}
	wait()
	return p.Signal(child.SIGCONT)
}

// KillWorker kills worker i and starts it again.
func (l *Lab) KillWorker(i int) error {
	l.Worker(i).Kill()
	l.StartWorker(i)
	return nil
}
