package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The locks of the planted histories: L = 2 s, M = 100 ms, W = 500 ms, C = 333 ms.
func plantedLocks() []Lock {
	plain := Lock{Key: "plain", Lease: 2 * time.Second, Margin: 100 * time.Millisecond, Period: 500 * time.Millisecond, Command: 333 * time.Millisecond}
	fenced := plain
	fenced.Key, fenced.Fenced = "fenced", true
	return []Lock{plain, fenced}
}

// script writes a history by hand; times are milliseconds.
type script struct {
	h    History
	next uint64
}

func at(ms int) int64 { return int64(ms) * int64(time.Millisecond) }

func (s *script) add(k Kind, proc uint32, hold uint64, ms int, change ...func(*Event)) {
	e := Event{Kind: k, Proc: proc, Client: proc, Hold: hold, At: at(ms)}
	for _, f := range change {
		f(&e)
	}
	s.h.Events = append(s.h.Events, e)
}

// take makes proc acquire between two moments, with a deadline a lease later.
func (s *script) take(proc uint32, from, to int, change ...func(*Event)) uint64 {
	s.next++
	s.add(Invoke, proc, s.next, from, change...)
	s.add(Acquired, proc, s.next, to, append([]func(*Event){func(e *Event) {
		e.Grant, e.Deadline = s.next, at(from+1900)
	}}, change...)...)
	return s.next
}

// free makes proc release between two moments.
func (s *script) free(proc uint32, hold uint64, from, to int, change ...func(*Event)) {
	s.add(Release, proc, hold, from, change...)
	s.add(Released, proc, hold, to, change...)
}

// told notifies the holder at ms that the lock is lost since since.
func (s *script) told(proc uint32, hold uint64, since, ms int) {
	s.add(Told, proc, hold, ms, func(e *Event) { e.Since = at(since) })
}

func (s *script) removed(from, to int, certain bool) {
	s.h.Removals = append(s.h.Removals, Removal{Key: 0, From: at(from), To: at(to), Certain: certain, What: "DEL"})
}

func grant(n uint64) func(*Event)    { return func(e *Event) { e.Grant = n } }
func deadline(ms int) func(*Event)   { return func(e *Event) { e.Deadline = at(ms) } }
func fence(token int64) func(*Event) { return func(e *Event) { e.Key, e.Token = 1, token } }
func write(proc uint32, token, base, version int64) Access {
	return Access{Key: 1, Proc: proc, Token: token, Fenced: true, Write: true, Base: base, Version: version, Accepted: true}
}

// Good histories: the judge finds nothing, and counts what a removal explains.
func TestJudge_Accepts(t *testing.T) {
	for _, c := range []struct {
		name     string
		write    func(*script)
		overlaps int
		lost     int
	}{
		{name: "one after the other", write: func(s *script) {
			a := s.take(1, 0, 10)
			s.free(1, a, 50, 60)
			b := s.take(2, 5, 55) // granted while the release was under way
			s.free(2, b, 70, 80)
		}},
		{name: "the deadline ends a hold", lost: 1, write: func(s *script) {
			a := s.take(1, 0, 10)
			s.told(1, a, 1900, 1950)
			b := s.take(2, 20, 1910)
			s.free(2, b, 2500, 2501)
		}},
		{name: "a stopped holder hears it when it runs again", lost: 1, write: func(s *script) {
			a := s.take(1, 0, 10)
			s.h.Aways = append(s.h.Aways, Away{Proc: 1, From: at(100), To: at(5000), Stopped: true})
			b := s.take(2, 20, 2050)
			s.free(2, b, 2500, 2501)
			s.told(1, a, 1900, 5010)
		}},
		{name: "a killed holder", write: func(s *script) {
			a := s.take(1, 0, 10)
			s.add(Checked, 1, a, 300)
			b := s.take(2, 0, 2100)
			s.free(2, b, 2500, 2501)
		}},
		{name: "an acquire without an answer", write: func(s *script) {
			s.add(Invoke, 1, 99, 0)
			s.add(Unknown, 1, 99, 500)
			b := s.take(2, 100, 200)
			s.free(2, b, 300, 301)
		}},
		{name: "a removal lets another in, and the holder is told in time", overlaps: 1, lost: 1, write: func(s *script) {
			a := s.take(1, 0, 10)
			s.removed(100, 110, true)
			b := s.take(2, 0, 120)
			s.told(1, a, 700, 720)
			s.free(2, b, 800, 801)
		}},
		{name: "a hand-off of a grant that is gone", overlaps: 2, lost: 1, write: func(s *script) {
			a := s.take(1, 0, 10, grant(7))
			s.removed(100, 110, true)
			b := s.take(2, 0, 120)
			s.free(1, a, 200, 200)
			c := s.take(1, 20, 201, grant(7))
			s.told(1, c, 700, 720)
			s.free(2, b, 800, 801)
		}},
		{name: "told later because Redis was away", overlaps: 1, lost: 1, write: func(s *script) {
			a := s.take(1, 0, 10, deadline(9000))
			s.removed(100, 110, true)
			s.h.Aways = append(s.h.Aways, Away{From: at(400), To: at(3000)})
			b := s.take(2, 0, 120)
			s.free(2, b, 300, 301)
			s.told(1, a, 3500, 3510)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{h: History{Locks: plantedLocks()}}
			c.write(s)
			v := s.h.Judge()
			if len(v.Findings) > 0 || v.Overlaps != c.overlaps || v.Lost != c.lost {
				t.Fatalf("%d overlaps, want %d; %d lost, want %d; findings %+v", v.Overlaps, c.overlaps, v.Lost, c.lost, v.Findings)
			}
		})
	}
}

// Planted faults: the judge finds each.
func TestJudge_Rejects(t *testing.T) {
	for _, c := range []struct {
		rule  Rule
		name  string
		write func(*script)
	}{
		{DoubleHold, "a second holder", func(s *script) {
			a := s.take(1, 0, 10)
			b := s.take(2, 20, 30)
			s.free(1, a, 40, 41)
			s.free(2, b, 50, 51)
		}},
		{DoubleHold, "before the deadline of a stopped holder", func(s *script) {
			a := s.take(1, 0, 10)
			s.h.Aways = append(s.h.Aways, Away{Proc: 1, From: at(100), To: at(5000), Stopped: true})
			b := s.take(2, 20, 1500)
			s.free(2, b, 1600, 1601)
			s.told(1, a, 1900, 5010)
		}},
		{DoubleHold, "after a removal's bound", func(s *script) {
			s.removed(100, 110, true)
			a := s.take(1, 4000, 4010)
			b := s.take(2, 4000, 4020)
			s.free(1, a, 4100, 4101)
			s.free(2, b, 4100, 4101)
		}},
		{DoubleHold, "within one process, also beside a removal", func(s *script) {
			a := s.take(1, 0, 10, grant(7))
			s.removed(100, 110, true)
			b := s.take(1, 0, 120, grant(8))
			s.free(1, a, 150, 151)
			s.free(1, b, 150, 151)
		}},
		{DoubleHold, "while a killed holder still worked", func(s *script) {
			a := s.take(1, 0, 10)
			b := s.take(2, 20, 200)
			s.add(Checked, 1, a, 300)
			s.free(2, b, 400, 401)
		}},
		{DoubleHold, "a release that was confirmed covers the time before it", func(s *script) {
			a := s.take(1, 0, 10, deadline(500))
			b := s.take(2, 20, 600)
			s.free(2, b, 650, 651)
			s.free(1, a, 700, 701)
		}},
		{ReleaseByAnother, "of a hold that it never had", func(s *script) {
			a := s.take(1, 0, 10)
			s.free(2, a, 20, 21)
			s.free(1, a, 30, 31)
		}},
		{ReleaseByAnother, "twice", func(s *script) {
			a := s.take(1, 0, 10)
			s.free(1, a, 20, 21)
			s.free(1, a, 30, 31)
		}},
		{LateTold, "after a removal", func(s *script) {
			a := s.take(1, 0, 10, deadline(9000))
			s.removed(100, 110, true)
			s.told(1, a, 1700, 1710)
		}},
		{LateTold, "after the deadline", func(s *script) {
			a := s.take(1, 0, 10)
			s.told(1, a, 1900, 2500)
		}},
		{LateTold, "never, after a removal", func(s *script) {
			a := s.take(1, 0, 10, deadline(9000))
			s.removed(100, 110, true)
			s.add(Checked, 1, a, 2000)
		}},
		{LateQuestion, "a stopped holder that still thinks it holds", func(s *script) {
			a := s.take(1, 0, 10)
			s.add(Checked, 1, a, 3000, deadline(1900))
		}},
		{NoCause, "lost and nobody removed it", func(s *script) {
			a := s.take(1, 0, 10)
			s.told(1, a, 500, 510)
		}},
		{TokenOrder, "a smaller one", func(s *script) {
			a := s.take(1, 0, 10, fence(100))
			s.free(1, a, 20, 21, fence(0))
			b := s.take(2, 30, 40, fence(99))
			s.free(2, b, 50, 51, fence(0))
		}},
		{TokenOrder, "the same one", func(s *script) {
			a := s.take(1, 0, 10, fence(100))
			s.free(1, a, 20, 21, fence(0))
			b := s.take(2, 5, 40, fence(100))
			s.free(2, b, 50, 51, fence(0))
		}},
		{OldToken, "after a newer one was seen", func(s *script) {
			s.h.Accesses = []Access{write(1, 100, 0, 1), write(2, 200, 1, 2), write(1, 150, 2, 3)}
		}},
		{UnfencedWrite, "none at all", func(s *script) {
			s.h.Accesses = []Access{write(1, 0, 0, 1)}
		}},
		{LostUpdate, "made of an old version", func(s *script) {
			s.h.Accesses = []Access{write(1, 100, 0, 1), write(2, 200, 0, 2)}
		}},
	} {
		t.Run(string(c.rule)+"/"+c.name, func(t *testing.T) {
			s := &script{h: History{Locks: plantedLocks()}}
			c.write(s)
			v := s.h.Judge()
			if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Rule == c.rule }) {
				t.Fatalf("not found; the judge says %+v", v.Findings)
			}
			if c.rule.late() != (v.LateLosses() > 0) || c.rule.late() == (v.Violations() > 0) {
				t.Fatalf("%d violations, %d late losses: %+v", v.Violations(), v.LateLosses(), v.Findings)
			}
			t.Log(strings.TrimSpace(fmt.Sprint(v.Findings)))
		})
	}
}
