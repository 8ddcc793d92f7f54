/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed memory files, and the bundle of trusted CAs that every worker verifies its upstreams
 * with. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/fd.h"
#include "vethguard/base/log.h"
#include "supervisor/os/local_file.h"
#include "supervisor/os/memfd.h"
#include "vethguard/tls/bundle.h"

#define FINGERPRINT_AGE_S 2 /* time steps of file systems are much smaller */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int memfd_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

static int seal(int fd)
{
	int rc = fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;

	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int memfd_of(const char *name, const void *p, size_t n)
{
	int fd = memfd_new(name);

	if (fd < 0)
		return fd;
	int rc = fd_write_all(fd, slice_of(p, n));
	if (rc) {
		close(fd);
		return rc;
	}
	return seal(fd);
}

static int append_open_file(int out, int in, size_t *left)
{
	struct stat st;

	if (fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size >= *left)
		return -EFBIG;
	*left -= (size_t)st.st_size + 1;
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = sendfile(out, in, &at, (size_t)(st.st_size - at));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EIO; /* it was truncated meanwhile */
	}
	return fd_write_all(out, SLICE("\n")); /* a file may end without a line end */
}

static int open_plain(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static int append_file(int out, const char *path, bool local, size_t *left)
{
	int in = local ? local_file_open(path) : open_plain(path);

	if (in < 0)
		return in;
	int rc = append_open_file(out, in, left);
	close(in);
	return rc;
}

static void append_system_bundle(int out, size_t *left)
{
	for (const char *const *path = bundle_paths; *path; path++)
		if (append_file(out, *path, false, left) == 0)
			return;
	log_warn("no bundle of trusted CAs found on this system (package ca-certificates): only "
	         "those of the configuration are trusted");
}

int memfd_trusted_cas(const struct config *config, bool local, const char **culprit)
{
	size_t left = CA_BUNDLE_MAX;
	int fd = memfd_new("vethguard-ca"), rc = 0;

	*culprit = NULL;
	if (fd < 0)
		return fd;
	append_system_bundle(fd, &left);
	for (size_t i = 0; i < config->ca_file_count && !rc; i++) {
		rc = append_file(fd, config->ca_files[i], local, &left);
		if (rc)
			*culprit = config->ca_files[i];
	}
	if (rc) {
		close(fd);
		return rc;
	}
	return seal(fd);
}

void memory_trusted_init(struct memory_trusted *kept)
{
	*kept = (struct memory_trusted){0};
}

void memory_bundle_put(struct memory_bundle *bundle)
{
	if (!bundle || --bundle->refs)
		return;
	close(bundle->fd);
	free(bundle);
}

bool memory_bundle_equal(const struct memory_bundle *a, const struct memory_bundle *b)
{
	char mine[4096], other[sizeof(mine)];
	ssize_t n = -1;

	if (a == b || !a || !b)
		return a == b;
	for (off_t at = 0; n; at += n) {
		n = pread(a->fd, mine, sizeof(mine), at);
		if (n < 0 || pread(b->fd, other, sizeof(other), at) != n ||
		        memcmp(mine, other, (size_t)n) != 0)
			return false;
	}
	return true;
}

static int make_bundle(
        const struct config *config, bool local, struct memory_bundle **out, const char **culprit)
{
	struct memory_bundle *bundle = malloc(sizeof(*bundle));

	if (!bundle)
		return -ENOMEM;
	*bundle =
	        (struct memory_bundle){.refs = 1, .fd = memfd_trusted_cas(config, local, culprit)};
	if (bundle->fd >= 0) {
		*out = bundle;
		return 0;
	}
	int rc = bundle->fd;
	free(bundle);
	return rc;
}

void memory_trusted_fini(struct memory_trusted *kept)
{
	memory_bundle_put(kept->bundle);
	kept->bundle = NULL;
	kept->count = 0;
}

/* A missing file has a fingerprint as well. Returns false if the file is so new that another change
 * might not show. */
static bool fingerprint_of(const char *path, bool local, time_t now, struct memory_fingerprint *out)
{
	int fd = local ? local_file_find(path) : open(path, O_PATH | O_CLOEXEC), error;
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (fd < 0)
		return true;
	error = fstat(fd, &st);
	close(fd);
	if (error)
		return true;
	out->device = st.st_dev;
	out->inode = st.st_ino;
	out->size = st.st_size;
	out->modified = st.st_mtim;
	out->changed = st.st_ctim;
	return st.st_ctim.tv_sec + FINGERPRINT_AGE_S <= now;
}

/* Takes the fingerprints of all files that memfd_trusted_cas() reads, in its order. */
static size_t take_fingerprints(const struct config *config, bool local,
        struct memory_fingerprint fingerprints[MEMORY_FINGERPRINTS_MAX])
{
	time_t now = time(NULL);
	size_t count = 0;
	bool old = true;

	for (const char *const *path = bundle_paths; *path && count < MEMORY_FINGERPRINTS_MAX;
	        path++)
		old &= fingerprint_of(*path, false, now, &fingerprints[count++]);
	for (size_t i = 0; i < config->ca_file_count && count < MEMORY_FINGERPRINTS_MAX; i++)
		old &= fingerprint_of(config->ca_files[i], local, now, &fingerprints[count++]);
	return old && count < MEMORY_FINGERPRINTS_MAX ? count : 0;
}

int memfd_trusted(const struct config *config, struct memory_trusted *kept,
        struct memory_bundle **out, const char **culprit)
{
	struct memory_fingerprint fingerprints[MEMORY_FINGERPRINTS_MAX];
	size_t count = take_fingerprints(config, kept->local, fingerprints);
	struct memory_bundle *bundle = NULL;

	*culprit = NULL;
	if (!kept->bundle || count == 0 || count != kept->count ||
	        memcmp(fingerprints, kept->fingerprints, count * sizeof(fingerprints[0])) != 0) {
		int rc = make_bundle(config, kept->local, &bundle, culprit);
		if (rc)
			return rc;
		memory_trusted_fini(kept);
		kept->bundle = bundle;
		kept->count = count;
		memcpy(kept->fingerprints, fingerprints, count * sizeof(fingerprints[0]));
	}
	kept->bundle->refs++;
	*out = kept->bundle;
	return 0;
}
