package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
)

// BenchmarkLineGrowth_Bus is the processor time that a message costs each node of a Cluster: the
// one at which it is published, and another that nobody listens at. A release publishes one
// message, and one more where it calls.
func BenchmarkLineGrowth_Bus(b *testing.B) {
	const messages = 50_000
	c := testredis.StartCluster(b, 3, 0)
	masters := c.Masters()
	here, there := masters[0].Client(b), masters[1].Client(b)
	message := strings.Repeat("x", 120)
	// publish has so many messages published and returns when the other node has them.
	publish := func(n int) {
		before := received(b, there)
		for range n / 100 {
			pipe := here.Pipeline()
			for range 100 {
				pipe.Publish(ctx, "anteroom:client:web-7-31337-9f3c2a1b00de", message)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
		eventually(b, "messages on the bus", func() bool { return received(b, there) >= before+int64(n) })
	}
	publish(1000)
	for b.Loop() {
		from, to, began := cpuOf(b, here), cpuOf(b, there), time.Now()
		publish(messages)
		took := time.Since(began)
		sender, receiver := cpuOf(b, here)-from, cpuOf(b, there)-to
		idle := cpuOf(b, there)
		time.Sleep(took)
		idle = cpuOf(b, there) - idle
		b.ReportMetric(1e6*(sender-idle)/messages, "here-µs/message")
		b.ReportMetric(1e6*(receiver-idle)/messages, "there-µs/message")
	}
	b.ReportMetric(0, "ns/op")
}

// received is how many messages of others a node has got over the bus.
func received(b *testing.B, rdb *redis.Client) int64 {
	_, rest, _ := strings.Cut(rdb.ClusterInfo(ctx).Val(), "cluster_stats_messages_publish_received:")
	digits, _, _ := strings.Cut(rest, "\r")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// cpuOf is the processor time of a server in seconds.
func cpuOf(b *testing.B, rdb *redis.Client) (seconds float64) {
	text := rdb.Info(ctx, "cpu").Val()
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, rest, _ := strings.Cut(text, name)
		digits, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += n
	}
	return seconds
}
