package scenario

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// processors returns the processors that this program may use, in ascending order.
func processors() (all []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, err
	}
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all, nil
}

// bind restricts all threads of a process to these processors. Threads and processes that have ended meanwhile count
// as bound.
func bind(pid int, to []int) error {
	var want unix.CPUSet
	for _, cpu := range to {
		want.Set(cpu)
	}
	// A thread that is started meanwhile by one that is not bound yet is found the next time: a new one inherits the
	// binding of its creator, so there is a last time. The system may grant less than requested, so no thread is
	// bound twice.
	done := map[int]bool{}
	for changed := true; changed; {
		changed = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			var has unix.CPUSet
			if err := unix.SchedGetaffinity(id, &has); done[id] || err == nil && has == want {
				continue
			}
			if err := unix.SchedSetaffinity(id, &want); err == nil {
				changed, done[id] = true, true
			} else if !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process %d cannot be bound to processors %v: %w", pid, to, err)
			}
		}
	}
	return nil
}
