package lettucecompat_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const all = lettucecompat.AllUnits

// The terms of an RWMutex, of one with tokens, and of a Semaphore.
var (
	rwTerms       = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Shared: true}
	fencedRWTerms = &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Shared: true, Fenced: true, RecordTime: lettucecompat.DefaultRecordTime}
)

func semaphore(capacity int64) *lettucecompat.Terms {
	return &lettucecompat.Terms{Call: callLease, Lease: lease, Life: life, Shared: true, Capacity: capacity}
}

// units is a command of p under its next number: what it has (-1: a place), keeps and wants.
func (p *peer) units(have, keep, want int64, change ...func(*lettucecompat.Command)) lettucecompat.Command {
	p.n++
	s := lettucecompat.Command{Key: p.key, N: p.n, Since: p.unit, Keep: keep, Want: want, Terms: p.terms}
	switch {
	case have < 0:
		s.Have = place
	case have > 0:
		s.Have, s.Units = unit, have
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func try(s *lettucecompat.Command)   { s.Try = true }
func again(s *lettucecompat.Command) { s.Again = true }

// wants sends a command about units, whose answer is word, and learns from it.
func (p *peer) wants(what string, word lettucecompat.Word, s lettucecompat.Command) lettucecompat.Answer {
	p.t.Helper()
	a := p.Do(ctx, s)
	if a.Outcome != ok || a.Word != word {
		p.t.Fatalf("%s: %s: %v %v (%+v), want %v", p.id, what, a.Outcome, a.Word, a, word)
	}
	if a.Units > 0 {
		p.unit = s.N
	}
	return a
}

// reads and writes take an RWMutex, which is free for them.
func (p *peer) reads() lettucecompat.Answer {
	p.t.Helper()
	return p.wants("read", has, p.units(0, 0, 1))
}

func (p *peer) writes() lettucecompat.Answer {
	p.t.Helper()
	return p.wants("write", has, p.units(0, 0, all))
}

// drops releases so many units.
func (p *peer) drops(units int64) {
	p.t.Helper()
	p.wants("release", hasNothing, p.units(units, 0, 0))
}

// calledFor waits until p is called, for so many units.
func (p *peer) calledFor(units int64) lettucecompat.Message {
	p.t.Helper()
	m := p.called()
	want(p.t, p.id+": units of the call", m.Units, units)
	return m
}

// unitsPeer makes a client that listens, whose lock is one of units.
func (b *bed) unitsPeer(t testing.TB, id string, terms *lettucecompat.Terms) *peer {
	t.Helper()
	p := b.peer(t, id)
	p.terms = terms
	return p
}

// TestUnits_S13_EveryRow: each row of the table of Command on each state in which Redis can be.
func TestUnits_S13_EveryRow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		for _, r := range []struct {
			name             string
			have, keep, want int64
			// the word if the client has nothing and the lock is free; nothing, and it is taken; a place; 3 units
			free, taken, placed, held lettucecompat.Word
			left                      int64 // units after the last
		}{
			{"acquire", 0, 0, 2, has, waits, waits, has, 2},
			{"confirm", -1, 2, 2, wordGone, wordGone, waits, has, 2},
			{"renew", 3, 3, 3, lost, lost, lost, has, 3},
			{"grow", 3, 3, 5, lost, lost, lost, has, 5},
			{"shrink", 3, 1, 1, lost, lost, lost, has, 1},
			{"yield", 3, 1, 2, lost, lost, lost, has, 2},
			{"yield of all", 3, 0, 3, lost, lost, lost, has, 3},
			{"more than there is", 4, 4, 4, lost, lost, lost, lost, 3},
			{"release", 3, 0, 0, lost, lost, lost, hasNothing, 0},
			{"cancel", 0, 0, 0, hasNothing, hasNothing, hasNothing, hasNothing, 0},
		} {
			for i, word := range []lettucecompat.Word{r.free, r.taken, r.placed, r.held} {
				name := fmt.Sprint(r.name, " ", []string{"free", "taken", "placed", "held"}[i])
				b.raw.FlushAll(ctx)
				a, z := newPeer(t, b.rdb, "a"), newPeer(t, b.rdb, "z")
				a.terms, z.terms = semaphore(7), semaphore(7)
				if i == 1 || i == 2 {
					z.wants("holds", has, z.units(0, 0, 7))
				}
				a.unit = a.n + 1
				if i == 2 {
					a.wants("waits", waits, a.units(0, 0, 2))
				}
				if i == 3 {
					a.wants("holds", has, a.units(0, 0, 3))
				}
				got := a.wants(name, word, a.units(r.have, r.keep, r.want))
				if i == 3 {
					h := b.hash(t, "k")
					want(t, name+": record", strings.HasPrefix(h["a"], fmt.Sprint(a.n, " ", r.left, " ")) || word == lost || r.left == 0 && h["a"] == "", true)
				}
				if word == has {
					want(t, name+": units", got.Units, r.want)
				}
				want(t, name+": place", len(b.placeOf("a")) > 0, word == waits || i == 2 && r.have > 0)
			}
		}
	})
}

// TestUnits_P2_APlaceBelowSinceIsNotHad: a late command has made it.
func TestUnits_P2_APlaceBelowSinceIsNotHad(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, z := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "z", semaphore(7))
		z.wants("holds", has, z.units(0, 0, 7))
		a.wants("waits", waits, a.units(0, 0, 2))
		before := b.hash(t, lineOfK)
		a.unit = a.n + 1
		a.wants("confirm", wordGone, a.units(-1, 2, 2))
		want(t, "line", fmt.Sprint(b.hash(t, lineOfK)), fmt.Sprint(before))
		a.wants("acquire", waits, a.units(0, 0, 2))
		a.unit = a.n
		a.wants("confirm", waits, a.units(-1, 2, 2))
		a.wants("cancel", hasNothing, a.units(0, 0, 0))
		z.drops(7)
	})
}

// TestUnits_S11_OneKey: all that holders have is one hash at the plain key, whose header counts them. The line is beside it, and
// so is the record of the tokens.
func TestUnits_S11_OneKey(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(5)), b.unitsPeer(t, "y", semaphore(7))
		z := b.unitsPeer(t, "z", fencedRWTerms)
		z.reads()
		want(t, "fields", len(b.hash(t, "k")), 2)
		want(t, "header", strings.HasPrefix(b.hash(t, "k")[":"], fmt.Sprintf("rw %d 1 ", all)), true)
		want(t, "keys: the lock and the tokens' record", b.raw.DBSize(ctx).Val(), int64(2))
		b.raw.FlushAll(ctx)
		a.wants("2 of 7", has, a.units(0, 0, 2))
		x.wants("1 of 5", has, x.units(0, 0, 1))
		x.wants("renew", has, x.units(1, 1, 1))
		y.wants("7", waits, y.units(0, 0, 7))
		h := b.hash(t, "k")
		want(t, "fields", len(h), 3)
		header, record, kept := strings.Fields(h[":"]), strings.Fields(h["a"]), strings.Fields(h["x"])
		want(t, "header: kind, least capacity, held", strings.Join(header[:3], " "), "sem 5 3")
		want(t, "header: next is the first end", header[3], record[2])
		want(t, "a: number, units", strings.Join(record[:2], " "), fmt.Sprint(a.n, " 2"))
		want(t, "a: contended, capacity", strings.Join(record[3:], " "), "1 7")
		want(t, "x: contended, capacity", strings.Join(kept[3:], " "), "1 5")
		want(t, "till is not before the last end", header[4] >= kept[2], true)
		want(t, "keys", b.raw.DBSize(ctx).Val(), int64(2))
		want(t, "place", len(b.placeOf("y")) > 0, true)
	})
}

// TestUnits_S12_I13_VoidChangesNothing: a record or a place with the number of the command, or a greater one, voids it.
func TestUnits_S12_I13_VoidChangesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "x", rwTerms)
		a.reads()
		x.wants("write", waits, x.units(0, 0, all))
		a.contended()
		before, line := fmt.Sprint(b.hash(t, "k")), fmt.Sprint(b.hash(t, lineOfK))
		for _, p := range []*peer{a, x} {
			for _, late := range []uint64{0, 1} {
				for _, s := range []lettucecompat.Command{p.units(1, 1, 1), p.units(1, 0, 0), p.units(0, 0, 0), p.units(0, 0, all), p.units(-1, 1, 1)} {
					s.N, s.Since = first+1-late, first
					p.wants("late", void, s)
				}
			}
		}
		want(t, "hash", fmt.Sprint(b.hash(t, "k")), before)
		want(t, "line", fmt.Sprint(b.hash(t, lineOfK)), line)
	})
}

// TestUnits_S13_Lost: units that were deleted, or that are of a late command, are not had; also after a call of the place that
// was confirmed with them.
func TestUnits_S13_Lost(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "x", rwTerms)
		a.reads()
		a.wants("renew", has, a.units(1, 1, 1))
		known, late := a.unit, a.units(0, 0, 1)
		late.N = known - 1
		b.raw.Del(ctx, "k")
		a.wants("a late acquire", has, late)
		a.unit = known
		a.wants("renew", lost, a.units(1, 1, 1))
		a.wants("cancel", hasNothing, a.units(0, 0, 0))

		a.reads()
		x.reads()
		a.wants("more", waits, a.units(1, 1, all))
		b.raw.Del(ctx, "k")
		x.wants("write", waits, x.units(0, 0, all))
		a.calledFor(all)
		a.unit = a.n
		a.wants("renew", lost, a.units(1, all, all))
	})
}

// TestUnits_S15_S17_S18_Ends: what is new ends after the call lease, what is kept after the lease; who comes after that finds it free,
// and the key lives until the last end.
func TestUnits_S15_S17_S18_Ends(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		short := &lettucecompat.Terms{Call: pace.Scale(time.Second), Lease: lease, Life: life, Shared: true}
		a, x, y := b.unitsPeer(t, "a", short), b.unitsPeer(t, "x", short), b.unitsPeer(t, "y", short)
		want(t, "TTL of a grant", a.reads().TTL, short.Call)
		x.reads()
		got := x.wants("renew", has, x.units(1, 1, 1))
		want(t, "TTL", got.TTL, short.Lease)
		b.wantTTL(t, "k", short.Lease-margin, short.Lease+2*time.Second)
		got = y.wants("write", waits, y.units(0, 0, all))
		want(t, "next", got.Next <= short.Call, true)
		a.contended()
		x.contended()
		eventually(t, "a's is over", func() bool { return y.Do(ctx, y.units(-1, all, all)).Next > lease/2 })
		_, there := b.hash(t, "k")["a"]
		want(t, "a is there", there, false)
		a.wants("renew", lost, a.units(1, 1, 1))
		x.drops(1)
		y.calledFor(all)
		y.drops(all)
		b.nothingLeft(t)
	})
}

// TestUnits_S19_OnePlace: a client has one place, and whatever it states next keeps its position: an acquire that was repeated, a
// confirmation, another want, units beside it. Each begins the place's life anew. Who does not confirm it loses it.
func TestUnits_S19_OnePlace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(7)), b.unitsPeer(t, "y", semaphore(7))
		a.wants("5", has, a.units(0, 0, 5))
		x.wants("2", has, x.units(0, 0, 2))
		x.wants("4 more", waits, x.units(2, 2, 6))
		seq := b.hash(t, lineOfK)["cx"]
		y.wants("1", waits, y.units(0, 0, 1))
		for _, s := range []struct {
			name             string
			have, keep, want int64
		}{
			{"less", 2, 2, 5}, {"a yield", 2, 0, 6}, {"an acquire", 0, 0, 6}, {"a confirmation", -1, 6, 6}, {"less, by its place", -1, 3, 3}, {"more", -1, 6, 6},
		} {
			b.age(t, x, life/2)
			got := x.wants(s.name, waits, x.units(s.have, s.keep, s.want))
			want(t, s.name+": ahead", got.Ahead, 0)
			line := b.hash(t, lineOfK)
			want(t, s.name+": number of the place", line["cx"], seq)
			want(t, s.name+": places", strings.Fields(line[":"])[2], "2")
			left, err := strconv.ParseInt(b.placeOf("x")[3], 10, 64)
			left -= b.raw.Time(ctx).Val().UnixMilli()
			want(t, s.name+": its life begins anew", err == nil && left > (life*3/4).Milliseconds() && left <= life.Milliseconds(), true)
			if s.name == "a turn" { // 2 are free: x does not fit, so y must wait behind it
				want(t, "behind: ahead", y.wants("confirm", waits, y.units(-1, 1, 1)).Ahead, 1)
			}
		}
		b.age(t, x, 2*lease)
		y.wants("confirm", has, y.units(-1, 1, 1))
		want(t, "x has a place", len(b.placeOf("x")) > 0, false)
	})
}

// TestUnits_S20_Calls: those are called for whom the units suffice, up to the first for whom they do not; nobody passes it, and a try is refused.
func TestUnits_S20_Calls(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		var p []*peer
		for i := range 6 {
			p = append(p, b.unitsPeer(t, fmt.Sprint("p", i), rwTerms))
		}
		p[0].writes()
		for i, w := range []int64{1, 1, all, 1} {
			got := p[i+1].wants("waits", waits, p[i+1].units(0, 0, w))
			want(t, "ahead", got.Ahead, i)
		}
		p[0].contended()
		p[5].wants("try", wordRefused, p[5].units(0, 0, 1, try))
		p[0].drops(all)
		want(t, "contended", p[1].calledFor(1).Contended, true)
		want(t, "contended", p[2].calledFor(1).Contended, true)
		p[3].silent()
		p[5].wants("try", wordRefused, p[5].units(0, 0, 1, try))
		p[1].drops(1)
		p[2].drops(1)
		p[3].calledFor(all)
		p[3].drops(all)
		want(t, "contended", p[4].calledFor(1).Contended, false)
		p[4].drops(1)
		b.nothingLeft(t)
	})
}

// TestUnits_S20_OwnUnitsDoNotCount, and who has enough waits again for nobody but others.
func TestUnits_S20_S23_OwnUnits(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "x", rwTerms)
		a.reads()
		want(t, "units", a.wants("alone", has, a.units(1, 1, all)).Units, int64(all))
		want(t, "units", a.wants("shrink", has, a.units(all, 1, 1)).Units, int64(1))
		x.wants("write", waits, x.units(0, 0, all))
		a.contended()
		got := a.wants("again", waits, a.units(1, 1, 1, again))
		want(t, "units", got.Units, int64(1))
		want(t, "ahead", got.Ahead, 1)
		a.wants("the readers leave", waits, a.units(1, 0, 1))
		x.calledFor(all)
		x.drops(all)
		a.calledFor(1)
		got = a.wants("again, alone", has, a.units(1, 1, 1, again))
		want(t, "contended", got.Contended, false)
	})
}

// TestUnits_S20_MoreThan64: one script calls 64; the last in line continues.
func TestUnits_S20_MoreThan64(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a := b.unitsPeer(t, "a", rwTerms)
	a.writes()
	var readers []*peer
	for i := range 70 {
		readers = append(readers, b.unitsPeer(t, fmt.Sprint("r", i), rwTerms))
		readers[i].wants("read", waits, readers[i].units(0, 0, 1))
	}
	a.contended()
	a.drops(all)
	for _, r := range readers[:64] {
		r.calledFor(1)
	}
	last := readers[69]
	want(t, "retry", last.retries(), time.Duration(0))
	last.unit = last.n
	last.wants("confirm", has, last.units(-1, 1, 1))
	for _, r := range readers[64:69] {
		r.calledFor(1)
	}
}

// TestUnits_S21_WhoDoesNotListen is passed and keeps its place.
func TestUnits_S21_WhoDoesNotListen(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "x", rwTerms), b.unitsPeer(t, "y", rwTerms)
		a.writes()
		x.wants("write", waits, x.units(0, 0, all))
		y.wants("write", waits, y.units(0, 0, all))
		b.unsubscribes(t, x)
		a.drops(all)
		y.calledFor(all)
		want(t, "ahead", x.wants("confirm", waits, x.units(-1, all, all)).Ahead, 0)
		y.drops(all)
		want(t, "x was called", strings.HasPrefix(b.hash(t, "k")["x"], fmt.Sprint(x.n, " ", all)), true) // nobody else is
		x.wants("confirm", has, x.units(-1, all, all))
	})
}

// TestUnits_S22_ContendedOnce: all who hold hear once that somebody waits, also more than a script notifies.
func TestUnits_S22_ContendedOnce(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a, w := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "w", rwTerms)
	const others = 300
	ends := time.Now().Add(lease).UnixMilli()
	h := map[string]string{":": fmt.Sprintf("rw %d %d %d %d", all, others, ends, ends)}
	for i := range others {
		h[fmt.Sprint("r", i)] = fmt.Sprintf("%d 1 %d 0 %d", int64(first), ends, all)
	}
	b.put(t, "k", h, lease)
	a.reads()
	w.wants("write", waits, w.units(0, 0, all))
	notified := func() (n int) {
		for _, record := range b.hash(t, "k") {
			if words := strings.Fields(record); len(words) == 5 && words[0] != "rw" && words[3] == "1" {
				n++
			}
		}
		return n
	}
	want(t, "notified", notified(), 256)
	w.wants("confirm", waits, w.units(-1, all, all))
	want(t, "notified", notified(), others+1)
	a.contended()
	w.wants("confirm", waits, w.units(-1, all, all))
	a.silent()
	want(t, "contended", a.wants("renew", has, a.units(1, 1, 1)).Contended, true)
	w.wants("cancel", hasNothing, w.units(0, 0, 0))
	want(t, "contended", a.wants("renew", has, a.units(1, 1, 1)).Contended, false)
}

// TestUnits_P14_WithoutTheLine: while a slot moves, what gives units back without the line leaves the record as contended as it is:
// nobody would be notified again. What keeps some, and has a last token to note, waits until the slot has moved.
func TestUnits_P14_WithoutTheLine(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	moves := &refusal{text: "TRYAGAIN Multiple keys request during rehashing of slot"}
	moves.off.Store(true)
	b.rdb.AddHook(moves)
	a, w := b.unitsPeer(t, "a", rwTerms), b.unitsPeer(t, "w", rwTerms)
	a.writes()
	w.wants("write", waits, w.units(0, 0, all))
	a.contended()
	moves.off.Store(false)
	want(t, "contended", a.wants("shrink", has, a.units(all, 1, 1)).Contended, true)
	want(t, "its record", strings.Fields(b.hash(t, "k")["a"])[3], "1")
	a.terms = fencedRWTerms
	for keep, outcome := range map[int64]lettucecompat.Outcome{1: failed, 0: ok} {
		s := a.units(1, keep, keep)
		s.LastToken = 7
		want(t, fmt.Sprint("a last token, keeping ", keep), a.Do(ctx, s).Outcome, outcome)
		if keep == 0 {
			b.wantHash(t, "k", nil)
		}
	}
}

// TestUnits_S6_AGreaterCapacityIsALoss: a failover has lost that the units count with a lesser one. Others may have more by now.
func TestUnits_S6_AGreaterCapacityIsALoss(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(7))
		a.wants("3 of 7", has, a.units(0, 0, 3))
		x.wants("4 of 7", has, x.units(0, 0, 4))
		a.wants("3 of 5, says the client", lost, a.units(3, 3, 3, func(s *lettucecompat.Command) { s.KeepOf, s.WantOf = 5, 5 }))
		a.drops(3)
		x.drops(4)
	})
}

// TestUnits_S6_TheLeastHasLeft: what a client gives back counts with its capacity no more in the same script, also after the end of a
// lease.
func TestUnits_S6_TheLeastHasLeft(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, w := b.unitsPeer(t, "a", semaphore(5)), b.unitsPeer(t, "x", semaphore(10)), b.unitsPeer(t, "w", semaphore(10))
		a.wants("1 of 5", has, a.units(0, 0, 1))
		x.wants("3 of 10", has, x.units(0, 0, 3))
		w.wants("7 of 10", waits, w.units(0, 0, 7))
		header := strings.Fields(b.hash(t, "k")[":"])
		header[3] = "1" // as if a lease had ended
		b.put(t, "k", hash{":": strings.Join(header, " ")}, 0)
		a.drops(1)
		w.calledFor(7)
		x.drops(3)
		w.drops(7)
	})
}

// TestUnits_S6_LeastCapacity: of those who hold counts, and no longer than they hold.
func TestUnits_S6_LeastCapacity(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(5)), b.unitsPeer(t, "y", semaphore(7))
		want(t, "capacity", a.wants("3 of 7", has, a.units(0, 0, 3)).Capacity, int64(7))
		got := x.wants("1 of 5", has, x.units(0, 0, 1))
		want(t, "capacity", got.Capacity, int64(5))
		got = y.wants("try 2 of 7", wordRefused, y.units(0, 0, 2, try))
		want(t, "capacity", got.Capacity, int64(5))
		y.wants("1 of 7", has, y.units(0, 0, 1))
		x.drops(1)
		got = y.wants("more", has, y.units(1, 1, 4))
		want(t, "units", got.Units, int64(4))
		want(t, "capacity", got.Capacity, int64(7))
		x.wants("nothing is left for its capacity", wordRefused, x.units(0, 0, 1, try))
	})
}

// TestUnits_S6_CapacitiesOfOneClient: what it keeps counts with one, until Redis has given it anew with a lesser one.
func TestUnits_S6_CapacitiesOfOneClient(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(7)), b.unitsPeer(t, "y", semaphore(7))
		of := func(keepOf, wantOf int64) func(*lettucecompat.Command) {
			return func(s *lettucecompat.Command) { s.KeepOf, s.WantOf = keepOf, wantOf }
		}
		counts := func(what string, record, least int64) {
			t.Helper()
			h := b.hash(t, "k")
			want(t, what+": the record's", strings.HasSuffix(h["a"], fmt.Sprint(" ", record)), true)
			want(t, what+": the least", strings.HasPrefix(h[":"], fmt.Sprint("sem ", least, " ")), true)
		}
		want(t, "capacity", a.wants("2 of 5", has, a.units(0, 0, 2, of(5, 5))).Capacity, int64(5))
		counts("2 of 5", 5, 5)
		x.wants("2 of 7", has, x.units(0, 0, 2))
		a.wants("tries what exceeds 3", wordRefused, a.units(2, 2, 3, of(5, 3), try))
		counts("a try", 5, 5)
		got := a.wants("3 of 3 beside 2", waits, a.units(2, 2, 3, of(5, 3)))
		want(t, "units", got.Units, int64(2))
		counts("a place", 5, 5)
		y.wants("passes nobody", wordRefused, y.units(0, 0, 1, try))
		x.drops(2)
		a.unit = a.calledFor(3).N
		counts("a call", 3, 3)
		y.wants("a fourth of 3", wordRefused, y.units(0, 0, 1, try))
		got = a.wants("1 of 5", has, a.units(3, 1, 1, of(5, 5)))
		want(t, "capacity", got.Capacity, int64(5))
		counts("a larger one", 5, 5)
		y.wants("4 of 7", has, y.units(0, 0, 4))
		counts("beside 7", 5, 5)
		a.wants("1 of 7", has, a.units(1, 1, 1, of(7, 7)))
		counts("the largest", 7, 7)
		x.wants("2 of 7", has, x.units(0, 0, 2))
		a.wants("1 of 3 beside 6", waits, a.units(1, 1, 1, of(7, 3)))
		counts("enough, of too many", 7, 7)
		x.drops(2)
		y.wants("2 of 7", has, y.units(4, 2, 2))
		a.unit = a.calledFor(1).N
		counts("the same units anew", 3, 3)
		a.drops(1)
		y.drops(2)
	})
}

// TestUnits_S6_ACallOfALesserCapacity that its client has not heard is confirmed as it is: it does not wait in line again.
func TestUnits_S6_ACallOfALesserCapacity(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(7)), b.unitsPeer(t, "y", semaphore(7))
		of := func(s *lettucecompat.Command) { s.KeepOf, s.WantOf = 5, 3 }
		a.wants("2 of 5", has, a.units(0, 0, 2, func(s *lettucecompat.Command) { s.WantOf = 5 }))
		x.wants("2 of 7", has, x.units(0, 0, 2))
		a.wants("3 of 3 beside 2", waits, a.units(2, 2, 3, of))
		y.wants("7 of 7", waits, y.units(0, 0, 7))
		before := a.unit
		x.drops(2)
		a.calledFor(3)
		a.unit = before
		got := a.wants("3 of 3, which it has", has, a.units(2, 3, 3, of))
		want(t, "units", got.Units, int64(3))
		want(t, "capacity", got.Capacity, int64(3))
		want(t, "contended", got.Contended, true)
		a.wants("2 of 5, and less is wanted", waits, a.units(3, 2, 3, of))
		a.drops(2)
		y.calledFor(7)
		y.drops(7)
	})
}

// TestUnits_S5_Tokens: a writer's is above all before it. A reader's is not below those of the writer before it, be they named or
// not, equal to that of the readers beside it, and below that of the next writer.
func TestUnits_S5_Tokens(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", fencedRWTerms), b.unitsPeer(t, "x", fencedRWTerms)
		r := a.reads() // makes the record
		want(t, "token", r.Token > 0, true)
		want(t, "beside it", x.reads().Token, r.Token)
		want(t, "renewed", a.wants("renew", has, a.units(1, 1, 1)).Token, int64(0))
		x.drops(1)
		w := a.wants("write", has, a.units(1, 1, all))
		want(t, "writer after reader", w.Token > r.Token, true)
		s := a.units(all, 1, 1)
		s.LastToken = w.Token + 3
		want(t, "kept", a.wants("shrink", has, s).Token, int64(0))
		want(t, "reader beside it", x.reads().Token, w.Token+3)
		a.drops(1)
		x.drops(1)
		time.Sleep(2 * time.Millisecond)
		next := x.reads().Token
		want(t, "above what may have been handed out, below now", next > w.Token+3 && next < b.raw.Time(ctx).Val().UnixMicro(), true)
		x.drops(1)
		want(t, "writer", x.writes().Token > next, true)
	})
}

// TestUnits_S5_CalledWithoutAToken: a reader that is alone, and whom a client without tokens has called, gets one above all that the
// writer before it may have handed out.
func TestUnits_S5_CalledWithoutAToken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, r, plain := b.unitsPeer(t, "a", fencedRWTerms), b.unitsPeer(t, "r", fencedRWTerms), b.unitsPeer(t, "plain", rwTerms)
		last := a.writes().Token + 3
		r.wants("read", waits, r.units(0, 0, 1))
		time.Sleep(2 * time.Millisecond)
		b.raw.Del(ctx, "k") // the writer's process has ended
		plain.wants("nothing", hasNothing, plain.units(0, 0, 0))
		want(t, "token of the call", r.calledFor(1).Token, int64(0))
		got := r.wants("confirm", has, r.units(-1, 1, 1))
		want(t, "above", got.Token > last, true)
		r.drops(1)
	})
}

// TestUnits_S8_OneKeyOneKind: each kind refuses the others with an error that names what is there, and changes nothing.
func TestUnits_S8_OneKeyOneKind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		rw, sem, mutex := b.unitsPeer(t, "rw", rwTerms), b.unitsPeer(t, "sem", semaphore(7)), b.peer(t, "mutex")
		refuses := func(what string, says string, outcome lettucecompat.Outcome, err error) {
			t.Helper()
			if outcome != failed || !lettucecompat.Permanent(err) || !strings.Contains(err.Error(), "WRONGTYPE the key holds "+says) {
				t.Errorf("%s: %v, %v, want %q", what, outcome, err, says)
			}
		}
		unitsRefuse := func(p *peer, says string) {
			t.Helper()
			before := b.dump("k")
			for _, s := range []lettucecompat.Command{p.units(0, 0, 1), p.units(0, 0, 1, try), p.units(1, 1, 1), p.units(1, 0, 0), p.units(0, 0, 0), p.units(-1, 1, 1)} {
				a := p.Do(ctx, s)
				if what := fmt.Sprint(p.id, " ", s.Have, s.Keep, s.Want); s.Units > 0 { // which are gone
					want(t, what, a.Word, lettucecompat.WordLost)
				} else {
					refuses(what, says, a.Outcome, a.Err)
				}
			}
			want(t, "value", b.dump("k"), before)
			want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
		}
		rw.reads()
		unitsRefuse(sem, "an RWMutex")
		a := mutex.acquire()
		refuses("acquire", "a lock of another kind", a.Outcome, a.Err)
		rw.drops(1)
		sem.wants("1", has, sem.units(0, 0, 1))
		unitsRefuse(rw, "a Semaphore")
		sem.drops(1)
		mutex.takes()
		unitsRefuse(rw, "a Mutex")
		mutex.releases()
		b.put(t, "k", hash{"user": "anna"}, 0)
		unitsRefuse(rw, "a hash that is no lock")
		b.put(t, "k", hash{":": "1"}, 0)
		unitsRefuse(rw, "a lock of another kind")
		b.raw.Del(ctx, "k")
		b.raw.Set(ctx, "k", "theirs", 0)
		unitsRefuse(rw, "a value of type string")
	})
}

// TestUnits_S8_APlaceOfAnotherKindIsNotCalled: it blocks until it ends.
func TestUnits_S8_APlaceOfAnotherKindIsNotCalled(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.unitsPeer(t, "a", rwTerms), b.peer(t, "x")
		x.takes()
		y := b.peer(t, "y")
		y.waits(0)
		b.raw.Del(ctx, "k")
		want(t, "ahead", a.wants("read", waits, a.units(0, 0, 1)).Ahead, 1)
		b.age(t, y, 2*lease)
		a.wants("confirm", has, a.units(-1, 1, 1))
		y.silent()
	})
}

// TestUnits_InspectAndForce: a tool sees who has what and who waits, and deletes it; holders and waiters hear of that.
func TestUnits_InspectAndForce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, w := b.unitsPeer(t, "a", semaphore(7)), b.unitsPeer(t, "x", semaphore(5)), b.unitsPeer(t, "w", semaphore(7))
		a.wants("3", has, a.units(0, 0, 3))
		x.wants("2", has, x.units(0, 0, 2))
		w.wants("1", waits, w.units(0, 0, 1))
		a.contended()
		x.contended()
		info, err := w.Inspect(ctx, "k", false)
		if err != nil || len(info.Holders) != 2 {
			t.Fatalf("%+v, %v", info, err)
		}
		want(t, "kind", info.Kind, "sem")
		want(t, "capacity", info.Capacity, int64(5))
		want(t, "in line", info.InLine, 1)
		want(t, "first", info.First, "w")
		for _, h := range info.Holders {
			want(t, "units of "+h.Client, h.Count, map[string]int64{"a": 3, "x": 2}[h.Client])
		}
		forced, err := w.ForceRelease(ctx, "k", false)
		if err != nil || len(forced) != 2 {
			t.Fatalf("forced %v, %v", forced, err)
		}
		want(t, "forced", a.message(lettucecompat.MessageForced).N, a.n)
		want(t, "forced", x.message(lettucecompat.MessageForced).N, x.n)
		want(t, "retry", w.retries(), time.Duration(0))
		w.unit = w.n
		w.wants("confirm", has, w.units(-1, 1, 1))
		a.wants("renew", lost, a.units(3, 3, 3))
	})
}

// TestUnits_InspectShowsNoDead: whose lease is over has nothing, though no script has removed its record yet. Not on
// miniredis, where a key can end between two commands of a script.
func TestUnits_InspectShowsNoDead(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	with := func(capacity int64, call time.Duration) *lettucecompat.Terms {
		return &lettucecompat.Terms{Call: call, Lease: lease, Life: life, Shared: true, Capacity: capacity}
	}
	a, x := b.unitsPeer(t, "a", with(5, 500*time.Millisecond)), b.unitsPeer(t, "x", with(7, callLease))
	a.wants("1", has, a.units(0, 0, 1))
	x.wants("2", has, x.units(0, 0, 2))
	info := func() lettucecompat.Info {
		i, err := x.Inspect(ctx, "k", false)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	eventually(t, "a has nothing", func() bool { return len(info().Holders) == 1 })
	i := info()
	if i.Holders[0].Client != "x" || i.Capacity != 7 || i.TTL > callLease || i.TTL < callLease/2 {
		t.Errorf("%+v", i)
	}
	_, there := b.hash(t, "k")["a"]
	want(t, "a's record is there", there, true)
	x.drops(2)
	a.wants("1", has, a.units(0, 0, 1))
	eventually(t, "nobody has anything", func() bool { i := info(); return !i.Exists && i.Kind == "" && len(i.Holders) == 0 })
}

// TestUnits_I2_NoScriptSeesNonsense.
func TestUnits_I2_NoScriptSeesNonsense(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	p := newPeer(t, b.rdb, "p")
	p.terms = semaphore(7)
	for name, s := range map[string]lettucecompat.Command{
		"more than the capacity":       p.units(0, 0, 8),
		"less than nothing":            p.units(0, 0, -1),
		"nothing is kept":              p.units(0, 1, 1),
		"a place with units":           p.units(-1, 1, 1, func(s *lettucecompat.Command) { s.Units = 1 }),
		"units without units":          p.units(1, 1, 1, func(s *lettucecompat.Command) { s.Units = 0 }),
		"a try that waits":             p.units(1, 1, 1, again, try),
		"a place for nothing":          p.units(1, 1, 0, again),
		"a small number":               p.units(0, 0, 1, func(s *lettucecompat.Command) { s.N = 5 }),
		"ahead of the line":            p.units(0, 0, 1, func(s *lettucecompat.Command) { s.First = true }),
		"a mark of units":              p.units(1, 0, 0, func(s *lettucecompat.Command) { s.Mark = time.Second }),
		"too large a capacity":         p.units(0, 0, 1, func(s *lettucecompat.Command) { s.Terms = semaphore(lettucecompat.MostUnits + 1) }),
		"a negative capacity":          p.units(0, 0, 0, func(s *lettucecompat.Command) { s.Terms = semaphore(-1) }),
		"a key of the library's own":   p.units(0, 0, 1, func(s *lettucecompat.Command) { s.Key = lineOfK }),
		"something that cannot be had": p.units(0, 0, 1, func(s *lettucecompat.Command) { s.Have = 7 }),
		"less for what it keeps":       p.units(1, 1, 1, func(s *lettucecompat.Command) { s.KeepOf, s.WantOf = 3, 5 }),
		"more than the lesser one":     p.units(1, 1, 4, func(s *lettucecompat.Command) { s.KeepOf, s.WantOf = 5, 3 }),
		"too much for what it keeps":   p.units(1, 1, 1, func(s *lettucecompat.Command) { s.KeepOf = lettucecompat.MostUnits + 1 }),
	} {
		want(t, name, p.Do(ctx, s).Outcome, failed)
	}
	b.nothingLeft(t)
}

// TestUnits_I3_OnlyFromAMaster, and in full memory grants fail, renewals, shrinking and releases do not. Errors change nothing.
func TestUnits_I3_FullMemoryAndMissingRights(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	p, q := newPeer(t, b.rdb, "p"), newPeer(t, b.rdb, "q")
	p.terms, q.terms = semaphore(7), semaphore(7)
	p.wants("3", has, p.units(0, 0, 3))
	b.raw.ConfigSet(ctx, "maxmemory", "1")
	a := q.Do(ctx, q.units(0, 0, 7))
	want(t, "full", a.Outcome, failed)
	want(t, "class", lettucecompat.Classify(a.Err), lettucecompat.ClassTransient)
	want(t, "renewal", p.renewsUnits(p.unit, 3).Outcome, ok)
	p.wants("renew", has, p.units(3, 3, 3))
	p.wants("shrink", has, p.units(3, 1, 1))
	p.drops(1)
	b.nothingLeft(t)
	q.key = "free"
	want(t, "full", q.Do(ctx, q.units(0, 0, 1)).Outcome, failed)
	b.raw.ConfigSet(ctx, "maxmemory", "0")
	b.nothingLeft(t)

	c := newPeer(t, b.user(t, "~*", "&*", "+@all", "-pexpire"), "c")
	for _, terms := range []*lettucecompat.Terms{rwTerms, fencedRWTerms} {
		c.terms = terms
		a := c.Do(ctx, c.units(0, 0, 1))
		want(t, "without PEXPIRE", a.Outcome, failed)
		want(t, "class", lettucecompat.Classify(a.Err), lettucecompat.ClassPermanent)
		b.wantHash(t, "k", hash{}) // units without an end must not stay
		b.raw.FlushAll(ctx)
	}
	p.terms = rwTerms
	p.reads()
	c.terms = &lettucecompat.Terms{Call: 2 * callLease, Lease: lease, Life: life, Shared: true} // for longer than the key lives
	before := b.dump("k")
	want(t, "without PEXPIRE beside a holder", c.Do(ctx, c.units(0, 0, 1)).Outcome, failed)
	want(t, "value", b.dump("k"), before)
}
