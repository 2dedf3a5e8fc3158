package lettucecompat_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// simClient is a process: the units that it has, and who in it waits for or uses some.
type simClient struct {
	*unitsSim
	*lettucecompat.Client
	base, epoch int
	id          string
	capacity    int64
	terms       *lettucecompat.Terms
	mix         func() (need, hold, gap int64)
	queue       []simUser
	inside      []simUser
	paused      int64

	n, since                 uint64
	units, deadline          int64
	contended, retry         bool
	contendedN, called       uint64 // the numbers in the last messages
	flight                   *simFlight
	place                    *simTarget // what its place wants; nil: it has none
	unknown                  bool       // whether it has one
	sentAt                   map[uint64]int64
	mostKept                 int64
	idle                     int64 // since then units are unused; 0: none
	renewAt, confirmAt       int64
	turnEnds, againAt        int64
	token, handed, grantedAt int64
}

type simUser struct{ need, since, hold, until int64 }

type simTarget struct {
	want  int64
	again bool
}

type simFlight struct {
	n       uint64
	s, keep int64
	target  *simTarget
}

// born makes it a new process.
func (c *simClient) born() {
	*c = simClient{unitsSim: c.unitsSim, base: c.base, mix: c.mix, epoch: c.epoch + 1}
	c.id = fmt.Sprintf("c%d-%d", c.base, c.epoch)
	c.clients[c.id] = c
	c.capacity = all
	c.terms = &lettucecompat.Terms{Call: simCall * time.Millisecond, Lease: simLease * time.Millisecond, Life: simLife * time.Millisecond, Shared: true, Fenced: true, RecordTime: lettucecompat.DefaultRecordTime}
	if c.semaphore {
		c.capacity = 7
		if c.base == 0 {
			c.capacity = 5
		}
		c.terms.Capacity, c.terms.Fenced = c.capacity, false
	}
	c.Client, _ = lettucecompat.New(c.rdb, lettucecompat.Options{ClientID: c.id})
	c.n, c.sentAt = first+c.rng.Uint64N(1000), map[uint64]int64{}
	epoch := c.epoch
	c.after(c.rng.Int64N(20), func() { c.arrive(epoch) })
}

// arrive is another user.
func (c *simClient) arrive(epoch int) {
	if epoch != c.epoch {
		return
	}
	need, hold, gap := c.mix()
	if len(c.queue) < 6 {
		c.queue = append(c.queue, simUser{need: min(need, c.capacity), since: c.now, hold: hold})
	}
	c.after(gap, func() { c.arrive(epoch) })
	c.step()
}

func (c *simClient) wakeAt(at int64) {
	epoch := c.epoch
	c.after(max(at-c.now, 0), func() {
		if epoch == c.epoch {
			c.step()
		}
	})
}

func (c *simClient) used() (sum int64) {
	for _, u := range c.inside {
		if sum += u.need; !c.semaphore {
			sum = max(u.need, sum-u.need) // readers share a unit
		}
	}
	return sum
}

// lose gives up what it has.
func (c *simClient) lose() {
	c.units, c.inside, c.contended = 0, nil, false
	c.forgetCalls()
}

// forgetCalls: no call of a command that was sent counts any more.
func (c *simClient) forgetCalls() {
	if c.wrong != "an old call counts" {
		c.sentAt = map[uint64]int64{}
	}
}

// admit lets users in who find room.
func (c *simClient) admit(closed bool) {
	for len(c.queue) > 0 && c.units > 0 && !closed {
		u := c.queue[0]
		suffices := c.used()+u.need <= c.units
		if !c.semaphore {
			suffices = c.units >= u.need && (len(c.inside) == 0 || u.need < all && c.used() < all)
		}
		if !suffices {
			return
		}
		u.until = c.now + u.hold
		c.queue, c.inside = c.queue[1:], append(c.inside, u)
		c.wakeAt(u.until)
		c.useToken(u)
		c.check()
	}
}

// useToken shows a token to the resource, which takes none below the greatest that it has seen. A writer of the same grant has
// the next one, of which there are fewer than half the µs since.
func (c *simClient) useToken(u simUser) {
	if !c.terms.Fenced || c.deletes {
		return
	}
	if u.need == all && c.handed < (c.now-c.grantedAt)*500-1 {
		c.handed++
	}
	token := c.token + c.handed
	if token < c.seen {
		c.violated("S5: token %d of %s (needs %d) after %d", token, c.id, u.need, c.seen)
	}
	c.seen = max(c.seen, token)
}

// step does what is due.
func (c *simClient) step() {
	if c.paused > c.now {
		return
	}
	if c.units > 0 && c.now >= c.deadline {
		c.lose()
	}
	c.inside = slices.DeleteFunc(c.inside, func(u simUser) bool { return u.until <= c.now })
	closed := c.contended && c.now >= c.turnEnds
	c.admit(closed)
	if c.flight != nil {
		return
	}
	used, want := c.used(), int64(0)
	if len(c.queue) > 0 {
		want = c.queue[0].need
		if c.semaphore {
			want += used
		}
		if want > c.capacity || !c.semaphore && used == all { // first, who is inside must leave
			want = 0
		}
	}
	keep, spare := c.units, c.units-used
	if closed && spare > 0 {
		keep = used
	} else if want == 0 && spare > 0 {
		if c.idle == 0 {
			c.idle = c.now
			c.wakeAt(c.now + 10)
		}
		if c.now-c.idle >= 10 && c.wrong != "unused units are renewed" {
			keep = used
		}
	}
	if spare == 0 || want > 0 {
		c.idle = 0
	}
	target := &simTarget{want, closed && want > 0 && want <= keep}
	if !target.again && want <= keep {
		target = nil
	}
	changed := (target == nil) != (c.place == nil) || target != nil && *target != *c.place
	if c.now < c.againAt || keep == c.units && !changed && !c.unknown && !(c.units > 0 && c.now >= c.renewAt && (used > 0 || target != nil || c.wrong == "unused units are renewed")) &&
		!(target != nil && (c.now >= c.confirmAt || c.retry)) {
		return
	}
	c.retry = false
	c.send(keep, target)
}

// send states what it keeps and wants.
func (c *simClient) send(keep int64, target *simTarget) {
	c.n++
	st := lettucecompat.Command{Key: c.key, N: c.n, Since: c.since, Keep: keep, Want: keep, Terms: c.terms, LastToken: c.token + c.handed}
	if target != nil {
		st.Want, st.Again = target.want, target.again
	}
	switch { // a call on its way is kept where nothing is given back
	case keep > 0:
		st.Have, st.Units = unit, keep
	case c.place != nil && !c.unknown:
		st.Have = place
	}
	if st.Have != nothing && keep == c.units && !st.Again {
		st.Keep = max(keep, st.Want)
	}
	if kept := max(keep, st.Keep); (keep < c.units || kept < c.mostKept) && c.wrong != "a call counts above a later keep" {
		c.forgetCalls()
	}
	c.mostKept = max(st.Want, st.Keep)
	if c.wrong == "a confirmation keeps what it has" {
		st.Keep = keep
	}
	if c.wrong != "given when answered" {
		c.units = min(c.units, keep)
	}
	c.sentAt[c.n] = c.now
	f := &simFlight{n: c.n, s: c.now, keep: keep, target: target}
	c.flight, c.place, c.unknown = f, target, false
	epoch, client := c.epoch, c.Client
	lands := func() { c.lands(epoch, client, st, f) }
	switch {
	case c.disturbed(.04): // lost
	case c.disturbed(.04):
		c.after(c.between(10, 3*simLease), lands)
	default:
		c.after(c.delay(1, 1, 1, 2, 4), lands)
	}
	if c.wrong == "a command is sent twice" && c.chance(.05) {
		c.after(c.between(10, 3*simLease), lands)
	}
	c.after(simTimeout, func() { c.timeout(epoch, f) })
}

// lands is when Redis gets a command, also that of a process that crashed.
func (c *simClient) lands(epoch int, client *lettucecompat.Client, st lettucecompat.Command, f *simFlight) {
	a := c.state(client, st)
	if a.Units == all && a.Token > 0 {
		c.writers = append(c.writers, writer{a.Token, c.id})
	}
	writers := len(c.writers)
	if epoch != c.epoch || c.disturbed(.04) {
		return
	}
	d := c.delay(1, 1, 1, 2, 4)
	if c.disturbed(.04) {
		d = c.between(10, simTimeout)
	}
	c.after(d, func() { c.answered(epoch, f, a, writers) })
}

func (c *simClient) timeout(epoch int, f *simFlight) {
	switch {
	case epoch != c.epoch || c.flight != f:
	case c.paused > c.now:
		c.after(c.paused-c.now, func() { c.timeout(epoch, f) })
	default:
		c.flight, c.unknown = nil, true
		c.againAt = c.now + c.between(5, 40)
		c.wakeAt(c.againAt)
	}
}

// answered takes in the answer to the last command. writers is how many grants to writers were before it.
func (c *simClient) answered(epoch int, f *simFlight, a lettucecompat.Answer, writers int) {
	switch {
	case epoch != c.epoch:
		return
	case c.paused > c.now:
		c.after(c.paused-c.now, func() { c.answered(epoch, f, a, writers) })
		return
	case c.flight != f: // late
		return
	}
	c.flight = nil
	if c.called == f.n { // the call is newer
		c.place = nil
		c.step()
		return
	}
	switch a.Word {
	case void, wordGone:
		c.unknown = true
		c.step()
		return
	case lost:
		c.lose()
		c.unknown = true
		c.step()
		return
	}
	if a.Units > 0 {
		s := f.s
		if c.wrong == "the lease counts from the answer" {
			s = c.now
		}
		until := s + a.TTL.Milliseconds() - simMargin
		if c.units > 0 {
			until = max(until, c.deadline)
		}
		c.deadline, c.renewAt = until, f.s+simCall/10
		if f.keep > 0 {
			c.renewAt = f.s + simLease/3
		}
		c.wakeAt(c.renewAt)
		c.wakeAt(c.deadline)
		if a.Units > c.units {
			c.turnEnds = c.now + 10
		}
	}
	if c.units > 0 && c.units < all && a.Units > 0 && a.Units < all && c.terms.Fenced {
		for _, w := range c.writers[max(0, writers-40):writers] {
			if w.token > c.token && w.id != c.id {
				c.violated("S13: %s has kept its unit, token %d, over writer %v", c.id, c.token, w)
			}
		}
	}
	if a.Token > 0 {
		c.token, c.handed, c.grantedAt = a.Token, 0, f.s
	}
	c.units, c.since = a.Units, f.n
	c.contended = a.Contended || c.contendedN == f.n
	if a.Word != waits {
		c.place = nil
	} else {
		c.confirmAt = c.now + simLife/3
		if c.chance(.7) && a.Next > 0 {
			c.confirmAt = min(c.confirmAt, c.now+a.Next.Milliseconds())
		}
		c.wakeAt(c.confirmAt)
	}
	c.check()
	c.step()
	if c.contended {
		c.wakeAt(c.turnEnds)
	}
}

// hears takes in a message.
func (c *simClient) hears(epoch int, words []string) {
	if epoch != c.epoch {
		return
	}
	if c.paused > c.now {
		c.after(c.paused-c.now, func() { c.hears(epoch, words) })
		return
	}
	n, _ := strconv.ParseUint(words[2], 10, 64)
	switch words[0] {
	case "called":
		c.onCalled(n, words)
	case "contended":
		c.contendedN = n
		if _, sent := c.sentAt[n]; sent || n == c.n {
			c.contended = true
			c.wakeAt(c.turnEnds)
		}
	default:
		c.retry = true
	}
	c.step()
}

func (c *simClient) onCalled(n uint64, words []string) {
	units, _ := strconv.ParseInt(words[3], 10, 64)
	token, _ := strconv.ParseInt(words[4], 10, 64)
	s, sent := c.sentAt[n]
	old := c.now >= s+simCall/2
	if c.wrong == "a call counts from the last command" {
		for _, at := range c.sentAt {
			s, old = max(s, at), false
		}
		sent = len(c.sentAt) > 0
	}
	if !sent || old && c.wrong != "an old call counts" || c.place == nil && !c.unknown || units <= c.units {
		c.retry = true
		return
	}
	until := s + simCall - simMargin
	if c.wrong == "a call gives the lease" {
		until = s + simLease - simMargin
	}
	if c.units > 0 {
		until = max(until, c.deadline)
	}
	c.deadline, c.units, c.since, c.called = until, units, n, n
	if token > 0 {
		c.token, c.handed, c.grantedAt = token, 0, s
	}
	c.contended, c.turnEnds, c.renewAt = words[5] == "1", c.now+10, max(c.now, s+simCall/10)
	c.wakeAt(c.turnEnds)
	c.wakeAt(c.renewAt)
	c.wakeAt(c.deadline)
	if c.flight == nil {
		c.place = nil
	}
	c.check()
}
