package partition

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
)

// prefix begins the name of every namespace; the process id and a number follow.
const prefix = "anteroom"

var networks atomic.Int64

// network is hosts that reach each other through a router. It ends with its test.
type network struct {
	t     *testing.T
	name  string // of the router
	hosts int
	rules []string // what the router loses, as `ip rule` has it
}

// newNetwork skips the test where there can be no namespaces.
func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("%s-%d-%d", prefix, os.Getpid(), networks.Add(1))}
	n.may(ip("netns", "add", n.name))
	t.Cleanup(func() { n.remove(n.name) })
	// A router. No reverse path filter: it would make each cut one of both directions.
	n.may(ip("netns", "exec", n.name, "sh", "-ec",
		"for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done; echo 1 >/proc/sys/net/ipv4/ip_forward"))
	return n
}

// may skips the test if err is about this system and not about what was asked: no ip, not root, or a container that may
// not.
func (n *network) may(err error) {
	n.t.Helper()
	if forbidden := []string{"executable file not found", "not permitted", "ermission denied", "ead-only"}; err != nil &&
		slices.ContainsFunc(forbidden, func(s string) bool { return strings.Contains(err.Error(), s) }) {
		testredis.CountSkip(n.t)
		n.t.Skipf("no network namespaces, which need root and iproute2: %v", err)
	}
	n.must(err)
}

// host adds a host.
func (n *network) host() testredis.Host {
	n.t.Helper()
	n.hosts++
	i := n.hosts
	h := testredis.Host{Namespace: n.name + "-" + strconv.Itoa(i), Addr: fmt.Sprintf("10.77.%d.2", i), Port: 7000 + i}
	n.must(ip("netns", "add", h.Namespace))
	n.t.Cleanup(func() { n.remove(h.Namespace) })
	n.must(batch(n.name,
		fmt.Sprintf("link add name h%d type veth peer name eth0 netns %s", i, h.Namespace),
		fmt.Sprintf("addr add 10.77.%d.1/30 dev h%d", i, i),
		fmt.Sprintf("link set h%d up", i)))
	n.must(batch(h.Namespace, "link set lo up", "addr add "+h.Addr+"/30 dev eth0", "link set eth0 up",
		fmt.Sprintf("route add default via 10.77.%d.1", i)))
	return h
}

// lose makes the router lose what goes from any of one to any of the others.
func (n *network) lose(from, to []testredis.Host) {
	n.t.Helper()
	var rules []string
	for _, a := range from {
		for _, b := range to {
			rules = append(rules, fmt.Sprintf("from %s to %s blackhole", a.Addr, b.Addr))
		}
	}
	n.apply(rules)
}

// cut is lose in both directions.
func (n *network) cut(a, b []testredis.Host) {
	n.t.Helper()
	n.lose(a, b)
	n.lose(b, a)
}

// cutConnection cuts one TCP connection, in both directions.
func (n *network) cutConnection(client testredis.Host, port string, server testredis.Host) {
	n.t.Helper()
	n.apply([]string{
		fmt.Sprintf("from %s to %s ipproto tcp sport %s dport %d blackhole", client.Addr, server.Addr, port, server.Port),
		fmt.Sprintf("from %s to %s ipproto tcp sport %d dport %s blackhole", server.Addr, client.Addr, server.Port, port),
	})
}

func (n *network) apply(rules []string) {
	n.t.Helper()
	n.must(batch(n.name, each("rule add ", rules)...))
	n.rules = append(n.rules, rules...)
}

// heal loses nothing any more.
func (n *network) heal() {
	n.t.Helper()
	n.must(batch(n.name, each("rule del ", n.rules)...))
	n.rules = nil
}

func each(word string, rules []string) (lines []string) {
	for _, r := range rules {
		lines = append(lines, word+r)
	}
	return lines
}

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// remove removes a namespace. Its interfaces go with it.
func (n *network) remove(name string) {
	if err := ip("netns", "del", name); err != nil {
		n.t.Error(err)
	}
}

// removeStale removes the namespaces of earlier runs that were killed.
func removeStale() {
	out, _ := exec.Command("ip", "netns", "list").Output()
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, ours := strings.CutPrefix(name, prefix+"-")
		text, _, _ := strings.Cut(rest, "-")
		if _, err := os.Stat("/proc/" + text); ours && errors.Is(err, fs.ErrNotExist) {
			_ = ip("netns", "del", name)
		}
	}
}

// batch runs lines of ip in a namespace.
func batch(namespace string, lines ...string) error {
	cmd := exec.Command("ip", "-n", namespace, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	return run(cmd)
}

func ip(args ...string) error { return run(exec.Command("ip", args...)) }

func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(out))
	}
	return nil
}
