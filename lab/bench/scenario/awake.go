package scenario

import (
	"fmt"
	"os/exec"
	"runtime"

	"github.com/anteroom/anteroom/internal/child"
)

// loops keep every otherwise idle processor busy, so that none goes to sleep between a request and its answer. A
// processor of a virtual machine may take 50 µs to wake up, which is longer than a round trip on loopback and hides
// the cost of the libraries themselves.
type loops []*exec.Cmd

func stayAwake() (loops, error) {
	var all loops
	each, _ := processors() // if unknown, the kernel spreads the loops
	for i := range runtime.NumCPU() {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		loop.SysProcAttr = child.EndsWithParent()
		err := loop.Start()
		if err == nil {
			all = append(all, loop)
			err = yield(loop.Process.Pid)
		}
		if err == nil && i < len(each) {
			err = bind(loop.Process.Pid, each[i:i+1])
		}
		if err != nil {
			all.stop()
			return nil, fmt.Errorf("processors cannot be kept awake: %w", err)
		}
	}
	return all, nil
}

// stop returns when all loops have ended.
func (l loops) stop() {
	for _, loop := range l {
		_ = loop.Process.Kill()
		_ = loop.Wait()
	}
}
