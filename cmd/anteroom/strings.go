package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Other libraries keep a lock as a string with a time to live (docs/migrating.md). Nothing distinguishes such a string
// from data. status is asked about a key, and takes every one for a lock; list has to go by the form of value and key.

// A string of 22 or 24 bytes may be the lock of one of these: sixteen random bytes in base64, whose last digit has four
// bits of zero, or twenty-four under a numbered name.
var (
	redsyncValue   = regexp.MustCompile(`^[A-Za-z0-9+/]{21}[AQgw]==$`)
	redislockValue = regexp.MustCompile(`^[A-Za-z0-9_-]{21}[AQgw]$`)
	rueidislockKey = regexp.MustCompile(`^rueidislock:[0-9]+:`)
)

// isString reports whether the library's error says that a string is at a key.
func isString(err error) bool {
	m := notLock.FindStringSubmatch(err.Error())
	return m != nil && strings.Contains(m[1], "type string")
}

// maybeStringLock reports whether the length of a string leaves it open that it is a lock.
func maybeStringLock(length int64) bool { return length == 22 || length == 24 }

// stringLock reports whether a string has the form of another library's lock.
func stringLock(key, value string) bool {
	return redsyncValue.MatchString(value) || redislockValue.MatchString(value) ||
		len(value) == 24 && rueidislockKey.MatchString(key)
}

// stringStatus is the status of a key at which there is a string with a time to live.
func stringStatus(key string, ttl time.Duration) lockStatus {
	ms := ttl.Milliseconds()
	return lockStatus{keyJSON: keyOf(key), State: stateString, Holders: []holder{}, TTL: &ms, ttl: ttl}
}

// ofString returns the status of a key at which there is a string with a time to live; err is what Inspect says of it.
func (op *operator) ofString(ctx context.Context, timeout time.Duration, key string, err error) (s lockStatus, is bool) {
	if err == nil || !isString(err) {
		return s, false
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ttl, err := op.rdb.PTTL(ctx, key).Result()
	s = stringStatus(key, ttl)
	s.guess = true
	return s, err == nil && ttl > 0
}

// stringLocks returns those of the keys that hold another library's lock. A user without the permissions for that sees
// none.
func (l *lister) stringLocks(ctx context.Context, keys []string) (locks map[string]lockStatus, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	values, ttls := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	_, _ = l.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, key := range keys {
			values[i], ttls[i] = p.Get(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	})
	locks = map[string]lockStatus{}
	for i, key := range keys {
		err := errors.Join(values[i].Err(), ttls[i].Err())
		_, byServer := errors.AsType[redis.Error](err)
		switch ttl := ttls[i].Val(); {
		case err != nil && !byServer:
			return nil, err
		case err == nil && ttl > 0 && stringLock(key, values[i].Val()):
			locks[key] = stringStatus(key, ttl)
		}
	}
	return locks, nil
}
