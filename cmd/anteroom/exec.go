package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	anteroom "github.com/anteroom/anteroom/sync"
)

// The exit statuses of exec, besides those of exit.go and the command's own.
const (
	exitConflict   = 75  // EX_TEMPFAIL: somebody else has the lock; --conflict-exit-code
	exitLost       = 76  // EX_PROTOCOL: the lock was lost while it was needed
	exitCannotRun  = 126 // as in shells: the command was found but could not be started
	exitNotFound   = 127 // as in shells: there is no such command
	exitSignalBase = 128 // plus the number of the signal that ended the command
)

// execFlags are the flags of exec; lock has those of addTo.
type execFlags struct {
	kindFlags
	shell    bool
	nonblock bool
	wait     time.Duration // 0: no limit, unless nonblock
	lease    time.Duration
	atLeast  time.Duration
	grace    time.Duration
	conflict int
	fencing  bool
	note     string // of a Mutex never empty once the command line is read: a hold with a note has its whole lease
	seize    bool
	passEnv  bool
	verbose  bool
}

// defaultFlags are the values of the flags that have others than zero.
var defaultFlags = execFlags{conflict: exitConflict, lease: 30 * time.Second}

// execCommand returns the command `anteroom exec`.
func execCommand() *cobra.Command {
	f := defaultFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] KEY -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long:  execHelp,
		Example: `  anteroom exec -n nightly -- backup.sh || test $? = 75
  anteroom exec -w 2.5 -c report -- 'make report | mail -s report ops'
  anteroom exec --fencing stock -- sh -c 'import --token "$ANTEROOM_TOKEN"'
  anteroom exec --of 4 thumbnails -- convert a.png b.png`,
		Args: func(cmd *cobra.Command, args []string) error {
			_, _, err := keyAndWords(cmd.ArgsLenAtDash(), args)
			return err
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, words, err := keyAndWords(cmd.ArgsLenAtDash(), args)
			if err != nil {
				return err
			}
			return runExec(cmd, f, key, words)
		},
	}
	f.addTo(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.shell, "command", "c", false, "run COMMAND, one word, with sh -c")
	durationVar(cmd, &f.grace, "grace", "", "time from TERM to KILL after a loss (default: lease/15, at most 5s)")
	fs.BoolVar(&f.passEnv, "pass-env", false, "pass "+redisVariable+", and the password in it, to COMMAND")
	return cmd
}

// addTo adds the flags that exec and lock share.
func (f *execFlags) addTo(cmd *cobra.Command) {
	f.kindFlags.addTo(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.nonblock, "nonblock", "n", false, "do not wait for the lock")
	durationVar(cmd, &f.wait, "wait", "w", "longest wait, also for a Redis that is not up yet; 0 means -n")
	fs.IntVarP(&f.conflict, "conflict-exit-code", "E", f.conflict, "exit status if somebody else has the lock")
	durationVar(cmd, &f.lease, "lease", "", "how long the lock outlives a crash; 100ms to 24h")
	durationVar(cmd, &f.atLeast, "at-least", "", "hold the lock at least this long, even if the work ends earlier")
	fs.BoolVar(&f.fencing, "fencing", false, "draw a fencing token")
	fs.StringVar(&f.note, "note", "", "`TEXT` for status and for who is refused (default: what runs)")
	fs.BoolVar(&f.seize, "seize", false, "take the lock from its holder, ahead of all who wait")
	fs.BoolVar(&f.verbose, "verbose", false, "report the times waited and held, the holder and the token")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "wait")
	cmd.MarkFlagsMutuallyExclusive("nonblock", "seize")
}

// keyAndWords splits the arguments, of which dash came before the first --. A KEY that begins with a dash is between
// two of them.
func keyAndWords(dash int, args []string) (key string, words []string, err error) {
	switch {
	case dash == 1 && len(args) > 1:
		return args[0], args[1:], nil
	case dash == 0 && len(args) > 2 && args[1] == "--":
		return args[0], args[2:], nil
	}
	return "", nil, errors.New("give one KEY, then --, then the command")
}

// lock returns the lock that the flags describe, or a usage error.
func (f *execFlags) lock(cmd *cobra.Command, key string) (anteroom.LockConfig, error) {
	if cmd.Flags().Changed("wait") && f.wait == 0 {
		f.nonblock = true
	}
	if !cmd.Flags().Changed("grace") {
		f.grace = min(f.mostGrace(), 5*time.Second)
	}
	cfg := anteroom.LockConfig{
		Key: key, Name: cmd.Name(), LeaseTime: f.lease, Margin: f.margin(), Fencing: f.fencing,
		MinHold:     f.atLeast,
		MaxHandoffs: -1, // status shows the token that this hold has
	}
	switch {
	case f.seize && f.nonblock:
		return cfg, usageError("--seize waits for an answer; -w must not be 0")
	case f.lease == 0:
		return cfg, usageError("--lease is 0; it must be from 100ms to 24h")
	case f.conflict < 0 || f.conflict > 255:
		return cfg, usageError("--conflict-exit-code is %d; it must be from 0 to 255", f.conflict)
	}
	if err := f.misfit(cmd); err != nil {
		return cfg, err
	}
	if err := cfg.Validate(); err != nil {
		return cfg, usageError("KEY, --lease or --at-least: %w", plain{err})
	}
	return cfg, nil
}

// margin is the time between the moment when a loss is known by the clock and the moment when Redis may grant the
// lock to another: the maximum that the library allows, because the command has to end within it.
func (f *execFlags) margin() time.Duration { return f.lease / 10 }

// slack is the part of the margin in which the supervisor leaves it to the keeper to act.
func (f *execFlags) slack() time.Duration { return f.margin() / 4 }

// mostGrace is the longest grace with which a command has ended when the margin has, whether the keeper or the
// supervisor ends it. What is left of the margin is for the system.
func (f *execFlags) mostGrace() time.Duration {
	return (f.margin() * 2 / 3).Truncate(time.Millisecond)
}

// program returns the file and the arguments to run. A missing command is detected here, before the wait for a lock.
func (f *execFlags) program(words []string) (path string, argv []string, err error) {
	argv = words
	if f.shell {
		if len(words) != 1 {
			return "", nil, usageError("-c takes the command as one word; quote it")
		}
		argv = []string{"sh", "-c", words[0]}
	}
	path, err = exec.LookPath(argv[0])
	// A PATH with "." in it is the user's decision, as it is in a shell.
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", nil, notStarted(argv[0], err)
	}
	return path, argv, nil
}

// notStarted is the error for a command that did not run.
func notStarted(name string, err error) error {
	code := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		err = e
	} else if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	return &exitError{status: code, err: fmt.Errorf("cannot run %q: %w", name, err)}
}
