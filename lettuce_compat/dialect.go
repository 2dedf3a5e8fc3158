package lettucecompat

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"time"
)

// Dialect is a layout on the wire: how locks, channels and messages look, and the
// scripts that change them. It is data, not a second client: two dialects differ in
// nothing else. The zero value stands for DesignDocument.
type Dialect struct {
	name    string
	scripts scripts
	// channel names the channel that a release of key is published on.
	channel func(key string) string
	// lock names the key that a channel belongs to; ok is false for another channel.
	lock func(channel string) (key string, ok bool)
	// message is what a release publishes. It is built here and passed to the script
	// as an argument, so that every server sends the same bytes.
	message func(key, holder string, at time.Time) string
}

// Name returns the dialect's name as it appears in documents and logs.
func (d Dialect) Name() string { return d.name }

// DesignDocument is the dialect of docs/protocol.md §1: a hash at the plain key, field
// holder → "1", the time to live in milliseconds; channel lock:release:<key>; a JSON
// message. That channel lies in another slot than the key, so it is used with PUBLISH,
// never SPUBLISH.
var DesignDocument = Dialect{
	name: "design-document",
	scripts: scripts{
		acquire: newScript("acquire", luaAcquire),
		release: newScript("release", luaRelease),
		turn:    newScript("turn", luaTurn),
		renew:   newScript("renew", luaRenew),
		status:  newScript("status", luaStatus),
		inspect: newScript("inspect", luaInspect),
		force:   newScript("force", luaForce),

		rehearse: newScript("rehearse", luaRehearse),
	},
	channel: func(key string) string { return releasePrefix + key },
	lock:    releasedLock,
	message: releaseMessage,
}

// scripts is one script per job. A job that a dialect does not offer has none.
type scripts struct {
	acquire, release, turn, renew, status, inspect, force, rehearse *script
}

//go:embed lua/prelude.lua
var luaPrelude string

//go:embed lua/acquire.lua
var luaAcquire string

//go:embed lua/release.lua
var luaRelease string

//go:embed lua/turn.lua
var luaTurn string

//go:embed lua/renew.lua
var luaRenew string

//go:embed lua/status.lua
var luaStatus string

//go:embed lua/inspect.lua
var luaInspect string

//go:embed lua/force.lua
var luaForce string

//go:embed lua/rehearse.lua
var luaRehearse string

// script is a Lua source and the digest by which a server that has loaded it knows it.
// Immutable.
type script struct {
	name, source, sha string
	shaArg            any // sha, as an argument of a command
}

func newScript(name, body string) *script {
	source := luaPrelude + body
	sum := sha1.Sum([]byte(source))
	sha := hex.EncodeToString(sum[:])
	return &script{name: name, source: source, sha: sha, shaArg: sha}
}
