package lettucecompat

import (
	"container/list"
	"time"
)

// Watch is one interest in the release of a key. Its channel says "try again now", nothing more: what happened is for
// the next command to find out.
type Watch struct {
	c    chan struct{}
	subs *subscriptions
	ch   *channel // nil after Close; guarded by subs.mu
}

// C returns the wake-up channel. It has room for one signal and several are merged. It is signalled by a message on
// the key's channel, by every confirmation of the subscription (the first and each after a reconnection: a message
// may have been missed before it), by Reconnect and the client's Close. It is never closed.
func (w *Watch) C() <-chan struct{} { return w.c }

// Close ends the interest. The channel is unsubscribed with its last watch: who listens counts as a foreign client to
// the releases of others. Closing twice is harmless.
func (w *Watch) Close() {
	w.subs.mu.Lock()
	defer w.subs.mu.Unlock()
	ch := w.ch
	if ch == nil {
		return
	}
	w.ch = nil
	delete(ch.watches, w)
	switch {
	case len(ch.watches) > 0 || ch.state == chAsked: // the answer decides
	case ch.state == chConfirmed:
		ch.sub.putLocked(ch, chConfirmed)
	default:
		ch.sub.forgetLocked(ch)
	}
}

// signal puts a signal in c, which has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is there already and will be taken after this
	}
}

// Watch begins to listen for the release of key; the caller closes the Watch. It returns immediately, without I/O:
// until the subscription is confirmed, or if it never is, the caller polls. If the channel is confirmed already the
// watch is signalled, because a release may have come between the refusal that made the caller watch and this call.
func (c *Client) Watch(key string) *Watch {
	w := &Watch{c: make(chan struct{}, 1), subs: c.subs}
	name, home := c.opt.Dialect.channel(key), c.subs.home(key)
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	if c.subs.closed {
		signal(w.c)
		return w
	}
	s := c.subs.atLocked(home)
	ch := s.channels[name]
	if ch == nil {
		ch = &channel{sub: s, name: name, key: key, watches: map[*Watch]struct{}{}}
		s.addLocked(ch)
	}
	ch.watchLocked(w)
	s.startLocked()
	return w
}

// Subscribe makes sure that the connection and the client's own channel are there. It returns immediately; the
// connection is kept until Close.
func (c *Client) Subscribe() {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	if !c.subs.closed {
		c.subs.main.startLocked()
	}
}

// StopListening ends the subscription connection and those of Track for good and waits for their goroutines, at most one
// CommandTimeout; commands continue, on connections that are not kept. Waiting for a release then works by polling. It is for an
// owner that closes while holds are left, whose late releases must still be sent.
func (c *Client) StopListening() {
	c.await(append(c.subs.close(), c.tracking.close()))
	c.brief.Store(true)
	for _, d := range c.directs() {
		d.keepNothing()
	}
}

// Reconnect drops the subscription connection, signals every watch, and makes a new connection, whose confirmations
// signal them again. While one is being made already it only signals.
func (c *Client) Reconnect() {
	c.subs.mu.Lock()
	defer c.subs.mu.Unlock()
	for _, s := range c.subs.all {
		s.wakeAllLocked(nil)
	}
}

// chanState is how far the subscription of a channel has come.
type chanState uint8

const (
	chPending   chanState = iota
	chAsked               // SUBSCRIBE sent
	chConfirmed           // by the server
	chRefused             // by the server's ACL
	chanStates
)

// channel is one channel on a subscription connection. All fields but name and key are guarded by subscriptions.mu.
type channel struct {
	sub     *subscriber
	name    string
	key     string // of the lock; "" of the own one
	watches map[*Watch]struct{}
	state   chanState
	own     bool // the client's own channel: kept for ever
	alone   bool // asked for by itself, because a batch with it was refused
	since   time.Time
	in      *list.List    // the list that the channel is in, nil: none
	at      *list.Element // its place there
}

func (ch *channel) signalLocked() {
	for w := range ch.watches {
		signal(w.c)
	}
}

// unwatched reports whether nobody needs the channel.
func (ch *channel) unwatched() bool { return len(ch.watches) == 0 && !ch.own }

// watchLocked adds a watch, which a channel that is confirmed signals.
func (ch *channel) watchLocked(w *Watch) {
	w.ch = ch
	ch.watches[w] = struct{}{}
	if ch.state == chConfirmed {
		ch.sub.putLocked(ch, chConfirmed) // it may have been about to end
		signal(w.c)
	}
}

// addLocked makes ch one of the pending channels.
func (s *subscriber) addLocked(ch *channel) {
	s.channels[ch.name] = ch
	s.putLocked(ch, chPending)
}

// putLocked moves ch to the list of state. A channel that is confirmed is in one only if it must be unsubscribed.
func (s *subscriber) putLocked(ch *channel, state chanState) {
	s.unlinkLocked(ch)
	ch.state = state
	if ch.own {
		s.listening.Store(state == chConfirmed)
	}
	if state != chConfirmed || ch.unwatched() {
		ch.in = s.lists[state]
		ch.at = ch.in.PushBack(ch)
	}
	if state != chAsked {
		signal(s.kick)
	}
}

// firstLocked returns the oldest channel in the list of state, nil if it is empty.
func (s *subscriber) firstLocked(state chanState) *channel {
	if e := s.lists[state].Front(); e != nil {
		return e.Value.(*channel)
	}
	return nil
}

// forgetLocked drops all state of a channel.
func (s *subscriber) forgetLocked(ch *channel) {
	s.unlinkLocked(ch)
	delete(s.channels, ch.name)
}

func (s *subscriber) unlinkLocked(ch *channel) {
	if ch.in != nil {
		ch.in.Remove(ch.at)
		ch.in, ch.at = nil, nil
	}
}

// wakeAllLocked signals every watch and drops the connection; with a nil err only one that is up.
func (s *subscriber) wakeAllLocked(err error) {
	for _, ch := range s.channels {
		ch.signalLocked()
	}
	if err != nil || s.up {
		s.dropLocked(s.generation, err)
	}
}
