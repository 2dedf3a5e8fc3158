package lettucecompat

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The life of a command, kept in redisCmd.state.
const (
	cmdHeld      = iota // its arguments were not asked for: nothing was written
	cmdOurs             // a connection of ours has taken them, and nobody else
	cmdSent             // somebody took the arguments: it was, or may have been, written
	cmdWithdrawn        // its caller left before that: it will never be written
)

// redisCmd is one Redis command as go-redis, and hooks, see it, with two properties of its own.
//
// Nobody retries it (I1): a script whose reply was lost may have run, and only its caller knows how to ask
// again. And it can be withdrawn until somebody takes its arguments for writing: a caller that gives up
// while it still waits for a connection knows for certain that it had no effect, and a server that comes back later
// never sees it. If the arguments are taken for another purpose (routing, a tracing hook) that is only less often
// known.
//
// The arguments of a script are kept as they travel. Those of go-redis' own command are filled in for whoever else sees it, and what
// travels then is what he has made of them.
type redisCmd struct {
	redis.Cmd
	state  atomic.Uint32
	script *script // nil for a plain command
	key    string  // decides the node; empty: any

	// Of a script: what follows its digest, as it travels.
	text    []byte
	args    int
	sources bool // it is sent itself, and not its digest

	timeout time.Duration // after which its caller is free
	end     time.Time     // when that is
	sentAt  time.Time     // before anything of it was handed to anybody

	wire   []byte  // as it travels, if a hook may have changed it
	filled bool    // go-redis' own command has the arguments: others see it
	ours   bool    // it was answered, and nobody else has seen it
	client *Client // of a cluster: asks for its hooks

	// Of a command that travels on a connection of ours.
	taken atomic.Bool           // it is there, or was sent on one, and is not sent again
	ended atomic.Pointer[error] // how it has ended there, once it has
	said  atomic.Pointer[error] // the same, if it was answered
	left  atomic.Pointer[error] // why its caller has left; nil: it has not
}

// withdrawnArgs replace those of a withdrawn command: something must be sent, since a reply is awaited. PING changes
// nothing.
var withdrawnArgs = []any{"ping"}

// scriptCmd makes a command with s about so many keys, which are to be added; the first decides the node. It may have been used before:
// see reuse.
func (c *Client) scriptCmd(s *script, keys int, first string) *redisCmd {
	cmd, _ := c.cmds.Get().(*redisCmd)
	if cmd == nil {
		cmd = new(redisCmd)
	}
	cmd.script, cmd.key = s, first
	return cmd.addInt(int64(keys))
}

// reuse takes cmd, which was answered, for later ones, unless others have seen it: a hook may keep it for as long as it likes.
func (c *Client) reuse(cmd *redisCmd) {
	if !cmd.ours || cmd.Err() != nil || cap(cmd.text) > spareRoom {
		return
	}
	*cmd = redisCmd{text: cmd.text[:0]}
	c.cmds.Put(cmd)
}

// add appends arguments.
func (c *redisCmd) add(args ...string) *redisCmd {
	for _, a := range args {
		c.text = appendArg(c.text, a)
	}
	c.args += len(args)
	return c
}

func (c *redisCmd) addInt(n int64) *redisCmd {
	var room [20]byte
	return c.addBytes(strconv.AppendInt(room[:0], n, 10))
}

func (c *redisCmd) addUint(n uint64) *redisCmd {
	var room [20]byte
	return c.addBytes(strconv.AppendUint(room[:0], n, 10))
}

func (c *redisCmd) addBytes(b []byte) *redisCmd {
	c.text = appendArg(c.text, b)
	c.args++
	return c
}

// says returns the command, and what says which script it is.
func (c *redisCmd) says() (verb, what string) {
	if c.sources {
		return "eval", c.script.source
	}
	return "evalsha", c.script.sha
}

// list returns all arguments of a script.
func (c *redisCmd) list() []any {
	verb, what := c.says()
	list := append(make([]any, 0, 2+c.args), verb, what)
	for rest := c.text; len(rest) > 0; {
		var v any
		v, rest = value(rest)
		list = append(list, v)
	}
	list[2], _ = strconv.Atoi(list[2].(string)) // the number of keys, as a hook expects it
	return list
}

// fill gives go-redis' own command, which others are to see, the arguments.
func (c *redisCmd) fill() {
	if c.script != nil {
		c.Cmd, c.filled = *redis.NewCmd(context.Background(), c.list()...), true
		c.SetFirstKeyPos(3)
	}
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

// NoRetry makes go-redis execute the command at most once, alone and in a pipeline.
func (c *redisCmd) NoRetry() bool { return true }

// Args hands out the arguments and notes that they may now be written.
func (c *redisCmd) Args() []any {
	if c.client != nil {
		c.client.askForClusterHooks()
	}
	if c.state.CompareAndSwap(cmdHeld, cmdSent) || c.state.CompareAndSwap(cmdOurs, cmdSent) || c.state.Load() == cmdSent {
		return c.Cmd.Args()
	}
	return withdrawnArgs
}

// Clone makes go-redis' copy of the command out of what Args hands out, since a copy is made to be written.
func (c *redisCmd) Clone() redis.Cmder { return redis.NewCmd(context.Background(), c.Args()...) }

// sent reports whether the command was, or may have been, written.
func (c *redisCmd) sent() bool {
	state := c.state.Load()
	return state == cmdOurs || state == cmdSent
}

// withdraw reports whether the command was caught before it was written. If so it never will be.
func (c *redisCmd) withdraw() bool {
	return c.state.CompareAndSwap(cmdHeld, cmdWithdrawn) || c.state.Load() == cmdWithdrawn
}

// again makes an answered command ready to be sent once more. The old error must go: a pipeline that fails on the way
// leaves errors alone that are there already, and the answer of the first try would be taken for that of the second.
func (c *redisCmd) again() {
	c.fill() // what others have made of the arguments they make again
	c.SetErr(nil)
	c.ended.Store(nil)
	c.said.Store(nil)
	c.taken.Store(false)
	if !c.state.CompareAndSwap(cmdSent, cmdHeld) {
		c.unsent()
	}
}

// asEval turns the EVALSHA into an EVAL with the whole source, for a node on which the script cannot be loaded. Only
// the sending goroutine may call it.
func (c *redisCmd) asEval() {
	c.sources = true
	c.again()
}

// result says what is known about the command after its request was answered (left nil) or left with an error.
// OutcomeOK means that a reply came that is no error; of a batch, elements may be errors. An error that a server has answered with is
// OutcomeFailed.
//
// An error on a command that is still held arose before it was sent: a hook or a Limiter has refused it, a connection
// could not be had, or not greeted in time. That does not depend on whose error it is: who writes a command calls Args
// or appendTo, and the first of these calls ends its being held. Withdrawing it in the same step sees
// to it that nobody sends it later: a wrapper that answers with an error and writes afterwards gets a PING to write.
// A command is held again after an answer that it was not executed, and if its connection has ended before it was written.
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
	c.withdraw()
	return OutcomeFailed, err
}

// appendTo appends c, a script, to b as it travels.
func (c *redisCmd) appendTo(b []byte) []byte {
	if !c.state.CompareAndSwap(cmdHeld, cmdOurs) && c.state.Load() == cmdWithdrawn { // and a reply is awaited all the same
		return appendArg(appendHeader(b, 1), "ping")
	}
	if c.filled {
		return append(b, c.wire...)
	}
	verb, what := c.says()
	b = appendArg(appendArg(appendHeader(b, 2+c.args), verb), what)
	return append(b, c.text...)
}

// encode has what others have made of the arguments ready to travel.
func (c *redisCmd) encode() (err error) {
	if c.filled {
		args := c.Cmd.Args()
		c.wire = appendHeader(nil, len(args))
		for i := 0; i < len(args) && err == nil; i++ {
			c.wire, err = appendAny(c.wire, args[i])
		}
	}
	return err
}

// doubt makes an error of a hook, which comes after the command has ended on a connection of ours, one of which nothing is known: it
// is not the command's, whatever it says.
func (c *redisCmd) doubt() {
	if end := c.ended.Load(); end != nil && c.Err() != nil && !errors.Is(c.Err(), *end) {
		c.SetErr(errors.New(c.Err().Error()))
	}
}

// leave notes that its caller has left, and withdraws it.
func (c *redisCmd) leave(err error) error {
	c.left.Store(&err)
	c.withdraw()
	return err
}

// hasLeft returns why its caller has left; nil if it has not.
func (c *redisCmd) hasLeft() error {
	if err := c.left.Load(); err != nil {
		return *err
	}
	return nil
}

// unsent makes a command that only a connection of ours has taken one that may be sent again. False: others have taken it.
func (c *redisCmd) unsent() bool { return c.state.CompareAndSwap(cmdOurs, cmdHeld) }
