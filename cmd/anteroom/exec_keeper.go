//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// keeper holds the lock while the command runs. It is not the command's parent: that is the supervisor, a process of
// this program that survives the keeper's sudden death and notices when the keeper is stopped. The keeper sends it
// again and again for how long the lock is still held, and passes signals on.
type keeper struct {
	*execution
	hold     *anteroom.Hold
	lease    time.Duration
	super    *supervisorProcess
	group    int          // the command's process group, 0 until it has started
	tty      *controlling // nil without one
	saidLost bool         // the lock was lost, and the command is being ended for it
	// signal has ended the command, 0 for none. byKey: the command had the terminal then, so the signal may have been
	// a key's, and nothing else has received it.
	signal syscall.Signal
	byKey  bool
}

// run starts the command and returns its exit status once nothing of its process group remains. An error means that
// the command did not run, or that its status is unknown.
func (k *keeper) run(l launch) (status int, err error) {
	k.tty = openTerminal()
	defer k.tty.close()
	l.Foreground = k.tty.interactive()
	if k.super, err = startSupervisor(); err != nil {
		return 0, &exitError{status: exitCannotRun, err: fmt.Errorf("cannot start the command's supervisor: %w", err)}
	}
	defer k.super.wait()
	defer k.takeBack()
	signal.Notify(k.signals, notIgnored(passingSignals)...)
	// From here on the terminal may be the command's while this process writes to it or takes it back. The supervisor
	// was started before that: ignored signals are inherited.
	signal.Ignore(syscall.SIGTTOU)
	k.super.order(superOrder{Kind: orderStart, Start: &l, Valid: k.hold.TTL()})
	return k.attend(l)
}

// attend is the keeper's loop.
func (k *keeper) attend(l launch) (status int, err error) {
	lost := k.hold.Context().Done()
	every := time.NewTicker(max(k.lease/10, 10*time.Millisecond))
	defer every.Stop()
	var late <-chan time.Time
	for {
		select {
		case s := <-k.signals:
			k.pass(s)
		case <-every.C:
			k.assure()
		case <-lost:
			lost = nil
			k.sayLost("ending the command (" + graceText(l.Grace) + ")")
			k.super.order(superOrder{Kind: orderLost})
			late = time.After(l.Grace + time.Second)
		case <-late:
			// The supervisor has been stopped: nothing else delays its report for so long.
			late = nil
			k.super.takeOver(k.group)
		case r, ok := <-k.super.reports:
			switch {
			case !ok:
				return k.orphaned()
			case r.Kind == reportStarted:
				k.group = r.Group
			case r.Kind == reportFailed:
				return 0, notStarted(l.Argv[0], syscall.Errno(r.Errno))
			case r.Kind == reportStopped:
				k.stopped(syscall.Signal(r.Signal))
			case r.Kind == reportLeft:
				k.errs.say("the command has ended; lock %q is held until all of its process group %d have ended", k.key, k.group)
			case r.Kind == reportEnded:
				// It may have seen the end of the lease before this process, if that was stopped or slow.
				if r.Lost && !k.saidLost {
					k.sayLost("the command was ended")
				}
				k.signal, k.byKey = syscall.Signal(r.Signal), k.hasTerminal()
				return r.Status, nil
			}
		}
	}
}

// sayLost reports that the lock is lost, and why.
func (k *keeper) sayLost(what string) {
	k.saidLost = true
	why := "its lease expired" // as the supervisor saw it
	if err := k.hold.Err(); err != nil {
		why = reason(err)
	}
	k.errs.say("lock %q lost, %s: %s", k.key, what, why)
}

// assure sends the supervisor for how long the lock is held.
func (k *keeper) assure() {
	if ttl := k.hold.TTL(); ttl > 0 {
		k.super.order(superOrder{Kind: orderValid, Valid: ttl})
	}
}

// pass hands a signal on to the command's group.
func (k *keeper) pass(s os.Signal) {
	if s == syscall.SIGCONT {
		k.resume()
		return
	}
	if n, ok := s.(syscall.Signal); ok {
		k.super.order(superOrder{Kind: orderSignal, Signal: int(n)})
	}
}

// orphaned ends the group after the supervisor was killed. The kernel has killed the command itself if it can (see
// commandAttr); the others of its group are then our children. If the supervisor was killed before it reported the
// group, the children that are new are found by listing them, where that is possible.
func (k *keeper) orphaned() (int, error) {
	k.super.reap() // only then are its children certainly ours
	for {
		groups := []int{k.group}
		if k.group == 0 {
			groups = k.super.leftGroups()
		}
		gone := true
		for _, g := range groups {
			_ = syscall.Kill(-g, syscall.SIGKILL)
			reapAny()
			gone = gone && groupGone(g)
		}
		if gone {
			err := errors.New("the command's supervisor was killed, and the command with it")
			return 0, &exitError{status: exitSignalBase + int(syscall.SIGKILL), err: err}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func graceText(grace time.Duration) string {
	if grace == 0 {
		return "KILL"
	}
	return fmt.Sprintf("TERM, KILL in %v", grace)
}
