package lettucecompat

import "testing"

// The moment between a caller's leaving and go-redis' taking of the arguments: whichever
// comes first decides, and the other learns of it.
func TestCommand_AWithdrawnOneIsNeverWritten(t *testing.T) {
	t.Parallel()
	left := newRedisCmd(1, "set", "k", "v")
	if !left.withdraw() || left.Args()[0] != "ping" {
		t.Error("a withdrawn command hands out its arguments")
	}
	sent := newRedisCmd(1, "set", "k", "v")
	if sent.Args()[0] != "set" || sent.withdraw() || sent.Args()[0] != "set" {
		t.Error("a command that was sent is withdrawn")
	}
}
