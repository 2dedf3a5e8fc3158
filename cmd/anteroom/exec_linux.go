package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// commandAttr gives the command a process group of its own, and makes the kernel kill it
// when the *thread* that has started it ends. The caller locks that thread.
func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes descendants whose parents end children of this process, so that it hears of
// their end.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children lists the children of this process, those that have ended and were not waited
// for included.
func children() []int {
	var all []int
	files, _ := filepath.Glob("/proc/self/task/*/children")
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

// ownProgram returns the file of this program: the very one, also if it was replaced
// while we waited for a lock.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// showName makes ps and killall see the tool's name instead of that link's.
func showName() { _ = os.WriteFile("/proc/self/comm", []byte("anteroom"), 0) }

// systemSignals are SIGIO, SIGPWR, SIGSTKFLT and those of real time. Numbers 32 to 34
// belong to the C libraries, and the Go runtime lets nobody catch them.
func systemSignals() []os.Signal {
	all := []os.Signal{syscall.SIGIO, syscall.SIGPWR, syscall.SIGSTKFLT}
	for n := syscall.Signal(35); n <= 64; n++ {
		all = append(all, n)
	}
	return all
}
