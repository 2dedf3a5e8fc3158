package lettucecompat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestState_P10_ContendedOnce: who holds the lock hears once that somebody waits, be it by an answer, a call or a message;
// who holds it next hears it anew.
func TestState_P10_ContendedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		want(t, "alone", a.takes().Contended, false)
		a.silent()
		x.waits(0)
		a.contended()
		y.waits(1)
		x.wantWord("confirm", x.confirm(), waits)
		a.silent()
		want(t, "renewed", a.wantWord("renew", a.state(unit, 1, 1), has).Contended, true)
		a.releases()
		want(t, "by the call", x.called().Contended, true)
		a.waits(1)
		x.silent()
		x.releases()
		want(t, "by the call", y.called().Contended, true)
		y.releases()
		want(t, "the last", a.called().Contended, false)
		a.silent()
		x.waits(0)
		a.contended()
		x.cancel()
		want(t, "renewed", a.wantWord("renew", a.state(unit, 1, 1), has).Contended, false)
	})
}

// TestState_P10_WhoIsCalledAloneIsNotified: by its own command, on a line that stays because foreign clients were seen.
func TestState_P10_WhoIsCalledAloneIsNotified(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.waits(0)
		b.raw.HSet(ctx, lineOfK, "s", fmt.Sprintf("0 0 %d", b.raw.Time(ctx).Val().UnixMilli()))
		b.raw.Del(ctx, "k")
		got := x.wantWord("confirm", x.confirm(), has)
		want(t, "contended", got.Contended, false)
		x.unit = got.Unit
		y.waits(0)
		x.contended()
		x.releases()
	})
}

// TestState_P11_TheWordOfAPlace: what is called and asked to retry carries the secret word; without it a message is
// malformed.
func TestState_P11_TheWordOfAPlace(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.waits(0)
		word := lettucecompat.SecretWord(x.Client)
		want(t, "word of the place", b.placeOf("x")[4], word)
		if len(word) < 16 || strings.ContainsFunc(word, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
			t.Errorf("secret word %q", word)
		}
		n := fmt.Sprint(x.n)
		malformed := []string{
			"called - " + n + " 1 0 0 k", "called ABC " + n + " 1 0 0 k", "retry - 5 k", "retry ABC 5 k", "called", "retry", "contended", "forced", "",
			"called " + word, "called " + word + " " + n, "called " + word + " " + n + " 1 0 0", "called " + word + " x 1 0 0 k", "called " + word + " -1 1 0 0 k",
			"called " + word + " " + n + " 0 0 0 k", "called " + word + " " + n + " 01 0 0 k", "called " + word + " " + n + " +1 0 0 k", "called " + word + " " + n + " -1 0 0 k", "called " + word + " " + n + " x 0 0 k", "called " + word + " " + n + " 1099511627777 0 0 k", "called " + word + " " + n + " 1 x 0 k", "called " + word + " " + n + " 1 0 2 k",
			"retry " + word + " x k", "contended " + word + " 1 k", "contended x 1 k", "forced x 1 k", "contended - x k", "shout - 1 k", "retry " + word + " 99999999999999999999 k",
			`{"called":{}}`,
		}
		for _, payload := range malformed {
			b.raw.Publish(ctx, "anteroom:client:x", payload)
		}
		x.silent()
		want(t, "warning", (<-x.warns).Kind, lettucecompat.WarnMalformedMessage)
		want(t, "not reported again", lettucecompat.Unreported(x.Client, lettucecompat.WarnMalformedMessage), len(malformed)-1)

		const key = "a \xff\nkey 1"
		x.key = key
		for payload, m := range map[string]lettucecompat.Message{
			"called " + word + " 17 1 0 0 " + key:   {Kind: lettucecompat.MessageCalled, N: 17, Units: 1},
			"called " + word + " 17 1 123 1 " + key: {Kind: lettucecompat.MessageCalled, N: 17, Units: 1, Token: 123, Contended: true},
			"retry " + word + " 25 " + key:          {Kind: lettucecompat.MessageRetry, After: 25 * time.Millisecond},
			"contended - 17 " + key:                 {Kind: lettucecompat.MessageContended, N: 17},
			"forced - 17 " + key:                    {Kind: lettucecompat.MessageForced, N: 17},
		} {
			b.raw.Publish(ctx, "anteroom:client:x", payload)
			m.Key = key
			want(t, payload, x.next(), m)
		}
	})
}

// TestState_P11_EachClientHasAWordOfItsOwn, also where its id is the same.
func TestState_P11_EachClientHasAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	words := map[string]bool{}
	for range 3 {
		words[lettucecompat.SecretWord(b.client(t))] = true
	}
	want(t, "words", len(words), 3)
}
