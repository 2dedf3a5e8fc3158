package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// probe asks a redis-server, on a connection of its own, for what it did for others. It is for one goroutine.
type probe struct {
	rdb  *redis.Client
	own  float64 // bytes of the probe's answers that the server has counted
	mine int     // of its questions
}

// newProbe connects to the server at addr.
func newProbe(ctx context.Context, addr string) (*probe, error) {
	p := &probe{rdb: redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, Protocol: 2, DisableIdentity: true})}
	return p, p.rdb.Ping(ctx).Err() // connected from here on
}

func (p *probe) close() error { return p.rdb.Close() }

// reading is what a server had done by one moment, without the probe's own part.
type reading struct {
	bytes   float64            // read and written
	calls   map[string]float64 // commands by name, in lower case, subcommands as "client|setinfo"
	cpu     float64            // seconds
	memory  float64
	clients float64
	at      time.Time
}

// read asks the server once.
func (p *probe) read(ctx context.Context) (reading, error) {
	info, err := p.rdb.Info(ctx, "all").Result()
	if err != nil {
		return reading{}, err
	}
	p.mine++
	r := reading{calls: map[string]float64{}, at: time.Now()}
	value := map[string]string{}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if verb, is := strings.CutPrefix(name, "cmdstat_"); is {
			n, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
			r.calls[verb], _ = strconv.ParseFloat(n, 64)
		}
		value[name] = rest
	}
	number := func(name string) float64 {
		v, failed := strconv.ParseFloat(value[name], 64)
		if failed != nil {
			err = fmt.Errorf("INFO has no %s", name)
		}
		return v
	}
	const question = len("*2\r\n$4\r\ninfo\r\n$3\r\nall\r\n")
	r.bytes = number("total_net_input_bytes") + number("total_net_output_bytes") - p.own - float64(p.mine*question)
	p.own += float64(len(info) + len("$\r\n\r\n") + len(strconv.Itoa(len(info)))) // counted by the next answer
	r.cpu = number("used_cpu_user") + number("used_cpu_sys")
	r.memory, r.clients = number("used_memory"), number("connected_clients")-1
	return r, err
}

// sent returns how many of these commands were sent since begin.
func (r reading) sent(begin reading, verbs []string) (n float64) {
	for _, verb := range verbs {
		n += r.calls[verb] - begin.calls[verb]
	}
	return n
}

// perOp returns what the server did since begin, per acquisition.
func (r reading) perOp(begin reading, ops uint64, sends []string) figures {
	f := figures{connections: r.clients}
	if n := float64(ops); n > 0 {
		f.add(figures{
			commandsPerOp: r.sent(begin, sends) / n, bytesPerOp: (r.bytes - begin.bytes) / n, redisCPU: (r.cpu - begin.cpu) * 1e6 / n,
		})
	}
	return f
}
