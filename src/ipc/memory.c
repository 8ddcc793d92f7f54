/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that programs share, of one fixed size: a memfd whose size is sealed, or a file with its
 * space allocated in advance. A file can be truncated by anybody who may write to it, and its file
 * system may take its pages away; an access then raises SIGBUS. The guard's handler replaces the
 * whole mapping by zeros and lets the access go on: zeros are not a valid ring or journal, and are
 * handled as such. It needs only mmap(2), which jails allow.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/ipc/shared_names.h"
#include "ipc/private.h"

#define UNFINISHED "unfinished"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* A mapping, for the handler. The list changes only outside of any access to a mapping. */
struct mapping {
	struct mapping *next;
	uint8_t *start;
	size_t size;
	bool spare; /* its holder can go on without it */
	bool lost;
};

static struct mapping *mappings;
static bool all_guarded;

int ipc_memory_new(const char *name, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int lock_and_size(int fd, size_t size)
{
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return -posix_fallocate(fd, 0, (off_t)size);
}

int ipc_memory_nameless(int directory, size_t size)
{
	int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), error;

	if (fd < 0)
		return -errno;
	error = lock_and_size(fd, size);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int ipc_memory_name(int fd, int directory, const char *name)
{
	char path[sizeof("/proc/self/fd/-2147483648")];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* A process killed in between leaves a file that nobody reads and the next one removes. */
int ipc_memory_new_renamed(int directory, const char *name, size_t size)
{
	int fd, rc;

	unlinkat(directory, UNFINISHED, 0);
	fd = openat(
	        directory, UNFINISHED, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	rc = lock_and_size(fd, size);
	if (!rc && renameat2(directory, UNFINISHED, directory, name, RENAME_NOREPLACE) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	unlinkat(directory, UNFINISHED, 0);
	close(fd);
	return rc;
}

/* Under its name the file is always complete. */
int ipc_memory_new_at(int directory, const char *name, size_t size)
{
	int fd = ipc_memory_nameless(directory, size), error;

	if (fd == -EOPNOTSUPP)
		return ipc_memory_new_renamed(directory, name, size);
	if (fd < 0)
		return fd;
	error = ipc_memory_name(fd, directory, name);
	if (!error)
		return fd;
	close(fd);
	return error;
}

static bool has_size(int fd, size_t size)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)size;
}

int ipc_memory_open_at(int directory, const char *name, size_t size)
{
	int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int rc = 0;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EBADMSG : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		rc = -errno;
	else if (!has_size(fd, size))
		rc = -EBADMSG;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int ipc_memory_open_own(int directory, const char *name, int (*look_at)(int fd, off_t size))
{
	int fd = openat(directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int rc;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO || errno == EISDIR ? -EBADMSG : -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	         (st.st_mode & (S_IWGRP | S_IWOTH)))
		rc = -EBADMSG;
	else
		rc = look_at(fd, st.st_size);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* A memfd has to be sealed; a file of a file system cannot be (tmpfs: no seal may be added). */
static bool is_fixed(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	bool sealed = seals >= 0 && (seals & SEALS) == SEALS;
	bool file = seals == F_SEAL_SEAL || (seals < 0 && errno == EINVAL);

	return (sealed || file) && has_size(fd, size);
}

void *ipc_memory_map(int fd, size_t size, int *error)
{
	struct mapping *mapping;
	void *start;

	*error = -EBADMSG;
	if (!is_fixed(fd, size))
		return NULL;
	mapping = calloc(1, sizeof(*mapping));
	start = mapping ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (start == MAP_FAILED) {
		*error = mapping ? -errno : -ENOMEM;
		free(mapping);
		return NULL;
	}
	*mapping = (struct mapping){mappings, start, size, false, false};
	mappings = mapping;
	*error = 0;
	return start;
}

static struct mapping *mapping_of(const void *address)
{
	const uint8_t *p = address;
	struct mapping *m = mappings;

	while (m && (p < m->start || p >= m->start + m->size))
		m = m->next;
	return m;
}

/* The recorder asks this of its journal with each batch, and its rings are a thousand mappings: the
 * one asked for is moved to the front. */
bool ipc_memory_lost(const void *start)
{
	struct mapping **at = &mappings, *m;

	while (*at && (*at)->start != start)
		at = &(*at)->next;
	m = *at;
	if (!m)
		return false;
	*at = m->next;
	m->next = mappings;
	mappings = m;
	return m->lost;
}

void ipc_memory_spare(const void *start)
{
	mapping_of(start)->spare = true;
}

void ipc_memory_unmap(void *start, size_t size)
{
	struct mapping **at = &mappings;

	while (*at && (*at)->start != start)
		at = &(*at)->next;
	if (*at) {
		struct mapping *gone = *at;

		*at = gone->next;
		free(gone);
	}
	munmap(start, size);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	struct mapping *m = mapping_of(info->si_addr);

	(void)context;
	if (m && (all_guarded || m->spare) && !m->lost &&
	        mmap(m->start, m->size, PROT_READ | PROT_WRITE,
	                MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
		m->lost = true;
		return;
	}
	signal(number, SIG_DFL); /* the access is repeated, and ends the program */
}

static int catch_faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int ring_guard(void)
{
	all_guarded = true;
	return catch_faults();
}

int shared_names_guard(void)
{
	return catch_faults();
}
