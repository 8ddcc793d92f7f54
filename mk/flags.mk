# Compiler, warnings and libraries. VARIANT=release (default) or asan; each has its own tree below build/.
VERSION := 0.1.0
VARIANT ?= release
# Empty for whoever builds: another compiler may warn of what ours does not. `make check` and CI set -Werror.
WERROR ?=
CC ?= cc
PKG_CONFIG ?= pkg-config
# Which compiler CC is, and the processor it compiles for (CC may be a cross compiler).
COMPILER := $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),clang,gcc)
CPU := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
BUILD := $(if $(filter release,$(VARIANT)),build,build/$(VARIANT))
OBJ := $(BUILD)/obj
BIN := $(BUILD)/bin
LIB := $(BUILD)/lib

# clang also judges what the macros of uthash and libseccomp expand to in our files. gcc judges our own lines by the same rules.
WARNINGS_clang := -Wno-implicit-fallthrough -Wno-gnu-zero-variadic-macro-arguments -Wno-missing-field-initializers
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wwrite-strings -Wpointer-arith -Wundef -Wformat=2 -Wimplicit-fallthrough \
	$(WARNINGS_$(COMPILER)) $(WERROR)
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE -DVETHGUARD_VERSION=$(VERSION)
# The targets of jumps are checked, if the processor can.
JUMPS_x86_64 := -fcf-protection
JUMPS_aarch64 := -mbranch-protection=standard
CFLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-clash-protection $(JUMPS_$(CPU))
# A report needs lines and functions; more than that (-g) costs a third of the build.
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# What hides memory from gcc's sanitizer is left out for clang's, which does not say that it is there.
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -D__SANITIZE_ADDRESS__=1
LDFLAGS_release := -Wl,-z,relro,-z,now,-z,noexecstack -pie
LDFLAGS_asan := -fsanitize=address,undefined
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined
CFLAGS := -std=gnu11 -fPIE -fstack-protector-strong -fno-strict-aliasing $(CFLAGS_$(VARIANT)) $(EXTRA_CFLAGS)
LDFLAGS := $(LDFLAGS_$(VARIANT))

pc = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
LIBS_EVENT := $(call pc,libevent)
LIBS_SSL := $(call pc,openssl)
LIBS_NFT := $(call pc,libnftnl libmnl)
LIBS_YAML := $(call pc,yaml-0.1)
LIBS_SECCOMP := $(call pc,libseccomp)
LIBS_JANSSON := $(call pc,jansson)
LIBS_CURL := $(call pc,libcurl)
LIBS_HIREDIS := $(call pc,hiredis)
LIBS_ZLIB := $(call pc,zlib)
LIBS_BROTLI := $(call pc,libbrotlidec)
LIBS_ZSTD := $(call pc,libzstd)
LIBS_NGHTTP2 := $(call pc,libnghttp2)
LIBS_CMOCKA := $(call pc,cmocka)
