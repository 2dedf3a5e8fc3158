package lettucecompat_test

import (
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// number is a small number as that of a command.
func number[N int | uint64](i N) uint64 { return first + uint64(i) }

// me is the field of the unit that the client "me" has got under a small number.
func me[N int | uint64](i N) string { return lettucecompat.NewField("me", number(i)) }

// asks asks for key under a small number.
func asks[N int | uint64](key string, i N) lettucecompat.Command {
	return lettucecompat.Command{Key: key, N: number(i), Since: number(i), Want: 1, Terms: terms}
}

// fenced is asks for a lock with tokens.
func fenced[N int | uint64](key string, i N) lettucecompat.Command {
	s := asks(key, i)
	s.Terms = fencedTerms
	return s
}

// gives releases the unit that the client has got under a small number.
func gives[N int | uint64](key string, i N) lettucecompat.Command {
	return lettucecompat.Command{Key: key, N: number(i) + 1_000_000, Since: number(i), Have: unit, Units: 1, Terms: terms}
}

// givesFenced is gives for a lock with tokens.
func givesFenced[N int | uint64](key string, i N) lettucecompat.Command {
	s := gives(key, i)
	s.Terms = fencedTerms
	return s
}

// renews renews the unit that "me" has got under a small number.
func renews(key string, i int) lettucecompat.Renewal {
	return lettucecompat.Renewal{Key: key, Field: me(i), Lease: lease}
}

// synced is renews with a replica that is waited for.
func synced(key string, i int) lettucecompat.Renewal {
	r := renews(key, i)
	r.Replicas = 1
	return r
}
