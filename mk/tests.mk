# Tests mirror src/: tests/unit/MODULE/test_SUBJECT.c is one cmocka program, linked with every archive.
ALL_ARCHIVES := $(call archives,$(MODULES))
ALL_LIBS := $(LIBS_NGHTTP2) $(LIBS_NFT) $(LIBS_YAML) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_JANSSON) $(LIBS_ZLIB) \
	$(LIBS_BROTLI) $(LIBS_ZSTD) $(LIBS_HIREDIS) $(LIBS_CURL) $(call pc,libbrotlienc)

# Test code is not optimized like the code it tests, and is linked by the quicker linker if there is one. The warnings are those of
# src/, but for what tests do on purpose: constants made by SLICE() and formats with numbers (GNU), structs of which only
# the first fields matter, bytes beside text (cmocka 1.1.8 takes a const char *), and lists of long strings in pieces.
TEST_WARNINGS = $(filter-out -Wpedantic,$(WARNINGS)) -Wno-missing-field-initializers -Wno-pointer-sign \
	$(if $(filter clang,$(COMPILER)),-Wno-string-concatenation)
TEST_CFLAGS = $(CFLAGS) -Og -g1 $(TEST_WARNINGS)
# A library that a test does not use may do things before main(): Ubuntu's libcurl brings libssh, which allocates by OpenSSL.
TEST_LDFLAGS = $(LDFLAGS) $(TEST_LINKER) -Wl,--as-needed
TEST_LINKER := $(shell $(CC) -fuse-ld=gold -Wl,--version >/dev/null 2>&1 && echo -fuse-ld=gold)

UNIT_SRC := $(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/unit/%)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

# A test that includes tests/lib/no_memory.h chooses which allocation of the code under test fails.
NO_MEMORY := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
# A test that includes tests/lib/sleeping_host.h chooses when the machine sleeps, and for how long.
SLEEPING_HOST := -Wl,--wrap=clock_gettime,--wrap=timerfd_create,--wrap=timerfd_settime
# A test with a line "The linker wraps: NAME..." replaces those functions by its own.
WRAPPED = $(addprefix -Wl$(comma)--wrap=,$(shell sed -n 's|^/\* The linker wraps: \(.*\) \*/$$|\1|p' $<))
comma := ,

$(BUILD)/tests/unit/%: tests/unit/%.c $(ALL_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Isrc -Itests/lib $(TEST_CFLAGS) -MMD -MP $(TEST_LDFLAGS) $(if $(findstring "no_memory.h",$(file <$<)),$(NO_MEMORY)) $(if $(findstring "sleeping_host.h",$(file <$<)),$(SLEEPING_HOST)) $(WRAPPED) -o $@ $< -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS) $(LIBS_CMOCKA)
-include $(shell find $(BUILD)/tests -name '*.d' 2>/dev/null)

# fence_tool sets a fence up for tests in other languages (tests/integration/fence_leaks.py); fence_cost measures one.
$(BUILD)/tests/lib/fence_%: tests/lib/fence_%.c $(call archives,fence netlink wire base)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(WARNINGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(call archives,fence netlink wire base) $(LIBS_NFT)

# Some units talk to the real programs.
.PHONY: unit unit-build
unit-build: $(PROGRAMS) $(UNIT_BIN)
## make unit            build and run the cmocka unit tests (no root needed)
unit:
	@$(if $(LIBS_CMOCKA),,mk/install-packages build unit)
	@$(MAKE) --no-print-directory unit-run

.PHONY: unit-run
unit-run: unit-build
	@tests/lib/reachable tests/lib/run-units $(UNIT_BIN)

# The real programs of roles, with a turncoat linked in (tests/hostile/hostile.h; test_jail.py).
HOSTILE := $(foreach r,keeper worker recorder fetch gateway,$(BUILD)/tests/hostile/vethguard-$(r))
HOSTILE_OBJ := $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(wildcard tests/hostile/*.c))
$(BUILD)/tests/hostile/%.o: tests/hostile/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(WARNINGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/hostile/vethguard-%: $(OBJ)/%/main.o $(HOSTILE_OBJ) $(ALL_ARCHIVES)
	$(CC) $(LDFLAGS) -Wl,--wrap=ipc_send,--wrap=ipc_send_blocking,--wrap=ipc_send_secret,--wrap=jail_describe -o $@ $< $(HOSTILE_OBJ) -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS)

# Programs that tests in other languages use.
TEST_TOOLS := $(patsubst tests/lib/%.c,$(BUILD)/tests/lib/%,$(wildcard tests/lib/fence_*.c)) $(HOSTILE) $(BIN)/vethguard-connect
.PHONY: test-tools
test-tools: $(TEST_TOOLS)

# Fuzz targets: each is a function over plain bytes. `make fuzz` runs them under libFuzzer (clang); `fuzz-replay` runs
# them over the committed corpora with whichever compiler builds the rest.
FUZZ_NAMES := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
REPLAY_BIN := $(FUZZ_NAMES:%=$(BUILD)/tests/fuzz/replay_%)
FUZZ_SECONDS ?= 60
.PHONY: fuzz fuzz-replay fuzz-replay-build fuzz-build
$(BUILD)/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(ALL_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CFLAGS) $(TEST_LDFLAGS) -o $@ $< tests/fuzz/replay.c -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS)
$(BUILD)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(ALL_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_WARNINGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS)
fuzz-replay-build: $(REPLAY_BIN)
fuzz-replay: $(REPLAY_BIN)
	@n=0; for t in $(FUZZ_NAMES); do $(BUILD)/tests/fuzz/replay_$$t tests/corpus/$$t/* || exit 1; n=$$((n + 1)); done; \
	echo "fuzz corpora: $$n passed, 0 failed"
fuzz-build: $(FUZZ_NAMES:%=$(BUILD)/tests/fuzz/fuzz_%)
## make fuzz            run every fuzz target for FUZZ_SECONDS (60) under libFuzzer, from the committed corpora
fuzz:
	@mk/install-packages build fuzz
	@$(MAKE) --no-print-directory VARIANT=fuzz CC=clang fuzz-build
	@for t in $(FUZZ_NAMES); do mkdir -p build/fuzz/corpus/$$t; echo "== $$t"; \
	build/fuzz/tests/fuzz/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
		-artifact_prefix=build/fuzz/$$t- build/fuzz/corpus/$$t tests/corpus/$$t || exit 1; done

## sudo make check-clients  every client program of docs/clients.md, unchanged, behind vethguard (installs them; minutes)
.PHONY: check-clients
check-clients:
	@mk/install-packages build test clients
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@mk/install-npm
	@tests/integration/run --clients $(if $(filter asan,$(VARIANT)),--asan) $(CLIENTS)

## sudo make check-honest RUNS=1000  programs that do nothing wrong, however they end: no run may warn, find or fail
RUNS ?= 1000
.PHONY: check-honest
check-honest:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@tests/integration/honest --runs=$(RUNS) $(if $(filter asan,$(VARIANT)),--asan)

## sudo make check-reflections  192 ways in which a credential could come back, each cut at every byte
.PHONY: check-reflections
check-reflections:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@VETHGUARD_LONG=1 tests/integration/run $(if $(filter asan,$(VARIANT)),--asan) --once test_reflections

## sudo make check-cores    cores of all programs under load, taken by gcore as well: no value of a credential where it does not belong
.PHONY: check-cores
check-cores:
	@mk/install-packages build test cores
	@$(MAKE) --no-print-directory -s -j$$(nproc) all test-tools
	@VETHGUARD_LONG=1 tests/integration/run $(if $(filter asan,$(VARIANT)),--asan) --once test_cores

## sudo make check-exfiltration  every format of secrets in every encoding, place and way out is refused; 10,000 honest requests pass
.PHONY: check-exfiltration
check-exfiltration:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@VETHGUARD_LONG=1 tests/integration/run $(if $(filter asan,$(VARIANT)),--asan) --once test_secrets. test_secrets_long test_egress_cases

## sudo make check-misdirections  a hundred and sixty-seven ways to have a credential sent elsewhere, each with every way of injecting
.PHONY: check-misdirections
check-misdirections:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@VETHGUARD_LONG=1 tests/integration/run $(if $(filter asan,$(VARIANT)),--asan) --once test_misdirections

## sudo make check-agents  every agent program of docs/agents.md, unchanged, behind a policy of one line (installs them; minutes)
.PHONY: check-agents
check-agents:
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@mk/install-agents
	@tests/integration/run --agents $(if $(filter asan,$(VARIANT)),--asan) $(AGENTS)

## sudo make check-providers  the SDKs of sandbox providers with the options of contrib/node, and their sandboxes played; hosts of WebAssembly, a browser; the probe (installs them; minutes)
.PHONY: check-providers
check-providers:
	@mk/install-packages build test providers
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@mk/install-providers
	@tests/integration/run --providers $(if $(filter asan,$(VARIANT)),--asan) $(PROVIDERS)

## sudo make check-attach  a real dockerd, Podman, Docker's bridges, CNI networks, containerd, a virtual machine, a namespace: each guarded (installs them; minutes)
.PHONY: check-attach
check-attach:
	@mk/install-packages build test attach
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@mk/install-kernel
	@tests/integration/run --attach $(if $(filter asan,$(VARIANT)),--asan) $(ATTACH)

## sudo make check-upgrade FROM=REV  a daemon of that version keeps its sandboxes when this one takes its place
.PHONY: check-upgrade
check-upgrade:
	@[ -n "$(FROM)" ] || { echo "check-upgrade: which version? Say so: make check-upgrade FROM=REV" >&2; exit 2; }
	@mk/install-packages build test
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@from=build/from/$$(git rev-parse --verify "$(FROM)^{commit}") && mkdir -p "$$from" && \
	git archive "$$(basename "$$from")" | tar -x -C "$$from" && \
	$(MAKE) --no-print-directory -s -C "$$from" -j$$(nproc) VARIANT=release all && \
	VETHGUARD_FROM="$$PWD/$$from/build/bin" tests/integration/run --upgrade-from

## sudo make check-churn CHURN_SECONDS=300  containers of Docker and Podman come and go while everything is killed at random (CHURN_SEED=N: again)
CHURN_SECONDS ?= 300
.PHONY: check-churn
check-churn:
	@mk/install-packages build test attach
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@VETHGUARD_CHURN_SECONDS=$(CHURN_SECONDS) VETHGUARD_CHURN_SEED=$(CHURN_SEED) tests/integration/run --attach --once $(if $(filter asan,$(VARIANT)),--asan) test_churn

## sudo make check-hour    README and docs/first-hour.md as printed, on an empty Debian 12 and 13 (makes them; minutes)
.PHONY: check-hour
check-hour:
	@mk/install-packages build demo check-hour
	@tests/hour/run $(HOUR)

# Every object, and no program (tests/systems/musl).
.PHONY: objects
objects: $(call archives,$(MODULES)) $(patsubst src/%.c,$(OBJ)/%.o,$(wildcard src/*/main.c))
