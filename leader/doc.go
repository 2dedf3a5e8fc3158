// Package leader elects one of several processes and runs its work there.
//
//	e, err := leader.New(m, anteroom.LockConfig{Key: "leader:billing", Name: "leader"}, "")
//	if err != nil {
//		return err
//	}
//	return e.Run(ctx, func(ctx context.Context) error {
//		return bill(ctx) // this process leads; ctx ends when it no longer does
//	})
//
// Leadership is a lock of package anteroom, with all that it promises: it is renewed while the work runs, a leader that
// loses it is notified before another can be elected by expiry, and a leader that dies is succeeded after one lease.
// Candidates wait in a line in Redis: one that resigns, steps down or shuts down hands over to the first of them
// immediately. Nobody's clock is compared with another's.
//
// Work that ignores its context continues beside the next leader's. If that does harm, set LockConfig.Fencing, take
// the token from anteroom.HoldFrom(ctx), and let the resource refuse old ones.
//
// # Why it differs from others
//
// In Kubernetes' leaderelection the work runs on a goroutine of its own, and Run may return while it continues; so the
// usual advice is to exit the process when leadership is lost. Its callback for the end is called also where nothing
// began, Run makes one candidature, and the lease is released on shutdown only if that is asked for. Here one function
// runs for one term, on the goroutine of Run; the next term begins after it has returned; the release is the end of
// the term.
//
// etcd's Election leaves the loop of campaigning, watching the session and resigning to the caller, and a campaign does
// not end when its session expires: a candidate that was out of touch too long can wait for ever, or believe that it
// leads. Here Run is that loop, and a candidate that Redis has forgotten runs again by itself.
//
// # Invariants
//
//	I1  At most one term runs at a time in an Election, and among all candidates as far as the lock excludes.
//	I2  The context of a term ends when leadership is lost, StepDown is called, or Run's context ends.
//	I3  When Run returns, leadership has been handed over, or its release continues in the background.
//	I4  After a loss, or StepDown, Run waits in line again, behind the candidates that are there.
//	I5  A candidate's wait is no long wait: it raises no event and no log record.
package leader
