package lettucecompat_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const digestFile = "lua/digests.txt"

// The digests are those of the scripts. ANTEROOM_UPDATE=1 writes them, after a change of Lua.
func TestScripts_HaveTheirDigests(t *testing.T) {
	all := "The SHA-1 of each script, by its channels, dialect and name.\n"
	wrong := 0
	for _, s := range lettucecompat.Scripts() {
		sum := sha1.Sum([]byte(s.Source))
		digest := hex.EncodeToString(sum[:])
		all += strings.Join([]string{s.Name, digest}, " ") + "\n"
		if s.SHA != digest {
			wrong++
			t.Errorf("%s: %q, want %q", s.Name, s.SHA, digest)
		}
	}
	if wrong > 0 && os.Getenv("ANTEROOM_UPDATE") == "1" {
		if err := os.WriteFile(digestFile, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
