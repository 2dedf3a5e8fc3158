package faultnet

import (
	"math/rand/v2"
	"time"
)

// latency is the delay of one direction, different for each piece of data. A nil latency is none. Guarded by
// Network.mu.
type latency struct {
	oneWay, jitter time.Duration
	random         *rand.Rand
}

func (l *latency) next() time.Duration {
	if l == nil {
		return 0
	}
	d := l.oneWay
	if l.jitter > 0 {
		d += time.Duration(l.random.Int64N(int64(2*l.jitter+1))) - l.jitter
	}
	return max(d, 0)
}

// PromptMessages exempts what comes on connections with a subscription from Latency. miniredis holds its mutex while it
// sends a message, and a goroutine that waits for that mutex stops the time of a synctest bubble.
func (n *Network) PromptMessages() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.prompt = true
}

// Latency delays every piece of data by oneWay ± jitter, in each direction: a round trip takes twice that. The order
// on a connection is kept. The same seed draws the same times. Heal ends it, except for data already travelling.
func (n *Network) Latency(oneWay, jitter time.Duration, seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.latency = &latency{oneWay: oneWay, jitter: jitter, random: rand.New(rand.NewPCG(seed, 0))}
}
