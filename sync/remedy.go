package anteroom

import (
	"slices"
	"strings"
)

// remedies says, for the answers that need a person, what that person can do. They
// are told apart by the code with which Redis' answers begin, which is part of its
// protocol; texts differ between versions.
var remedies = []struct{ code, remedy string }{
	{"WRONGTYPE", "the key holds something that is not a lock; use another name for one of the two"},
	{"NOPERM", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"can't run this command", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"can't access", "the Redis user lacks a permission; docs/operations.md lists the smallest ACL"},
	{"NOAUTH", "give the Redis client a user name and password"},
	{"WRONGPASS", "the Redis client's user name or password is wrong"},
	{"NOSCRIPT", "the server forgets scripts at once; check what flushes its script cache"},
}

// remedy returns what to do about a permanent answer.
func remedy(err error) string {
	text := err.Error()
	for _, r := range remedies {
		if strings.Contains(text, r.code) {
			return r.remedy
		}
	}
	return "repeating the command would give the same answer"
}

// serverWide are the parts of permanent answers that concern every key of a server: what
// its user is and may run. Others are about the key that was asked for.
var serverWide = []string{"NOAUTH", "WRONGPASS", "NOSCRIPT", "can't run this command", "permissions to run the", "unknown command"}

// aboutServer tells whether a permanent answer concerns all keys of its server.
func aboutServer(err error) bool {
	text := err.Error()
	return slices.ContainsFunc(serverWide, func(part string) bool { return strings.Contains(text, part) })
}
