# Compiler, warnings and libraries. VARIANT=release (default) or asan; each has its own tree below build/.
VERSION := 0.1.0
VARIANT ?= release
# Empty for whoever builds: another compiler may warn of what ours does not. `make check` and CI set -Werror.
WERROR ?=
CC ?= cc
PKG_CONFIG ?= pkg-config
BUILD := $(if $(filter release,$(VARIANT)),build,build/$(VARIANT))
OBJ := $(BUILD)/obj
BIN := $(BUILD)/bin
LIB := $(BUILD)/lib

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wwrite-strings -Wpointer-arith -Wundef -Wformat=2 -Wimplicit-fallthrough \
	$(WERROR)
CPPFLAGS += -Iinclude -Isrc -D_GNU_SOURCE -DVETHGUARD_VERSION=$(VERSION)
CFLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection
# A report needs lines and functions; more than that (-g) costs a third of the build.
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# What hides memory from gcc's sanitizer is left out for clang's, which does not say that it is there.
# clang's own opinion of macros that uthash and libseccomp expand into our code is not asked for, nor of "both, whatever the first says".
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -D__SANITIZE_ADDRESS__=1 \
	-Wno-implicit-fallthrough -Wno-gnu-zero-variadic-macro-arguments -Wno-missing-field-initializers \
	-Wno-bitwise-instead-of-logical
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
LIBS_ZLIB := $(call pc,zlib)
LIBS_NGHTTP2 := $(call pc,libnghttp2)
LIBS_CMOCKA := $(call pc,cmocka)
