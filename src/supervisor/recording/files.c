/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files are of tmpfs as a rule: they have to outlive processes, not the machine. What a killed
 * supervisor left is taken up in the order of its ids, each exactly once: the recorder's journal
 * tells how far a ring was read, and which of the supervisor's events became lines.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/ring.h"
#include "supervisor/open_files.h"
#include "supervisor/recording/files.h"
#include "supervisor/supervisor.h"

#define NAME_BYTES 34 /* two ids of 16 digits, a dot, and the end */
#define RETRY_MS 10
#define LEFT_MAX 65536 /* files that are looked at */

static void name_of(uint64_t sandbox_id, uint64_t id, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%016" PRIx64 ".%016" PRIx64, sandbox_id, id);
}

#define ASIDE ".unreadable" /* no name of ours: nobody looks at it again */

/* For want of these a file cannot be read now: the next start may. */
static bool may_pass(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EINTR;
}

/* A file whose events cannot be read would be named at each start: kept for whoever wants to look
 * at it, it is named once, with what to do. */
static void set_aside(int folder, const char *of, const char *name, int error)
{
	char aside[NAME_BYTES + sizeof ASIDE];

	snprintf(aside, sizeof aside, "%s" ASIDE, name);
	if (may_pass(error))
		log_error("events in %s/%s cannot be read: %s; the next start tries again", of,
		        name, strerror(-error));
	else if (renameat(folder, name, folder, aside) < 0)
		log_error("events in %s/%s cannot be read: %s; move that file away", of, name,
		        strerror(-error));
	else
		log_error("events in %s/%s cannot be read and are missing in the log: %s; the file "
		          "is kept as %s/%s, remove it when it was looked at",
		        of, name, strerror(-error), of, aside);
}

/* Rings. */

/* Three at a time; a descriptor each. */
static void close_three(const int fds[3])
{
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
}

void recording_prepare_ring(struct recording *r)
{
	if (r->kept && r->ready_count < RECORDING_READY_MAX &&
	        ring_prepare(r->rings, r->ready[r->ready_count]) == 0)
		r->ready_count++;
}

void recording_close_ready(struct recording *r)
{
	while (r->ready_count)
		close_three(r->ready[--r->ready_count]);
}

static int name_ready(struct recording *r, const char *name, struct recorded_ring *ring)
{
	const int *fds = r->ready[--r->ready_count];
	int error = ring_name(fds, r->rings, name);

	if (error)
		close_three(fds);
	else
		memcpy(ring->fds, fds, sizeof ring->fds);
	return error;
}

int recording_make_ring(struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring)
{
	char name[NAME_BYTES];

	if (!r->kept)
		return ring_create(ring->fds);
	name_of(sandbox_id, ring->id, name);
	return r->ready_count ? name_ready(r, name, ring)
	                      : ring_create_at(r->rings, name, ring->fds);
}

void recording_close_ring(const struct recorded_ring *ring)
{
	close_three(ring->fds);
}

void recording_remove_ring(
        const struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring)
{
	char name[NAME_BYTES];

	if (r->kept) {
		name_of(sandbox_id, ring->id, name);
		unlinkat(r->rings, name, 0);
	}
	recording_close_ring(ring);
}

/* Events. */

static int write_file(int directory, const char *name, const uint8_t *p, size_t n)
{
	int fd =
	        openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = 0;

	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, p, n);
	if (written != (ssize_t)n)
		error = written < 0 ? -errno : -ENOSPC;
	close(fd);
	if (error)
		unlinkat(directory, name, 0);
	return error;
}

/* A full disk is full for each of them: said when it begins, and when it is over. */
static void tell_unkept(struct recording *r, int error)
{
	if (error && r->unkept++ == 0)
		log_error("events cannot be kept for a restart: %s", strerror(-error));
	if (error || r->unkept == 0)
		return;
	log_warn("events can be kept for a restart again; %u could not", r->unkept);
	r->unkept = 0;
}

void recording_keep_told(
        struct recording *r, uint64_t sandbox_id, uint64_t id, const uint8_t *encoded, size_t n)
{
	char name[NAME_BYTES];

	if (!r->kept)
		return;
	name_of(sandbox_id, id, name);
	tell_unkept(r, write_file(r->told, name, encoded, n));
}

void recording_remove_told(const struct recording *r, uint64_t sandbox_id, uint64_t id)
{
	char name[NAME_BYTES];

	if (!r->kept)
		return;
	name_of(sandbox_id, id, name);
	unlinkat(r->told, name, 0);
}

/* The directory. */

static int open_folder(int directory, const char *name)
{
	if (mkdirat(directory, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

void recording_blame_journal(const struct recording *r, const char *why)
{
	const char *in = r->kept_in;

	log_error("%s/journal: %s. Everything stays closed until that is mended: stop vethguardd, "
	          "mv -T %s/journal %s/journal.aside, start it again. Events may be in the log "
	          "twice then, none is missing",
	        in, why, in, in);
}

static int open_journal(const struct recording *r, int directory, struct journal_identity *identity)
{
	int64_t end_ms = clock_monotonic_ms() + RECORDING_ADOPT_MS;
	int fd;

	while ((fd = journal_open_at(directory, "journal", identity)) == -EWOULDBLOCK &&
	        clock_monotonic_ms() < end_ms)
		poll(NULL, 0, RETRY_MS);
	if (fd == -EBADMSG) { /* of another version, or cut: what it noted cannot be known */
		log_error("the recorder's journal is unusable and is begun anew: events may be in "
		          "the log twice");
		unlinkat(directory, "journal", 0);
		fd = journal_open_at(directory, "journal", identity);
	}
	if (fd < 0 && fd != -EWOULDBLOCK)
		recording_blame_journal(r, strerror(-fd));
	return fd;
}

static void name_directory(int directory, char *out, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
	n = readlink(link, out, size - 1);
	out[n > 0 ? n : 0] = 0;
}

int recording_keep_at(struct supervisor *sv, int directory)
{
	struct recording *r = &sv->recording;
	struct journal_identity identity = {.opened = r->after};
	int journal;

	name_directory(directory, r->kept_in, sizeof r->kept_in);
	journal = open_journal(r, directory, &identity);
	if (journal < 0)
		return journal;
	r->rings = open_folder(directory, "rings");
	r->told = open_folder(directory, "told");
	if (r->rings < 0 || r->told < 0) {
		int error = r->rings < 0 ? r->rings : r->told;

		if (r->rings >= 0)
			close(r->rings);
		if (r->told >= 0)
			close(r->told);
		close(journal);
		return error;
	}
	r->journal = journal;
	r->kept = true;
	r->daemon.id = (uint64_t)identity.created << 32;
	r->first_id = sv->last_id = (uint64_t)identity.opened << 32;
	return 0;
}

/* What was left. */

static bool parse_name(const char *name, struct recording_left *out)
{
	char again[NAME_BYTES];

	if (sscanf(name, "%16" SCNx64 ".%16" SCNx64, &out->sandbox_id, &out->id) != 2)
		return false;
	name_of(out->sandbox_id, out->id, again);
	return strcmp(again, name) == 0;
}

static int by_id(const void *a, const void *b)
{
	const struct recording_left *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The files of a folder made before this start, oldest first (malloc'd). 0 or -errno. */
static int list(int directory, uint64_t before, struct recording_left **out, size_t *count)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct recording_left *all = d ? calloc(LEFT_MAX, sizeof *all) : NULL;

	*count = 0;
	*out = all;
	if (!all) {
		int error = d ? -ENOMEM : -errno;

		if (d)
			closedir(d);
		else if (fd >= 0)
			close(fd);
		return error;
	}
	while (*count < LEFT_MAX && (entry = readdir(d)) != NULL)
		if (parse_name(entry->d_name, &all[*count]) && all[*count].id <= before)
			(*count)++;
	closedir(d);
	qsort(all, *count, sizeof *all, by_id);
	return 0;
}

/* NULL: no memory. */
static struct recorded *owner_of(struct supervisor *sv, uint64_t id)
{
	struct sandbox *s = supervisor_find(sv, id);
	struct recorded *left = sv->recording.left;

	if (s && s->recorded.open)
		return &s->recorded;
	if (id == sv->recording.daemon.id && sv->recording.daemon.open)
		return &sv->recording.daemon;
	while (left && left->id != id)
		left = left->next;
	return left ? left : recording_open_left(sv, id);
}

int recording_adopt_ring(struct supervisor *sv, const struct recording_left *file)
{
	struct recorded_ring *ring = calloc(1, sizeof *ring);
	struct recorded *of;
	char name[NAME_BYTES];
	int error = ring ? 0 : -ENOMEM;

	name_of(file->sandbox_id, file->id, name);
	if (!error)
		error = ring_adopt_at(sv->recording.rings, name, ring->fds);
	if (error == -EWOULDBLOCK) {
		free(ring);
		return error;
	}
	if (error) {
		free(ring);
		set_aside(sv->recording.rings, "rings", name, error);
		return error == -ENOMEM ? error : 0;
	}
	ring->id = file->id;
	of = owner_of(sv, file->sandbox_id);
	if (!of) {
		recording_close_ring(ring);
		free(ring);
		return -ENOMEM;
	}
	ring->next = of->rings;
	of->rings = ring;
	recording_ring_ends(sv, of, ring);
	return recording_give_rings(sv, of);
}

/* Now; or when its writer is gone, or there are descriptors for it: of many sandboxes those that
 * are read give theirs to the next. */
static int adopt_ring(struct supervisor *sv, const struct recording_left *file)
{
	int error = open_files_left() ? recording_adopt_ring(sv, file) : -EWOULDBLOCK;

	return error == -EWOULDBLOCK ? recording_wait_for_ring(sv, file) : error;
}

/* How many bytes, or -errno. */
static ssize_t read_file(int directory, const char *name, uint8_t *out, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -errno : read(fd, out, size);

	if (fd >= 0 && n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	return n;
}

static int adopt_told(struct supervisor *sv, const struct recording_left *file)
{
	static uint8_t encoded[EVENT_BYTES_MAX];
	struct recorded *of = owner_of(sv, file->sandbox_id);
	struct event event;
	char name[NAME_BYTES];
	ssize_t n;

	if (!of)
		return -ENOMEM;
	name_of(file->sandbox_id, file->id, name);
	n = read_file(sv->recording.told, name, encoded, sizeof encoded);
	if (n < 0) {
		set_aside(sv->recording.told, "told", name, (int)n);
		return 0;
	}
	if (n == 0 || event_decode(encoded, (size_t)n, &event) != 0) {
		/* Killed while it was written: it was told to nobody either. */
		log_warn("%s is no whole event", name);
		unlinkat(sv->recording.told, name, 0);
		return 0;
	}
	told_restore(sv, of, file->id, encoded, (size_t)n);
	return 0;
}

int recording_adopt_told(struct supervisor *sv, uint64_t id)
{
	struct recording_left *files;
	size_t count;
	int error = sv->recording.kept
	                    ? list(sv->recording.told, sv->recording.first_id, &files, &count)
	                    : -ENOENT;

	if (error)
		return sv->recording.kept ? error : 0;
	for (size_t i = 0; i < count && !error; i++)
		if (files[i].sandbox_id == id)
			error = adopt_told(sv, &files[i]);
	free(files);
	return error;
}

static int adopt_all(struct supervisor *sv, int folder,
        int (*adopt)(struct supervisor *sv, const struct recording_left *file))
{
	struct recording_left *files;
	size_t count;
	int error = list(folder, sv->recording.first_id, &files, &count);

	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++)
		error = adopt(sv, &files[i]);
	free(files);
	return error;
}

/* Where nothing is known of how far a ring was read, the reader goes by the ring itself. */
static int adopt_foreign_ring(struct supervisor *sv, int from, const struct recording_left *file)
{
	char name[NAME_BYTES];

	name_of(file->sandbox_id, file->id, name);
	if (renameat(from, name, sv->recording.rings, name) < 0)
		return errno == ENOENT ? 0 : -errno;
	supervisor_id_is_used(sv, file->id);
	return adopt_ring(sv, file);
}

/* Under an id of our own: the recorder hears of events in the order of their ids. */
static int adopt_foreign_told(struct supervisor *sv, int from, const struct recording_left *file)
{
	const struct recording_left here = {file->sandbox_id, supervisor_next_id(sv)};
	char name[NAME_BYTES], name_here[NAME_BYTES];

	name_of(file->sandbox_id, file->id, name);
	name_of(here.sandbox_id, here.id, name_here);
	if (renameat(from, name, sv->recording.told, name_here) < 0)
		return errno == ENOENT ? 0 : -errno;
	return adopt_told(sv, &here);
}

static int adopt_folder(struct supervisor *sv, int directory, const char *folder,
        int (*adopt)(struct supervisor *sv, int from, const struct recording_left *file))
{
	int from = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int error = from < 0 && errno != ENOENT ? -errno : 0;
	struct recording_left *files = NULL;
	size_t count = 0;

	if (from < 0)
		return error;
	error = list(from, UINT64_MAX, &files, &count);
	for (size_t i = 0; i < count && !error; i++)
		error = adopt(sv, from, &files[i]);
	free(files);
	close(from);
	return error;
}

int recording_adopt_from(struct supervisor *sv, int directory)
{
	int error = adopt_folder(sv, directory, "rings", adopt_foreign_ring);

	if (!error)
		error = adopt_folder(sv, directory, "told", adopt_foreign_told);
	if (error)
		return error;
	if (unlinkat(directory, "journal", 0) < 0 && errno != ENOENT)
		return -errno;
	for (size_t i = 0; i < 2; i++)
		if (unlinkat(directory, i ? "told" : "rings", AT_REMOVEDIR) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

int recording_adopt(struct supervisor *sv)
{
	int error;

	if (!sv->recording.kept)
		return 0;
	error = adopt_all(sv, sv->recording.rings, adopt_ring);
	return error ? error : adopt_all(sv, sv->recording.told, adopt_told);
}
