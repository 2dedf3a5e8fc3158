package main

// dialectMutants are about sharing locks with Redisson, and about strangers' turns.
var dialectMutants = []mutant{
	{
		name: "dialect-message", file: "lettuce_compat/dialect.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a release says 0",
		breaks:    "Redisson cannot decode the message, and its waiters sleep on",
		old:       "return \"0\"", fresh: "return releaseMessage(key, holder, at)",
		tests: []string{"TestDialect_RedissonSharesALock"},
	},
	{
		name: "dialect-braces", file: "lettuce_compat/dialect.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a name with a brace becomes no hash tag",
		breaks:    "both listen to different channels",
		old:       "if strings.Contains(key, \"{\") {", fresh: "if false {",
		tests: []string{"TestDialect_Names"},
	},
	{
		name: "dialect-braces-in-scripts", file: "lettuce_compat/lua/redisson.lua", pkg: "lettuce_compat",
		mechanism: "Redisson: the scripts name the channel as the client does",
		breaks:    "nobody hears a release of a name with a hash tag",
		old:       "if string.find(KEYS[1], '{', 1, true) then", fresh: "if false then",
		tests: []string{"TestDialect_ANameWithATag"},
	},
	{
		name: "dialect-own-uuids", file: "lettuce_compat/dialect.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a client id of ours is told from one of Java's",
		breaks:    "a Java thread with a large id is taken for a client that calls the next one",
		old:       "return d == DesignDocument || len(client) == 36 && client[14] == '8'", fresh: "return true",
		tests: []string{"TestDialect_Names"},
	},
	{
		name: "dialect-names-for-clusters", file: "lettuce_compat/dialect.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a name that it would look for in another slot is refused on a Cluster",
		breaks:    "each release is refused by Redis, or heard by nobody",
		old:       "if c.cluster && !c.opt.Dialect.fits(key) {", fresh: "if false {",
		tests: []string{"TestSharded_NamesThatRedissonCannotUse"},
	},
	{
		name: "dialect-sharded", file: "lettuce_compat/subscriptions.go", pkg: "lettuce_compat",
		mechanism: "Redisson: on a Cluster releases go through the channels of shards",
		breaks:    "Redisson's waiters sleep until the lease ends",
		old:       "return c.opt.Dialect == Redisson && c.cluster &&", fresh: "return c.opt.Dialect == Redisson && c.cluster && false &&",
		tests: []string{"TestSharded"},
	},
	{
		name: "dialect-subscriptions-follow", file: "lettuce_compat/subscriptions.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a subscription follows its slot to the master that owns it",
		breaks:    "after a failover releases are not heard",
		old:       "if home != from.addr && ch.sub == from", fresh: "if home == mainHome && ch.sub == from",
		tests: []string{"TestSharded_FollowsItsKey"},
	},
	{
		name: "dialect-silent-shard", file: "lettuce_compat/subscriber.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a connection to a shard that is silent is given up",
		breaks:    "behind a link that is dead releases are not heard",
		old:       "		return ErrNotDelivered\n	}\n	return ps.Ping", fresh: "	}\n	return ps.Ping",
		tests: []string{"TestSharded_ASilentConnectionIsGivenUp"},
	},
	{
		name: "dialect-a-watch-that-goes", file: "lettuce_compat/subscriber.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a channel that is forgotten while its connection is made is not asked for",
		breaks:    "the connection waits for an answer about it, and is made anew every two seconds",
		old:       "s.channels[first.name] != first {", fresh: "false {",
		tests: []string{"TestSharded_AWatchThatIsClosedAtOnce"},
	},
	{
		name: "dialect-old-cluster-listens", file: "lettuce_compat/subscriber_read.go", pkg: "lettuce_compat",
		mechanism: "Redisson: a Cluster without channels of shards is listened to through ordinary ones",
		breaks:    "below Redis 7 releases are not heard",
		old:       "s.c.unsharded.Store(true)", fresh: "_ = s",
		tests: []string{"TestSharded_AnOldCluster"},
	},
}
