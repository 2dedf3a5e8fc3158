package main

// execHelp is the long help of exec. With the flags it fills a screen at most; docs/cli.md has all else.
const execHelp = `Waits for the lock KEY, runs COMMAND while holding it, and releases it when the last process
of COMMAND's group has ended. The standard streams are COMMAND's own. If the lock is lost,
or anteroom itself is killed (KILL), the group gets TERM, and KILL after --grace. The lock of a
killed anteroom is free when its lease ends.

Without -s, -x and --of the lock is a Mutex, which one process has at a time. A KEY is one kind
of lock. COMMAND finds ANTEROOM_KEY, ANTEROOM_HOLDER and, with --fencing, ANTEROOM_TOKEN in its
environment. docs/cli.md has the details: losses, signals, terminals, processes that are killed.

The exit status is COMMAND's, 128+n if signal n ended it, or
  64  wrong command line             76   the lock was lost
  69  Redis does not answer          77   Redis refuses, or KEY is no lock of this kind
  75  somebody else has the lock     126  COMMAND cannot run (127: it does not exist)`
