# Tests mirror src/: tests/unit/MODULE/test_SUBJECT.c is one cmocka program, linked with every archive.
ALL_ARCHIVES := $(call archives,$(MODULES)) $(LLHTTP_ARCHIVE)
ALL_LIBS := $(LLHTTP_LIBS) $(LIBS_NFT) $(LIBS_YAML) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_JANSSON) $(LIBS_ZLIB)

UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/unit/%)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

$(BUILD)/tests/unit/%: tests/unit/%.c $(ALL_ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Isrc -Itests/lib $(LLHTTP_CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< -Wl,--start-group $(ALL_ARCHIVES) -Wl,--end-group $(ALL_LIBS) $(LIBS_CMOCKA)
-include $(shell find $(BUILD)/tests -name '*.d' 2>/dev/null)

# fence_tool sets a fence up for tests in other languages (tests/integration/fence_leaks.py); fence_cost measures one.
$(BUILD)/tests/lib/fence_%: tests/lib/fence_%.c $(call archives,fence netlink wire base)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(call archives,fence netlink wire base) $(LIBS_NFT)

.PHONY: unit unit-build
unit-build: $(UNIT_BIN)
## make unit            build and run the cmocka unit tests (no root needed)
unit: unit-build
	@tests/lib/run-units $(UNIT_BIN)
