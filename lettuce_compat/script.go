package lettucecompat

import (
	"embed"
	"slices"
	"strings"
	"sync"
)

//go:embed lua
var lua embed.FS

// digests has, in a line each, the SHA-1 of each script. It is no more than the name by which EVALSHA calls the script; a process that
// runs in FIPS mode may not compute it (TestScripts_HaveTheirDigests does).
//
//go:embed lua/digests.txt
var digests string

// scripts are those of one dialect, one per job.
type scripts struct {
	state, units, renew, renewUnits, status, inspect, force, rehearse *script
}

// The scripts of all dialects. Those for the channels of shards differ in the commands for these.
var (
	documentScripts = sync.OnceValue(func() *scripts { return newScripts("channels", "document") })
	redissonScripts = sync.OnceValue(func() *scripts { return newScripts("channels", "redisson") })
	shardedScripts  = sync.OnceValue(func() *scripts { return newScripts("shards", "redisson") })
)

func newScripts(channels, dialect string) *scripts {
	read := func(name string) *script { return newScript(channels, dialect, name) }
	return &scripts{
		state: read("state"), units: read("units"), renew: read("renew"), renewUnits: read("renewunits"), status: read("status"),
		inspect: read("inspect"), force: read("force"), rehearse: read("rehearse"),
	}
}

// script is a Lua source and the digest by which a server that has loaded it knows it. Immutable.
type script struct {
	source string
	sha    string
}

// newScript reads the script of that name, behind the prelude that all share, what its dialect says and, where it has
// to do with the line, what those share. Each function costs a call some of Redis' time, so the batches that renew
// and check do without.
func newScript(channels, dialect, name string) *script {
	parts := []string{channels, dialect, "prelude", dialect + "_tokens", "line", name}
	switch name {
	case "state":
		parts = slices.Insert(parts, 2, "alone")
	case "rehearse", "renew":
		parts = []string{channels, dialect, "prelude", dialect + "_tokens", name}
	case "renewunits", "status":
		parts = []string{"prelude", name}
	}
	var source string
	for _, part := range parts {
		text, _ := lua.ReadFile("lua/" + part + ".lua") // all are there: they are embedded
		source += string(text)
	}
	_, line, _ := strings.Cut(digests, "\n"+channels+" "+dialect+" "+name+" ")
	sha, _, _ := strings.Cut(line, "\n")
	return &script{source: source, sha: sha}
}

// load is the command that stores s on a node for good: servers from 7.4 on forget, in time, the scripts that came by EVAL.
func (s *script) load() *redisCmd { return newRedisCmd(0, "script", "load", s.source) }

// newScriptCmd makes a command with s about the lock key, its line and, if that is not empty, its fencing record; or, not lined, about
// the lock alone, which then stands in place of its line.
func (c *Client) newScriptCmd(s *script, key string, lined bool, fence string, argv ...string) *redisCmd {
	if !lined {
		return c.scriptCmd(s, 2, key).add(key, key).add(argv...)
	}
	keys := 2
	if fence != "" {
		keys = 3
	}
	var room [256]byte // most names are short
	cmd := c.scriptCmd(s, keys, key).add(key).addBytes(appendDerived(room[:0], linePrefix, key))
	if fence != "" {
		cmd.add(fence)
	}
	return cmd.add(argv...)
}
