# The two commands of a newcomer:
#   make test    what to run before each commit, with the race detector: two to four minutes
#   make demo    the library at work, with faults
# And those for who changes the library:
#   make lab     everything else: the long tests, the laboratories, the peers' own tests, the examples, the linter
#   make stress  both, three times, beside eight busy loops
#   make mutants removes each mechanism once and demands that a named test fails
#   make fuzz    runs each fuzz test for FUZZ_FOR (30s)
#   make systems compiles and vets everything for five systems, and builds library and tool for more
#
# make chaos tries 16 processes and 50 locks under all kinds of faults (docs/testing.md).
# make partitions cuts servers and clients on hosts of their own off from each other (root only).
# make matrix runs the tests that start a Redis on many versions of Redis and Valkey, which it fetches
# (docs/reference/servers.md).
# make model checks the protocol with TLC (docs/model), in an hour of one core.
# make interop lets Java programs (Lettuce, Redisson) share locks with this library; it needs
# Java 17 and Maven.
# make bench   measures Anteroom beside other packages, in half an hour. It writes
#              lab/bench/results.json, and from it the charts and tables of docs/performance.md and docs/reference/measurements.md.
#
# The tools run by exact version through `go run`, so that they never enter the
# module graph of a program that uses the library.
#
# All but demo, bench and examples compile with -race, also what only looks at code: so each package is compiled once.
GO         ?= go
GOFUMPT     = $(GO) run mvdan.cc/gofumpt@v0.12.0
STATICCHECK = STATICCHECK_CACHE=$$($(GO) env GOCACHE)/staticcheck $(GO) run -exec "env 'GOFLAGS=$$GOFLAGS $(1)'" honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
DEMO       ?= --for 20s
# BENCH="-only alone" make bench
BENCH      ?=
# How long make fuzz runs each fuzz test.
FUZZ_FOR   ?= 30s
SKIPPED    := $(shell mktemp -u)

.PHONY: test lab stress matrix systems interop lint vet demo bench mutants model cover redis prometheus iproute chromium postgresql mariadb faults chaos partitions fuzz count

# PARTS makes a recipe of parts. Each is announced, each runs even if others failed,
# and the end says how long all took and what was skipped.
PARTS = export ANTEROOM_SKIPPED=$(SKIPPED); rm -f $(SKIPPED); status=0; all=$$(date +%s); \
	part() { echo "== $$1"; shift; begin=$$(date +%s); "$$@" || status=1; echo "   $$(($$(date +%s) - begin)) s"; }; \
	end() { \
	  if [ -s $(SKIPPED) ]; then echo "$$(wc -l < $(SKIPPED)) tests were skipped, because there is no redis-server, prometheus, promtool, PostgreSQL or MariaDB (or, for one test, no chromium; for partitions, no root or no ip; for the peers' tests, port 6379 taken or a module not fetched)"; fi; \
	  rm -f $(SKIPPED); echo "== $$([ $$status = 0 ] && echo passed || echo FAILED), after $$(($$(date +%s) - all)) s"; exit $$status; }

# make test leaves out the tests whose names end in _Lab, make lab runs those. They take more than about two seconds,
# or need several servers, Prometheus or a browser. Many tests wait for real time, so more of them run together than
# there are processors; sync takes longest, so it begins first. The time limits are for a hang: beside eight busy loops
# its long tests take half an hour.
TESTS  = -race -p 4 -parallel 8 -timeout 30m
# The packages that have tests: of the others go test prints a line each.
TESTED = $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
# Modules of their own, so that the library needs neither OpenTelemetry nor a scheduler.
MODULES = metrics/otel integrations/gocron integrations/certmagic
test: redis
	@$(PARTS); \
	part "1/2 tests" $(GO) test $(TESTS) -skip '_Lab$$' ./sync $(TESTED); \
	modules() { for m in $(MODULES); do $(GO) -C $$m test $(TESTS) -skip '_Lab$$' ./... || return; done; }; \
	part "2/2 tests of the other modules" modules; \
	end

lab: lint redis prometheus iproute chromium postgresql mariadb
	@$(PARTS); \
	part "1/5 long tests" $(GO) test $(TESTS) -timeout 90m -run '_Lab$$' ./sync $(TESTED); \
	integrations() { for m in gocron certmagic; do $(GO) -C integrations/$$m test $(TESTS) -run '_Lab$$' ./... || return; done; }; \
	part "2/5 integrations" integrations; \
	part "3/5 laboratories" $(GO) -C lab test -race -p 4 -count 1 -timeout 90m ./...; \
	part "4/5 examples" $(GO) -C examples test -timeout 90m .; \
	part "5/5 other servers" $(GO) -C lab run -race ./servers -short -j 4; \
	end

# Runs both three times beside eight busy loops, which end with it: no verdict may depend on the load. A failure does
# not end it, so one run shows all of them.
# STRESS="test" make stress
STRESS ?= test lab
stress:
	@for i in 1 2 3 4 5 6 7 8; do ( while kill -0 $$$$ 2>/dev/null; do :; done ) & done; \
	status=0; for i in 1 2 3; do for tier in $(STRESS); do \
	  echo "== $$tier, round $$i"; GOFLAGS="$$GOFLAGS -count=1" $(MAKE) --no-print-directory $$tier || status=1; \
	done; done; exit $$status

# MATRIX="valkey redis-7.2" make matrix
MATRIX ?=
matrix:
	@$(GO) -C lab run ./servers -j 3 -write ../docs/reference/servers.md $(MATRIX)

lint: vet
	@out=$$($(GOFUMPT) -l .); if [ -n "$$out" ]; then echo "not formatted by gofumpt:"; echo "$$out"; exit 1; fi
	$(call STATICCHECK,-race)
	cd lab && $(call STATICCHECK,-race)
	@for m in $(MODULES); do (set -x; cd $$m && $(call STATICCHECK,-race)) || exit; done
	cd examples && $(call STATICCHECK)

vet:
	$(GO) vet -race ./...
	$(GO) -C lab vet -race ./...
	@for m in $(MODULES); do (set -x; $(GO) -C $$m vet -race ./...) || exit; done
	$(GO) -C examples vet ./...

# Compiles for systems on which nothing was run. SYSTEMS are vetted, with all tests; for those and
# BUILT, library and tool are built. lab is for Unix, and is not among them.
SYSTEMS = darwin/arm64 windows/amd64 freebsd/amd64 linux/arm64 linux/386
BUILT   = windows/arm64 openbsd/amd64
LIBRARY = ./sync/... ./queue ./renewal ./watchdog ./lettuce_compat ./leader ./fence ./metrics/... ./cmd/anteroom
systems:
	@passed=0; failed=0; \
	on() { system=$$1; shift; echo "== $$system: $$*"; \
	  if GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0 "$$@"; then passed=$$((passed + 1)); else failed=$$((failed + 1)); fi; }; \
	for s in $(SYSTEMS); do \
	  on $$s $(GO) vet ./...; \
	  for m in $(MODULES); do on $$s $(GO) -C $$m vet ./...; done; \
	  on $$s $(GO) -C examples vet ./...; \
	done; \
	for s in $(SYSTEMS) $(BUILT); do on $$s $(GO) build $(LIBRARY); done; \
	echo "$$passed passed, $$failed failed"; [ $$failed = 0 ]

# Plays the fault matrix, and fails where docs/reference/fault-matrix.md says something else.
faults: redis
	$(GO) -C lab test -race -count 1 -v -run TestMatrix ./faults

demo:
	$(GO) run ./cmd/demo $(DEMO)

# CHAOS_FOR=30m CHAOS_SEED=7 make chaos
chaos: redis
	$(GO) -C lab run ./chaos

# All partitions and failovers, with their figures. make lab runs most of them.
partitions: redis iproute
	@$(PARTS); \
	part "partitions" env ANTEROOM_PARTITIONS=all $(GO) -C lab test -race -count 1 -timeout 10m -v ./partition; \
	end

# Builds the Java programs of lab/interop, a Lettuce service and two versions of Redisson, and lets
# each and this library share locks.
REDISSON_4 = 4.7.0
REDISSON_3 = 3.52.0
interop: redis
	@if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then \
	  echo "there is no Java or no Maven"; echo "0 passed, 0 failed, 1 skipped"; exit 0; fi; \
	mvn -q -B -f lab/interop/lettuce/pom.xml package && \
	mvn -q -B -f lab/interop/redisson/pom.xml -Dredisson.version=$(REDISSON_4) package && \
	mvn -q -B -f lab/interop/redisson/pom.xml -Dredisson.version=$(REDISSON_3) package && \
	ANTEROOM_LETTUCE=$$PWD/lab/interop/lettuce/target/lettuce-peer.jar \
	ANTEROOM_REDISSON_4=$$PWD/lab/interop/redisson/target/redisson-peer-$(REDISSON_4).jar \
	ANTEROOM_REDISSON_3=$$PWD/lab/interop/redisson/target/redisson-peer-$(REDISSON_3).jar \
	$(GO) -C lab test -race -count 1 -timeout 20m -v ./interop | awk \
	  '/^ *--- PASS/ {passed++} /^ *--- FAIL/ {failed++} /^(FAIL|panic:|exit status)/ {broken = 1} {print} \
	   END {printf "%d passed, %d failed%s\n", passed, failed, broken && !failed ? ", and it ended before its end" : ""; exit failed > 0 || broken || passed == 0}'

bench: redis
	cd lab/bench && $(GO) run . $(BENCH)

# MUTANTS="-only raise" runs those whose name contains "raise".
mutants: redis
	$(GO) -C lab run ./mutants $(MUTANTS)

# MODEL="turn VoidGt" runs these configurations and mutants of docs/model only, MODEL=long larger ones.
model:
	@docs/model/check.sh $(MODEL)

# How many statements the packages' own tests run.
cover: redis
	$(GO) test -cover ./queue ./renewal ./watchdog ./lettuce_compat ./sync/... ./metrics

# How large everything is: lines without tests, names that sync exports, words of docs.
COUNTED = sync sync/observe sync/internal/conversation sync/internal/lock sync/internal/report lettuce_compat queue renewal watchdog
count:
	@for p in $(COUNTED); do echo "$$(cat $$(ls $$p/*.go | grep -v _test.go) | wc -l) lines of Go in $$p"; done; \
	echo "$$(cat lettuce_compat/lua/*.lua | wc -l) lines of Lua"; \
	echo "$$(find lab -name '*.go' | xargs cat | wc -l) lines of Go in lab, $$(find lab -name '*.go' ! -name '*_test.go' | xargs cat | wc -l) without tests"; \
	echo "$$($(GO) doc -short ./sync | wc -l) lines in go doc -short ./sync"; \
	echo "$$(cat README.md docs/*.md docs/*/*.md | wc -w) words of docs"

# What it finds lands in the package's testdata/fuzz and fails make test from then on.
fuzz: redis
	$(GO) test -run '^$$' -fuzz '^FuzzMessage$$' -fuzztime $(FUZZ_FOR) -parallel 1 ./lettuce_compat
	$(GO) test -run '^$$' -fuzz '^FuzzReply$$' -fuzztime $(FUZZ_FOR) -parallel 1 ./lettuce_compat
	$(GO) test -run '^$$' -fuzz '^FuzzKey$$' -fuzztime $(FUZZ_FOR) -parallel 1 ./lettuce_compat
	$(GO) test -run '^$$' -fuzz '^FuzzConfig$$' -fuzztime $(FUZZ_FOR) -parallel 1 ./sync

# The tests start and stop their own redis-servers on free loopback ports. Without
# the program: root installs it, CI fails, everybody else gets instructions, and the
# tests that need it are skipped and counted.
redis:
	@command -v redis-server >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  if command -v apt-get >/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends redis-server; \
	  elif command -v dnf >/dev/null; then dnf install -y redis || dnf install -y valkey-compat-redis; \
	  elif command -v apk >/dev/null; then apk add redis; \
	  elif command -v pacman >/dev/null; then pacman -S --noconfirm redis; \
	  elif command -v brew >/dev/null; then brew install redis; fi; \
	fi; \
	command -v redis-server >/dev/null && exit 0; \
	if [ "$$CI" = true ]; then echo "CI needs a redis-server in PATH" >&2; exit 1; fi; \
	if command -v brew >/dev/null; then echo "No redis-server; to run all tests: brew install redis"; \
	else echo "No redis-server; to run all tests: sudo apt-get install redis-server (or your system's package of that name)"; fi

# The dashboards and rules are tried with a real Prometheus and its promtool, which the
# tests start by themselves on free loopback ports. Without them: as for redis above.
prometheus:
	@have() { command -v prometheus >/dev/null && command -v promtool >/dev/null; }; \
	have && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  if command -v apt-get >/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends prometheus; \
	  elif command -v dnf >/dev/null; then dnf install -y prometheus || dnf install -y golang-github-prometheus; \
	  elif command -v apk >/dev/null; then apk add prometheus; \
	  elif command -v pacman >/dev/null; then pacman -S --noconfirm prometheus; \
	  elif command -v brew >/dev/null; then brew install prometheus; fi; \
	fi; \
	have && exit 0; \
	if [ "$$CI" = true ]; then echo "CI needs prometheus and promtool in PATH" >&2; exit 1; fi; \
	if command -v brew >/dev/null; then echo "No prometheus; to run all tests: brew install prometheus"; \
	else echo "No prometheus; to run all tests: sudo apt-get install prometheus (or your system's package of that name)"; fi

# Hosts of the partitions are network namespaces: they need root and ip. Without them these tests are skipped and counted.
iproute:
	@if [ "$$(id -u)" = 0 ] && ! command -v ip >/dev/null && command -v apt-get >/dev/null; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends iproute2 || true; fi

# The debug page is tried in a browser. Without one these tests are skipped and counted.
chromium:
	@if [ "$$(id -u)" = 0 ] && ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium || true; fi

# Package fence is tried on real databases, which the tests start by themselves on free loopback ports, as the accounts
# that the packages make. Without them: as for redis above. Some systems keep initdb out of PATH.
postgresql:
	@have() { command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }; \
	have && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  if command -v apt-get >/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql; \
	  elif command -v dnf >/dev/null; then dnf install -y postgresql-server; \
	  elif command -v apk >/dev/null; then apk add postgresql; \
	  elif command -v pacman >/dev/null; then pacman -S --noconfirm postgresql; fi; \
	fi; \
	have && exit 0; \
	if [ "$$CI" = true ]; then echo "CI needs PostgreSQL's initdb" >&2; exit 1; fi; \
	echo "No PostgreSQL; to run all tests: sudo apt-get install postgresql (or your system's package of that name)"

mariadb:
	@have() { command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ]; }; \
	have && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  if command -v apt-get >/dev/null; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends mariadb-server; \
	  elif command -v dnf >/dev/null; then dnf install -y mariadb-server; \
	  elif command -v apk >/dev/null; then apk add mariadb; \
	  elif command -v pacman >/dev/null; then pacman -S --noconfirm mariadb; fi; \
	fi; \
	have && exit 0; \
	if [ "$$CI" = true ]; then echo "CI needs mariadbd" >&2; exit 1; fi; \
	echo "No MariaDB; to run all tests: sudo apt-get install mariadb-server (or your system's package of that name)"
