package lettucecompat

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

//go:embed lua
var lua embed.FS

// scripts are those of one dialect, one per job.
type scripts struct {
	state, units, renew, renewUnits, status, inspect, force, rehearse *script
}

// The scripts of all dialects. Those for the channels of shards differ in the commands for these.
var (
	documentScripts = newScripts("channels", "document")
	redissonScripts = newScripts("channels", "redisson")
	shardedScripts  = newScripts("shards", "redisson")
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
	sha    any // a string, as an argument of a command
}

// newScript reads the script of that name, behind the prelude that all share, what its dialect says and, where it has
// to do with the line, what those share. Each function costs a call some of Redis' time, so the batches that renew
// and check do without.
func newScript(channels, dialect, name string) *script {
	parts := []string{"prelude", channels, dialect, "line", name}
	switch name {
	case "rehearse", "renew":
		parts = []string{"prelude", channels, dialect, name}
	case "renewunits", "status":
		parts = []string{"prelude", name}
	}
	var source string
	for _, part := range parts {
		text, _ := lua.ReadFile("lua/" + part + ".lua") // all are there: they are embedded
		source += string(text)
	}
	sum := sha1.Sum([]byte(source))
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// scriptRequest is a request with one script, in one piece with all that it needs on its way: its command, the
// arguments, and the round trip that it may begin. It is made anew each time: go-redis may still read what was
// abandoned, and a hook may keep a command and its context for as long as it likes.
type scriptRequest struct {
	request
	cmd  redisCmd
	list [1]*redisCmd // request.cmds
	args [15]any      // of the command, as far as there is room: all but a last token and a mark
}

// newScriptRequest makes one of s about the lock key; line is the key of its line, or key again to do without it and the fencing
// record, and fence the key of that, empty where the script does not need it. argv are strings already, so that nothing depends on how a client
// prints numbers.
func newScriptRequest(s *script, key, line, fence string, argv ...any) *scriptRequest {
	k := new(scriptRequest)
	args := append(k.args[:0], "evalsha", s.sha, 2, key, line)
	if fence != "" && line != key {
		args[2] = 3
		args = append(args, fence)
	}
	k.cmd.setScript(s, key, append(args, argv...))
	k.list[0] = &k.cmd
	k.cmds = k.list[:]
	return k
}

// batchArgs begins the arguments of a script about many locks; most is their number in the common case. They are
// written where they are sent from, without a list of keys and one of values before: that was a sixth of what a
// renewal left to the collector.
func batchArgs(s *script, keys, most int) []any {
	return append(make([]any, 0, 3+most), "evalsha", s.sha, keys)
}

// newBatchCmd is the command of newScriptRequest for arguments that are complete. All are strings but the number
// of keys.
func newBatchCmd(s *script, key string, args []any) *redisCmd {
	c := new(redisCmd)
	c.setScript(s, key, args)
	return c
}
