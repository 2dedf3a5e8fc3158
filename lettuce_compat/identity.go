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

// NewClientID returns `<host>-<pid>-<12 hex digits>`, so that HGETALL on a lock tells
// an operator who holds it. It is free of braces and colons, fresh on every call and
// therefore different for a cloned machine and for a restarted process.
func NewClientID() string {
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
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(random[:]))
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
