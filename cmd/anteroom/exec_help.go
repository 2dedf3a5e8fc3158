package main

// execHelp is the long help of exec. docs/cli.md has the details.
const execHelp = `Waits for the lock KEY, runs COMMAND while holding it, and releases it. Standard input, output
and error are the command's own, and so is the exit status. A KEY that begins with a dash
goes after -- and before another one. A command that does not exist is found before the wait.

Without --wait Redis must answer once at the start; with it exec waits that long for Redis,
too, and the command never starts later. If Redis has not answered by then, exec ends up to
2s later: it removes what the acquire may have left. Later outages are waited out. The lock
is renewed while the command runs. If it is lost all the same (Redis unreachable for longer
than the lease, the key deleted, a forced release), the whole process group of the command
gets TERM, after --grace KILL, and the exit status is 76. If Redis was unreachable, this is
complete before another holder can begin, unless --grace is longer than a fifteenth of
--lease; a warning at the start says so. If the key was removed, another holder may begin at
once: only a fencing token that the resource checks helps then.

Without -s, -x and --of the lock is a Mutex, which excludes everybody. With -s and -x it is
an RWMutex, which many may read at a time, or one writes; with --of a Semaphore. A KEY is one
kind of lock: exec of another kind fails while somebody has it. With these flags the command
starts a tenth of a second after the lock was acquired, if need be after --wait, because
the lease has to be whole.

The lock is held until the last process of the command's group has ended, even if the
command itself ends earlier. A process that leaves the group (setsid, a daemon) is neither
waited for nor ended.

Exit status
  the command's own, 128+n if signal n ended it (anteroom itself dies of INT and QUIT), or
  64   wrong command line
  69   Redis cannot be reached
  75   somebody else has the lock; -E changes this status
  76   the lock was lost; the command was ended, or has ended by itself
  77   Redis refuses: a missing permission, or a key that is no lock, or one of another kind
  126  the command cannot be run
  127  there is no such command

Environment of the command
  ANTEROOM_KEY     the key
  ANTEROOM_HOLDER  the holder's name in Redis, as 'anteroom status' shows it
  ANTEROOM_TOKEN   the fencing token, only with --fencing
  ANTEROOM_REDIS   not passed on, because it may contain a password; see --pass-env

Signals sent to anteroom are passed on to the command's process group. During the wait for
the lock, a signal that ends a process ends anteroom with 128+n. Ctrl-C and Ctrl-\ at the
terminal end the command and the script that started anteroom. If anteroom is killed
(KILL), a helper process that it has started ends the group with TERM, and with KILL after
--grace or at the end of the lease, whichever is earlier; if anteroom is only stopped
(STOP), the same happens when the lease is nearly over. Ctrl-Z stops command and anteroom
together; a lock whose lease expires meanwhile is lost.`
