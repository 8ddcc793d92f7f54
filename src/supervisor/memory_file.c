/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed memory, and the bundle of trusted CAs that every worker verifies its upstreams against. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/memory_file.h"
#include "vethguard/tls/bundle.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int memory_file_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

static int seal(int fd)
{
	int error = fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;

	if (!error)
		return fd;
	close(fd);
	return error;
}

static int write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t done = write(fd, at, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int memory_file_of(const char *name, const void *p, size_t n)
{
	int fd = memory_file_new(name);

	if (fd < 0)
		return fd;
	int error = write_all(fd, p, n);
	if (error) {
		close(fd);
		return error;
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
			return -EIO; /* it shrank under our eyes */
	}
	return write_all(out, "\n", 1); /* a file may end without one */
}

static int append_file(int out, const char *path, size_t *left)
{
	int in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (in < 0)
		return -errno;
	int error = append_open_file(out, in, left);
	close(in);
	return error;
}

static void append_system_bundle(int out, size_t *left)
{
	for (const char *const *path = bundle_paths; *path; path++)
		if (append_file(out, *path, left) == 0)
			return;
	log_warn("no bundle of trusted CAs found on this system (package ca-certificates): only "
	         "those of "
	         "the configuration are trusted");
}

int memory_file_trusted_cas(const struct config *config, const char **culprit)
{
	size_t left = CA_BUNDLE_MAX;
	int fd = memory_file_new("vethguard-ca"), error = 0;

	*culprit = NULL;
	if (fd < 0)
		return fd;
	append_system_bundle(fd, &left);
	for (size_t i = 0; i < config->ca_file_count && !error; i++) {
		error = append_file(fd, config->ca_files[i], &left);
		if (error)
			*culprit = config->ca_files[i];
	}
	if (error) {
		close(fd);
		return error;
	}
	return seal(fd);
}

static bool is_same(int a, int b)
{
	struct stat st, other;
	void *p, *q;

	if (b < 0 || fstat(a, &st) < 0 || fstat(b, &other) < 0 || st.st_size != other.st_size)
		return false;
	size_t n = (size_t)st.st_size;
	p = mmap(NULL, n, PROT_READ, MAP_SHARED, a, 0);
	q = mmap(NULL, n, PROT_READ, MAP_SHARED, b, 0);
	bool same = p != MAP_FAILED && q != MAP_FAILED && memcmp(p, q, n) == 0;
	if (p != MAP_FAILED)
		munmap(p, n);
	if (q != MAP_FAILED)
		munmap(q, n);
	return same;
}

int memory_file_share(int fd, int *kept)
{
	int copy = is_same(fd, *kept) ? fcntl(*kept, F_DUPFD_CLOEXEC, 0) : -1;

	if (copy >= 0) {
		close(fd);
		return copy;
	}
	if (*kept >= 0)
		close(*kept);
	*kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}
