package lettucecompat

// Queued returns the number of acquires and releases that wait for a round trip.
func Queued(c *Client) int {
	l := c.single.Load().locks
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for k := l.queued; k != nil; k = k.next {
		n++
	}
	return n
}

// Awaited returns how many calls the lane of acquires and releases counts as awaited: all
// that are queued or under way, of which every trip takes its share.
func Awaited(c *Client) int {
	l := c.single.Load().locks
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaited
}

// Trips returns the round trips under way on the lane of acquires and releases:
// those that somebody waits for, and all.
func Trips(c *Client) (live, total int) {
	l := c.single.Load().locks
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live, l.total
}

// FenceKey, KeySlot and SlotNumbers are the rules for derived keys.
func FenceKey(c *Client, key string) string { return c.fence(key) }

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

	AcquireSource  = DesignDocument.scripts.acquire.source
	ReleaseSource  = DesignDocument.scripts.release.source
	KeySlot        = keySlot
	SlotNumbers    = slotNumbers
	ReleaseMessage = releaseMessage
	ValidRelease   = validRelease
)

// Relocate asks for the cluster's layout, as a command that fails does.
func Relocate(c *Client) { c.relocate() }
