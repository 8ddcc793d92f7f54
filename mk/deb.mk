# `make deb`: a Debian package of the tree, in build/. The objects are those of `make all`, but for the few that know the
# paths of an installation (install.mk): those are compiled in a copy.
DEB_VERSION ?= $(VERSION)-1
DEB_ARCH = $(shell dpkg --print-architecture)
DEB_WORK := build/deb
DEB_FILE = build/vethguard_$(DEB_VERSION)_$(DEB_ARCH).deb

.PHONY: deb deb-build check-deb
## make deb             a Debian package of this tree: build/vethguard_VERSION_ARCH.deb (DEB_VERSION=...)
deb:
	@mk/install-packages build deb
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@$(MAKE) --no-print-directory -s deb-build

deb-build: $(PROGRAMS)
	@rm -rf $(DEB_WORK)/stage $(DEB_WORK)/tree && mkdir -p $(DEB_WORK)/tree
	@cp -a build/obj build/lib build/bin $(DEB_WORK)/tree/ && cp -a build/paths $(DEB_WORK)/tree/ 2>/dev/null || true
	@$(MAKE) --no-print-directory -s BUILD=$(DEB_WORK)/tree PREFIX=/usr SYSCONFDIR=/etc DESTDIR=$(abspath $(DEB_WORK))/stage install
	@contrib/debian/build $(abspath $(DEB_WORK))/stage $(abspath $(DEB_FILE)) $(DEB_VERSION)

## sudo make check-deb  the package in a Debian of its own, booted: install, reload, upgrade under load, purge (minutes)
check-deb:
	@mk/install-packages build test deb check-deb
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@tests/deb/run
