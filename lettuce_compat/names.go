package lettucecompat

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// maxClientID and maxHost bound the client id, which is part of every field and in the name of the client's own
// channel.
const (
	maxClientID = 128
	maxHost     = 64
)

// MaxClientName bounds what NewClientID puts in front.
const MaxClientName = maxClientID - 13

// NewClientID returns `<name>.<12 hex digits>`, or `<host>-<pid>-<12 hex digits>` without a name, so that HGETALL on
// a lock shows an operator who holds it. The digits are fresh on every call: a restarted process, or a replacement
// that is configured alike, never has the fields of the one before it, whose late commands must not touch its locks.
func NewClientID(name string) string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	incarnation := hex.EncodeToString(random[:])
	if name != "" {
		return name + "." + incarnation
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	host = strings.Map(func(r rune) rune {
		if notInID(r) {
			return '-'
		}
		return r
	}, host)
	if len(host) > maxHost {
		host = host[:maxHost]
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), incarnation)
}

// ValidClientName reports whether NewClientID takes the name, which may be empty.
func ValidClientName(name string) bool {
	return len(name) <= MaxClientName && !strings.ContainsFunc(name, notInID)
}

// notInID reports whether r is not allowed in a client id. The forced-release script recognises client ids by the same set.
func notInID(r rune) bool {
	return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.')
}

func checkClientID(id string) error {
	switch {
	case id == "":
		return configError("Options.ClientID", "is empty: use NewClientID")
	case len(id) > maxClientID:
		return configError("Options.ClientID", fmt.Sprintf("%d bytes, at most %d", len(id), maxClientID))
	case strings.ContainsFunc(id, notInID):
		return configError("Options.ClientID", fmt.Sprintf("%q: only letters, digits, '.', '_' and '-' are allowed", id))
	}
	return nil
}

// NewField returns the field of grant n of a client in the lock's hash. A number is never used twice, so
// that a late command of an earlier grant never touches a later one.
func NewField(clientID string, n uint64) string {
	var room [maxClientID + 21]byte // of any number; ours have 16 digits
	return string(appendField(room[:0], clientID, n))
}

func appendField(b []byte, clientID string, n uint64) []byte {
	return strconv.AppendUint(append(append(b, clientID...), ':'), n, 10)
}

// ParseField splits a field made by NewField for a number from FirstNumber to LastNumber. ok is false for foreign
// fields and for the marks that MinHold leaves, which must not be taken for a grant.
func ParseField(field string) (clientID string, n uint64, ok bool) {
	i := strings.LastIndexByte(field, ':')
	if i <= 0 || len(field)-i-1 != numberDigits || checkClientID(field[:i]) != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(field[i+1:], 10, 64)
	if err != nil || n < FirstNumber {
		return "", 0, false
	}
	return field[:i], n, true
}

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// fencePrefix begins the key of every fencing record but Redisson's, and linePrefix that of every line. They hold no
// brace, so the first brace of a derived key is one that the rule below put or kept there.
const (
	fencePrefix = "anteroom:fence:"
	linePrefix  = "anteroom:line:"
)

// appendDerived appends the key of what belongs to a lock: prefix says what. It lies in the lock's own slot for every
// name, because a script may touch one slot only, and no two names share one:
//
//	name with a valid tag      a{t}b  → anteroom:line:tag:a{t}b    the tag stays the first one
//	no brace, not empty        name   → anteroom:line:{name}       the name becomes the tag
//	anything else              a{b    → anteroom:line:{7}:a{b      the least number in that slot
//
// A valid tag is the text between the first '{' and the first '}' after it, if it is not empty. The three forms
// differ after the prefix: "tag:", one brace pair at the end, or a brace pair before a colon.
func appendDerived(b []byte, prefix, name string) []byte {
	b = append(b, prefix...)
	if name != "" && !strings.ContainsAny(name, "{}") {
		return append(append(append(b, '{'), name...), '}')
	}
	if _, ok := hashTag(name); ok {
		return append(append(b, "tag:"...), name...)
	}
	number := slotNumbers()[keySlot(name)]
	return append(append(strconv.AppendUint(append(b, '{'), uint64(number), 10), "}:"...), name...)
}

// hashTag returns the part of key that decides its slot, and whether there is one.
func hashTag(key string) (string, bool) {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return "", false
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return "", false
	}
	return key[open+1 : open+1+length], true
}

// keySlot returns the hash slot of key as Redis Cluster computes it.
func keySlot(key string) uint16 {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	return crc16(key) % slots
}

// crc16 is the CRC of XMODEM: polynomial 0x1021, start 0, as Redis Cluster uses it.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return crc
}

// slotNumbers finds, for every slot, the least number whose decimal digits hash to it. About 160,000 numbers have to
// be tried, some milliseconds, so a process does it once, when it meets a name that needs it.
var slotNumbers = sync.OnceValue(func() []uint32 {
	numbers, found := make([]uint32, slots), make([]bool, slots)
	for n, left := uint32(0), slots; left > 0; n++ {
		if s := crc16(strconv.FormatUint(uint64(n), 10)) % slots; !found[s] {
			found[s], numbers[s] = true, n
			left--
		}
	}
	return numbers
})
