package lettucecompat_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestState_Turns walks through the life of a lock between two clients.
func TestState_Turns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		got := a.takes()
		want(t, "TTL", got.TTL, callLease)
		want(t, "contended", got.Contended, false)
		want(t, "unit", got.Unit, a.n)
		b.holds(t, a)
		b.wantTTL(t, "k", callLease-margin, callLease)

		got = x.waits(0)
		want(t, "holder", got.Holder, a.field(a.unit))
		want(t, "ours", x.Ours(got.Holder), true)
		a.contended()

		a.wantWord("yield", a.yield(), waits)
		m := x.called()
		want(t, "contended", m.Contended, true)
		b.holds(t, x)
		got = x.wantWord("renew", x.state(unit, 1, 1), has)
		want(t, "contended", got.Contended, true)
		want(t, "unit", got.Unit, x.unit)
		b.wantTTL(t, "k", lease-margin, lease+time.Millisecond)

		x.releases()
		want(t, "contended", a.called().Contended, false)
		b.holds(t, a)
		a.releases()
		b.nothingLeft(t)
	})
}

// TestWire_I13_P1_VoidChangesNothing: a record with the number of the command, or a greater one, voids it: a unit and a
// place alike.
func TestWire_I13_P1_VoidChangesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.waits(0)
		line := b.hash(t, lineOfK)
		for _, p := range []*peer{a, x} {
			for _, have := range []lettucecompat.Have{nothing, place, unit} {
				for what := range int64(4) {
					if have == nothing && what > 1 {
						continue // who has nothing keeps nothing
					}
					s := p.command(have, what/2, what%2)
					for _, late := range []uint64{0, 1} { // a repeat, and an older one
						s.N, s.Since = first+1-late, first
						if late == 0 && have == unit && s.Keep == 0 {
							s.Since = first - 1 // not the unit that was granted under this number
						}
						p.wantWord(fmt.Sprint(have, s.Keep, s.Want), p.Do(ctx, s), void)
					}
				}
			}
		}
		b.holds(t, a)
		got := b.hash(t, lineOfK)
		want(t, "line", fmt.Sprint(got), fmt.Sprint(line))
		x.n = first + 1
		a.unit = first + 1
		a.n = first + 10
		a.releases()
		x.called()
	})
}

// TestState_P2_ARecordBelowSinceIsNotHad: a late command has left a unit. It is not the client's: it is neither kept,
// renewed nor given back, and refuses as anybody's, for its call lease.
func TestState_P2_ARecordBelowSinceIsNotHad(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		a.takes()
		late := a.unit
		state := func(have lettucecompat.Have, keep, wants int64) lettucecompat.Answer {
			s := a.command(have, keep, wants)
			s.Since = late + 1
			return a.Do(ctx, s)
		}
		a.wantWord("renew", state(unit, 1, 1), lost)
		a.wantWord("release", state(unit, 0, 0), lost)
		a.wantWord("yield", state(unit, 0, 1), lost)
		a.wantWord("confirm", state(place, 1, 1), wordGone)
		a.wantWord("cancel", state(nothing, 0, 0), hasNothing)
		b.wantHash(t, "k", hash{a.field(late): "1"})
		b.wantTTL(t, "k", 0, callLease)
		got := a.wantWord("acquire", state(nothing, 0, 1), waits)
		want(t, "holder", got.Holder, a.field(late))
		b.wantHash(t, "k", hash{a.field(late): "1"})
		b.raw.Del(ctx, "k")
		a.wantWord("confirm", a.confirm(), has)
	})
}

// TestState_P2_WhatMayBeLeftGoes: who has nothing names the least number that may have left something. All from there on
// goes: the unit, and the place, whose position is kept by an acquire.
func TestState_P2_WhatMayBeLeftGoes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.peer(t, "a")
		for _, wants := range []int64{0, 1} {
			a.takes()
			s := a.command(nothing, 0, wants)
			s.Since = a.unit
			a.wantWord("after an answer that was lost", a.Do(ctx, s), []lettucecompat.Word{hasNothing, has}[wants])
			if wants == 1 {
				b.wantHash(t, "k", hash{a.field(a.n): "1"})
				a.unit = a.n
				a.releases()
			}
			b.nothingLeft(t)
		}
		x, y := b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.waits(0)
		y.waits(1)
		x.waits(0) // again: its place is confirmed
		x.wantWord("cancel", x.cancel(), hasNothing)
		x.waits(1)
		a.releases()
		y.called()
	})
}

// TestWire_I5_P3_EveryRow: each row of the table on each state in which Redis can be.
func TestWire_I5_P3_EveryRow(t *testing.T) {
	t.Parallel()
	type row struct {
		name       string
		have       lettucecompat.Have
		keep, want int64
		// the word where Redis has for the client: nothing and the lock is free; nothing and another holds it; a place; a unit
		free, taken, placed, held lettucecompat.Word
	}
	rows := []row{
		{"acquire", nothing, 0, 1, has, waits, waits, has},
		{"confirm", place, 1, 1, wordGone, wordGone, waits, has},
		{"renew", unit, 1, 1, lost, lost, lost, has},
		{"release", unit, 0, 0, lost, lost, lost, hasNothing},
		{"yield", unit, 0, 1, lost, lost, lost, has},
		{"cancel", nothing, 0, 0, hasNothing, hasNothing, hasNothing, hasNothing},
	}
	both(t, func(t *testing.T, b *bed) {
		for _, r := range rows {
			for i, word := range []lettucecompat.Word{r.free, r.taken, r.placed, r.held} {
				name := fmt.Sprint(r.name, " ", []string{"free", "taken", "placed", "held"}[i])
				b.raw.FlushAll(ctx)
				a, z := newPeer(t, b.rdb, "a"), newPeer(t, b.rdb, "z")
				before := a.n
				switch i {
				case 1:
					z.takes()
				case 2:
					z.takes()
					a.waits(0)
				case 3:
					a.takes()
				}
				if before == a.n {
					a.n++ // a record could have this number
				}
				s := a.command(r.have, r.keep, r.want)
				s.Since = before + 1
				a.wantWord(name, a.Do(ctx, s), word)
				hold, places := hash{}, 0
				switch {
				case i == 1 || i == 2:
					hold = hash{z.field(z.unit): "1"}
				case word == has && s.Keep == 1:
					hold = hash{a.field(s.Since): "1"}
				case word == has:
					hold = hash{a.field(s.N): "1"}
				}
				b.wantHash(t, "k", hold)
				if got := b.placeOf("a"); word == waits {
					places = 1
					want(t, name+": number of the place", got[1], fmt.Sprint(s.N))
				} else if i == 2 && r.want == 1 {
					places = 1 // lost: nothing has changed
				} else if i == 2 && r.name == "release" {
					places = 1
				}
				want(t, name+": places", len(b.placeOf("a"))/5, places)
			}
		}
	})
}

// TestState_P3_ATurnLetsTheOthersIn: what is given back goes to the first in line, and the client waits behind all.
func TestState_P3_ATurnLetsTheOthersIn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.waits(0)
		y.waits(1)
		got := a.wantWord("yield", a.yield(), waits)
		want(t, "ahead", got.Ahead, 1)
		want(t, "holder", got.Holder, x.field(x.n))
		want(t, "left to it", got.Next > 0 && got.Next <= callLease, true)
		x.called()
		x.wantWord("yield", x.yield(), waits)
		y.called()
		y.releases()
		a.called()
		a.releases()
		x.called()
	})
}

// TestState_P3_ATurnAloneIsANewGrant: a new number, the call lease, and one message of a release.
func TestState_P3_ATurnAloneIsANewGrant(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a := b.peer(t, "a")
	a.takes()
	a.wantWord("renew", a.state(unit, 1, 1), has)
	messages := listen(t, b, func() { a.wantWord("yield", a.yield(), has) })
	want(t, "messages", len(messages), 1)
	b.holds(t, a)
	b.wantTTL(t, "k", 0, callLease)
}

// TestState_P3_AnAcquireGivesBackInSilence: what is left of an acquire without an answer goes, and the lock is taken again in the same step.
func TestState_P3_AnAcquireGivesBackInSilence(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	a := b.peer(t, "a")
	a.takes()
	s := a.command(nothing, 0, 1)
	s.Since = a.unit
	messages := listen(t, b, func() { a.wantWord("acquire", a.says(s), has) })
	want(t, "messages", len(messages), 0)
	b.holds(t, a)
	s = a.command(nothing, 0, 0)
	s.Since = a.unit
	messages = listen(t, b, func() { a.wantWord("cancel", a.says(s), hasNothing) })
	want(t, "messages of a clean-up", len(messages), 1)
}

// TestState_P3_AFreeLockGoesToTheFirst: be it found by whom it may.
func TestState_P3_AFreeLockGoesToTheFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		for name, states := range map[string]func(x, y, z *peer){
			"an acquire":               func(_, _, z *peer) { z.waits(1) },
			"a try":                    func(_, _, z *peer) { z.wantWord("try", z.try(), wordRefused) },
			"what is left":             func(_, _, z *peer) { z.wantWord("cancel", z.cancel(), hasNothing) },
			"the second":               func(_, y, _ *peer) { y.wantWord("confirm", y.confirm(), waits) },
			"itself":                   func(x, _, _ *peer) { x.unit = x.wantWord("confirm", x.confirm(), has).Unit },
			"itself, as if it had not": func(x, _, _ *peer) { x.unit = x.takes().Unit },
		} {
			b.raw.FlushAll(ctx)
			a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
			a.takes()
			x.waits(0)
			y.waits(1)
			b.raw.Del(ctx, "k") // its lease is over
			states(x, y, z)
			if name[:3] != "its" {
				x.called()
			}
			b.holds(t, x)
			want(t, name+": contended", x.wantWord("renew", x.state(unit, 1, 1), has).Contended, true)
			for _, p := range []*peer{a, x, y, z} {
				p.Close()
			}
		}
	})
}

// TestWire_I4_P4_ShortFirst: what is new has the call lease, what is kept gets the lease, and no command lowers a time to live.
func TestWire_I4_P4_ShortFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		b.wantTTL(t, "k", callLease-margin, callLease)
		a.wantWord("renew", a.state(unit, 1, 1), has)
		b.wantTTL(t, "k", lease-margin, lease+time.Millisecond)
		b.raw.PExpire(ctx, "k", 2*lease) // an Extend
		got := a.wantWord("renew", a.state(unit, 1, 1), has)
		want(t, "answer", got.TTL > 2*lease-margin, true)
		b.wantTTL(t, "k", 2*lease-margin, 2*lease+time.Second)
		x.waits(0)
		x.wantWord("confirm", x.confirm(), waits)
		b.wantTTL(t, "k", 2*lease-margin, 2*lease+time.Second)
		a.releases()
		x.called()
		b.wantTTL(t, "k", callLease-margin, callLease)
		// A confirmation that finds the call raises nothing.
		b.raw.PExpire(ctx, "k", callLease/2)
		got = x.wantWord("confirm", x.confirm(), has)
		want(t, "what is left", got.TTL > 0 && got.TTL <= callLease/2, true)
		b.wantTTL(t, "k", 0, callLease/2)
	})
}

// TestState_P13_ATryLeavesNothing: it is granted or refused, and takes a place of its client along.
func TestState_P13_ATryLeavesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		x.wantWord("try", x.try(), has)
		x.releases()
		a.takes()
		got := x.wantWord("try", x.try(), wordRefused)
		want(t, "holder", got.Holder, a.field(a.unit))
		want(t, "left to it", got.Next > 0 && got.Next <= callLease, true)
		want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
		x.waits(0)
		y.waits(1)
		a.contended()
		x.wantWord("try", x.try(), wordRefused)
		want(t, "place", len(b.placeOf("x")), 0)
		a.releases()
		y.called()
		// A try does not overtake who waits, though nobody has called it yet.
		x.waits(0)
		b.raw.Del(ctx, "k")
		a.wantWord("try", a.try(), wordRefused)
		x.called()
	})
}

// TestState_MinHold: the mark keeps the key taken until its end, the first ones learn how long, and nobody
// is called before.
func TestState_MinHold(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		for i, p := range []*peer{x, y, z} {
			p.waits(i)
		}
		a.contended()
		mark := a.field(a.unit) + ":kept"
		s := a.command(unit, 0, 0)
		s.Mark = callLease
		a.wantWord("release", a.Do(ctx, s), hasNothing)
		b.wantHash(t, "k", hash{mark: "1"})
		b.wantTTL(t, "k", callLease-margin, callLease)
		for _, p := range []*peer{x, y} {
			want(t, "retries after its last ms", p.retries(), callLease+time.Millisecond)
		}
		z.silent()
		got := x.wantWord("confirm", x.confirm(), waits)
		want(t, "holder", got.Holder, mark)
		want(t, "ours", x.Ours(mark), true)
		x.silent()
		a.silent()

		// A repeat finds its mark, and a place may be taken behind that by its own client.
		s.N++
		a.n = s.N
		a.wantWord("release again", a.Do(ctx, s), hasNothing)
		b.wantHash(t, "k", hash{mark: "1"})
		a.waits(3)
		b.raw.Del(ctx, "k")
		x.unit = x.wantWord("confirm", x.confirm(), has).Unit
	})
}

// TestState_LeavingNearTheHead: who moves up there retries after the end of the holder, and is asked to.
func TestState_LeavingNearTheHead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		var all []*peer
		for i := range 5 {
			all = append(all, b.peer(t, fmt.Sprint("p", i)))
		}
		all[0].takes()
		for i, p := range all[1:] {
			p.waits(i)
		}
		all[3].cancel() // the third: nobody cares
		for _, p := range all[1:] {
			p.silent()
		}
		all[2].cancel()
		for _, i := range []int{1, 4} {
			want(t, "retries", all[i].retries(), time.Duration(0))
		}
		want(t, "the last is the second now", all[4].wantWord("confirm", all[4].confirm(), waits).Ahead, 1)
		all[1].try()
		want(t, "retries", all[4].retries(), time.Duration(0))
		want(t, "and the first", all[4].wantWord("confirm", all[4].confirm(), waits).Ahead, 0)
	})
}

// TestState_Names: the words of CommandStat, labels and logs.
func TestState_Names(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	var names []string
	a := b.peer(t, "a", func(o *lettucecompat.Options) {
		o.OnCommand = func(s lettucecompat.CommandStat) { names = append(names, s.Name) }
	})
	for _, s := range []lettucecompat.Command{
		a.command(nothing, 0, 1), a.command(place, 1, 1), a.command(unit, 1, 1), a.command(unit, 0, 1), a.command(unit, 0, 0),
		a.command(nothing, 0, 0), a.command(place, 0, 0),
	} {
		a.Do(ctx, s)
	}
	want(t, "names", fmt.Sprint(names), "[acquire confirm renew yield release cancel cancel]")
	want(t, "words", fmt.Sprint(has, hasNothing, waits, wordRefused, void, lost, wordGone, lettucecompat.Word(99)), "has nothing waits refused void lost gone invalid")
}

// TestState_RefusesWhatNoScriptMaySee: numbers of another length, and what is no command.
func TestState_RefusesWhatNoScriptMaySee(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	a := b.peer(t, "a")
	good := a.command(nothing, 0, 1)
	bad := slices.Repeat([]lettucecompat.Command{good}, 7)
	bad[0].N = lettucecompat.FirstNumber - 1
	bad[1].N = lettucecompat.LastNumber + 1
	bad[2].Since = lettucecompat.LastNumber + 1
	bad[3].Want = 2
	bad[4].Have = 3
	bad[5].Have = unit
	bad[6].Again = true
	for _, s := range bad {
		if got := a.Do(ctx, s); got.Outcome != failed || got.Err == nil {
			t.Errorf("%+v: %+v", s, got)
		}
	}
	b.nothingLeft(t)
}
