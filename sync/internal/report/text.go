package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// This file has the texts that errors share with events.

// LossText says why a lock was lost. unrenewed: the watchdog had stopped its renewal.
func LossText(reason renewal.Reason, unrenewed bool) string {
	switch reason {
	case renewal.ReasonGone:
		return "Redis no longer has it"
	case renewal.ReasonForced:
		return "released by force"
	case renewal.ReasonClosed:
		return "the manager was closed"
	case renewal.ReasonWatchdog:
		return "given up by the watchdog"
	case renewal.ReasonFixed:
		return "its fixed lease ended"
	}
	if unrenewed {
		return "its lease ended after the watchdog had stopped its renewal"
	}
	return "its lease ended without a confirmed renewal"
}

// Plural words a number of things.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// KindName is how a waiter came, by what it asked for.
func KindName(k queue.Kind) string {
	switch {
	case k.IsTry() && !k.CanNotify():
		return "try_lock"
	case k.IsTry():
		return "try"
	case !k.CanNotify():
		return "lock"
	}
	return "hold"
}

// remedies says, for the answers that need a person, what that person can do. They
// are distinguished by the code with which Redis' answers begin, which is part of its
// protocol; texts differ between versions.
var remedies = []struct{ code, remedy string }{
	{"WRONGTYPE the key holds an RWMutex", kindOfKey},
	{"WRONGTYPE the key holds a Semaphore", kindOfKey},
	{"WRONGTYPE the key holds a Mutex", kindOfKey},
	{"WRONGTYPE the key holds a lock of another kind", kindOfKey},
	{"WRONGTYPE", "the key holds something that is not a lock; use another name for one of the two (or StringHolders, if it is the lock of another library)"},
	{"NOPERM", "the Redis user lacks a permission" + smallestACL},
	{"ACL failure in script", "the Redis user lacks a permission" + smallestACL},
	{"can't run this command", "the Redis user lacks a permission" + smallestACL},
	{"protected mode", "set a password, or connect from the server's own machine"},
	{"NOAUTH", "give the Redis client a user name and password"},
	{"WRONGPASS", "the Redis client's user name or password is wrong"},
	{"NOSCRIPT", "the server forgets scripts immediately; check what flushes its script cache"},
}

const kindOfKey = "one key is one kind of lock: use that kind here, too, or another name"

const smallestACL = "; docs/operations.md lists the smallest ACL"

// What a user may not use. After a command comes what it was about if Ping has asked.
var (
	refusedCommand = lazily(`permissions to run the '([\w|]+)' command( \()?`)
	refusedChannel = lazily(`access (?:a channel|one of the channels|the '.*' channel)|clients' channels`)
	refusedKey     = lazily(`access (?:a key|one of the keys|at least one of the keys|the '.*' key)`)
)

func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// Remedy returns what to do about a permanent answer, "" where the answer says all that is known. It repeats nothing of
// the answer but the name of a command.
func Remedy(err error) string {
	text := err.Error()
	switch m := refusedCommand().FindStringSubmatch(text); {
	case m != nil && m[2] == "":
		return "the Redis user needs +" + m[1] + smallestACL
	case m != nil:
		return "the Redis user needs +" + m[1] + ", and the key or channel in parentheses" + smallestACL
	case refusedChannel().MatchString(text):
		return "the Redis user needs &anteroom:client:*, and the lock's release channel" + smallestACL
	case refusedKey().MatchString(text):
		return "the Redis user needs the lock's key, and those of its line (~anteroom:line:…) and fencing record (~anteroom:fence:…)" + smallestACL
	}
	for _, r := range remedies {
		if strings.Contains(text, r.code) {
			return r.remedy
		}
	}
	return ""
}

// serverWide are the parts of permanent answers that concern every key of a server: what
// its user is and may run. Others are about the key that was asked for.
var serverWide = []string{"NOAUTH", "WRONGPASS", "NOSCRIPT", "can't run this command", "permissions to run the", "unknown command"}

// aboutServer reports whether a permanent answer concerns all keys of its server.
func aboutServer(err error) bool {
	text := err.Error()
	return slices.ContainsFunc(serverWide, func(part string) bool { return strings.Contains(text, part) })
}
