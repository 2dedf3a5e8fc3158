package lettucecompat_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// The times of a simulation, in ms of its clock. bound* is how long the first waiter of a process may wait.
const (
	simCall, simLease, simLife = 200, 1000, 1500
	simMargin                  = 20
	simTimeout                 = 60
	boundFaults, boundCalm     = 60 * simLease, simLease
)

// unitsSim plays clients against the script on a real server, by a clock of its own: they crash and stop, and commands, answers
// and messages are lost or late. It checks exclusion and tokens of what the clients believe, what is in the hash, and waits.
type unitsSim struct {
	mode
	rdb     *redis.Client
	sha     string
	key     string
	rng     *rand.Rand
	wrong   string // what the clients do wrong
	now     int64
	events  events
	clients map[string]*simClient
	all     []*simClient
	unheard string // the channels without a subscriber
	evals   int
	found   string // the first violation
	writers []writer
	seen    int64 // the greatest token that the resource has seen
}

// mode is what kind of lock, and what happens to it.
type mode struct {
	semaphore, calm, faults, deletes bool
}

func (m mode) String() string {
	s := "rw"
	if m.semaphore {
		s = "sem"
	}
	for name, on := range map[string]bool{"/calm": m.calm, "/deletes": m.deletes, "/no faults": !m.faults} {
		if on {
			s += name
		}
	}
	return s
}

// writer is a grant of all units.
type writer struct {
	token int64
	id    string
}

type event struct {
	at  int64
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after does something in so many ms.
func (s *unitsSim) after(ms int64, do func()) {
	heap.Push(&s.events, event{s.now + ms, s.evals<<20 + len(s.events), do})
}

func (s *unitsSim) between(a, b int64) int64  { return a + s.rng.Int64N(b-a) }
func (s *unitsSim) chance(p float64) bool     { return s.rng.Float64() < p }
func (s *unitsSim) disturbed(p float64) bool  { return s.faults && s.chance(p) }
func (s *unitsSim) delay(some ...int64) int64 { return some[s.rng.IntN(len(some))] }
func (s *unitsSim) violated(f string, a ...any) {
	if s.found == "" {
		s.found = fmt.Sprintf("at %d, after %d commands: ", s.now, s.evals) + fmt.Sprintf(f, a...)
	}
}

// load makes a server know the script with its replacements.
func loadSim(t testing.TB, rdb *redis.Client, replacements ...string) string {
	t.Helper()
	sha, err := rdb.ScriptLoad(ctx, simScript(t, replacements...)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// simulate plays so many commands, or until something is violated. It returns what.
func simulate(rdb *redis.Client, sha string, m mode, seed uint64, wrong string, commands int) string {
	rdb.FlushDB(ctx)
	s := &unitsSim{
		mode: m, rdb: rdb, sha: sha, key: "k", wrong: wrong, now: 1_000_000,
		rng: rand.New(rand.NewPCG(seed, 2)), clients: map[string]*simClient{},
	}
	one := func(need, hold, more, gap, most int64) func() (int64, int64, int64) {
		return func() (int64, int64, int64) { return need, s.between(hold, more), s.between(gap, most) }
	}
	some := func() (int64, int64, int64) {
		need := int64(1)
		if s.chance(.1) {
			need = all
		}
		return need, s.between(1, 15), s.between(1, 40)
	}
	mixes := []func() (need, hold, gap int64){some, some, one(1, 5, 30, 2, 12), one(1, 5, 30, 2, 12), one(all, 1, 8, 40, 160)}
	if m.semaphore {
		small := one(1, 5, 20, 8, 25)
		mixes = []func() (need, hold, gap int64){
			func() (int64, int64, int64) { return s.between(1, 4), s.between(1, 15), s.between(15, 90) }, small, small, small,
			func() (int64, int64, int64) {
				need := int64(5)
				if s.chance(.3) {
					need = 7
				}
				return need, s.between(1, 8), s.between(150, 400)
			},
		}
	}
	for i, mix := range mixes {
		c := &simClient{unitsSim: s, base: i, mix: mix}
		s.all = append(s.all, c)
		c.born()
	}
	if s.faults {
		s.after(100, s.disturb)
	}
	bound := int64(boundCalm)
	if s.faults {
		bound = boundFaults
	}
	for s.found == "" && s.evals < commands {
		e := heap.Pop(&s.events).(event)
		s.now = max(s.now, e.at)
		e.do()
		for _, c := range s.all {
			if len(c.queue) > 0 && c.paused <= s.now && s.now-c.queue[0].since > bound {
				s.violated("%s has waited for %d since %d", c.id, c.queue[0].need, c.queue[0].since)
			}
		}
	}
	return s.found
}

// disturb does something to the clients or the key.
func (s *unitsSim) disturb() {
	c, p := s.all[s.rng.IntN(len(s.all))], s.rng.Float64()
	channel := "anteroom:client:" + c.id + " "
	switch {
	case s.deletes && p < .6:
		s.rdb.Del(ctx, s.key)
	case p < .35:
		c.paused = s.now + s.between(5, 2*simLease)
		c.wakeAt(c.paused)
	case p < .6: // it crashes
		delete(s.clients, c.id)
		c.born()
	case p < .8:
		s.unheard += channel
	default:
		s.unheard = ""
	}
	most := int64(400)
	if s.calm {
		most = 15000
	}
	s.after(s.between(20, most), s.disturb)
}

// state runs the script, delivers what it publishes, and returns the answer.
func (s *unitsSim) state(c *lettucecompat.Client, st lettucecompat.Command) lettucecompat.Answer {
	s.evals++
	args := append([]any{"evalsha", s.sha, 2}, lettucecompat.UnitsArgs(c, st)...)
	if st.Terms.Fenced {
		args[2] = 3
	}
	v, err := s.rdb.Do(ctx, append(args, s.unheard, s.now)...).Slice()
	if err != nil || len(v) != 2 {
		s.violated("the script: %v %v: %+v", v, err, st)
		return lettucecompat.Answer{Outcome: failed}
	}
	for out := v[1].([]any); len(out) > 1; out = out[2:] {
		s.publish(strings.TrimPrefix(out[0].(string), "anteroom:client:"), out[1].(string))
	}
	a := lettucecompat.ParseUnits(c, st, v[0])
	if a.Outcome != ok {
		s.violated("answer %v to %+v", v[0], st)
	}
	if s.evals%20 == 0 {
		s.checkHash()
	}
	return a
}

// checkHash compares the header with the records.
func (s *unitsSim) checkHash() {
	h := s.rdb.HGetAll(ctx, s.key).Val()
	if len(h) == 0 {
		return
	}
	var capacity, held, next, till, sum int64
	if _, err := fmt.Sscanf(strings.SplitN(h[":"], " ", 2)[1], "%d %d %d %d", &capacity, &held, &next, &till); err != nil {
		s.violated("hash %v", h)
		return
	}
	ends, _ := s.rdb.HGet(ctx, s.key+":ends", s.key).Int64()
	for id, text := range h {
		var n, units, end, contended, its int64
		if id == ":" {
			continue
		}
		if _, err := fmt.Sscanf(text, "%d %d %d %d %d", &n, &units, &end, &contended, &its); err != nil || units == 0 {
			s.violated("record %q of %s", text, id)
		}
		sum += units
		if end < next || its < capacity || end > ends {
			s.violated("S17 S18: %s of %s, and the header says %s; the key lives until %d", text, id, h[":"], ends)
		}
	}
	if held < sum {
		s.violated("S17: %d are held, and the header says %d", sum, held)
	}
}

// publish delivers a message, perhaps.
func (s *unitsSim) publish(id, payload string) {
	c := s.clients[id]
	words := strings.Fields(payload)
	if c == nil {
		return
	}
	if words[0] == "called" {
		if units, _ := strconv.ParseInt(words[3], 10, 64); units == all {
			token, _ := strconv.ParseInt(words[4], 10, 64)
			s.writers = append(s.writers, writer{token, id})
		}
	}
	if s.disturbed(.1) {
		return
	}
	d := s.delay(1, 1, 2, 5)
	if s.disturbed(.1) {
		d = s.between(5, 2*simLease)
	}
	epoch := c.epoch
	s.after(d, func() { c.hears(epoch, words) })
	if s.disturbed(.03) {
		s.after(s.between(1, 2*simLease), func() { c.hears(epoch, words) })
	}
}

// check fails where the clients believe more than there is.
func (s *unitsSim) check() {
	total, least := int64(0), int64(1)<<40
	var who []string
	for _, c := range s.all {
		if c.units > 0 && s.now < c.deadline {
			total, least = total+c.units, min(least, c.capacity)
			who = append(who, fmt.Sprintf("%s %d until %d", c.id, c.units, c.deadline))
		}
	}
	if total > least && !s.deletes {
		s.violated("exclusion: %v", who)
	}
}

// modes are all that a simulation plays.
var modes = func() (list []mode) {
	for _, sem := range []bool{false, true} {
		list = append(list,
			mode{semaphore: sem}, mode{semaphore: sem, faults: true}, mode{semaphore: sem, faults: true, calm: true},
			mode{semaphore: sem, faults: true, deletes: true})
	}
	return list
}()

// TestUnits_S5_S11_S24_Simulation_Lab plays all modes, each under some seeds: the same ones each time, with ANTEROOM_LONG any.
func TestUnits_S5_S11_S24_Simulation_Lab(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	sha := loadSim(t, b.raw)
	for _, m := range modes {
		for seed := range uint64(2) {
			if os.Getenv("ANTEROOM_LONG") != "" {
				seed = rand.Uint64()
			}
			if found := simulate(b.raw, sha, m, seed, "", 3000); found != "" {
				t.Errorf("%v, seed %d: %s", m, seed, found)
			}
		}
	}
}
