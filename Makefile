# vethguard: `make` builds, `sudo make demo` shows it, `sudo make check` proves it. `make help` lists the rest.
# How the pieces are put together is in mk/: flags.mk (compiler, libraries), layers (which module may see which), layers.mk,
# programs.mk (what each program links), tests.mk (units, fuzz), lint.mk, bench.mk, install.mk, deb.mk,
# deps.mk (packages, and goals that begin with nothing), dev.mk (for whoever works here).

.DEFAULT_GOAL := all
include mk/flags.mk
include mk/layers.mk
include mk/programs.mk
include mk/tests.mk
-include mk/deps.mk
-include mk/install.mk
-include mk/deb.mk
-include mk/lint.mk
-include mk/bench.mk
-include mk/connect.mk
-include mk/dev.mk

.PHONY: all help clean
all: $(PROGRAMS)

help:
	@awk -F: '/^## / { sub(/^## /, ""); print }' Makefile mk/*.mk

## make                 the programs, in build/bin/
## make VARIANT=asan    the same under AddressSanitizer and UBSan, in build/asan/bin/
## make clean           remove build/
clean:
	rm -rf build
