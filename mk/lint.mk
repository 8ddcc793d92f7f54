# `make lint`: what can be found without running anything. Not part of `make check` except for the layers. Each part is a
# goal of its own; `make -k lint` shows all of them.
LINT_C := $(shell find src include tests contrib -name '*.[ch]' 2>/dev/null)
LINT_CPPFLAGS := $(CPPFLAGS)
LINT_MAN := $(wildcard docs/man/*.[1-8])

.PHONY: lint lint-packages lint-layers lint-format lint-tidy lint-cppcheck lint-fields lint-man lint-shell lint-text \
	lint-completions lint-options lint-install
## make lint            layers, who writes which fields, clang-tidy, cppcheck, format, manual pages, options, shell scripts, completions, links, installing (minutes)
lint: lint-packages lint-layers lint-text lint-man lint-options lint-shell lint-completions lint-format lint-install \
	lint-fields lint-cppcheck lint-tidy
	@echo "lint: everything is in order"

lint-packages:
	@mk/install-packages build lint

lint-layers: $(PROGRAMS)
	@tests/lint/layers

lint-fields:
	@LINT_CPPFLAGS='$(LINT_CPPFLAGS)' tests/lint/fields

lint-text:
	@tests/lint/text

lint-man:
	@tests/lint/man $(LINT_MAN)

lint-shell:
	@tests/lint/shell

lint-completions: $(PROGRAMS)
	@tests/lint/completions

lint-options: $(PROGRAMS) $(BIN)/vethguard-connect
	@tests/lint/options

lint-format:
	@tests/lint/format $(LINT_C)

# uthash.h and utlist.h alone are shown to cppcheck; without them whatever their macros set is uninitialized. exitcode-suppressions in
# tests/lint/cppcheck-known has a reason per line. With several processes the exit status leaves out what cppcheck finds
# across files: whatever it says is a finding.
lint-cppcheck:
	@mkdir -p build/lint/include build/lint/cppcheck && ln -sf /usr/include/uthash.h /usr/include/utlist.h build/lint/include/
	@found=$$(cppcheck -j$$(nproc) --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
		--suppress=missingIncludeSystem --suppressions-list=tests/lint/cppcheck-known \
		--cppcheck-build-dir=build/lint/cppcheck --template='{file}:{line}: {message} [{id}]' --error-exitcode=1 \
		$(CPPFLAGS) -Ibuild/lint/include src 2>&1) && [ -z "$$found" ] || { echo "$$found"; exit 1; }
	@echo "cppcheck: no findings"

lint-install: $(PROGRAMS)
	@tests/lint/install

lint-tidy:
	@LINT_CPPFLAGS='$(LINT_CPPFLAGS) $(filter -W%,$(WARNINGS)) $(WARNINGS_clang)' tests/lint/tidy
