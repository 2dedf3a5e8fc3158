package anteroom

import (
	"errors"
	"testing"

	"github.com/anteroom/anteroom/sync/internal/report"
)

// Who must change an ACL learns which command, key pattern or channel is refused.
func TestRemedy_SaysWhatIsRefused(t *testing.T) {
	for answer, remedy := range map[string]string{
		"NOPERM User app has no permissions to run the 'evalsha' command":                                                        "the Redis user needs +evalsha",
		"ERR ACL failure in script: User app has no permissions to run the 'hset' command":                                       "the Redis user needs +hset",
		"NOPERM this user has no permissions to run the 'publish' command (anteroom:client:web-1)":                               "the Redis user needs +publish, and the key or channel in parentheses",
		"NOPERM this user has no permissions to publish on clients' channels (anteroom:client:*)":                                "the Redis user needs &anteroom:client:*, and the lock's release channel",
		"NOPERM No permissions to access a channel":                                                                              "the Redis user needs &anteroom:client:*, and the lock's release channel",
		"NOPERM User app has no permissions to access the 'channel' key":                                                         "the Redis user needs the lock's key, and those of its line (~anteroom:line:…) and fencing record (~anteroom:fence:…)",
		"NOPERM User app has no permissions to access the 'key' channel":                                                         "the Redis user needs &anteroom:client:*, and the lock's release channel",
		"NOPERM No permissions to access a key":                                                                                  "the Redis user needs the lock's key, and those of its line (~anteroom:line:…) and fencing record (~anteroom:fence:…)",
		"NOPERM this user has no permissions to access one of the keys used as arguments":                                        "the Redis user needs the lock's key, and those of its line (~anteroom:line:…) and fencing record (~anteroom:fence:…)",
		"ERR Error running script: The user executing the script can't access at least one of the keys mentioned in the command": "the Redis user needs the lock's key, and those of its line (~anteroom:line:…) and fencing record (~anteroom:fence:…)",
		"ERR Error running script: The user executing the script can't run this command or subcommand":                           "the Redis user lacks a permission",
	} {
		if got := report.Remedy(errors.New(answer)); got != remedy+"; docs/operations.md lists the smallest ACL" {
			t.Errorf("%s: %q", answer, got)
		}
	}
	if got := report.Remedy(errors.New("ERR DB index is out of range")); got != "" {
		t.Errorf("a remedy that is none: %q", got)
	}
}
