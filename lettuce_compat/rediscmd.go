package lettucecompat

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// The life of a command, kept in redisCmd.state.
const (
	cmdHeld      = iota // its arguments were not asked for: nothing was written
	cmdSent             // go-redis took the arguments: it was, or may have been, written
	cmdWithdrawn        // its caller left before that: it will never be written
)

// redisCmd is one Redis command as go-redis sees it, with two properties of its own.
//
// go-redis never retries it (I1): a script whose reply was lost may have run, and only its caller knows how to ask
// again. And it can be withdrawn until go-redis takes its arguments for writing, through Args: a caller that gives up
// while it still waits for a connection knows for certain that it had no effect, and a server that comes back later
// never sees it. If the arguments are taken for another purpose (routing, a tracing hook) that is only less often
// known.
type redisCmd struct {
	redis.Cmd
	state  atomic.Uint32
	script *script // nil for a plain command
	key    string  // decides the node; empty: any
}

// withdrawnArgs replace those of a withdrawn command: something must be sent, since a reply is awaited. PING changes
// nothing.
var withdrawnArgs = []any{"ping"}

// setScript makes c, which is new, the EVALSHA that args say.
func (c *redisCmd) setScript(s *script, key string, args []any) {
	c.Cmd = *redis.NewCmd(context.Background(), args...)
	c.script, c.key = s, key
	c.SetFirstKeyPos(3)
}

// newRedisCmd makes a plain command; keyPos is the place of its key in args, 0: none.
func newRedisCmd(keyPos int8, args ...any) *redisCmd {
	c := &redisCmd{Cmd: *redis.NewCmd(context.Background(), args...)}
	if keyPos > 0 {
		c.SetFirstKeyPos(keyPos)
		c.key, _ = args[keyPos].(string)
	}
	return c
}

// newRequest makes one of a single command.
func newRequest(cmd *redisCmd) *request { return &request{cmds: []*redisCmd{cmd}} }

// NoRetry makes go-redis execute the command at most once, alone and in a pipeline.
func (c *redisCmd) NoRetry() bool { return true }

// Args hands out the arguments and notes that they may now be written.
func (c *redisCmd) Args() []any {
	if c.state.CompareAndSwap(cmdHeld, cmdSent) || c.state.Load() == cmdSent {
		return c.Cmd.Args()
	}
	return withdrawnArgs
}

// Clone makes go-redis' copy of the command out of what Args hands out, since a copy is made to be written.
func (c *redisCmd) Clone() redis.Cmder { return redis.NewCmd(context.Background(), c.Args()...) }

// sent reports whether the command was, or may have been, written.
func (c *redisCmd) sent() bool { return c.state.Load() == cmdSent }

// withdraw reports whether the command was caught before it was written. If so it never will be.
func (c *redisCmd) withdraw() bool {
	return c.state.CompareAndSwap(cmdHeld, cmdWithdrawn) || c.state.Load() == cmdWithdrawn
}

// again makes an answered command ready to be sent once more. The old error must go: a pipeline that fails on the way
// leaves errors alone that are there already, and the answer of the first try would be taken for that of the second.
func (c *redisCmd) again() {
	c.SetErr(nil)
	c.state.CompareAndSwap(cmdSent, cmdHeld)
}

// asEval turns the EVALSHA into an EVAL with the whole source, for a node on which the script cannot be loaded. Only
// the sending goroutine may call it.
func (c *redisCmd) asEval() {
	c.setScript(c.script, c.key, append([]any{"eval", c.script.source}, c.Cmd.Args()[2:]...))
	c.state.CompareAndSwap(cmdSent, cmdHeld)
}

// result says what is known about the command after its request was answered (left nil) or left with an error.
// OutcomeOK means that a reply arrived, even an error.
//
// An error on a command that is still held arose before it was sent: a hook or a Limiter has refused it, a connection
// could not be had, or not greeted in time. That does not depend on whose error it is: the bytes of a command come
// from Args and from nowhere else, and the first call of Args ends its being held. Withdrawing it in the same step sees
// to it that nobody sends it later: a wrapper that answers with an error and writes afterwards gets a PING to write.
// A command is held again only by again and asEval, after an answer that it was not executed.
func (c *redisCmd) result(left error) (Outcome, error) {
	if left != nil {
		if c.state.Load() == cmdWithdrawn {
			return OutcomeFailed, left
		}
		return OutcomeUnknown, left
	}
	err := c.Err()
	if err == nil {
		return OutcomeOK, nil
	}
	if classify(err) == classUnknown {
		if c.withdraw() {
			return OutcomeFailed, &notSentError{err}
		}
		return OutcomeUnknown, err
	}
	return OutcomeFailed, err
}
