/* SPDX-License-Identifier: Apache-2.0 */
/* The files are usually on tmpfs: they have to outlive processes, not the machine. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/ring.h"
#include "supervisor/events/files.h"
#include "supervisor/supervisor.h"

#define RETRY_MS 10

void recording_file_name(uint64_t sandbox_id, uint64_t id, char out[RECORDING_NAME_BYTES])
{
	snprintf(out, RECORDING_NAME_BYTES, "%016" PRIx64 ".%016" PRIx64, sandbox_id, id);
}

/* Rings. */

/* The three descriptors of a ring. */
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
	int rc = ring_name(fds, r->rings, name);

	if (rc)
		close_three(fds);
	else
		memcpy(ring->fds, fds, sizeof(ring->fds));
	return rc;
}

int recording_make_ring(struct recording *r, uint64_t sandbox_id, struct recorded_ring *ring)
{
	char name[RECORDING_NAME_BYTES];

	if (!r->kept)
		return ring_create(ring->fds);
	recording_file_name(sandbox_id, ring->id, name);
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
	char name[RECORDING_NAME_BYTES];

	if (r->kept) {
		recording_file_name(sandbox_id, ring->id, name);
		unlinkat(r->rings, name, 0);
	}
	recording_close_ring(ring);
}

/* Events. */

static int write_file(int directory, const char *name, const uint8_t *p, size_t n)
{
	int fd =
	        openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	ssize_t written = write(fd, p, n);
	if (written != (ssize_t)n)
		rc = written < 0 ? -errno : -ENOSPC;
	close(fd);
	if (rc)
		unlinkat(directory, name, 0);
	return rc;
}

/* A full disk fails for every event: logged when it begins and when it is over. */
static void tell_unkept(struct recording *r, int error)
{
	if (error && r->unkept++ == 0)
		log_error("events cannot be kept for a restart: %s", strerror(-error));
	if (error || r->unkept == 0)
		return;
	log_warn("events can be kept for a restart again; %u could not", r->unkept);
	r->unkept = 0;
}

void recording_keep_event(
        struct recording *r, uint64_t sandbox_id, uint64_t id, const uint8_t *encoded, size_t n)
{
	char name[RECORDING_NAME_BYTES];

	if (!r->kept)
		return;
	recording_file_name(sandbox_id, id, name);
	tell_unkept(r, write_file(r->told, name, encoded, n));
}

void recording_remove_event(const struct recording *r, uint64_t sandbox_id, uint64_t id)
{
	char name[RECORDING_NAME_BYTES];

	if (!r->kept)
		return;
	recording_file_name(sandbox_id, id, name);
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

	log_error("%s/journal: %s. Everything stays closed until that is repaired: stop "
	          "vethguardd, run 'mv -T %s/journal %s/journal.aside', start it again. Events may "
	          "then be in the log twice; none is missing",
	        in, why, in, in);
}

static int open_journal(const struct recording *r, int directory, struct journal_identity *identity)
{
	int64_t end_ms = clock_monotonic_ms() + RECORDING_ADOPT_MS;
	int fd;

	while ((fd = journal_open_at(directory, "journal", identity)) == -EWOULDBLOCK &&
	        clock_monotonic_ms() < end_ms)
		poll(NULL, 0, RETRY_MS);
	if (fd == -EBADMSG) { /* another version's, or truncated: its content cannot be known */
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

	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	n = readlink(link, out, size - 1);
	out[n > 0 ? n : 0] = 0;
}

void recording_begin_after(struct recording *r, uint32_t after)
{
	r->after = after;
}

int recording_keep_at(struct supervisor *sv, int directory)
{
	struct recording *r = &sv->recording;
	struct journal_identity identity = {.opened = r->after};
	int journal;

	name_directory(directory, r->kept_in, sizeof(r->kept_in));
	journal = open_journal(r, directory, &identity);
	if (journal < 0)
		return journal;
	r->rings = open_folder(directory, "rings");
	r->told = open_folder(directory, "told");
	if (r->rings < 0 || r->told < 0) {
		int rc = r->rings < 0 ? r->rings : r->told;

		if (r->rings >= 0)
			close(r->rings);
		if (r->told >= 0)
			close(r->told);
		close(journal);
		return rc;
	}
	r->journal = journal;
	r->kept = true;
	r->daemon.id = (uint64_t)identity.created << 32;
	r->first_id = (uint64_t)identity.opened << 32;
	supervisor_id_is_used(sv, r->first_id);
	return 0;
}
