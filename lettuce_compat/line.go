package lettucecompat

import (
	"cmp"
	"context"
	"strconv"
	"time"
)

// This file is what the commands about one lock share about its line: lua/line.lua says what
// that is. The line is optional for each command. Where its key may not be used, or does not lie
// where the lock does at the moment, the command goes without: the scripts then get the lock's
// own key in its place.

const (
	// placeLife and callLease bound how long a place lives unless it is confirmed, and how
	// long a called one has until its renewal. The scripts know them too.
	placeLife = 30 * time.Second
	callLease = 2 * time.Second
	// linelessTime is how long a client leaves the line out after its key was refused.
	linelessTime = 30 * time.Second
	// muteTime is how long a client counts as one that cannot tell whom it calls after it could not.
	muteTime = 30 * time.Second
	// leastWindow and mostWindow bound how long a lock is left open for those who do not stand.
	leastWindow = time.Millisecond
	mostWindow  = time.Second
	// hearing, deaf and mute are what a client says about its ears, see lua/line.lua.
	hearing, deaf, mute = "0", "1", "2"
	// FirstField is the least number of a field whose release calls: versions of Anteroom that know
	// no line have given smaller ones.
	FirstField = 1e15
)

// PlaceLife returns how long a place of a lock with this lease lives unless it is confirmed.
func PlaceLife(lease time.Duration) time.Duration { return min(lease, placeLife) }

// CallLease returns how long a lock with this lease is held by who was called until it is
// renewed.
func CallLease(lease time.Duration) time.Duration { return min(lease, callLease) }

// Call says that a script has given a lock to a field of this client: another's release, or whatever
// command found the lock free.
type Call struct {
	N       uint64 // the number of the field
	Attempt uint64 // the highest one that the place had seen
	Lease   time.Duration
	Token   int64 // first of the reserved tokens
	// HasToken is false where the caller could not reserve any, or none were asked for.
	HasToken bool
	// Dead is how many places were removed on the way to this one, because nobody had confirmed
	// them for their life.
	Dead int
}

// call reads the message for the field with number n.
func (m *calledMessage) call(n uint64) Call {
	token, err := strconv.ParseInt(m.Token, 10, 64)
	return Call{N: n, Attempt: m.Attempt, Lease: fromMillis(m.Lease), Token: token, HasToken: err == nil, Dead: int(m.Dead)}
}

// field returns the field that the message is about, "" where it is about none.
func (m *ownMessage) field() string {
	switch {
	case m.Forced != nil:
		return m.Forced.Field
	case m.Called != nil:
		return m.Called.Field
	case m.Look != nil:
		return m.Look.Field
	}
	return ""
}

// ownNumber returns the number of a field of this client.
func (c *Client) ownNumber(field string) (n uint64, ok bool) {
	client, n, ok := ParseField(field)
	return n, ok && client == c.opt.ClientID
}

// Listening reports whether calls are heard: the server has confirmed the client's own channel,
// and does not refuse its messages to others. While they are not, the TTL that those who stand
// are answered is short, and to be minded wherever they stand.
func (c *Client) Listening() bool { return c.ears() == hearing }

func (c *Client) ears() any {
	if c.mute.Load() != nil {
		return mute
	}
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	if c.subs.main.own.state != chConfirmed {
		return deaf
	}
	return hearing
}

// Lineless reports whether the line is left out at the moment: its keys were refused.
func (c *Client) Lineless() bool {
	until := c.lineless.Load()
	return until != nil && time.Now().Before(*until)
}

// line returns the key of the line of a lock, or key itself while the line is left out.
func (c *Client) line(key string) string {
	if c.Lineless() {
		return key
	}
	return derivedKey(linePrefix, key, func(slot uint16) uint32 { return c.tags()[slot] })
}

// withLine has a script sent with the line, and again without where that is refused: send is given
// the key of the line, which is the lock's own where the line is left out. These answers prove that
// nothing of the script ran: the key of the line may not be touched, or it is not where the lock is
// (a slot that moves, of which this server has one of the keys only; a proxy that has rules of its
// own). Where the script is carried out without it, the line is left out for a while; but a slot
// that moves says nothing about the other keys, and has moved soon.
func (c *Client) withLine(
	key string, start time.Time, limit time.Duration, send func(line string, now time.Time, limit time.Duration) (*scriptParcel, error),
) (*scriptParcel, error) {
	line := c.line(key)
	k, left := send(line, start, limit)
	if left != nil || line == key || !refusesLine(k.command.Err()) { // one that was left may still be under way
		return k, left
	}
	refusal := k.command.Err()
	rest := cmp.Or(limit, c.opt.CommandTimeout) - time.Since(start)
	if rest <= 0 {
		return k, left
	}
	k, left = send(key, time.Now(), rest)
	if left == nil && k.command.Err() == nil && !hasCode(refusal, "TRYAGAIN") {
		until := time.Now().Add(linelessTime)
		c.lineless.Store(&until)
	}
	return k, left
}

func refusesLine(err error) bool {
	return hasCode(err, "NOPERM") || hasCode(err, "TRYAGAIN") || hasCode(err, "CROSSSLOT")
}

// oneWithLine is withLine for a script that build makes.
func (c *Client) oneWithLine(
	ctx context.Context, l *lane, key string, start time.Time, limit time.Duration, build func(line string) *scriptParcel,
) (*scriptParcel, Outcome, error) {
	k, left := c.withLine(key, start, limit, func(line string, now time.Time, limit time.Duration) (*scriptParcel, error) {
		k := build(line)
		return k, l.do(ctx, &k.parcel, now, limit)
	})
	outcome, err := k.command.result(left)
	return k, outcome, err
}

// window is how long a lock is left open, in whole ms: time for somebody who heard of the release
// to ask for it.
func (c *Client) window() string {
	return millis(min(max(2*c.RTT(), leastWindow)+c.opt.Dialect.reaction(), mostWindow))
}

// ownSubscriptions counts those of this client to the release channel of key, for a script that
// compares it with what the server counts; -1 where a server does not count all.
func (c *Client) ownSubscriptions(key string) any {
	if c.Multi() && !c.sharded() {
		return "-1"
	}
	return flag(c.subs.confirmed(key))
}

// published notes how the messages of a release fared: see release.lua. One that may have called
// nobody does not prove that calls are told, so a refusal counts for a while.
func (c *Client) published(key string, receivers int) {
	switch {
	case receivers == -2:
		until := time.Now().Add(muteTime)
		c.mute.Store(&until)
	case receivers >= 0:
		if until := c.mute.Load(); until != nil && !time.Now().Before(*until) {
			c.mute.CompareAndSwap(until, nil)
		}
	}
	if c.warn.changes(receivers < 0) {
		channel := c.opt.Dialect.channel(key)
		if receivers == -2 {
			channel = ownPrefix + "*"
		}
		c.warn.published(channel, receivers)
	}
}

// parseStanding reads what follows in the answer to one that is refused. ahead is -1 where it does
// not stand.
func parseStanding(answer []any) (holder string, ttl time.Duration, ahead int, found, ok bool) {
	if len(answer) != 2 && len(answer) != 4 {
		return "", 0, -1, false, false
	}
	ms, ok := answer[1].(int64)
	if !ok || len(answer) == 2 {
		return text(answer[0]), fromMillis(ms), -1, false, ok
	}
	n, ok := answer[2].(int64)
	return text(answer[0]), fromMillis(ms), int(n), answer[3] == int64(1), ok && n >= 0
}
