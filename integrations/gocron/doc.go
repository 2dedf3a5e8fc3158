// Package anteroomgocron runs each tick of a gocron job on one of several processes.
//
//	s, err := anteroomgocron.NewScheduler(m, anteroom.LockConfig{}) // in place of gocron.NewScheduler
//	if err != nil {
//		return err
//	}
//	_, err = s.NewJob(gocron.CronJob("*/5 * * * *", false), s.NewTask(report), gocron.WithName("report"))
//
// gocron unlocks when the job returns. A process whose tick comes a little later, since its clock is behind, then finds
// the lock free and runs the same tick again. So the key stays taken after the job (LockConfig.MinHold), until shortly
// before the next tick. The Scheduler asks the job itself when that is: nobody states the interval twice, and irregular
// crontabs and changes to summer time are right.
//
// A tick runs twice only if clocks differ by more than nine tenths of the time between two ticks (or by 24 hours), if a
// process dies in a run, whose key is free when the lease has ended, or if the lock is lost. Processes whose ticks are not
// at the same time, since a DurationJob counts from the start, run it once in nine tenths of the interval at most.
//
// A tick is left out, by all, if Redis cannot be reached, or while the job still runs from an earlier tick: the lock is
// held until the job returns, however long that takes. One may be left out, too, when the process that ran the last tick
// has ended, and those left have clocks that are ahead of its by more than a tenth.
//
// An Elector, which one process leads until it ends, is simpler and has no MinHold: a tick that falls into the moment in
// which leadership changes can run twice, or not at all.
package anteroomgocron
