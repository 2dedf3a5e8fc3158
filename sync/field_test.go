package anteroom

import (
	"flag"
	"testing"
	"time"

	"pgregory.net/rapid"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// The life of a field against a model of its key in Redis: commands are answered, or
// their answer is lost and they land at any later moment up to their bound, in any
// order, or never. The invariants F1 to F5 of field are checked after every step.
//
// Some edits of field that break an invariant need a thousand lives before one shows it,
// so there are more than rapid's default, which -rapid.checks sets for this test too.
func TestField_F1toF5_RandomLivesAgainstAModelOfRedis(t *testing.T) {
	if lives := flag.Lookup("rapid.checks"); lives.Value.String() == lives.DefValue {
		n := "20000"
		if raceEnabled {
			n = "4000" // ten times as slow, and one goroutine: there is no race to be found
		}
		_ = lives.Value.Set(n)
		t.Cleanup(func() { _ = lives.Value.Set(lives.DefValue) })
	}
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		for range 1 + intN(t, 40) {
			l.step(t)
			l.check(t)
		}
		l.ends(t)
	})
}

// step draws one of the events that can happen now.
func (l *life) step(t *rapid.T) {
	since, left := l.f.due(l.now)
	valid := l.phase == held && l.now.Before(l.deadline())
	var can []string
	events := map[string]func(*rapid.T){}
	add := func(name string, now bool, do func(*rapid.T)) {
		if now {
			can, events[name] = append(can, name), do
		}
	}
	add("time", true, l.time)
	add("land", len(l.flights) > 0, l.land)
	add("other", l.holder == "" || l.holder == them, l.other)
	add("flush", l.holder == us, l.flush)
	add("acquire", l.phase == wanted, l.acquire)
	add("abandon", l.phase == wanted && l.f.open > 0, l.burn)
	add("renew", valid && !l.fixed, l.renew)
	add("extend", valid, l.extend)
	add("lose", l.phase == held, l.lose)
	add("retire", l.phase == held, l.retire)
	add("finish", l.phase == lostByUs, l.finish)
	add("release", l.phase == held, l.endHold)
	add("clean up", l.f.burnt && left && !l.now.Before(since) && l.f.remains(l.now), l.cleanUp)
	add("attempt", l.f.droppable(l.now) && l.answer == nil, l.attempt)
	add("answer", l.answer != nil, l.answered)
	name := can[intN(t, len(can))]
	t.Logf("%v %s", l.now.Sub(epoch), name)
	events[name](t)
}

// intN draws a number below n. rapid's own ranges prefer small numbers; these are even,
// so that every event is as likely as the next, and shrink to 0.
func intN(t *rapid.T, n int) int {
	return rapid.Custom(func(t *rapid.T) int {
		v := 0
		for range 10 {
			v <<= 1
			if rapid.Bool().Draw(t, "bit") {
				v++
			}
		}
		return v % n
	}).Draw(t, "draw")
}

var epoch = time.Unix(1e9, 0)

const us, mark, them = "us", "mark", "them" // who has the key

// life is one field, the process that has it, and the key in Redis.
type life struct {
	f      field
	margin time.Duration
	fixed  bool
	now    time.Time

	// The key: who has it, and until when; commands that may land.
	holder  string
	expires time.Time
	grantee bool // the fencing record names us, so that a renewal may take the key again
	flights []flight
	late    bool // an acquire has landed later than its time limit

	// The process.
	phase   phase
	answer  func()    // of an attempt under way
	alive   time.Time // the end of the lease, as far as Redis has confirmed it
	working bool      // the owner may still be working
	why     LossReason
	doomed  bool
	bound   time.Time // of every lease that the field may have got

	// The truth that the process can't see.
	unbroken   bool // the grant has been in Redis without interruption
	thirdParty bool // somebody has removed it by force
	released   bool // the owner's own release was sent
	atRelease  bool // unbroken at that moment
	byUs       bool // a command of ours has ended it that was sent in time
	vague      bool // who removed it can't be seen: a release in time may have, or a drop, or something else was there
}

type phase int

const (
	wanted phase = iota
	held
	lostByUs // lost, and its owner not finished
	ended    // released, retired, abandoned, or lost and finished
)

// flight is a command that may still land.
type flight struct {
	by time.Time
	do func()
}

func newLife(t *rapid.T) *life {
	ms := func(name string, lo, hi int) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, name)) * time.Millisecond
	}
	lease := ms("lease", 100, 400)
	return &life{
		f:      field{lease: lease, timeout: ms("timeout", 10, 200), reacquire: intN(t, 2) > 0},
		margin: lease / 10, fixed: intN(t, 2) > 0, now: epoch,
	}
}

// Redis.

func (l *life) time(t *rapid.T) {
	l.pass(time.Duration(rapid.IntRange(1, 300).Draw(t, "ms")) * time.Millisecond)
}

func (l *life) pass(d time.Duration) {
	l.now = l.now.Add(d)
	if l.holder != "" && !l.now.Before(l.expires) {
		l.vanish()
	}
	kept := l.flights[:0]
	for _, c := range l.flights {
		if !l.now.After(c.by) {
			kept = append(kept, c)
		}
	}
	l.flights = kept
}

func (l *life) vanish() {
	if l.holder == us {
		l.unbroken = false
	}
	l.holder = ""
}

func (l *life) land(t *rapid.T) {
	i := intN(t, len(l.flights))
	c := l.flights[i]
	l.flights = append(l.flights[:i:i], l.flights[i+1:]...)
	c.do()
}

// other is another client: it takes a free key, or gives it back.
func (l *life) other(t *rapid.T) {
	switch l.holder {
	case "":
		l.holder, l.expires, l.grantee = them, l.now.Add(time.Second), false
	case them:
		l.holder = ""
	}
}

// flush removes the key by force: FLUSHALL, DEL, ForceRelease.
func (l *life) flush(t *rapid.T) {
	l.vanish()
	l.thirdParty = true
}

func (l *life) raise(d time.Duration) { l.expires = latest(l.expires, l.now.Add(d)) }

// place is the acquire script.
func (l *life) place(repeat bool, sent time.Time) (granted, found, failed bool) {
	l.late = l.late || l.now.After(sent.Add(l.f.timeout))
	switch l.holder {
	case "":
		l.holder, l.expires, l.grantee = us, l.now.Add(l.f.lease), true
		return true, false, false
	case us:
		if !repeat {
			return false, false, true
		}
		l.raise(l.f.lease)
		return true, true, false
	}
	return false, false, false
}

// release is the release script.
func (l *life) release(keep time.Duration) (o lettucecompat.Outcome, marked bool) {
	l.grantee = false
	switch l.holder {
	case us:
		l.holder = ""
		if keep > 0 {
			l.holder, l.expires = mark, l.now.Add(keep)
		}
		return lettucecompat.OutcomeOK, false
	case mark:
		return lettucecompat.OutcomeOK, true
	}
	return lettucecompat.OutcomeGone, false
}

// send decides how a command fares. It returns OutcomeOK where run was executed and
// answered. bound is how long after it was sent an unanswered one may land.
func (l *life) send(t *rapid.T, bound time.Duration, run func()) lettucecompat.Outcome {
	sent := l.now
	wait := func(name string) {
		l.pass(time.Duration(rapid.IntRange(0, int(l.f.timeout/time.Millisecond)).Draw(t, name)) * time.Millisecond)
	}
	switch intN(t, 6) {
	case 0, 1:
		run()
		return lettucecompat.OutcomeOK
	case 2:
		t.Log("… its answer is lost")
		run()
		wait("noticed after")
		return lettucecompat.OutcomeUnknown
	case 3, 4:
		t.Log("… without an answer; it may land")
		l.flights = append(l.flights, flight{by: sent.Add(bound), do: run})
		wait("given up after")
		return lettucecompat.OutcomeUnknown
	}
	t.Log("… never sent")
	return lettucecompat.OutcomeFailed
}

// The process, as driver, grant and tenure use a field.

func (l *life) acquire(t *rapid.T) {
	sent, repeat := l.now, l.f.open > 0
	var granted, found, failed bool
	// Commands may land later than their time limit: a stopped server, a long queue.
	// The clean-up counts with that for as long as it goes on.
	o := l.send(t, l.f.timeout+3*l.f.lease, func() { granted, found, failed = l.place(repeat, sent) })
	switch {
	case o == lettucecompat.OutcomeUnknown:
		l.f.unanswered(sent)
		l.mayLast(sent)
	case o == lettucecompat.OutcomeOK && granted && !failed:
		l.unbroken = l.holder == us
		l.pass(time.Duration(rapid.IntRange(0, int(l.f.timeout/time.Millisecond)).Draw(t, "answered after")) * time.Millisecond)
		l.f.granted(found)
		l.alive = sent.Add(l.f.lease)
		if !l.now.Before(l.deadline()) {
			l.burn(t) // worth nothing
			return
		}
		l.phase, l.working = held, true
		if intN(t, 2) > 0 {
			l.f.keep = l.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "keep")) * time.Millisecond)
		}
	}
}

// mayLast notes that a lease may begin up to a time limit after at.
func (l *life) mayLast(at time.Time) { l.bound = latest(l.bound, at.Add(l.f.lease+l.f.timeout)) }

func (l *life) deadline() time.Time { return l.alive.Add(-l.margin) }

// burn gives the field up: nobody wants it.
func (l *life) burn(*rapid.T) {
	l.f.burn(l.now, l.now)
	l.mayLast(l.now)
	l.phase, l.working = ended, false
}

func (l *life) renew(t *rapid.T) {
	l.command(t, l.f.lease, l.f.reacquire)
}

// reacquire is what a renewal does that finds the key missing. Nobody has had it since, or the
// record would name another, so the grant counts as unbroken.
func (l *life) reacquire() bool {
	if l.holder != "" || !l.grantee {
		return false
	}
	l.holder, l.expires, l.unbroken = us, l.now.Add(l.f.lease), true
	l.atRelease = l.atRelease || l.released
	return true
}

func (l *life) extend(t *rapid.T) {
	d := time.Duration(rapid.IntRange(100, 1000).Draw(t, "d")) * time.Millisecond
	l.f.extending(l.now, d)
	l.bound = latest(l.bound, l.now.Add(d+l.f.timeout))
	l.command(t, d, false)
}

// command raises the time to live to d.
func (l *life) command(t *rapid.T, d time.Duration, reacquire bool) {
	sent, there := l.now, false
	o := l.send(t, l.f.timeout, func() {
		if there = l.holder == us; there {
			l.raise(d)
		} else if reacquire {
			there = l.reacquire()
		}
	})
	switch {
	case o == lettucecompat.OutcomeOK && there && l.now.Before(l.deadline()):
		l.alive = latest(l.alive, sent.Add(d))
	case o == lettucecompat.OutcomeOK && !there:
		l.lost(LostGone, false)
	}
}

func (l *life) lose(t *rapid.T) {
	if !l.now.Before(l.deadline()) {
		l.lost(LostDeadline, intN(t, 2) > 0)
		return
	}
	switch why := []LossReason{LostForced, LostClosed, LostWatchdog}[intN(t, 3)]; why {
	case LostForced:
		if l.holder == us {
			l.vanish()
			l.thirdParty = true
		}
		l.lost(why, false)
	default:
		l.lost(why, why == LostWatchdog && intN(t, 2) > 0)
	}
}

func (l *life) lost(why LossReason, doomed bool) {
	l.why, l.doomed, l.phase = why, doomed, lostByUs
	l.f.lost(why, l.now, l.alive, !l.fixed, doomed)
	l.mayLast(latest(l.now, l.alive))
}

// retire gives up a grant that nobody has owned.
func (l *life) retire(t *rapid.T) {
	l.f.keep = time.Time{}
	l.burn(t)
}

// finish is the owner's Release or last Unlock of a lost lock.
func (l *life) finish(*rapid.T) {
	l.phase, l.working = ended, false
	if l.fixed || l.why == LostClosed || l.why == LostWatchdog {
		l.f.burnNow(l.now)
		l.mayLast(l.now)
	}
}

// endHold is the owner's Release or last Unlock.
func (l *life) endHold(t *rapid.T) {
	l.phase, l.working = ended, false
	l.released, l.atRelease = true, l.unbroken
	l.f.deadline = l.deadline()
	sent := l.now
	o, marked := l.sendRelease(t)
	l.f.burn(l.now, l.now)
	l.mayLast(l.now)
	l.f.released(lettucecompat.ReleaseReply{Outcome: o, Marked: marked}, sent)
}

// cleanUp is one round of the clean-up.
func (l *life) cleanUp(t *rapid.T) {
	sent := l.now
	l.f.sending()
	o, marked := l.sendRelease(t)
	l.f.released(lettucecompat.ReleaseReply{Outcome: o, Marked: marked}, sent)
	l.f.returned()
}

func (l *life) sendRelease(t *rapid.T) (lettucecompat.Outcome, bool) {
	l.mayRemove(t, "released")
	keep, inTime := l.f.keepFor(l.now), l.now.Before(l.f.deadline)
	l.vague = l.vague || inTime && l.f.open > 0
	var o lettucecompat.Outcome
	var marked bool
	sent := l.send(t, time.Second, func() {
		was := l.holder
		l.removing(inTime)
		if o, marked = l.release(keep); was == us && l.holder == "" && l.now.Before(l.f.keep) {
			t.Fatalf("F3: free %v before MinHold is over", l.f.keep.Sub(l.now))
		}
	})
	if sent != lettucecompat.OutcomeOK {
		l.vague = l.vague || inTime && sent == lettucecompat.OutcomeUnknown
		return sent, false
	}
	return o, marked
}

// removing notes what a command of ours that is executed now will do to the grant.
func (l *life) removing(inTime bool) {
	if l.holder == us && l.unbroken {
		l.unbroken = false
		l.byUs = l.byUs || inTime && l.released
	}
}

// attempt is a new attempt of this process for the key, with another field. Its answer
// may come after those of releases that were sent later.
func (l *life) attempt(t *rapid.T) {
	l.mayRemove(t, "dropped")
	if l.now.Before(l.f.keep) {
		t.Fatalf("F3: dropped %v before MinHold is over", l.f.keep.Sub(l.now))
	}
	sent, inTime := l.now, l.now.Before(l.f.deadline)
	l.vague = l.vague || inTime && l.f.open > 0
	l.f.sending()
	var dropped bool
	o := l.send(t, time.Second, func() {
		l.removing(inTime)
		if dropped = l.holder == us; dropped {
			l.holder = ""
		}
		if l.holder == "" { // granted to this attempt, or to whoever is called; else refused
			l.holder, l.expires, l.grantee = them, l.now.Add(time.Second), false
		}
	})
	lost := o == lettucecompat.OutcomeUnknown
	l.vague = l.vague || inTime && lost
	answered := o == lettucecompat.OutcomeOK
	l.answer = func() {
		l.f.attempted(answered, answered && dropped, lost, sent)
		l.f.returned()
		l.answer = nil
	}
	if intN(t, 2) == 0 {
		l.answer()
	}
}

// answered is the answer of an attempt that arrives.
func (l *life) answered(*rapid.T) { l.answer() }

// What must hold.

// mayRemove checks F2 when something that removes the field is sent.
func (l *life) mayRemove(t *rapid.T, how string) {
	gone := l.why == LostGone || l.why == LostForced || l.doomed
	if l.working && !gone && l.now.Before(l.alive) {
		t.Fatalf("F2: %s under an owner that may be working, %v before its lease is over", how, l.alive.Sub(l.now))
	}
}

func (l *life) check(t *rapid.T) {
	if l.f.open < 0 {
		t.Fatal("more acquires have landed than were sent")
	}
	if l.phase >= lostByUs && !l.f.burnt && l.f.open > 0 {
		t.Fatal("F1: nobody looks after acquires that may land")
	}
	if l.phase >= lostByUs && !l.f.burnt && l.grantee && l.holder == us && l.f.reacquire && !l.fixed {
		t.Fatal("F1: nobody looks after a field that a renewal has put there again")
	}
	if end := l.f.end(); end.After(l.bound) {
		t.Fatalf("F5: the clean-up lasts %v longer than any lease", end.Sub(l.bound))
	}
	// F4. Before the deadline only somebody who removes it by force can have ended it,
	// and that stays hidden behind a release without an answer.
	if l.released && l.f.ours && !l.atRelease && !(l.thirdParty && l.vague) {
		t.Fatal("F4: reported as released, and it had not been us until then")
	}
	if l.f.confirmed && !l.f.ours && l.byUs {
		t.Fatal("F4: reported as lost, and it was us who ended it in time")
	}
	if _, left := l.f.due(l.now); !l.f.burnt || left {
		return
	}
	// F1: the process has forgotten the field. Where that is for certain, it is not there,
	// now or later; otherwise every lease is over but those of acquires that have
	// landed later than was to be expected.
	certain := !l.f.held && l.f.open == 0
	if l.holder == us && (certain || !l.late) {
		t.Fatalf("F1: forgotten (for certain: %v), and there for %v", certain, l.expires.Sub(l.now))
	}
}

// ends checks F5: with no usable answer at all the clean-up ends at its bound.
func (l *life) ends(t *rapid.T) {
	if l.answer != nil {
		l.answer()
	}
	since, left := l.f.due(l.now)
	if !l.f.burnt || !left {
		return
	}
	l.pass(max(latest(since, l.bound).Sub(l.now), 0))
	l.f.released(lettucecompat.ReleaseReply{Outcome: lettucecompat.OutcomeUnknown}, l.now)
	if _, left := l.f.due(l.now); left {
		t.Fatal("F5: the clean-up goes on")
	}
}
