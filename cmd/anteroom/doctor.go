package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// doctorCommand returns the command `anteroom doctor`.
func doctorCommand() *cobra.Command {
	var timeout time.Duration
	var keys []string
	cmd := &cobra.Command{
		Use:   "doctor [flags] [URL]",
		Short: "Check whether a Redis suits locks",
		Long: `Asks the Redis of URL, or of --redis, what matters to locks, and prints a line for each fact:
ok, warning or problem, what it means, and the remedy. It changes nothing.

Where an ACL restricts the keys, give one for each of its patterns with --lock: doctor tries
whether the user may take locks of these names. What the user may not ask is a warning: for
all answers it needs +info and +config|get.

The exit status is 0 without a problem and 1 with one. It is 64 for a wrong command line, 69 if
Redis does not answer, 77 if it refuses.`,
		Example: `  anteroom doctor redis://10.0.0.1
  anteroom doctor --lock order:0 --lock invoice:0`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := cmd.Flags().Set("redis", args[0]); err != nil {
					return err
				}
			}
			return runDoctor(cmd, timeout, keys)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "lock", nil, "`KEY` of a lock that this user should be able to take; may be repeated")
	addTimeoutFlag(cmd, &timeout)
	return cmd
}

// The levels of a fact.
const (
	levelOK      = "ok"
	levelWarning = "warning" // locks work, and promise less
	levelProblem = "problem" // locks do not work, or may be lost without a failure
)

// doctor prints facts about the servers of a Redis.
type doctor struct {
	out     io.Writer
	timeout time.Duration
	cluster bool
	err     error // of the output, or exitNone after a problem
}

// runDoctor prints all that it finds out. Only a Redis that does not answer ends it earlier.
func runDoctor(cmd *cobra.Command, timeout time.Duration, keys []string) error {
	op, err := newOperator(cmd, timeout)
	if err != nil {
		return err
	}
	defer op.close()
	ctx, d := cmd.Context(), &doctor{out: cmd.OutOrStdout(), timeout: timeout}
	if cluster, ok := op.rdb.(*redis.ClusterClient); ok {
		d.cluster = true
		var turn sync.Mutex // one after the other, so that the lines of a server stay together
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			turn.Lock()
			defer turn.Unlock()
			d.say(levelOK, "master", node.Options().Addr)
			return d.examine(ctx, node)
		})
	} else {
		err = d.examine(ctx, op.rdb)
	}
	if err != nil {
		return unanswered(err)
	}
	if err := answered(op.m.Ping(ctx, keys...)); err != nil {
		code, _ := status(err)
		d.say(levelProblem, "locks", strings.TrimPrefix(cmp.Or(diagnosis(cmd, code, err), err.Error()), "anteroom: "))
	} else {
		d.say(levelOK, "locks", "this user may acquire, renew and release them")
	}
	return d.err
}

// say prints a line. What servers say in it is made harmless.
func (d *doctor) say(level, name, text string) {
	if level == levelProblem && d.err == nil {
		d.err = &exitError{status: exitNone}
	}
	text = strings.ReplaceAll(harmless(text), "\n", " ")
	if err := printed(fmt.Fprintf(d.out, "%-7s  %-11s  %s\n", level, name, text)); err != nil {
		d.err = err
	}
}

// pings is how many round trips are measured.
const pings = 11

// examine prints the facts of one server. An error means that it does not answer, or refuses even PING.
func (d *doctor) examine(ctx context.Context, server redis.UniversalClient) error {
	var took []time.Duration
	for range pings + 1 {
		began := time.Now()
		if _, err := within(ctx, d.timeout, server.Ping); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	took = took[1:] // the first one connects
	slices.Sort(took)
	d.say(roundTripFact(took[pings/2], took[pings-1]))

	began := time.Now()
	now, err := within(ctx, d.timeout, server.Time)
	switch {
	case err == nil:
		d.say(clockFact(now.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond)))
	case !byServer(err):
		return err
	}

	text, err := within(ctx, d.timeout, func(ctx context.Context) *redis.StringCmd { return server.Info(ctx) })
	switch {
	case byServer(err):
		d.say(levelWarning, "server", "INFO is not permitted, so version, eviction, persistence and replicas are unknown: "+
			"ask your provider, or repeat this as a user with +info and +config|get")
		return nil
	case err != nil:
		return err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	if modeOf(info) == "sentinel" {
		return nil // so says the line on locks
	}
	d.say(serverFact(info, d.cluster))
	d.say(evictionFact(info))
	config := map[string]string{}
	if info["aof_enabled"] == "1" { // INFO does not say how often
		config, err = within(ctx, d.timeout, func(ctx context.Context) *redis.MapStringStringCmd { return server.ConfigGet(ctx, "appendfsync") })
		if err != nil && !byServer(err) {
			return err
		}
	}
	d.say(persistenceFact(info["aof_enabled"], config["appendfsync"]))
	d.say(replicasFact(info, d.cluster))
	return nil
}

// within asks a server, with the time limit of one answer.
func within[T any, C interface{ Result() (T, error) }](ctx context.Context, limit time.Duration, ask func(context.Context) C) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ask(ctx).Result()
}

// byServer reports whether a server has answered with an error: it may forbid a command, or not know it.
func byServer(err error) bool {
	_, is := errors.AsType[redis.Error](err)
	return is
}

// Each of these functions returns one line: level, name and text.

// slowTrip is a tenth of the default command timeout, which docs/operations.md calls comfortable.
const slowTrip = 100 * time.Millisecond

func roundTripFact(median, most time.Duration) (level, name, text string) {
	text = fmt.Sprintf("median %v, slowest %v of %d", median.Round(time.Microsecond), most.Round(time.Microsecond), pings)
	if most > slowTrip {
		return levelWarning, "round trip", text + ": an answer counts as lost after CommandTimeout, 1s by default: make that, and the lease, ten times as long as the slowest"
	}
	return levelOK, "round trip", text
}

func clockFact(ahead time.Duration) (level, name, text string) {
	text = fmt.Sprintf("%v ahead of this machine's", ahead)
	if ahead < 0 {
		text = fmt.Sprintf("%v behind this machine's", -ahead)
	}
	if ahead.Abs() > time.Second {
		return levelWarning, "clock", text + ": setting the server's forward ends leases early, setting it back keeps the locks of dead holders: let NTP slew it"
	}
	return levelOK, "clock", text + ", which locks do not depend on; the server's must slew, never step"
}

// modeOf is how the server runs: standalone, cluster or sentinel. Valkey calls that server_mode, also one that says redis_version.
func modeOf(info map[string]string) string { return cmp.Or(info["server_mode"], info["redis_mode"]) }

func serverFact(info map[string]string, cluster bool) (level, name, text string) {
	product, version, least := "Redis", info["redis_version"], []int{6, 2}
	if v := info["valkey_version"]; v != "" {
		product, version, least = "Valkey", v, []int{8, 0}
	}
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	text = product + " " + version
	switch {
	case slices.Compare([]int{major, minor}, least) < 0:
		return levelProblem, "server", text + " is too old: locks need Redis 6.2, Valkey 8.0 or newer"
	case modeOf(info) == "cluster" && !cluster:
		return levelWarning, "server", text + " in a Cluster: unless a proxy hides that, the URL must begin with redis+cluster"
	}
	return levelOK, "server", text
}

func evictionFact(info map[string]string) (level, name, text string) {
	policy := info["maxmemory_policy"]
	most, _ := strconv.ParseFloat(info["maxmemory"], 64)
	used, _ := strconv.ParseFloat(info["used_memory"], 64)
	switch {
	case policy == "":
		return levelWarning, "eviction", "the server does not name its maxmemory-policy: ask your provider whether it is noeviction"
	case policy != "noeviction" && most == 0:
		return levelWarning, "eviction", policy + " will delete locks that are held once maxmemory is set: set maxmemory-policy noeviction"
	case policy != "noeviction":
		return levelProblem, "eviction", policy + " deletes locks that are held when memory is full: set maxmemory-policy noeviction"
	case used > 0.9*most && most > 0:
		return levelWarning, "eviction", fmt.Sprintf("noeviction, and %.0f %% of maxmemory are used: no lock is acquired when it is full: raise it", 100*used/most)
	}
	return levelOK, "eviction", "noeviction: Redis deletes no lock to make room"
}

func persistenceFact(aof, fsync string) (level, name, text string) {
	const remedy = ": set appendonly yes and appendfsync always, or keep a stopped Redis down for the longest lease"
	switch {
	case aof != "1":
		return levelWarning, "persistence", "appendonly no: a restart loses the locks since the last snapshot, or all" + remedy
	case fsync == "":
		return levelWarning, "persistence", "appendonly yes; CONFIG GET is not permitted: ask your provider whether appendfsync is always, or a restart loses the newest locks"
	case fsync != "always":
		return levelWarning, "persistence", "appendfsync " + fsync + ": a restart loses the newest locks" + remedy
	}
	return levelOK, "persistence", "appendfsync always: a restart loses no lock"
}

func replicasFact(info map[string]string, cluster bool) (level, name, text string) {
	text = info["connected_slaves"] + ": a failover loses the locks that no replica has yet: use LockConfig.Replicas, and a fencing token where that does harm"
	_, bounded := info["min_slaves_good_slaves"] // only if min-replicas-to-write is set
	switch {
	case info["role"] == "slave":
		return levelProblem, "replicas", "this server is a replica, and grants no lock: the URL must name its master, or the Sentinels"
	case info["connected_slaves"] == "0":
		return levelOK, "replicas", "none, and so no failover that could lose a lock"
	case !bounded && !cluster:
		return levelWarning, "replicas", text + "; set min-replicas-to-write 1, or a master that is cut off continues to renew locks"
	}
	return levelOK, "replicas", text
}
