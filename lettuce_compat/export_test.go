package lettucecompat

import (
	"time"
)

// UnderWay counts the calls of go-redis under way with commands.
func UnderWay(c *Client) int { return len(c.single.locks.all) }

// Up reports whether the subscription connection is there, with at least one channel confirmed.
func Up(c *Client) bool {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	return c.subs.main.up
}

// Channels returns how many channels are subscribed or being subscribed, with the client's own.
func Channels(c *Client) int {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	return len(c.subs.main.channels)
}

// Unreported returns how many warnings of a kind came since the last one that was reported.
func Unreported(c *Client, k WarningKind) int {
	c.warn.mu.Lock()
	defer c.warn.mu.Unlock()
	return c.warn.count[k]
}

// ShardConnections counts the connections to shards that are there or being made.
func ShardConnections(c *Client) (n int) {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	for home, s := range c.subs.all {
		if home == mainHome {
			continue
		}
		select {
		case <-s.done:
		default:
			n++
		}
	}
	return n
}

// Unknown counts the channels in unanswered SUBSCRIBEs to shards that are not in use any more.
func Unknown(c *Client) (n int) {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	for _, s := range c.subs.all {
		for e := s.lists[chAsked].Front(); e != nil; e = e.Next() {
			if ch := e.Value.(*channel); s.channels[ch.name] != ch {
				n++
			}
		}
	}
	return n
}

// Channel is the name of the release channel of key.
func Channel(d Dialect, key string) string { return d.channel(key) }

// FenceKey, KeySlot and SlotNumbers are the rules for derived keys.
func FenceKey(c *Client, key string) string { return c.fence(key) }

// LineKey is the key of a lock's line.
func LineKey(c *Client, key string) string { return string(appendDerived(nil, linePrefix, key)) }

// Class and its values sort errors.
type Class = class

const (
	ClassNone        = classNone
	ClassPermanent   = classPermanent
	ClassTransient   = classTransient
	ClassUnreachable = classUnreachable
	ClassUnknown     = classUnknown
)

var (
	Classify        = classify
	SentinelOptions = sentinelOptions
	ClusterOptions  = clusterOptions

	StateSource = documentScripts().state.source
	UnitsSource = documentScripts().units.source
	KeySlot     = keySlot
	SlotNumbers = slotNumbers
)

// ReleaseMessage is what a release publishes.
func ReleaseMessage(key, holder string, at time.Time) string {
	return string(appendRelease(nil, key, []byte(holder), at))
}

// Relocate asks for the cluster's layout, as a command that fails does.
func Relocate(c *Client) { c.relocate() }

// RTT is the running mean of round trips, 0 before the first.
func RTT(c *Client) time.Duration { return time.Duration(c.rtt.Load()) }

// SecretWord is the word that the client's places carry.
func SecretWord(c *Client) string { return c.word }

// Confirmed reports whether the server has confirmed the subscription and the
// connection that it came on is still in use. Until then a release may go unheard.
func (w *Watch) Confirmed() bool {
	w.subs.mu.Lock()
	defer w.subs.mu.Unlock()
	return w.ch != nil && w.ch.state == chConfirmed
}

// UnitsArgs are the arguments of the script for s, which is not about a Mutex; its first is that of the lock.
func UnitsArgs(c *Client, s Command) []any {
	return c.commandCmd(&s, true, time.Time{}).list()[3:]
}

// ParseUnits reads the answer v to s.
func ParseUnits(c *Client, s Command, v any) Answer {
	cmd := newRedisCmd(0)
	cmd.SetVal(v)
	return c.parseAnswer(&s, cmd, nil)
}

// TrackContradictions sets after how many connections in a row that miss what is held tracking is refused. Nothing is tracked yet.
func TrackContradictions(c *Client, n int) { c.tracking.contradictions = n }

// TrackReads counts the fields that were read on connections of Track, and answered.
func TrackReads(c *Client) (n int) {
	c.tracking.mu.Lock()
	defer c.tracking.mu.Unlock()
	for _, t := range c.tracking.all {
		n += t.answered
	}
	return n
}

// TrackersEnded reports whether no goroutine of Track is left.
func TrackersEnded(c *Client) bool {
	select {
	case <-c.tracking.ended:
		return true
	default:
		return false
	}
}

// Directs counts the servers to which c has connections of its own.
func Directs(c *Client) int { return len(c.directs()) }

// Relocated reports whether c has asked for the layout of its cluster after an error.
func Relocated(c *Client) bool { return c.relocated.Load() != nil }

const FollowEvery = followEvery

// Script is a script by its channels, dialect and name.
type Script struct{ Name, Source, SHA string }

// Scripts returns all of them.
func Scripts() (all []Script) {
	for _, of := range []struct {
		name string
		*scripts
	}{{"channels document", documentScripts()}, {"channels redisson", redissonScripts()}, {"shards redisson", shardedScripts()}} {
		for i, s := range []*script{of.state, of.units, of.renew, of.renewUnits, of.status, of.inspect, of.force, of.rehearse} {
			name := [...]string{"state", "units", "renew", "renewunits", "status", "inspect", "force", "rehearse"}[i]
			all = append(all, Script{of.name + " " + name, s.source, s.sha})
		}
	}
	return all
}
