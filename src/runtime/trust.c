/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image's root directory is hostile: every path in it is resolved by openat2(2) with the root
 * directory as its "/", so that no link leads out of it, and only regular files are read, at most
 * TRUST_FILE_MAX bytes. Nothing is written there. The files that are mounted lie in the entry's
 * directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/adapter/trust_env.h"
#include "vethguard/base/buf.h"
#include "vethguard/tls/bundle.h"
#include "runtime/edit.h"
#include "runtime/trust.h"

#define TRIES_MAX 256 /* attempts to resolve a path without a rename in between */
#define BUNDLES_MAX 16
#define PEM_MAX 65536

struct work {
	struct config *config;
	const struct entry *entry;
	struct slice pem;
	struct fault *fault;
	int root;
	bool fixed; /* the root is on a file system that cannot be written: no new mount point */
	struct stat seen[BUNDLES_MAX];
	size_t seen_count;
};

int trust_find(int root, const char *path, struct stat *at)
{
	struct open_how how = {
	        .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = -1;

	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0)
		return -errno;
	if (fstat((int)fd, at) == 0 && S_ISREG(at->st_mode))
		return (int)fd;
	close((int)fd);
	return -ELOOP;
}

bool trust_append(int found, const struct stat *at, struct buf *out)
{
	char path[64];
	uint8_t *room;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = at->st_size > TRUST_FILE_MAX
	             ? -1
	             : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	while ((room = buf_reserve(out, 65536)) && (n = read(fd, room, 65536)) > 0)
		buf_commit(out, (size_t)n);
	close(fd);
	return room && n == 0;
}

/* Links to one file need one mount. */
static bool was_seen(struct work *w, const struct stat *at)
{
	for (size_t i = 0; i < w->seen_count; i++)
		if (w->seen[i].st_dev == at->st_dev && w->seen[i].st_ino == at->st_ino)
			return true;
	if (w->seen_count < BUNDLES_MAX)
		w->seen[w->seen_count++] = *at;
	return false;
}

static bool mount_file(struct work *w, const char *path, const char *name, struct slice bytes)
{
	char source[PATH_MAX];

	return entry_write(w->entry, name, ENTRY_SHOWN, bytes, source, w->fault) &&
	       edit_add_mount(w->config->root, path, source, w->fault);
}

/* The image's own bundle with the CA behind it; an image without one gets the CA alone, if make is
 * true. Returns false with a fault. *there: the path leads to such a bundle inside. */
static bool mount_bundle(struct work *w, const char *path, bool make, unsigned number, bool *there)
{
	char name[32];
	struct stat at = {0};
	struct buf text;
	int fd = edit_is_covered(w->config->root, path, false) ? -EXDEV
	                                                       : trust_find(w->root, path, &at);
	bool good = true;

	*there = fd >= 0;
	if (fd < 0 && (fd != -ENOENT || !make || w->fixed))
		return true;
	if (fd >= 0 && was_seen(w, &at)) {
		close(fd);
		return true;
	}
	buf_init(&text, TRUST_FILE_MAX + 65536 + PEM_MAX);
	*there = fd < 0 || trust_append(fd, &at, &text);
	if (*there) {
		snprintf(name, sizeof(name), "bundle-%u.pem", number);
		good = buf_append(&text, "\n", text.len > 0) == 0 &&
		                       buf_append_slice(&text, w->pem) == 0
		               ? mount_file(w, path, name, buf_slice(&text))
		               : fault_set(w->fault, "no memory");
	}
	buf_fini(&text);
	if (fd >= 0)
		close(fd);
	return good;
}

static bool mount_bundles(struct work *w, struct trust_places *places)
{
	bool there;

	if (!mount_bundle(w, TRUST_BUNDLE, true, 0, &there))
		return false;
	places->bundle = there ? TRUST_BUNDLE : NULL;
	for (unsigned i = 0; bundle_paths[i]; i++) {
		if (strcmp(bundle_paths[i], TRUST_BUNDLE) == 0)
			continue;
		if (!mount_bundle(w, bundle_paths[i], false, i + 1, &there))
			return false;
		if (!places->bundle && there)
			places->bundle = bundle_paths[i];
	}
	return true;
}

static bool mount_ca(struct work *w, struct trust_places *places)
{
	struct stat at = {0};
	int fd = trust_find(w->root, TRUST_CA, &at);

	if (fd >= 0)
		close(fd);
	if (edit_is_covered(w->config->root, TRUST_CA, false) || (fd < 0 && w->fixed))
		return true;
	places->ca = TRUST_CA;
	return mount_file(w, TRUST_CA, "ca.pem", w->pem);
}

static bool mount_resolver(struct work *w, const json_t *answer)
{
	const json_t *servers = json_object_get(answer, "nameservers");
	struct buf text;
	bool good = true;

	if (edit_is_covered(w->config->root, TRUST_RESOLV, true))
		return true;
	buf_init(&text, 4096);
	for (size_t i = 0; i < json_array_size(servers); i++)
		good = good && buf_printf(&text, "nameserver %s\n",
		                       json_string_value(json_array_get(servers, i))) == 0;
	good = good && buf_printf(&text, "options timeout:2 attempts:2\n") == 0 &&
	       mount_file(w, TRUST_RESOLV, "resolv.conf", buf_slice(&text));
	buf_fini(&text);
	return good || fault_set(w->fault, "no memory");
}

int trust_open_root(const struct config *c)
{
	const char *path =
	        json_string_value(json_object_get(json_object_get(c->root, "root"), "path"));
	char full[PATH_MAX * 2];
	int fd;

	snprintf(full, sizeof(full), "%s%s%s", !path || *path == '/' ? "" : c->bundle,
	        !path || *path == '/' ? "" : "/", path ? path : "");
	fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void fill(struct environment *env, const struct trust_places *places, const json_t *answer)
{
	const json_t *variables = json_object_get(answer, "variables");

	trust_env_set(env, places);
	for (size_t i = 0; i < json_array_size(variables); i++) {
		const json_t *variable = json_array_get(variables, i);

		environment_set(env, slice_from_string(control_text(variable, "name")),
		        slice_from_string(control_text(variable, "value")));
	}
}

bool trust_install(struct config *c, const struct entry *e, const json_t *answer,
        struct environment *env, struct fault *fault)
{
	struct work w = {.config = c,
	        .entry = e,
	        .pem = slice_from_string(control_text(answer, "ca_pem")),
	        .fault = fault,
	        .root = trust_open_root(c)};
	struct trust_places places = {NULL, NULL, NULL};
	struct statvfs fs;
	bool good;

	if (w.root < 0)
		return fault_set(fault, "the container's root directory: %s", strerror(-w.root));
	w.fixed = fstatvfs(w.root, &fs) == 0 && (fs.f_flag & ST_RDONLY);
	good = mount_resolver(&w, answer) && mount_bundles(&w, &places) && mount_ca(&w, &places);
	close(w.root);
	if (good)
		fill(env, &places, answer);
	return good;
}
