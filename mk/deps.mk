# Packages, and the goals that begin on a machine with nothing but git and make. These goals install what is missing and
# then call make again, because this run has already asked pkg-config for libraries that were not there.

.PHONY: deps demo lab check check-systems packages-build
# A goal that changes the machine says so before it begins.
needs_root = @[ "$$(id -u)" -eq 0 ] || { echo "make $@ needs root ($(1))." >&2; \
	echo "With sudo: sudo make $@. Where there is no sudo, as root: make $@" >&2; exit 2; }

## sudo make deps       install the packages that building and the units need
deps:
	@mk/install-packages build unit

packages-build:
	@mk/install-packages build

## sudo make demo       a minute that convinces: build, a small origin, a sandboxed agent, the audit table
demo:
	$(call needs_root,it installs packages and makes network namespaces)
	@mk/install-packages build demo
	@echo "Building ..." >&2
	@mk/build-shown $(MAKE) --no-print-directory -s -j$$(nproc) all
	@tests/lib/reachable contrib/demo/run

# Passed unchanged in the script's environment: the shell in the lab, not make, reads its quotes and dollars.
override export LAB_COMMAND := $(value LAB_COMMAND)

## sudo make lab        a shell in a small internet of its own, where README and the guides run as printed (LAB_COMMAND=...)
lab:
	$(call needs_root,it installs packages and makes network namespaces)
	@mk/install-packages build demo
	@echo "Building ..." >&2
	@mk/build-shown $(MAKE) --no-print-directory -s -j$$(nproc) all
	@contrib/lab/run

## sudo make check      everything: units, fuzz corpora, integration in namespaces; twice (release and sanitizers)
check:
	$(call needs_root,it installs packages and makes network namespaces)
	@mk/install-packages build test
	@tests/check

## sudo make check-systems  README's commands and the units on Debian 12 and 13, Ubuntu 24.04, arm64, musl (SYSTEMS=...; an hour)
check-systems:
	$(call needs_root,it makes roots of other systems)
	@mk/install-packages systems
	@tests/systems/run $(SYSTEMS)
