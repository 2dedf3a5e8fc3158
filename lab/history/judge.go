package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rule is a rule that a history can break.
type Rule string

// The rules. The first seven are violations, the last two late losses.
const (
	DoubleHold       Rule = "double hold"         // two claims at the same time, and no removal excuses them
	ReleaseByAnother Rule = "release by another"  // a release was confirmed for a holder that did not hold
	OldToken         Rule = "old token accepted"  // the register took a write after it had seen a newer token
	UnfencedWrite    Rule = "no token accepted"   // a fenced register took a write without a token
	LostUpdate       Rule = "lost update"         // a fenced register accepted a write based on an old version
	TokenOrder       Rule = "token does not grow" // a later hold has a smaller token, or two have the same
	NoCause          Rule = "loss without cause"  // nobody had removed the lock, and its deadline had not passed
	LateQuestion     Rule = "held after deadline" // a question after the deadline was answered "held"
	LateTold         Rule = "late told"           // the holder was told later than the bound that applies
)

// late reports whether a broken rule counts as a late loss; the others are violations.
func (r Rule) late() bool { return r == LateQuestion || r == LateTold }

// Finding is one violation of a rule.
type Finding struct {
	Rule Rule
	Key  string
	At   int64
	Text string
}

// Verdict is the result of judging a history.
type Verdict struct {
	Acquisitions int           // holds, except re-entries
	Overlaps     int           // pairs of concurrent claims that a removal explains, inside its bound
	Longest      time.Duration // of the overlaps
	Until        int64         // the end of the last overlap; 0: there is none
	Lost         int           // holds whose holder was notified of a loss
	Findings     []Finding     // sorted by time
}

// Violations counts the findings that are not late losses.
func (v *Verdict) Violations() int { return len(v.Findings) - v.LateLosses() }

// LateLosses counts holders that were notified too late.
func (v *Verdict) LateLosses() (n int) {
	for _, f := range v.Findings {
		if f.Rule.late() {
			n++
		}
	}
	return n
}

// span is a hold with its claim, and what removals have left of it.
type span struct {
	*Hold
	units    int64
	from, to int64 // the claim
	// exclusive is until when it excludes others: to, or the first removal that hit it. Before from: it excludes
	// nobody.
	exclusive int64
}

// judge collects a verdict.
type judge struct {
	h *History
	b *bounds
	v Verdict
}

// Judge judges a history. It changes the history only as Holds does.
func (h *History) Judge() *Verdict {
	holds := h.Holds()
	j := &judge{h: h, b: newBounds(h.Locks, h.Aways, h.Slow)}
	for len(holds) > 0 {
		n := 1
		for n < len(holds) && holds[n].Key == holds[0].Key {
			n++
		}
		j.key(holds[:n])
		holds = holds[n:]
	}
	j.register(h.Accesses)
	slices.SortStableFunc(j.v.Findings, func(a, b Finding) int { return cmp.Compare(a.At, b.At) })
	return &j.v
}

func (j *judge) found(rule Rule, key int, at int64, format string, args ...any) {
	j.v.Findings = append(j.v.Findings, Finding{Rule: rule, Key: j.h.Locks[key].Key, At: at, Text: fmt.Sprintf(format, args...)})
}

// key judges all holds of one key.
func (j *judge) key(holds []*Hold) {
	key := holds[0].Key
	var removals []Removal
	for _, r := range j.h.Removals {
		if r.Key == key || r.Key == AllKeys {
			removals = append(removals, r)
		}
	}
	slices.SortFunc(removals, func(a, b Removal) int { return cmp.Compare(a.From, b.From) })
	since := grants(holds)
	var spans, all []*span
	for _, h := range holds {
		if h.releases > 1 || h.releases > 0 && h.Outcome != Acquired {
			j.found(ReleaseByAnother, key, h.Release, "%v was released, and did not hold", h)
		}
		from, to, ok := h.claim()
		if !ok {
			continue
		}
		j.v.Acquisitions++
		if h.lost() {
			j.v.Lost++
		}
		s := &span{Hold: h, units: h.Units, from: from, to: to, exclusive: to}
		if h.lost() && h.Since <= from && h.Since > 0 && h.Checked == from {
			s.to, s.exclusive = from-1, from-1 // over when its acquire returned
		}
		j.hit(s, removals, since(h))
		j.deadline(s, removals, since(h))
		spans = append(spans, s)
		if h.Reads > 0 { // the rest of its units, until then
			s.units = 1
			all = append(all, &span{Hold: h, units: h.Units - 1, from: from, to: min(s.to, h.Reads), exclusive: min(s.exclusive, h.Reads)})
		}
	}
	all = append(all, spans...)
	sortSpans(all)
	j.overlaps(key, all)
	if j.h.Locks[key].Fenced {
		j.tokens(spans, removals, since)
	}
}

func sortSpans(spans []*span) {
	slices.SortStableFunc(spans, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
}

// grants returns since when the grant of a hold is known to have existed. Holds handed off within a process share a
// grant, and its fate in Redis.
func grants(holds []*Hold) func(*Hold) int64 {
	first := map[holdKey]int64{}
	for _, h := range holds {
		k := holdKey{h.Proc, h.Grant}
		if at, ok := first[k]; h.Outcome == Acquired && h.Grant != 0 && (!ok || h.Return < at) {
			first[k] = h.Return
		}
	}
	return func(h *Hold) int64 {
		if at, ok := first[holdKey{h.Proc, h.Grant}]; ok {
			return at
		}
		return h.Return
	}
}

// hit determines what the removals of a key have left of a hold, and whether its holder was notified in time. since
// is when its grant is first known to have existed.
func (j *judge) hit(s *span, removals []Removal, since int64) {
	end := max(s.to, s.Told)
	for _, r := range removals {
		if r.From >= end {
			break
		}
		bound := j.b.removal(s.Key, s.Proc, r)
		switch {
		case since < r.From && r.Certain:
			s.exclusive = min(s.exclusive, max(r.From, s.from-1))
			if end > bound {
				j.found(LateTold, s.Key, end, "%v was told %v after %s, %v after its bound. %s", s.Hold, ms(end-r.To), r.What, ms(end-bound), s.Story())
			}
			return
		case since <= bound && s.to <= bound:
			// It may have been hit: the answer to its grant, or a hand-off, came after the removal, or the removal is
			// not certain. If so, its claim ended then.
			s.exclusive = min(s.exclusive, max(r.From, s.from-1))
		}
	}
}

// deadline judges the end of a hold by its deadline, and a loss without a cause.
func (j *judge) deadline(s *span, removals []Removal, since int64) {
	if s.Late != 0 {
		j.found(LateQuestion, s.Key, s.Late, "%v heard that it holds %v after its deadline. %s", s.Hold, ms(s.Late-s.Deadline), s.Story())
	}
	if s.Deadline == 0 || !s.lost() {
		return
	}
	if bound := j.b.expiry(s.Hold); s.Told > bound {
		j.found(LateTold, s.Key, s.Told, "%v was told %v after its deadline, %v after its bound. %s", s.Hold, ms(s.Told-s.Deadline), ms(s.Told-bound), s.Story())
	}
	if s.learned() >= s.Deadline {
		return
	}
	for _, r := range removals {
		if r.From < s.learned() && r.To > min(since, s.Invoke)-int64(j.h.Locks[s.Key].Lease) {
			return
		}
	}
	j.found(NoCause, s.Key, s.learned(), "%v was lost %v before its deadline. %s", s.Hold, ms(s.Deadline-s.learned()), s.Story())
}

// tokens: of two consecutive holds the later has the larger token, unless its grant had been removed and its holder
// was not notified yet; and no two have the same. Readers may have that of the writer before them, and of each other.
func (j *judge) tokens(spans []*span, removals []Removal, since func(*Hold) int64) {
	byEnd := slices.Clone(spans)
	slices.SortStableFunc(byEnd, func(a, b *span) int { return cmp.Compare(a.Return, b.Return) })
	byStart := slices.Clone(spans)
	slices.SortStableFunc(byStart, func(a, b *span) int { return cmp.Compare(a.Invoke, b.Invoke) })
	owner := map[int64]*span{}
	var largest, write *span // of all, of those that write
	next := 0
	for _, s := range byStart {
		for ; next < len(byEnd) && byEnd[next].Return < s.Invoke; next++ {
			if largest == nil || byEnd[next].Token > largest.Token {
				largest = byEnd[next]
			}
			if !j.reads(byEnd[next]) && (write == nil || byEnd[next].Token > write.Token) {
				write = byEnd[next]
			}
		}
		if s.Token == 0 {
			continue // lost before it could be queried
		}
		before := write
		if !j.reads(s) {
			before = largest
			if other := owner[s.Token]; other != nil {
				j.found(TokenOrder, s.Key, s.Return, "%v has token %d, and so has %v", s.Hold, s.Token, other.Hold)
			}
			owner[s.Token] = s
		}
		if before != nil && (before.Token > s.Token || before.Token == s.Token && !j.reads(s)) && !j.removed(s, removals, since(s.Hold)) {
			j.found(TokenOrder, s.Key, s.Return, "%v has token %d, %v had %d before", s.Hold, s.Token, before.Hold, before.Token)
		}
	}
}

// reads reports whether s is of a reader.
func (j *judge) reads(s *span) bool { return s.Units < max(j.h.Locks[s.Key].Units, 1) }

// removed reports whether a removal may have removed the grant of s before s began.
func (j *judge) removed(s *span, removals []Removal, since int64) bool {
	return slices.ContainsFunc(removals, func(r Removal) bool {
		return r.From < s.from && since <= j.b.removal(s.Key, s.Proc, r) && s.from <= j.b.removal(s.Key, s.Proc, r)
	})
}

// register judges what a register has accepted, in its own order.
func (j *judge) register(accesses []Access) {
	type state struct{ newest, version int64 }
	cells := map[int]*state{}
	for _, a := range accesses {
		c := cells[a.Key]
		if c == nil {
			c = &state{}
			cells[a.Key] = c
		}
		if !a.Accepted || !a.Fenced {
			continue
		}
		who := &Hold{Proc: a.Proc, ID: a.Hold}
		switch {
		case a.Token <= 0:
			j.found(UnfencedWrite, a.Key, a.At, "%v was admitted without a token", who)
		case a.Token < c.newest:
			j.found(OldToken, a.Key, a.At, "%v was admitted with token %d after %d was seen", who, a.Token, c.newest)
		}
		c.newest = max(c.newest, a.Token)
		if !a.Write {
			continue
		}
		if a.Base != c.version {
			j.found(LostUpdate, a.Key, a.At, "%v wrote what it had made of version %d, over version %d", who, a.Base, c.version)
		}
		c.version++
	}
}
