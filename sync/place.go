package anteroom

import (
	"math/rand/v2"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// place is what this process knows of its place in the line: the queue in Redis of the
// processes that wait for a key. A grant that is wanted stands there from the first refusal
// on, until Redis calls it, which is to grant it the key without being asked again, or nobody
// wants it any more. The driver stands; Manager.line confirms the place, as it would renew a
// lease, so that Redis passes over those that have died. Guarded by entry.mu.
type place struct {
	g      *grant
	last   uint64         // the number of the attempt that was sent last
	sent   []attempt      // the highest that was answered with "standing", and those after it
	lease  *renewal.Lease // the confirmations; ends with the place
	period time.Duration  // between two of them
	ahead  int            // places before this one, as far as is known
	holder string         // who holds the lock; "" where that is not known
	ends   time.Time      // when its lease does; zero where it has no end
	gone   bool           // Redis has neither the place nor the grant
}

// attempt is one acquire or confirmation of a field. Their numbers begin at random for each
// field, so that nobody who has not read the line can name one: a message that does comes
// from a script that found the place as this attempt has left it.
type attempt struct {
	n  uint64
	at time.Time // before it was sent
}

// firstAttempt returns the number of a field's first attempt. Lua counts exactly up to 2^53.
func firstAttempt() uint64 { return 1<<40 + rand.Uint64N(1<<52) }

const (
	// nearFront is how many places are in front of those that look after a key themselves:
	// they look when the holder's lease ends.
	nearFront = 1
	// nearLife is how many confirmations there are in the life of a place near the front, and
	// nearInterval the longest time between two: a call whose message was lost is found by one.
	// With each place in front that time is longer by as much, see rhythm.
	nearLife     = 6
	nearInterval = time.Second
	// maxAttempts bounds the attempts that are remembered without an answer. A call that
	// names an older one is entered with one command more.
	maxAttempts = 8
)

// wish is what is known of a grant for which a call may come, beside its place: it may come
// before the answer that the place is there.
type wish struct {
	g     *grant
	asked attempt             // the last that was sent without a place
	call  *lettucecompat.Call // the last one, which nobody has looked at
}

// want makes calls for g find it, and numbers the attempt without a place that is about to be
// sent.
func (m *Manager) want(g *grant) attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.wanted[g.n]
	if w.g = g; w.asked.n == 0 {
		w.asked.n = firstAttempt()
	}
	w.asked = attempt{n: w.asked.n + 1, at: time.Now()}
	m.wanted[g.n] = w
	return w.asked
}

// unwant undoes want: g is held, or nothing of it can be in Redis.
func (m *Manager) unwant(g *grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wanted, g.n)
}

// wants returns the grant of that number that is wanted, or is being cleaned up; else nil.
func (m *Manager) wants(n uint64) *grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted[n].g
}

// standing is how many grants are wanted, in line or not yet, or being cleaned up: the most that can
// stand.
func (m *Manager) standing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.wanted)
}

// look is told by the wire that the key may be free after that time. The driver asks then, however
// far back its place was.
func (m *Manager) look(n uint64, after time.Duration) {
	g := m.wants(n)
	if g == nil {
		return
	}
	g.e.mu.Lock()
	if p := g.place; p != nil {
		p.holder, p.ends, p.ahead = "", time.Now().Add(after+afterTTL()), min(p.ahead, nearFront)
	}
	g.e.mu.Unlock()
	g.e.recall.ring()
}

// confirmAll has every place confirmed at once: messages may have been lost.
func (m *Manager) confirmAll() {
	m.mu.Lock()
	wanted := make([]*grant, 0, len(m.wanted))
	for _, w := range m.wanted {
		wanted = append(wanted, w.g)
	}
	m.mu.Unlock()
	for _, g := range wanted {
		g.e.mu.Lock()
		if p := g.place; p != nil {
			p.lease.Hurry()
		}
		g.e.mu.Unlock()
	}
}

// stands notes that the attempt a of g was answered with "standing", with so many places
// ahead, while holder holds the lock for ttl more. The caller has entry.mu.
func (g *grant) stands(a attempt, ahead int, holder string, ttl time.Duration) {
	if g.place == nil {
		g.place = &place{g: g, last: a.n, sent: []attempt{a}}
	}
	g.place.stands(a, ahead, holder, ttl)
}

// stands notes the answer to a. One that is overtaken by a later attempt's says nothing.
func (p *place) stands(a attempt, ahead int, holder string, ttl time.Duration) {
	i := 0
	for i < len(p.sent) && p.sent[i].n < a.n {
		i++
	}
	if i == len(p.sent) || p.sent[i].n != a.n {
		return
	}
	p.sent = append(p.sent[:0], p.sent[i:]...)
	p.ahead, p.holder, p.gone, p.ends = ahead, holder, false, time.Time{}
	if e := p.g.e; !e.m.wire.Calls(holder) {
		e.metStranger(e.m.leases.Glance())
	}
	if ttl >= 0 {
		p.ends = time.Now().Add(ttl + afterTTL())
	}
	life := lettucecompat.PlaceLife(p.g.terms.lease)
	if p.lease != nil && p.period == p.rhythm(life) && p.lease.State() == renewal.StateActive {
		p.lease.Extend(a.at, life)
		return
	}
	p.confirm(a.at, life)
}

// answer is what Redis last said about the place, as the answer to an attempt: for those who ask
// what the driver waits for.
func (p *place) answer() *lettucecompat.AcquireReply {
	return &lettucecompat.AcquireReply{
		Outcome: lettucecompat.OutcomeRefused, Holder: p.holder, Standing: true, Ahead: p.ahead,
	}
}

// rhythm returns the time between two confirmations that the place now needs. Those in front may
// be dead, and Redis may not know: then somebody has to look when the time of the one that was
// called is over, and only who confirms learns how far it has come. So the nearer a place was to
// the front, the sooner it confirms; however many stand, a key costs few commands a second.
func (p *place) rhythm(life time.Duration) time.Duration {
	return min(min(life/nearLife, nearInterval)*time.Duration(max(p.ahead, 1)), life/2)
}

// confirm begins the confirmations, in the rhythm that the place now needs.
func (p *place) confirm(sentAt time.Time, life time.Duration) {
	if p.lease != nil {
		p.lease.End()
	}
	p.period = p.rhythm(life)
	e := p.g.e
	p.lease = e.m.line.Add(renewal.Spec{
		Lease: life, Shard: e.m.wire.Shard(e.key) + e.limit, Period: p.period, SentAt: sentAt, Owner: p,
	})
}

// near reports whether the place is near the front.
func (p *place) near() bool { return p.ahead <= nearFront }

// next numbers an attempt that is about to be sent.
func (p *place) next() attempt {
	p.last++
	a := attempt{n: p.last, at: time.Now()}
	if len(p.sent) == maxAttempts {
		p.sent = append(p.sent[:1], p.sent[2:]...)
	}
	p.sent = append(p.sent, a)
	return a
}

// sentAt returns when the attempt n was sent, false where it is older than the last that was
// answered, not remembered any more (maxAttempts), or none of ours.
func (p *place) sentAt(n uint64) (time.Time, bool) {
	for _, a := range p.sent {
		if a.n == n {
			return a.at, true
		}
	}
	return time.Time{}, false
}

// Names returns the key and the field, for the confirmations.
func (p *place) Names() (key, field string) { return p.g.Names() }

// Lost is called by Manager.line where Redis has neither the place nor the grant, or nothing
// was confirmed for the life of a place: the driver asks.
func (p *place) Lost(renewal.Cause) {
	p.g.e.lookAgain()
}

// leave ends the place, if g has one, for this process: nobody confirms it any more. The
// caller has entry.mu.
func (g *grant) leave() {
	if p := g.place; p != nil {
		g.place = nil
		p.lease.End()
	}
}
