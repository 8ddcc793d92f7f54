# Packages, and the goals that begin on a machine with nothing but git and make. These goals install what is missing and
# then call make again, because this run has already asked pkg-config for libraries that were not there.

.PHONY: deps demo lab check packages-build
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
	@contrib/demo/run

# As it was written, in the script's environment: its quotes and dollars are the shell's in the lab, not make's.
override export LAB_COMMAND := $(value LAB_COMMAND)

## sudo make lab        a shell in a small internet of its own, where README and the guides run as printed (LAB_COMMAND=...)
lab:
	@mk/install-packages build demo
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@contrib/lab/run

## sudo make check      everything: units, fuzz corpora, integration in namespaces; twice (release and sanitizers)
check:
	@mk/install-packages build test
	@tests/check
