package lettucecompat

import (
	"math"
	"strconv"
	"time"
)

// This file is what the commands about one lock share about its line: lua/line.lua says what that is.

const (
	// placeLife and callLease bound how long a place lives unless it is confirmed, and how long what is new lasts
	// until its first renewal.
	placeLife = 30 * time.Second
	callLease = 2 * time.Second
	// leastWindow and mostWindow bound how long a lock is left to foreign clients.
	leastWindow = time.Millisecond
	mostWindow  = time.Second
	// refusedRelease and refusedCall say in an answer that the message of a release, or one to another client, was refused.
	refusedRelease, refusedCall = -1, -2
)

// PlaceLife returns how long a place of a lock with this lease lives unless it is confirmed.
func PlaceLife(lease time.Duration) time.Duration { return min(lease, placeLife) }

// CallLease returns how long a lock with this lease lasts, after it was granted or called, until its
// first renewal.
func CallLease(lease time.Duration) time.Duration { return min(lease, callLease) }

// Listening reports whether the server has confirmed the client's own channel, so that messages arrive.
func (c *Client) Listening() bool { return c.subs.main.listening.Load() }

// appendWindow appends what a script that gives back needs to know of foreign clients: how many subscriptions of the
// release channel of key are this client's, for a comparison with what the server counts (-1: a server does not count
// all), and how long a lock is left to them, in ms: enough for somebody who has heard of the release to ask.
func (c *Client) appendWindow(b []byte, key string) []byte {
	own := int64(0)
	switch {
	case c.Multi() && !c.sharded():
		own = -1
	case c.subs.confirmed(key):
		own = 1
	}
	d := min(max(2*time.Duration(c.rtt.Load()), leastWindow)+c.opt.Dialect.reaction(), mostWindow)
	return strconv.AppendInt(append(strconv.AppendInt(b, own, 10), ' '), inMillis(d), 10)
}

// noteRefusal warns of a message that was refused; 0: none was. It reports whether an answer can say so.
func (c *Client) noteRefusal(refusal int64) bool {
	switch refusal {
	case 0:
		return true
	case refusedRelease, refusedCall:
		c.warn.raise(Warning{Kind: WarnPublishRefused})
		return true
	}
	return false
}

// inMillis is a duration in milliseconds, rounded up: Redis must never end a lease before its holder thinks that it
// ends. At least 1, since 0 would delete the key.
func inMillis(d time.Duration) int64 { return max(1, int64((d+time.Millisecond-1)/time.Millisecond)) }

// millis prints it.
func millis(d time.Duration) string { return strconv.FormatInt(inMillis(d), 10) }

// fromMillis turns the answer of PTTL into a duration, negative for no end.
func fromMillis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond // a foreign key may live for longer than a Duration can say
}

// text returns a bulk string of a reply, "" for anything else.
func text(v any) string {
	s, _ := v.(string)
	return s
}
