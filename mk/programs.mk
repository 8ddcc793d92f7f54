# Four programs and the command-line tool. What a program does not link it cannot call: `nm` shows
# no netlink or nftables symbol in worker, keeper and recorder.
archives = $(foreach m,$(1),$(LIB)/libvg_$(m).a)

MODS_vethguard := cli bundle adapter fence netlink git jail ipc loop tls policy dlp wire base
LIBS_vethguard := $(LIBS_NFT) $(LIBS_YAML) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_JANSSON) $(LIBS_ZLIB)

MODS_vethguardd := supervisor bundle fence netlink jail ipc loop tls policy dlp wire base
LIBS_vethguardd := $(LIBS_NFT) $(LIBS_YAML) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_JANSSON)

MODS_vethguard-keeper := keeper credential tls ipc loop jail wire base
LIBS_vethguard-keeper := $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL)

MODS_vethguard-worker := worker proxy dns issuer credential git sign tls ipc loop jail policy dlp wire base
LIBS_vethguard-worker := $(LIBS_NGHTTP2) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_YAML) $(LIBS_ZLIB) $(LIBS_BROTLI) $(LIBS_ZSTD)

MODS_vethguard-recorder := recorder ipc loop jail tls policy dlp wire base
LIBS_vethguard-recorder := $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL)

MODS_vethguard-fetch := fetch credential sign tls ipc loop jail policy dlp wire base # of policy: the JSON reader
LIBS_vethguard-fetch := $(LIBS_CURL) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL) $(LIBS_JANSSON)
MODS_vethguard-token := token jail ipc loop wire base
LIBS_vethguard-token := $(LIBS_SECCOMP) $(LIBS_EVENT) -ldl
MODS_vethguard-gateway := gateway tls ipc loop jail policy dlp wire base
LIBS_vethguard-gateway := $(LIBS_NGHTTP2) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL)
MODS_vethguard-quota := quota tls ipc loop jail policy dlp wire base
LIBS_vethguard-quota := $(LIBS_HIREDIS) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_SSL)
MODS_vethguard-runtime := runtime adapter netlink tls policy dlp wire base
# An engine calls it three times for each container: it loads no library that it does not use.
LIBS_vethguard-runtime := -Wl,--as-needed $(LIBS_NFT) $(LIBS_JANSSON)
MODS_vethguard-cni := cni adapter netlink wire base
LIBS_vethguard-cni := $(LIBS_NFT) $(LIBS_JANSSON)
MODS_vethguard-docker := docker adapter netlink jail ipc loop wire base
LIBS_vethguard-docker := $(LIBS_NFT) $(LIBS_SECCOMP) $(LIBS_EVENT) $(LIBS_JANSSON)

# `vethguard probe` prints this script.
$(OBJ)/cli/probe.o: contrib/probe/probe.sh
# vethguard-quota sends this one.
$(OBJ)/quota/script.o: src/quota/quota.lua

MAIN_vethguard := cli
MAIN_vethguardd := supervisor
MAIN_vethguard-keeper := keeper
MAIN_vethguard-worker := worker
MAIN_vethguard-recorder := recorder
MAIN_vethguard-fetch := fetch
MAIN_vethguard-token := token
MAIN_vethguard-gateway := gateway
MAIN_vethguard-quota := quota
MAIN_vethguard-runtime := runtime
MAIN_vethguard-cni := cni
MAIN_vethguard-docker := docker

PROGRAM_NAMES := vethguard vethguardd vethguard-keeper vethguard-worker vethguard-recorder \
	vethguard-fetch vethguard-token vethguard-gateway vethguard-quota vethguard-runtime vethguard-cni vethguard-docker
# A program whose main.c is not there yet is not built.
PROGRAM_NAMES := $(foreach p,$(PROGRAM_NAMES),$(if $(wildcard src/$(MAIN_$(p))/main.c),$(p)))
PROGRAMS := $(addprefix $(BIN)/,$(PROGRAM_NAMES))

define program_rules
$$(BIN)/$(1): $$(OBJ)/$$(MAIN_$(1))/main.o $$(call archives,$$(MODS_$(1)))
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$(OBJ)/$$(MAIN_$(1))/main.o -Wl,--start-group $$(call archives,$$(MODS_$(1))) -Wl,--end-group $$(LIBS_$(1))
endef
$(foreach p,$(PROGRAM_NAMES),$(eval $(call program_rules,$(p))))
