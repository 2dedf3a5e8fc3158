package main

var execMutants = []mutant{
	{
		name: "exec-dies-of-the-key", file: "cmd/anteroom/exec_signals.go",
		mechanism: "exec dies of the signal that a key sent to its command",
		breaks:    "Ctrl-C ends one round of a script's loop, and the next one begins",
		old:       "if n == syscall.SIGINT || n == syscall.SIGQUIT {",
		fresh:     "if n == 0 {",
		tests:     []string{"TestExec_X4_InterruptEndsTheScript"},
	},
	{
		name: "exec-key-for-the-group", file: "cmd/anteroom/exec_keeper.go",
		mechanism: "exec's process group gets the signal of a key that only the command received",
		breaks:    "bash and xargs go on after Ctrl-C, because they have not seen it",
		old:       "syscall.Signal(r.Signal), k.hasTerminal()",
		fresh:     "syscall.Signal(r.Signal), false",
		tests:     []string{"TestExec_X4_InterruptEndsTheScript"},
	},
	{
		name: "exec-zombies", file: "cmd/anteroom/exec_super.go",
		mechanism: "exec does not wait for zombies",
		breaks:    "a daemon started by a script holds the lock for ever",
		old:       "syscall.Kill(-group, 0) == syscall.ESRCH || onlyZombies(group)",
		fresh:     "syscall.Kill(-group, 0) == syscall.ESRCH",
		tests:     []string{"TestExec_X3_AZombieIsNotWaitedFor"},
	},
	{
		name: "exec-zombie-threads", file: "cmd/anteroom/exec_linux.go",
		mechanism: "a process whose first thread has ended runs while another one does",
		breaks:    "the lock is released while the command works",
		old:       `f[0] == "Z" && (f[17] == "0" || f[17] == "1")`,
		fresh:     `f[0] == "Z"`,
		tests:     []string{"TestExec_X3_AZombieWithThreadsRuns"},
	},
	{
		name: "exec-password", file: "cmd/anteroom/exec_run.go",
		mechanism: "exec does not pass on the URL of Redis",
		breaks:    "the command, its log and its children have the password",
		old:       "if !x.flags.passEnv {",
		fresh:     "if x.flags.passEnv && !x.flags.passEnv {",
		tests:     []string{"TestExec_ThePasswordIsNotPassedOn"},
	},
	{
		name: "exec-grace", file: "cmd/anteroom/exec.go",
		mechanism: "exec's grace, unless given, ends before the lease",
		breaks:    "the command overlaps with the next holder for seconds",
		old:       "min(f.mostGrace(), 5*time.Second)",
		fresh:     "5 * time.Second",
		tests:     []string{"TestExec_X1_AGraceThatIsTooLongIsSaid"},
	},
}
