package faults_test

import "time"

// operation is one column of the matrix.
type operation struct {
	name    string
	about   string
	request string // a text that only the operation's own commands contain
	times   int    // how many of them a fault of single requests strikes
	shared  bool   // the lock is an RWMutex
	lingers bool   // the locks have Linger
	refused bool   // nobody has the right to CLIENT TRACKING
	run     func(*rig)
}

var operations = []*operation{
	{
		name: "acquire", run: acquire, request: lockKey,
		about: "the lock is free; the victim calls TryAcquire, then Acquire with much time, while the fault lasts",
	},
	{
		name: "wait", run: wait, request: lockKey,
		about: "the rival's process holds, the victim waits in Acquire; the rival releases while the fault lasts",
	},
	{
		name: "call", run: beCalled, request: lockKey,
		about: "the rival's process holds, the victim is first in line; the rival releases while the fault lasts, and asks again",
	},
	{
		name: "renew", run: renew, request: lockKey, times: 3,
		about: "the victim holds through the fault and a lease more, the rival waits",
	},
	{
		name: "renew untracked", run: renew, request: lockKey, times: 3, refused: true,
		about: "the same, and the server refuses CLIENT TRACKING",
	},
	{
		name: "linger", run: linger, request: "releaseTime", lingers: true,
		about: "the victim has released, and its process keeps the lock; the rival asks for it while the fault lasts",
	},
	{
		name: "release", run: release, request: "releaseTime",
		about: "the victim holds and releases while the fault lasts, the rival waits",
	},
	{
		name: "hand-off", run: handOff, request: "releaseTime",
		about: "A holds, B and C wait in the same process; A releases while the fault lasts, then B. B is handed the lock, for C the turn has to end in Redis",
	},
	{
		name: "read", run: read, request: lockKey, times: 3, shared: true,
		about: "the lock is an RWMutex; the victim reads through the fault and a lease more, the rival waits to write",
	},
	{
		name: "write", run: write, request: lockKey, shared: true,
		about: "the lock is an RWMutex; the rival's process reads, the victim is first in line, to write; the rival releases while the fault lasts, and asks to read again",
	},
}

// acquire: what TryAcquire and Acquire get.
func acquire(r *rig) {
	switch {
	case r.fault.removes && r.fault.lasts == 0:
		acquireAndForget(r)
	case r.fault.process && r.fault.holder:
		acquireAndStop(r)
	default:
		r.strike()
		c := r.victim.try()
		if r.observe("TryAcquire", c, c.began).Got == "nil" {
			r.victim.release(c).wait()
		}
		if r.fault.once {
			r.net.Heal()
			r.strike()
		}
		c = r.victim.acquire()
		r.healLater()
		if r.fault.lasts == 0 {
			r.struck = c.began // TryAcquire has returned
		}
		r.observe("Acquire", c, r.struck)
	}
	r.over.Wait()
}

// acquireAndForget: Redis has granted the lock, the answer is in flight, and then the lock is removed.
func acquireAndForget(r *rig) {
	r.net.HoldReplies()
	c := r.victim.acquire()
	eventually("the lock is granted", r.exists)
	r.strike()
	r.net.Heal()
	if late := now().sub(c.began); late > r.timeout()/2 {
		panic(again{"the answer was held for " + late.String()})
	}
	r.healLater()
	r.observe("Acquire", c, r.struck)
	r.lost("hold", c)
}

// acquireAndStop: Redis grants the lock while the victim is stopped.
func acquireAndStop(r *rig) {
	r.server.Pause()
	c := r.victim.acquire()
	time.Sleep(r.timeout() / 4) // the command is probably in flight; there is no way to know
	r.strike()
	r.server.Resume()
	r.healLater()
	r.observe("Acquire", c, r.struck)
}

// wait: one process waits for another's release.
func wait(r *rig) {
	holder, waiter := r.rival, r.victim
	if r.fault.holder {
		holder, waiter = waiter, holder
	}
	h := holder.hold()
	if r.fault.once {
		r.strike() // what it meets is the attempt that stands
	}
	c := waiter.acquire()
	r.standing(waiter)
	if !r.fault.once {
		r.strike()
	}
	rel := holder.release(h)
	r.healLater()
	r.observe("holder's Release", rel, r.struck)
	r.observe("waiter's Acquire", c, r.struck)
	r.over.Wait()
}

// beCalled: the first in line is called while the fault lasts, and its process may be unable to take notice.
func beCalled(r *rig) { r.beCalled(r.rival.acquire) }

// write: the same with a reader, a writer behind it, and a reader behind that.
func write(r *rig) {
	r.beCalled(r.rival.read)
	time.Sleep(100 * time.Millisecond) // units that nobody uses may be kept for 10 ms
}

// beCalled: the rival acquires as given.
func (r *rig) beCalled(acquire func() *call) {
	h := acquire().granted()
	if r.fault.once {
		r.strike() // what it meets is the attempt that stands
	}
	c := r.victim.acquire()
	r.standing(r.victim)
	if !r.fault.once {
		r.strike()
	}
	rel := r.rival.release(h)
	r.healLater()
	r.observe("rival's Release", rel, r.struck)
	next := acquire()
	// The next one is in first where the victim does not run, or Redis has forgotten the line.
	first := earlier(c, next)
	if first.wait().Got == "nil" {
		first.a.release(first)
	}
	r.observe("victim's Acquire", c, r.struck)
	r.observe("rival's next Acquire", next, r.struck)
	r.over.Wait()
	for _, second := range []*call{c, next} {
		if second != first && second.wait().Got == "nil" {
			second.a.release(second).wait()
		}
	}
}

// renew: a hold survives the fault, or is lost.
func renew(r *rig) { r.renew(r.victim.hold()) }

// read: the same with the units of a reader.
func read(r *rig) { r.renew(r.victim.read().granted()) }

func (r *rig) renew(h *call) {
	next := r.rival.acquire()
	r.standing(r.rival)
	eventually("the hold has its whole lease", func() bool { return r.check.PTTL(bg, lockKey).Val() > r.stretched(lease)*3/4 }) // the first lease is never stretched
	r.strike()
	r.healLater()
	if r.lost("hold", h) {
		r.observe("rival's Acquire", next, r.struck)
		r.over.Wait()
		return
	}
	r.over.Wait()
	r.atOnce = r.left()
	rel := r.victim.release(h)
	r.observe("Release", rel, rel.began)
	r.observe("rival's Acquire", next, rel.began)
}

// lost watches a hold until the notification of its loss, at most for the fault, a lease and what a removal may need,
// and records the result.
func (r *rig) lost(name string, h *call) bool {
	window := max(r.lasts(), r.stretched(lease)) + r.stretched(period) + r.timeout()
	timer := time.NewTimer(r.struck.add(window).sub(now()))
	defer timer.Stop()
	s := step{name: name, since: r.struck}
	select {
	case n := <-r.victim.told(h):
		s.got, s.at = n.Got, n.At
	case <-timer.C:
		n := r.victim.start(doHeld, h.id, 0).wait()
		s.got, s.at = "held", r.struck
		if n.Got != "nil" {
			n = <-r.victim.told(h) // the clock shows the loss; the notification is in flight
			s.got, s.at = n.Got, n.At
		}
	}
	r.steps = append(r.steps, s)
	return s.got != "held"
}

// release: the holder releases while another process waits.
func release(r *rig) {
	h := r.victim.hold()
	next := r.rival.acquire()
	r.standing(r.rival)
	r.strike()
	rel := r.victim.release(h)
	r.healLater()
	r.observe("Release", rel, r.struck)
	r.observe("rival's Acquire", next, r.struck)
	r.over.Wait()
}

// linger: the lock lingers in the victim's process, which is asked for it.
func linger(r *rig) {
	h := r.victim.hold()
	r.victim.release(h).wait()
	if !r.exists() {
		fail("the lock does not linger")
	}
	r.strike()
	next := r.rival.acquire()
	r.healLater()
	r.observe("rival's Acquire", next, r.struck)
	r.over.Wait()
	if r.fault.removes { // until its process has noticed that, the victim may come in
		r.atOnce = r.left()
		time.Sleep(r.bound("W + C"))
	}
}

// handOff: the lock is handed off within the process, then by the end of a turn.
func handOff(r *rig) {
	a := r.victim.hold()
	b := r.victim.acquire()
	waiters(r.victim, 1)
	c := r.victim.acquire()
	waiters(r.victim, 2)
	time.Sleep(1100 * time.Millisecond) // a turn that has not asked for a second does so at its end
	r.strike()
	rel := r.victim.release(a)
	r.healLater()
	if n := r.observe("A's Release", rel, r.struck); r.fault.removes && n.Got != "nil" {
		panic(again{"the loss was told before A released"})
	}
	if r.observe("B's Acquire", b, r.struck).Got == "nil" {
		r.observe("B's Release", r.victim.release(b), r.struck)
	}
	r.observe("C's Acquire", c, r.struck)
	r.over.Wait()
}
