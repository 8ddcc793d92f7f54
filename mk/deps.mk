# Packages, and the goals that begin on a machine with nothing but git and make. These goals install what is missing and
# then call make again, because this run has already asked pkg-config for libraries that were not there.

.PHONY: deps demo check packages-build
## sudo make deps       install the packages that building needs
deps:
	@mk/install-packages build

packages-build:
	@mk/install-packages build

## sudo make demo       a minute that convinces: build, a small origin, a sandboxed agent, the audit table
demo:
	@mk/install-packages build demo
	@echo "Building (half a minute) ..."
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@tests/lib/reachable contrib/demo/run

## sudo make check      everything: units, fuzz corpora, integration in namespaces; twice (release and sanitizers)
check:
	@mk/install-packages build test
	@tests/check
