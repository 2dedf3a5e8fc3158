package main

// execHelp is the long help of exec. docs/cli.md says the same at more length.
const execHelp = `Waits for the lock KEY, runs COMMAND while it is held, and releases it. Standard input,
output and error are the command's own, and the exit status is the command's. A KEY that
begins with a dash stands after -- and before another one.

Redis has to answer once at the start; after that its outages are waited out. While the
command runs the lock is renewed. If it is lost all the same (Redis away for longer than
the lease, the key deleted, a forced release), the command and all of its process group
get TERM, after --grace KILL, and the exit status is 76. Another holder may begin in that
time: --grace 0, or a fencing token that the resource checks, closes the gap.

The lock is held until the last process of the command's group has ended, also if the
command itself ends earlier. A process that leaves the group (setsid, a daemon) is neither
waited for nor ended.

Exit status
  the command's own, 128+n if signal n ended it, or
  64   wrong command line
  69   Redis cannot be reached
  75   somebody else has the lock; another one with -E
  76   the lock was lost; the command was ended, or has ended by itself
  77   Redis refuses: a missing permission, a key that is no lock
  126  the command cannot be run
  127  there is no such command

Environment of the command
  ANTEROOM_KEY     the key
  ANTEROOM_HOLDER  the holder's name in Redis, as 'anteroom status' shows it
  ANTEROOM_TOKEN   the fencing token, only with --fencing

Signals that reach anteroom are passed on to the command's process group. While it waits
for the lock, one that would end it does so with 128+n. If anteroom is killed (KILL), a
helper process that it has started ends the group with TERM, and with KILL after --grace
or at the end of the lease, whichever is earlier; if anteroom is only stopped (STOP), the
same happens when the lease is nearly over. Ctrl-Z stops command and anteroom together;
a lock whose lease passes meanwhile is lost.`
