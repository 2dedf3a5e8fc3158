package main

// execHelp is the long help of exec. docs/cli.md says the same at more length.
const execHelp = `Waits for the lock KEY, runs COMMAND while it is held, and releases it. Standard input,
output and error are the command's own, and the exit status is the command's. A KEY that
begins with a dash stands after -- and before another one.

Redis has to answer once at the start; after that its outages are waited out. While the
command runs the lock is renewed. If it is lost all the same (Redis away for longer than
the lease, the key deleted, a forced release), the command and all of its process group
get TERM, after --grace KILL, and the exit status is 76. If Redis was away, that is over
before another holder can begin, unless --grace is longer than by default, which is said
at the start. A key that was removed lets another one in at once: only a fencing token
that the resource checks helps there.

The lock is held until the last process of the command's group has ended, also if the
command itself ends earlier. A process that leaves the group (setsid, a daemon) is neither
waited for nor ended.

Exit status
  the command's own, 128+n if signal n ended it (anteroom itself dies of INT and QUIT), or
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
  ANTEROOM_REDIS   is not passed on: it may hold a password; --pass-env passes it on

Signals that reach anteroom are passed on to the command's process group. While it waits
for the lock, one that would end it does so with 128+n. Ctrl-C and Ctrl-\ at the terminal
end the command and the script that has started anteroom. If anteroom is killed (KILL), a
helper process that it has started ends the group with TERM, and with KILL after --grace
or at the end of the lease, whichever is earlier; if anteroom is only stopped (STOP), the
same happens when the lease is nearly over. Ctrl-Z stops command and anteroom together;
a lock whose lease passes meanwhile is lost.`
