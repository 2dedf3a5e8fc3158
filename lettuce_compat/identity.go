package lettucecompat

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxClientID and maxHost bound the client id, which stands in every field and in the
// name of the client's own channel.
const (
	maxClientID = 128
	maxHost     = 64
)

// MaxClientName bounds what NewClientID puts in front.
const MaxClientName = maxClientID - 13

// NewClientID returns `<name>.<12 hex digits>`, or `<host>-<pid>-<12 hex digits>` without
// a name, so that HGETALL on a lock tells an operator who holds it. The digits are fresh
// on every call: a restarted process, or a replacement that is configured alike, never
// has the fields of the one before it, whose late commands must not meet its locks.
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
		if r < 0x80 && idByte(byte(r)) {
			return r
		}
		return '-'
	}, host)
	if len(host) > maxHost {
		host = host[:maxHost]
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), incarnation)
}

// idByte reports whether b may stand in a client id. The forced-release script
// recognises client ids by the same set.
func idByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '-' || b == '_' || b == '.'
}

func checkClientID(id string) error {
	if id == "" {
		return configError("Options.ClientID", "is empty: use NewClientID")
	}
	if len(id) > maxClientID {
		return configError("Options.ClientID", fmt.Sprintf("%d bytes, at most %d", len(id), maxClientID))
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return configError("Options.ClientID", fmt.Sprintf("%q: only letters, digits, '.', '_' and '-' are allowed", id))
		}
	}
	return nil
}

// NewField returns the field that stands for grant n of a client in the lock's hash.
// A number is never used twice, so that a late command of an earlier grant meets no
// later one.
func NewField(clientID string, n uint64) string {
	var room [maxClientID + 21]byte // 20 digits at most
	return string(strconv.AppendUint(append(append(room[:0], clientID...), ':'), n, 10))
}

// ParseField splits a field made by NewField. ok is false for the fields of strangers
// and for the marks that MinHold leaves, which must not be taken for a grant.
func ParseField(field string) (clientID string, n uint64, ok bool) {
	i := strings.LastIndexByte(field, ':')
	if i <= 0 || checkClientID(field[:i]) != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(field[i+1:], 10, 64)
	if err != nil || field[i+1:] != strconv.FormatUint(n, 10) {
		return "", 0, false
	}
	return field[:i], n, true
}
