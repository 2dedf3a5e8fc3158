package lettucecompat

import (
	"context"
	"time"
)

// scriptCall is a call of one script in one piece with all that it needs on its way: its
// command, the arguments, and the trip that it travels in if it is the first there. It is
// made anew each time: go-redis may still read what was abandoned, and a hook may keep a
// command and its context for as long as it likes.
type scriptCall struct {
	call
	command command
	list    [1]*command // call.cmds
	args    [7]any      // of the command, as far as they fit: those of a plain acquire and release
}

// newScriptCall makes a call of s about the lock key; fence is the key of its fencing
// record, empty where the script does not need it. argv are strings already, so that nothing
// depends on how a client prints numbers.
func newScriptCall(s *script, key, fence string, argv ...any) *scriptCall {
	k := new(scriptCall)
	args := append(k.args[:0], "evalsha", s.shaArg, 1, key)
	if fence != "" {
		args[2] = 2
		args = append(args, fence)
	}
	k.command.setScript(s, key, append(args, argv...))
	k.list[0] = &k.command
	k.cmds = k.list[:]
	return k
}

// newCall makes a call of one command.
func newCall(cmd *command) *call { return &call{cmds: []*command{cmd}} }

// call is what one caller waits for: usually one command, several where a batch goes
// to a cluster node.
type call struct {
	ctx     context.Context // the caller's; only its values travel on
	cmds    []*command
	wait    *waitFor      // set: an acquire whose replicas are waited for; travels alone
	timeout time.Duration // after which its caller is free
	end     time.Time     // when that is
	done    chan struct{} // receives once when the call is answered or its time is over; nil: the caller carries it itself

	// Guarded by lane.mu.
	over       bool      // answered or left
	trip       *trip     // nil: queued
	sentAt     time.Time // before anything was handed to go-redis; zero: never was
	err        error     // why it was ended without an answer
	next, prev *call     // place among the awaited
	lead       trip      // the one that begins with this call, if one does
}

// withdraw marks every command of k as never sent, where that is still possible.
func (k *call) withdraw(err error) error {
	for _, c := range k.cmds {
		c.withdraw()
	}
	return err
}
