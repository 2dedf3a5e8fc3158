package lettucecompat_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestState_Random_Lab: four clients state whatever comes to their minds, late and twice, beside foreign holders, deletions, deaths and
// windows. After each command the lock has one holder, the line says what is in it, and a free lock has nobody waiting.
func TestState_Random_Lab(t *testing.T) { stateAtRandom(t, 12) }

// TestState_Random is the beginning of TestState_Random_Lab.
func TestState_Random(t *testing.T) { stateAtRandom(t, 2) }

func stateAtRandom(t *testing.T, seeds uint64) {
	t.Parallel()
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			b := onMini(t)
			rng := rand.New(rand.NewPCG(seed, 1))
			var all []*peer
			for i := range 4 {
				p := newPeer(t, b.rdb, "p"+strconv.Itoa(i))
				if i%2 == 0 { // the others are passed over
					p.Subscribe()
					eventually(t, "listens", p.Listening)
				}
				if seed%3 == 0 {
					p.terms = fencedTerms
				}
				all = append(all, p)
			}
			token := int64(0)
			for range 400 {
				p := all[rng.IntN(len(all))]
				switch rng.IntN(12) {
				case 0:
					b.raw.Del(ctx, "k")
				case 1:
					if b.raw.Exists(ctx, "k").Val() == 0 {
						b.put(t, "k", hash{"server1-thread-1": "1"}, time.Minute)
					}
				case 2:
					if len(b.placeOf(p.id)) > 0 {
						b.age(t, p, 2*lease)
					}
				case 3:
					if b.raw.HExists(ctx, lineOfK, "s").Val() {
						b.closes(t)
					}
				}
				s := p.command(lettucecompat.Have(rng.IntN(3)), rng.Int64N(2), rng.Int64N(2))
				if s.Have == nothing {
					s.Keep = 0
				}
				if s.Want == 0 {
					s.Keep = 0
				}
				s.Try = s.Have == nothing && rng.IntN(4) == 0
				if s.Have == nothing && rng.IntN(2) == 0 {
					s.Since = first
				}
				if rng.IntN(10) == 0 { // late
					s.N -= uint64(rng.IntN(5))
					s.Since = min(s.Since, s.N)
				}
				if s.Have == unit && s.Keep == 0 && s.Want == 0 && rng.IntN(4) == 0 {
					s.Mark = time.Second
				}
				before := b.hash(t, "k")
				a := p.Do(ctx, s)
				answered := time.Now()
				if a.Outcome != ok {
					t.Fatalf("%+v: %+v", s, a)
				}
				if s.Keep == 0 {
					p.floor = max(p.floor, s.N)
				}
				after, places := b.hash(t, "k"), b.checkLine(t)
				what := fmt.Sprintf("%+v: %+v: %v, %v before", s, a, after, before)
				if len(after) > 1 {
					t.Fatalf("two holders: %s", what)
				}
				if a.Word == has {
					p.unit = a.Unit
					if after[p.field(a.Unit)] != "1" {
						t.Fatalf("has nothing: %s", what)
					}
					if s.Keep == 0 && p.terms.Fenced {
						if a.Token <= token {
							t.Fatalf("token %d after %d: %s", a.Token, token, what)
						}
						token = a.Token
					}
				}
				if _, ours := after[p.field(p.unit)]; a.Word == hasNothing && s.Since <= p.unit && ours {
					t.Fatalf("something is left: %s", what)
				}
				if place := b.placeOf(p.id); (a.Word == waits) != (len(place) > 0 && place[1] == fmt.Sprint(s.N)) && a.Word != void {
					t.Fatalf("place %v: %s", place, what)
				}
				if len(after) == 0 && places > 0 && a.Word != void && a.Word != lost && a.Word != wordGone && !strings.HasPrefix(b.openUntil(), "1") && !ended(&a, answered) {
					t.Fatalf("free, and %d wait: %s", places, what)
				}
				for field := range after { // who was called learns it by the message
					if n, err := strconv.ParseUint(strings.TrimPrefix(field, p.id+":"), 10, 64); err == nil {
						p.unit = n
					}
				}
				if r := b.raw.Get(ctx, fenceOfK).Val(); r != "" {
					counter, _ := strconv.ParseInt(r, 10, 64)
					token = max(token, counter)
				}
			}
		})
	}
}

// ended reports whether what kept a place waiting may have ended by itself since it was answered.
func ended(a *lettucecompat.Answer, answered time.Time) bool {
	return a.Word == waits && a.Next >= 0 && time.Since(answered) >= a.Next
}

// openUntil is the moment until which the lock of k is left to foreign clients.
func (b *bed) openUntil() string {
	until, _, _ := strings.Cut(b.raw.HGet(ctx, lineOfK, "s").Val(), " ")
	return until
}

// checkLine fails unless the header of the line says what is in it. It returns how many wait.
func (b *bed) checkLine(t *testing.T) int {
	t.Helper()
	line := b.hash(t, lineOfK)
	places, clients := map[int]string{}, 0
	for field, text := range line {
		switch field[0] {
		case 'p':
			seq, _ := strconv.Atoi(field[1:])
			places[seq], _, _ = strings.Cut(text, " ")
		case 'c':
			clients++
		}
	}
	var head, tail, count, till, contended int
	if header, there := line[":"]; there {
		if _, err := fmt.Sscan(header, &head, &tail, &count, &till, &contended); err != nil {
			t.Fatalf("header %q", header)
		}
	}
	if count != len(places) || clients != len(places) {
		t.Fatalf("%d places, %d clients, and the header says %d: %v", len(places), clients, count, line)
	}
	for seq, client := range places {
		if seq < head || seq > tail || line["c"+client] != strconv.Itoa(seq) {
			t.Fatalf("place %d of %s: %v", seq, client, line)
		}
	}
	if len(line) > 0 && b.raw.PTTL(ctx, lineOfK).Val() <= 0 {
		t.Fatalf("a line without an end: %v", line)
	}
	return count
}
