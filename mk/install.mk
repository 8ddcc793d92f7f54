# `make install` and `make uninstall`. PREFIX is where things are to be found, DESTDIR only where they are put (for
# packages). Two paths are compiled in: LIBEXECDIR (src/jail/spawn.c) and DATADIR (src/policy/load/reader.c). A configuration
# that is there already is left as it is, by `make uninstall` too; neither goal starts or stops anything. The stamp below
# changes with them, so a build for another PREFIX compiles those files anew and nothing else.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec/vethguard
DATADIR ?= $(PREFIX)/share/vethguard
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/vethguard
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# systemd looks below /usr/local for units, but not for users and folders: those lie in /etc where PREFIX is not /usr.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(if $(filter /usr/local,$(PREFIX)),/etc/sysusers.d,$(PREFIX)/lib/sysusers.d)
TMPFILESDIR ?= $(if $(filter /usr/local,$(PREFIX)),/etc/tmpfiles.d,$(PREFIX)/lib/tmpfiles.d)
# Where Debian's container engines look for CNI plugins.
CNIDIR ?= $(PREFIX)/lib/cni
INSTALL ?= install

PATHS := -DVETHGUARD_LIBEXECDIR='"$(LIBEXECDIR)"' -DVETHGUARD_DATADIR='"$(DATADIR)"'
PATHS_STAMP := $(BUILD)/paths
PATHS_OBJ := $(OBJ)/jail/spawn.o $(OBJ)/policy/load/reader.o $(OBJ)/cli/doctor/checks.o
$(PATHS_OBJ): CPPFLAGS += $(PATHS)
$(PATHS_OBJ): $(PATHS_STAMP)
$(PATHS_STAMP): paths-always
	@mkdir -p $(@D)
	@printf '%s\n' "$(LIBEXECDIR)" "$(DATADIR)" | cmp -s - $@ || printf '%s\n' "$(LIBEXECDIR)" "$(DATADIR)" >$@

INSTALL_PRESETS := $(wildcard policies/presets/*.yaml)
INSTALL_EXAMPLES := $(wildcard policies/*.yaml)
INSTALL_MAN := $(wildcard docs/man/*.[1-8])
INSTALL_DOCS := README.md LICENSE $(filter-out docs/development.md docs/decisions.md,$(wildcard docs/*.md docs/*.yaml))
INSTALL_GUIDES := $(wildcard docs/guides/*.md)
LIBEXEC_NAMES := $(filter-out vethguard,$(PROGRAM_NAMES))
# vethguard-runtime stands before the runtime that it is called after.
RUNTIME_LINKS := vethguard-runc vethguard-crun vethguard-runsc

# files DIRECTORY FILES...: made readable for all, put there.
files = $(INSTALL) -d '$(DESTDIR)$(1)' && $(INSTALL) -m 0644 $(2) '$(DESTDIR)$(1)/'

# one SOURCE DIRECTORY NAME: the same for a file that gets another name.
one = $(INSTALL) -d '$(DESTDIR)$(2)' && $(INSTALL) -m 0644 $(1) '$(DESTDIR)$(2)/$(3)'

.PHONY: install uninstall paths-always
## sudo make install    into PREFIX (/usr/local); DESTDIR for packages; `make uninstall` takes it back
install: $(PROGRAMS)
	$(INSTALL) -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBEXECDIR)'
	$(INSTALL) -m 0755 $(BIN)/vethguard '$(DESTDIR)$(BINDIR)/'
	$(INSTALL) -m 0755 $(LIBEXEC_NAMES:%=$(BIN)/%) '$(DESTDIR)$(LIBEXECDIR)/'
	for name in $(RUNTIME_LINKS); do ln -sf vethguard-runtime '$(DESTDIR)$(LIBEXECDIR)/'$$name || exit; done
	$(INSTALL) -d '$(DESTDIR)$(CNIDIR)'
	ln -sfr '$(DESTDIR)$(LIBEXECDIR)/vethguard-cni' '$(DESTDIR)$(CNIDIR)/vethguard-cni'
	$(call files,$(DATADIR)/kubernetes/base,$(filter-out %.sh,$(wildcard contrib/kubernetes/base/*.*)))
	$(INSTALL) -m 0755 contrib/kubernetes/base/install.sh '$(DESTDIR)$(DATADIR)/kubernetes/base/'
	$(call files,$(DATADIR)/kubernetes/base/policies,$(wildcard contrib/kubernetes/base/policies/*.yaml))
	$(call files,$(DATADIR)/presets,$(INSTALL_PRESETS))
	$(call files,$(DATADIR)/runtime,$(wildcard contrib/runtime/*))
	$(call files,$(DATADIR)/examples,$(INSTALL_EXAMPLES))
	$(foreach s,1 5 8,$(call files,$(MANDIR)/man$(s),$(filter %.$(s),$(INSTALL_MAN))) &&) :
	$(call files,$(DOCDIR),$(INSTALL_DOCS))
	$(call files,$(DOCDIR)/guides,$(INSTALL_GUIDES))
	$(call files,$(FISHCOMPDIR),contrib/completions/vethguard.fish)
	$(call files,$(ZSHCOMPDIR),contrib/completions/_vethguard)
	$(INSTALL) -d '$(DESTDIR)$(UNITDIR)' '$(DESTDIR)$(BASHCOMPDIR)'
	sed -e 's,@LIBEXECDIR@,$(LIBEXECDIR),g' -e 's,@SYSCONFDIR@,$(SYSCONFDIR)/vethguard,g' \
		contrib/systemd/vethguardd.service.in >'$(DESTDIR)$(UNITDIR)/vethguardd.service'
	chmod 0644 '$(DESTDIR)$(UNITDIR)/vethguardd.service'
	sed -e 's,@LIBEXECDIR@,$(LIBEXECDIR),g' -e 's,@SYSCONFDIR@,$(SYSCONFDIR)/vethguard,g' \
		contrib/systemd/vethguard-docker.service.in >'$(DESTDIR)$(UNITDIR)/vethguard-docker.service'
	chmod 0644 '$(DESTDIR)$(UNITDIR)/vethguard-docker.service'
	$(call files,$(UNITDIR),contrib/systemd/vethguardd.socket contrib/systemd/vethguard-docker.socket)
	$(call files,$(DATADIR)/docker,contrib/docker/compose.yaml)
	$(call one,contrib/systemd/vethguard.sysusers,$(SYSUSERSDIR),vethguard.conf)
	$(call one,contrib/systemd/vethguard.tmpfiles,$(TMPFILESDIR),vethguard.conf)
	$(call one,contrib/systemd/vethguard.logrotate,$(SYSCONFDIR)/logrotate.d,vethguard)
	test -e '$(DESTDIR)$(SYSCONFDIR)/vethguard/vethguard.yaml' || \
		{ $(call one,contrib/systemd/vethguard.yaml,$(SYSCONFDIR)/vethguard,vethguard.yaml); }
	$(INSTALL) -m 0644 contrib/completions/vethguard.bash '$(DESTDIR)$(BASHCOMPDIR)/vethguard'

uninstall:
	rm -f '$(DESTDIR)$(BINDIR)/vethguard' '$(DESTDIR)$(CNIDIR)/vethguard-cni' '$(DESTDIR)$(BASHCOMPDIR)/vethguard' \
		'$(DESTDIR)$(ZSHCOMPDIR)/_vethguard' '$(DESTDIR)$(FISHCOMPDIR)/vethguard.fish' \
		'$(DESTDIR)$(UNITDIR)/vethguardd.service' '$(DESTDIR)$(UNITDIR)/vethguardd.socket' \
		'$(DESTDIR)$(UNITDIR)/vethguard-docker.service' '$(DESTDIR)$(UNITDIR)/vethguard-docker.socket' '$(DESTDIR)$(SYSUSERSDIR)/vethguard.conf' \
		'$(DESTDIR)$(TMPFILESDIR)/vethguard.conf' '$(DESTDIR)$(SYSCONFDIR)/logrotate.d/vethguard'
	rm -f $(foreach m,$(INSTALL_MAN),'$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(notdir $(m))')
	rm -rf '$(DESTDIR)$(LIBEXECDIR)' '$(DESTDIR)$(DATADIR)' '$(DESTDIR)$(DOCDIR)'
