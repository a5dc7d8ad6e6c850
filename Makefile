# The one door: everything a contributor or a curious DBA does starts here. `make` alone lists it.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

CARGO       ?= cargo
# For example --locked, as .ci/run passes it.
CARGO_FLAGS ?=
PREFIX      ?= /usr/local
DESTDIR     ?=
# Options for the lab, for example: make demo DEMO="--rounds 5", make bench BENCH=--quick, make lab LAB=--quick
DEMO        ?=
BENCH       ?=
LAB         ?=
# How long soak goes on: power cuts of each database on a disk of our own, of the virtual machine, of one of three that
# keep a log in their memory, and of the host of one, by each database in there.
CUT_ROUNDS  ?= 200
VM_ROUNDS   ?= 20
HOST_ROUNDS ?= 20
GUEST_ROUNDS ?= 20
# … and of loads that write many times the pool's size, all together.
ENDURE_MINUTES ?= 30
# … and of readers that verify every block, with a block cache, under writers and kills.
CACHE_MINUTES ?= 30
# … and how often a log kept by other hosts is taken over, with something lost each time.
TAKEOVER_ROUNDS ?= 200
# … and how often a Redis that has a twin, the twin, or all of them are killed.
TWIN_ROUNDS ?= 200
# … and the same of PostgreSQL under pgbench.
PROCESSES_ROUNDS ?= 100
# What `make deb` packs.
DEB_PROFILE ?= release
DEB_VERSION ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-1
# How long random operations go on side by side on the mount and on the bare file system.
STRESS_SECONDS ?= 600
# The databases' own test suites that `make suites` runs, and on which build of Seawall.
SUITES ?= python sqlite postgresql mariadb redis lmdb rocksdb duckdb derby h2 git
SEAWALL ?= $(RELEASE)/seawall
# How much a guest tries, and on which disk.
CASES ?= quick
CONTROL ?=
# What is set up in a guest.
BELOW ?= all
# How long each target is fuzzed.
FUZZ_SECONDS ?= 60

TARGET  := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(TARGET)/release

# What the tests and the demo run, from the distribution: the databases, the unsafe upper bound, file
# systems of our own, a C compiler.
PACKAGES := build-essential e2fsprogs eatmydata etcd-client etcd-server fuse3 iproute2 libsqlite3-dev liburing-dev mount musl-tools pkg-config postgresql postgresql-contrib qemu-utils \
	liblmdb-dev librocksdb-dev lmdb-utils mariadb-server redis-server rocksdb-tools sqlite3 sysbench xfsprogs
# What the machine test runs besides: an emulator. (The guest's own packages are only unpacked.)
SOAK_PACKAGES := qemu-system-x86
# What a guest tries its disk with. (It is the host's: see seawall-vmtest.)
CASES_PACKAGES := fio stress-ng
# What a guest is set up with, beside what it has: software RAID, btrfs, memory nodes.
BELOW_PACKAGES := btrfs-progs fdisk mdadm numactl
# What the package is tried with: a system of its own, and what boots it.
TRIAL_PACKAGES := debootstrap systemd-container
# What the databases' own suites are made of, beside their sources.
SUITES_PACKAGES := default-jdk-headless dpkg-dev junit derby-tools libderby-java libderbyclient-java libh2-java \
	libpython3.11-testsuite mariadb-backup mariadb-test postgresql-server-dev-15 python3 python3-gdbm python3-pip tcl tcl-dev zlib1g-dev
# What opens reports as a reader does. Without it that test is skipped by name.
BROWSER_PACKAGES := chromium

# What `make aarch64` needs.
ARM_PACKAGES := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static

# Coverage for libFuzzer, by the pass that a stable compiler has too; and checks that release builds leave out.
FUZZ_FLAGS := -Cpasses=sancov-module -Cdebug-assertions -Coverflow-checks $(addprefix \
	-Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)

# What runs inside a database is no_std. Cargo unifies features over the packages of one command, and the
# programs need `std` in the crates they share with the preload: so the preload has a command of its own.
PROGRAMS := --package seawall-cli --package seawall-lab --package seawall-load
PRELOAD  := --package seawall-preload
# What `make test` tests.
TESTED   := --workspace --exclude seawall-preload

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Programs and preload library, in target/release
	$(CARGO) build --release $(CARGO_FLAGS) $(PROGRAMS)
	$(CARGO) build --release $(CARGO_FLAGS) $(PRELOAD)

.PHONY: test
# Tests wait for disks and clocks much of the time.
test: export RUST_TEST_THREADS ?= $(shell expr $$(nproc) '*' 3 / 2)
test: deps ## All tests, with what they need from the distribution: PostgreSQL, SQLite, a C compiler (half an hour)
	$(CARGO) build $(CARGO_FLAGS) $(PRELOAD)
	# All programs are built before the first test runs.
	$(CARGO) test $(CARGO_FLAGS) --no-fail-fast $(TESTED)

.PHONY: lint
lint: ## Format, clippy and rustdoc without a warning; cargo-deny where it is installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(CARGO_FLAGS) --workspace --exclude seawall-preload --all-targets -- -D warnings
	$(CARGO) clippy $(CARGO_FLAGS) $(PRELOAD) -- -D warnings
	# The docs are for contributors, private items included: links to them are wanted.
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc $(CARGO_FLAGS) --no-deps --document-private-items \
		--workspace --exclude seawall-preload
	if $(CARGO) deny --version >/dev/null 2>&1; then $(MAKE) deny; else
		echo "cargo-deny is not installed: licences and advisories were not checked (make deny says how)"
	fi

.PHONY: deny
deny: ## Licences, advisories and sources of the dependencies (cargo install --locked cargo-deny)
	if ! $(CARGO) deny --version >/dev/null 2>&1; then
		echo "cargo-deny is missing: cargo install --locked cargo-deny"; exit 1
	fi
	$(CARGO) deny check

# The emulator of processes (7.2) knows no `dc cvap` and no openat2: a CPU without the one, tests without the other.
.PHONY: aarch64
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER = aarch64-linux-gnu-gcc
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER = qemu-aarch64-static -cpu cortex-a72 -L /usr/aarch64-linux-gnu
aarch64: ## What runs inside a database, for 64-bit Arm: lint, build, and the tests an emulator can run
	$(MAKE) deps PACKAGES="$(ARM_PACKAGES)"
	rustup target add aarch64-unknown-linux-gnu
	$(CARGO) clippy $(CARGO_FLAGS) --target aarch64-unknown-linux-gnu $(PRELOAD) -- -D warnings
	$(CARGO) build $(CARGO_FLAGS) --target aarch64-unknown-linux-gnu $(PRELOAD)
	$(CARGO) test $(CARGO_FLAGS) --target aarch64-unknown-linux-gnu --lib -p seawall-media -p seawall-stats -p seawall-wire -p seawall-core

.PHONY: docs
docs: ## Regenerate the generated parts of docs/
	$(CARGO) run --quiet $(CARGO_FLAGS) --package xtask -- docs
	$(CARGO) run --quiet $(CARGO_FLAGS) --package seawall-lab -- docs docs/measure/LAB.md

.PHONY: demo
demo: deps build ## PostgreSQL and SQLite on three sides, then kill -9 and the proof (a few minutes)
	$(RELEASE)/seawall-lab demo $(DEMO)

.PHONY: below
below: ## Persistent memory, CXL memory, disks and memory nodes are set up in a virtual machine (BELOW=all, provision, cxl, cxl-volatile, layout, tier, tier-damon)
	$(MAKE) deps PACKAGES="$(SOAK_PACKAGES) $(BELOW_PACKAGES)"
	$(CARGO) build $(CARGO_FLAGS) --package seawall-cli --package seawall-load --package seawall-vmtest
	$(CARGO) build $(CARGO_FLAGS) $(PRELOAD)
	$(TARGET)/debug/seawall-vmtest --below $(BELOW)

.PHONY: soak
soak: deps build ## What the tests do in small, for as long as you like (CUT_ROUNDS=200 VM_ROUNDS=20 HOST_ROUNDS=20 GUEST_ROUNDS=20 ENDURE_MINUTES=30 CACHE_MINUTES=30 FUZZ_SECONDS=60)
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --json out/campaign.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --block --points 100000 --json out/campaign-block.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --mirror --points 20000 --json out/campaign-mirror.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --spill --points 200000 --json out/campaign-spill.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --disk --points 500000 --json out/campaign-disk.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --disk --block --points 100000 --json out/campaign-disk-block.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --names --json out/campaign-names.json
	$(CARGO) run --profile sim $(CARGO_FLAGS) --package seawall-sim --bin campaign -- --names --block --points 100000 --json out/campaign-names-block.json
	SEAWALL_CACHE_SEEDS=50000 $(CARGO) test --profile sim $(CARGO_FLAGS) --package seawall-cache --test interleavings
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --only postgres,sqlite,mariadb,redis,rocksdb,lmdb,files --rounds $(CUT_ROUNDS)
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --only files --file-system xfs --rounds $(CUT_ROUNDS) --out out/xfs
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --only rocksdb,sqlite,lmdb --as-any --sides seawall,logless --rounds $(CUT_ROUNDS) --out out/any
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --only rocksdb,sqlite,redis --as-any --file-system xfs --sides seawall,logless --rounds $(CUT_ROUNDS) --out out/any-xfs
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --medium disk --only postgres,sqlite --sides seawall,atomic --rounds $(CUT_ROUNDS)
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --front mount --only postgres,sqlite,mariadb,rocksdb,etcd,files --rounds $(CUT_ROUNDS)
	$(CARGO) build $(CARGO_FLAGS) --package seawall-cli
	$(CARGO) build $(CARGO_FLAGS) $(PRELOAD)
	SEAWALL_SEQUENCES=1 $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli sequences::
	SEAWALL_STRESS_SECONDS=$(STRESS_SECONDS) $(CARGO) test $(CARGO_FLAGS) --package seawall-contract --test contract mount::random_operations
	SEAWALL_DISK_STEPS=5000 SEAWALL_DISK_NONSENSE=5000 $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli -- disk:: disk_killed::
	SEAWALL_TAKEOVER_ROUNDS=$(TAKEOVER_ROUNDS) $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli takeover::whoever_is_lost -- --nocapture
	SEAWALL_TWIN_ROUNDS=$(TWIN_ROUNDS) $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli twin:: -- --nocapture
	SEAWALL_PROCESSES_ROUNDS=$(PROCESSES_ROUNDS) $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli processes:: -- --nocapture
	SEAWALL_CACHE_SOAK_MINUTES=$(CACHE_MINUTES) $(CARGO) test $(CARGO_FLAGS) --package seawall-cli --test cli cache_soak:: -- --nocapture
	$(RELEASE)/seawall-lab endure --minutes $(ENDURE_MINUTES) --json out/endure.json
	$(MAKE) deps PACKAGES="$(BROWSER_PACKAGES)"
	$(CARGO) test $(CARGO_FLAGS) --package seawall-awr --test browser
	$(MAKE) deps PACKAGES="$(SOAK_PACKAGES)"
	$(CARGO) build --release $(CARGO_FLAGS) --package seawall-vmtest
	$(RELEASE)/seawall-vmtest --rounds $(VM_ROUNDS)
	$(RELEASE)/seawall-vmtest --kernel-tls
	$(MAKE) cases CASES=all
	$(MAKE) cases CASES=all CONTROL=--control
	$(RELEASE)/seawall-vmtest --log keepers --rounds $(HOST_ROUNDS)
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --front disk --only postgres,sqlite --rounds $(GUEST_ROUNDS)
	$(CARGO) run --release $(CARGO_FLAGS) --package seawall-powercut -- run --front disk --medium disk --only postgres,sqlite --sides seawall --rounds $(GUEST_ROUNDS)
	$(CARGO) run $(CARGO_FLAGS) --package xtask -- mutate-fences
	$(CARGO) run $(CARGO_FLAGS) --package xtask -- results
	$(MAKE) suites SUITES="postgresql sqlite"
	$(MAKE) fuzz

.PHONY: cases
cases: deps build ## The common cases of blktests and xfstests, in a guest on a disk (CASES=all; CONTROL=--control: on QEMU's own disk)
	$(MAKE) deps PACKAGES="$(SOAK_PACKAGES) $(CASES_PACKAGES)"
	$(CARGO) build --release $(CARGO_FLAGS) --package seawall-contract
	$(CARGO) build --release $(CARGO_FLAGS) --package seawall-vmtest
	$(RELEASE)/seawall-vmtest --cases $(CASES) $(CONTROL)

.PHONY: suites
suites: ## The databases' own test suites, bare and under Seawall, and what differs (SUITES="python sqlite"; SEAWALL=PROGRAM)
	$(MAKE) deps PACKAGES="$(PACKAGES) $(SUITES_PACKAGES)"
	if [[ $(SEAWALL) == $(RELEASE)/seawall ]]; then $(MAKE) build; fi
	proof/suites/run.sh $(SEAWALL) out/suites $(SUITES)

.PHONY: fuzz
fuzz: fuzz-build ## Hostile pools, guests, messages, settings, keepers, writers at once, by coverage (FUZZ_SECONDS=60); what it finds is in out/fuzz
	host=$$(rustc -vV | sed -n 's/^host: //p')
	proof/fuzz/run.sh $(TARGET)/$$host/release/seawall-fuzz $(FUZZ_SECONDS) out/fuzz

.PHONY: fuzz-build
fuzz-build:
	host=$$(rustc -vV | sed -n 's/^host: //p')
	# With --target build scripts and macros are left without coverage.
	RUSTFLAGS="$(FUZZ_FLAGS)" CARGO_PROFILE_RELEASE_LTO=off $(CARGO) build --release $(CARGO_FLAGS) \
		--target $$host --package seawall-fuzz --features libfuzzer

.PHONY: bench
bench: deps build ## Latencies and rates as ratios against named baselines, to out/bench.json
	$(RELEASE)/seawall-lab bench $(BENCH)

# Goes on where an earlier one was cut off; rm -r out/lab begins anew. What was measured is reported in any case.
.PHONY: lab
lab: deps build ## The lab's cases for PostgreSQL (some 20 minutes): docs/results/lab-notebook.md, out/lab/postgresql.html
	status=0
	$(RELEASE)/seawall-lab run --all --resume $(LAB) || status=$$?
	$(RELEASE)/seawall-lab report --notebook docs/results/lab-notebook.md --html out/lab/postgresql.html
	exit $$status

.PHONY: deps
deps: ## Debian packages that tests and demo need (as root, or through sudo)
	missing=()
	if ! command -v apt-get >/dev/null; then
		echo "not a Debian: please install what these are called here: $(PACKAGES)"; exit 0
	fi
	for package in $(PACKAGES); do
		[[ $$(dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null || true) == installed ]] \
			|| missing+=($$package)
	done
	if (( $${#missing[@]} == 0 )); then exit 0; fi
	echo "installing $${missing[*]}"
	as_root=()
	if (( EUID != 0 )); then
		command -v sudo >/dev/null || { echo "run this as root: apt-get install $${missing[*]}"; exit 1; }
		as_root=(sudo)
	fi
	apt() {
		"$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$$@"
	}
	# A machine that has just started may still be updating itself, or have no network yet.
	for attempt in 1 2 3 4 5 6; do
		if apt update && apt install --yes --no-install-recommends "$${missing[@]}"; then exit 0; fi
		echo "apt-get failed (attempt $$attempt)"; sleep 10
	done
	exit 1

.PHONY: install
install: build ## seawall, its preload library, the lab, units, manual pages, below PREFIX (/usr/local)
	packaging/install.sh $(RELEASE) $(PREFIX) "$(DESTDIR)"

.PHONY: deb
deb: ## A Debian package of all that, in out/ (DEB_PROFILE=debug: of an unoptimised build)
	if [[ $(DEB_PROFILE) == release ]]; then $(MAKE) build; else
		$(CARGO) build $(CARGO_FLAGS) $(PROGRAMS)
		$(CARGO) build $(CARGO_FLAGS) $(PRELOAD)
	fi
	packaging/debian/build.sh $(TARGET)/$(DEB_PROFILE) $(DEB_VERSION) out

.PHONY: trial
trial: deb ## The package as its user has it: a fresh Debian is booted, PostgreSQL attached, killed, reset, detached (root)
	$(MAKE) deps PACKAGES="$(TRIAL_PACKAGES)"
	packaging/trial.sh "$$(ls -t out/seawall_*.deb | head -n 1)"

.PHONY: clean
clean: ## Everything that was built, and results
	$(CARGO) clean
	rm -rf out
