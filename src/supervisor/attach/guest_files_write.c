/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every path is resolved by openat2(2) inside the sandbox's root: links, even changing ones, lead
 * nowhere else, and magic links are refused. A file is first examined through a descriptor that
 * opens nothing (O_PATH); only a regular file is opened, through that descriptor, so that it is the
 * file that was examined.
 *
 * The CA is written only to files and directories of the root's own mount: other mounts may belong
 * to the host or to other sandboxes. The one exception is resolv.conf, which engines mount from a
 * file of their own for each container: it may be written if it is itself a mount point, and not
 * merely on another mount. It is written in place, and never if it is the host's. Everything else
 * is replaced by renaming, except if the name is a link: then its target is written in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/fd.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/linux.h"
#include "vethguard/tls/bundle.h"
#include "supervisor/attach/guest_files.h"

#define PATH_BYTES 256
#define HASH_LINKS_MAX 10
#define TRIES_MAX 256 /* attempts to resolve a path without a rename in between */

struct work {
	int root;
	uint64_t mount; /* of the root */
	int report;
	int missing; /* why a directory could not be made, or 0 */
	const struct guest_files_plan *plan;
};

/* A path split into its opened directory and its last part. */
struct place {
	int directory;
	const char *base; /* borrows from the path */
	struct statx at;  /* of the directory */
};

static void tell(const struct work *w, const char *path, int error)
{
	char line[PATH_BYTES + 128];

	if (error == -ENOENT && w->missing)
		error = w->missing;
	int n = error ? snprintf(line, sizeof(line), "-%s: %s\n", path,
	                        error == -EXDEV ? "it is mounted there, and not this sandbox's own"
	                        : error == -ELOOP ? "it is not a regular file"
	                                          : strerror(-error))
	              : snprintf(line, sizeof(line), "+%s\n", path);

	(void)!write(w->report, line, (size_t)n);
}

static int open_inside(const struct work *w, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
	        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd;

	/* openat2(2), EAGAIN: something was renamed or mounted, anywhere in the system, while a
	 * ".." was followed. The number of tries is limited in case that happens all the time. */
	for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
		fd = syscall(SYS_openat2, w->root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

static int look(int fd, struct statx *out)
{
	return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, out) < 0 ? -errno : 0;
}

static bool same_file(const struct statx *a, const struct stat *b)
{
	return a->stx_ino == b->st_ino && makedev(a->stx_dev_major, a->stx_dev_minor) == b->st_dev;
}

/* True for the host's file of that name, however the sandbox has got it. */
static bool is_the_hosts(const struct statx *at, const char *path)
{
	struct stat ours;

	return stat(path, &ours) == 0 && same_file(at, &ours);
}

/* Opens the same file that an O_PATH descriptor stands for. */
static int reopen(int fd, int flags)
{
	char path[64];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return opened < 0 ? -errno : opened;
}

static int place_open(const struct work *w, const char *path, struct place *place)
{
	char directory[PATH_BYTES];
	const char *slash = strrchr(path, '/');
	int rc;

	if ((size_t)(slash - path) >= sizeof(directory))
		return -ENAMETOOLONG;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	if (slash == path)
		memcpy(directory, "/", 2);
	place->base = slash + 1;
	place->directory = open_inside(w, directory, O_PATH | O_DIRECTORY);
	if (place->directory < 0)
		return place->directory;
	rc = look(place->directory, &place->at);
	if (!rc && (place->at.stx_mnt_id != w->mount || is_the_hosts(&place->at, directory)))
		rc = -EXDEV;
	if (rc)
		close(place->directory);
	return rc;
}

/* Makes a new file of that name in one step, with the directory's owner. */
static int replace(const struct place *place, struct slice bytes)
{
	char name[64];
	uint64_t number;
	int fd, rc;

	random_bytes(&number, sizeof(number));
	snprintf(name, sizeof(name), ".vethguard-%016llx", (unsigned long long)number);
	fd = openat(
	        place->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, bytes);
	if (!rc && fchown(fd, place->at.stx_uid, place->at.stx_gid) < 0)
		rc = -errno;
	if (!rc && fchmod(fd, 0644) < 0)
		rc = -errno;
	close(fd);
	if (!rc && renameat(place->directory, name, place->directory, place->base) < 0)
		rc = -errno;
	if (rc)
		unlinkat(place->directory, name, 0);
	return rc;
}

static int write_in_place(int fd, struct slice bytes)
{
	int out = reopen(fd, O_WRONLY | O_TRUNC), error;

	if (out < 0)
		return out;
	error = fd_write_all(out, bytes);
	close(out);
	return error;
}

static bool is_link(const struct place *place)
{
	struct stat st;

	return fstatat(place->directory, place->base, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

/* Finds the file that path leads to. Returns an O_PATH descriptor of a regular file, or -errno
 * (-ELOOP: it is something else). */
static int find(const struct work *w, const char *path, struct statx *at)
{
	int fd = open_inside(w, path, O_PATH), error;

	if (fd < 0)
		return fd;
	error = look(fd, at);
	if (!error && !S_ISREG(at->stx_mode))
		error = -ELOOP;
	if (error)
		close(fd);
	return error ? error : fd;
}

static bool is_mounted_itself(const struct statx *at)
{
	return at->stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* mounted: a file that is mounted over the name may be written. */
static int put(const struct work *w, const char *path, struct slice bytes, bool mounted)
{
	struct place place;
	struct statx at;
	int fd, rc = place_open(w, path, &place);

	if (rc)
		return rc;
	fd = find(w, path, &at);
	if (fd == -ENOENT)
		rc = replace(&place, bytes);
	else if (fd < 0)
		rc = fd;
	else if (is_the_hosts(&at, path))
		rc = -EXDEV;
	else if (at.stx_mnt_id != w->mount)
		rc = mounted && is_mounted_itself(&at) ? write_in_place(fd, bytes) : -EXDEV;
	else
		rc = is_link(&place) ? write_in_place(fd, bytes) : replace(&place, bytes);
	if (fd >= 0)
		close(fd);
	close(place.directory);
	return rc;
}

/* Reads a regular file of the root's own mount, at most GUEST_FILE_MAX bytes. From another mount,
 * bytes that others cannot read could get into a bundle that they can read, if names are exchanged
 * before it is written. */
static int read_file(const struct work *w, const char *path, struct buf *out)
{
	struct statx at;
	int fd = find(w, path, &at), in;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	in = at.stx_mnt_id != w->mount      ? -EXDEV
	     : at.stx_size > GUEST_FILE_MAX ? -EFBIG
	                                    : reopen(fd, O_RDONLY);
	close(fd);
	if (in < 0)
		return in;
	for (;;) {
		uint8_t *room = buf_reserve(out, 65536);

		n = room ? read(in, room, 65536) : -1;
		if (n <= 0)
			break;
		buf_commit(out, (size_t)n);
	}
	close(in);
	return n < 0 ? (errno == EAGAIN ? -EIO : -errno) : 0;
}

static void install_resolver(const struct work *w)
{
	char text[256], address[IP_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < 2; i++)
		if (w->plan->servers[i].family)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "nameserver %s\n",
			        ip_format(&w->plan->servers[i], address));
	n += (size_t)snprintf(text + n, sizeof(text) - n, "options timeout:2 attempts:2\n");
	tell(w, GUEST_RESOLV, put(w, GUEST_RESOLV, slice_of(text, n), true));
}

/* Adds the CA after the present content. */
static int add_to_bundle(const struct work *w, const char *path, bool make)
{
	struct slice pem = w->plan->root_pem;
	struct buf bundle;
	int rc;

	buf_init(&bundle, GUEST_FILE_MAX + 65536 + pem.n + 1);
	rc = read_file(w, path, &bundle);
	if (rc == -ENOENT && make)
		rc = 0;
	if (!rc && bundle.len > 0 && memmem(buf_bytes(&bundle), bundle.len, pem.p, pem.n)) {
		buf_fini(&bundle);
		return 0;
	}
	if (!rc && bundle.len > 0)
		rc = buf_append(&bundle, "\n", 1);
	if (!rc)
		rc = buf_append_slice(&bundle, pem);
	if (!rc)
		rc = put(w, path, buf_slice(&bundle), false);
	buf_fini(&bundle);
	return rc;
}

/* Paths other than the first only if they exist. */
static void install_bundles(const struct work *w)
{
	tell(w, GUEST_BUNDLE, add_to_bundle(w, GUEST_BUNDLE, true));
	for (size_t i = 0; bundle_paths[i]; i++) {
		int rc;

		if (strcmp(bundle_paths[i], GUEST_BUNDLE) == 0)
			continue;
		rc = add_to_bundle(w, bundle_paths[i], false);
		if (rc != -ENOENT && rc != -ENOTDIR)
			tell(w, bundle_paths[i], rc);
	}
}

static int make_directory(const struct work *w, const char *path)
{
	struct place place;
	int rc = place_open(w, path, &place);

	if (rc)
		return rc;
	if (mkdirat(place.directory, place.base, 0755) == 0) {
		(void)!fchownat(place.directory, place.base, place.at.stx_uid, place.at.stx_gid,
		        AT_SYMLINK_NOFOLLOW);
	} else if (errno != EEXIST) {
		rc = -errno;
	}
	close(place.directory);
	return rc;
}

/* openssl-rehash(1): libraries that read a directory find a CA by the hash of its name. */
static void link_by_hash(const struct work *w, struct slice pem)
{
	char hash[BUNDLE_HASH_TEXT], name[BUNDLE_HASH_TEXT + 4], target[64];
	struct place place;

	if (bundle_subject_hash(pem, hash) != 0 || place_open(w, GUEST_CA, &place) != 0)
		return;
	for (unsigned i = 0; i < HASH_LINKS_MAX; i++) {
		ssize_t n;

		snprintf(name, sizeof(name), "%s.%u", hash, i);
		if (symlinkat(place.base, place.directory, name) == 0 || errno != EEXIST)
			break;
		n = readlinkat(place.directory, name, target, sizeof(target));
		if (n == (ssize_t)strlen(place.base) && memcmp(target, place.base, (size_t)n) == 0)
			break;
	}
	close(place.directory);
}

/* There may be two roots while one follows the other. */
static void link_all_by_hash(const struct work *w)
{
	static const struct slice end = {"-----END CERTIFICATE-----", 25};
	struct slice pem = w->plan->root_pem;
	const char *at;

	while ((at = memmem(pem.p, pem.n, end.p, end.n))) {
		link_by_hash(w, pem);
		at += end.n;
		pem = slice_of(at, pem.n - (size_t)(at - pem.p));
	}
}

void guest_files_install(int root, const struct guest_files_plan *plan, int report)
{
	static const char *const directories[] = {"/etc", "/etc/ssl", "/etc/ssl/certs"};
	struct work w = {.root = root, .report = report, .plan = plan};
	struct statx at;
	int rc = look(root, &at);

	if (rc) {
		tell(&w, "/", rc);
		return;
	}
	w.mount = at.stx_mnt_id;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if ((rc = make_directory(&w, directories[i])) != 0 && !w.missing)
			w.missing = rc; /* reported by the steps that follow */
	install_resolver(&w);
	install_bundles(&w);
	rc = put(&w, GUEST_CA, plan->root_pem, false);
	tell(&w, GUEST_CA, rc);
	if (!rc)
		link_all_by_hash(&w);
}
