package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// systemAbilities checks what a container or a kernel may lack: /proc, and the lists of children in it.
func systemAbilities() abilities {
	program, err := ownProgram()
	if err == nil {
		_, err = os.Stat(program)
	}
	_, noList := os.Stat("/proc/thread-self/children")
	return abilities{supervisor: err, death: true, listing: noList == nil}
}

// commandAttr gives the command a process group of its own, and makes the kernel kill it when the *thread* that
// started it ends. The caller locks that thread.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes orphaned descendants children of this process, so that it is notified of their end.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children lists the children of a process, including those that have ended but were not waited for.
func children(parent string) []int {
	var all []int
	files, _ := filepath.Glob("/proc/" + parent + "/task/*/children")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// onlyZombies reports whether all remaining processes of a group have ended and only wait for their parents to reap
// them. A parent that has itself left the group, such as a daemon, may never do so. It checks twice, because a process
// that starts during the first check may be missed; the second check sees it.
func onlyZombies(group int) bool {
	for range 2 {
		if zombies, others := members(group, "self"); zombies == 0 || others > 0 {
			return false
		}
	}
	return true
}

// members counts the processes of a group among the descendants of a process. All processes started by the command
// are descendants, see adopt.
func members(group int, parent string) (zombies, others int) {
	for _, pid := range children(parent) {
		name := strconv.Itoa(pid)
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		switch in, ended := inGroup(string(stat), group); {
		case err != nil && syscall.Kill(pid, 0) != syscall.ESRCH:
			others++ // hidden from us, so it may belong to the group
		case in && ended:
			zombies++
		case in:
			others++
		}
		z, o := members(group, name)
		zombies, others = zombies+z, others+o
	}
	return zombies, others
}

// inGroup parses a line of /proc/<pid>/stat: whether the process is in a group, and whether it has ended. A process
// whose first thread has ended seems a zombie while its other threads run.
func inGroup(stat string, group int) (in, ended bool) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name before that may contain anything
	if len(f) < 18 || f[2] != strconv.Itoa(group) {
		return false, false
	}
	return true, f[0] == "X" || f[0] == "Z" && (f[17] == "0" || f[17] == "1")
}

// ownProgram returns the file of this program: the running one, even if the file was replaced during the wait for a
// lock.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// showName makes ps and killall show the tool's name instead of that of the link.
func showName() { _ = os.WriteFile("/proc/self/comm", []byte("anteroom"), 0) }

// systemSignals are SIGIO, SIGPWR, SIGSTKFLT and the real-time signals. Numbers 32 to 34 belong to the C libraries,
// and the Go runtime does not let programs catch them.
func systemSignals() []os.Signal {
	all := []os.Signal{syscall.SIGIO, syscall.SIGPWR, syscall.SIGSTKFLT}
	for n := syscall.Signal(35); n <= 64; n++ {
		all = append(all, n)
	}
	return all
}
