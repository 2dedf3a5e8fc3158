package lettucecompat

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Dialect is how locks are written in Redis: all that shares a lock speaks the same one. The hash of a lock, its
// count and its lease are the same in all; a dialect says what else differs. Its scripts differ in lua/document.lua
// and lua/redisson.lua only.
//
// Clients of two dialects that use one key exclude each other, since the hash is the same. They do not hear each
// other's releases, and take each other for foreign clients. Each dialect has a record of tokens of its own; both use
// the server's clock, so the tokens of all grow together unless it is set back.
type Dialect uint8

const (
	// DesignDocument is that of the design document, which a Lettuce service has: docs/internals/protocol.md §1. It
	// is the zero value.
	DesignDocument Dialect = iota
	// Redisson is that of Redisson's RLock and RFencedLock: docs/internals/protocol.md §1.5. On a Cluster of Redis 7
	// or newer its releases go through the channels of shards, as Redisson's do unless configured otherwise.
	Redisson
	// RedissonUnsharded is Redisson beside clients that publish through ordinary channels on a Cluster, too: those
	// before 3.22, and those with shardedSubscriptionMode OFF.
	RedissonUnsharded
	dialects
)

// String returns the name that Config and the tool use.
func (d Dialect) String() string {
	return [...]string{"document", "redisson", "redisson-unsharded", "invalid"}[min(d, dialects)]
}

// Valid reports whether d is one of the constants.
func (d Dialect) Valid() bool { return d < dialects }

// The names of Redisson's channels and counters begin with these.
const (
	redissonChannel = "redisson_lock__channel:"
	redissonToken   = "redisson_lock_token:"
)

// redissonName is Redisson's rule for the names that belong to a lock: the lock's name becomes their hash tag, unless
// it holds a brace.
func redissonName(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + key
	}
	return prefix + "{" + key + "}"
}

// channel returns the name of the release channel of key. The scripts know it as BEFORE and AFTER.
func (d Dialect) channel(key string) string {
	if d == DesignDocument {
		return releasePrefix + key
	}
	return redissonName(redissonChannel, key)
}

// appendMessage appends what a release publishes, as an argument of the script, so that every server sends the same bytes. holder is a
// field or an id of ours.
func (d Dialect) appendMessage(b []byte, key string, holder []byte, at time.Time) []byte {
	if d == DesignDocument {
		return appendRelease(b, key, holder, at)
	}
	return append(b, '0') // Redisson knows numbers only, and 0 is "unlocked"
}

// Notices are the messages on release channels that announce a note and no release: of the design document's dialect,
// and of Redisson's.
var Notices = []string{"{}", "2"}

func (d Dialect) notice() string { return Notices[min(d, 1)] }

// reaction is for how long beyond two round trips a lock is left open to foreign clients. Redisson hears of a release
// on one thread, and wakes the waiter on another.
func (d Dialect) reaction() time.Duration {
	if d == DesignDocument {
		return 0
	}
	return 5 * time.Millisecond
}

// NewClientID returns a client id that no other has, see Options.ClientID. In the design document's dialect it begins
// with name, see the function NewClientID; in Redisson's it is a UUID, as Redisson's own are, which has no room
// for a name.
func (d Dialect) NewClientID(name string) string {
	if d == DesignDocument {
		return NewClientID(name)
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b)
}

// TicketField returns the field of the client that has a secret: it is one of ours, and does not reveal the secret.
func (d Dialect) TicketField(secret string, n uint64) string {
	sum := sha256.Sum256([]byte(secret))
	if d == DesignDocument {
		return NewField("ticket."+hex.EncodeToString(sum[:16]), n)
	}
	return NewField(uuid([16]byte(sum[:16])), n)
}

// uuid prints b as one of version 8. Redisson's are of version 4, so that both can be distinguished.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// ourID reports whether client is the id of a client of ours, as OURS of the scripts does.
func (d Dialect) ourID(client string) bool {
	return d == DesignDocument || len(client) == 36 && client[14] == '8'
}

// Ours reports whether holder is the field of a client of ours, the mark that MinHold leaves, or "", nobody: then a
// release of ours calls the first in line.
func (d Dialect) Ours(holder string) bool {
	client, _, ok := ParseField(withoutMark(holder))
	return holder == "" || ok && d.ourID(client)
}

// Reserved reports whether key cannot be a lock, because keys of other things begin with prefix.
//
// Nothing outside the prefixes is refused, because nothing else can meet a key of ours: a derived key begins with the
// prefix itself, and what else begins with "anteroom:" are channels, which Redis keeps apart from keys. Below a
// prefix everything is refused, also what no name derives today: a person and an ACL can apply that rule.
func (d Dialect) Reserved(key string) (prefix string, reserved bool) {
	for _, prefix := range []string{linePrefix, fencePrefix, redissonToken}[:min(2+int(d), 3)] {
		if strings.HasPrefix(key, prefix) {
			return prefix, true
		}
	}
	return "", false
}

// usableOnCluster reports whether Redisson can use key on a Cluster: what it derives from the name must lie in the
// name's own slot, and its own idea of that slot be Redis'.
func (d Dialect) usableOnCluster(key string) bool {
	if d == DesignDocument || !strings.ContainsAny(key, "{}") {
		return true
	}
	_, tagged := hashTag(key)
	return tagged && strings.IndexByte(key, '{') < strings.IndexByte(key, '}')
}

// fence returns the key of the fencing record of key.
func (d Dialect) fence(key string) string {
	if d == DesignDocument {
		return string(appendDerived(nil, fencePrefix, key))
	}
	return redissonName(redissonToken, key)
}

// ReleasePatterns returns the patterns of PSUBSCRIBE that cover the release channels of the keys that glob covers, in
// Redis' own syntax of patterns. Channels of shards have no patterns.
func (d Dialect) ReleasePatterns(glob string) []string {
	if d == DesignDocument {
		return []string{releasePrefix + glob}
	}
	return []string{redissonChannel + "{" + glob + "}", redissonChannel + glob}
}

// Covers reports whether a release of key is to be taken from number i of ReleasePatterns. Another one may bring the
// same message.
func (d Dialect) Covers(i int, key string) bool {
	return d == DesignDocument || (i == 1) == strings.Contains(key, "{")
}

// ParseRelease reads a message from a release channel. ok is false for one that announces no release; the
// Announcement then has the Key, if the channel is one of ours. Redisson's messages say neither who released nor
// when.
func (d Dialect) ParseRelease(channel, payload string) (a Announcement, ok bool) {
	if d == DesignDocument {
		return parseRelease(channel, payload)
	}
	key, ours := strings.CutPrefix(channel, redissonChannel)
	if !ours {
		return Announcement{}, false
	}
	if name, tagged := strings.CutPrefix(key, "{"); tagged && strings.HasSuffix(name, "}") && !strings.Contains(name, "{") {
		key = strings.TrimSuffix(name, "}")
	}
	return Announcement{Key: key}, payload == "0"
}

// Ours is Dialect.Ours of the client's dialect.
func (c *Client) Ours(holder string) bool { return c.opt.Dialect.Ours(holder) }

// CheckKey returns ErrReservedKey or ErrKeyBraces where key cannot be a lock of this client.
func (c *Client) CheckKey(key string) error {
	if _, reserved := c.opt.Dialect.Reserved(key); reserved {
		return ErrReservedKey
	}
	if c.cluster && !c.opt.Dialect.usableOnCluster(key) {
		return ErrKeyBraces
	}
	return nil
}
