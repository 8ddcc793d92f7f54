/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/session/revocations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/table.h"

#define FRESH REVOCATIONS_FILE ".new"

struct revocation {
	UT_hash_handle hh;
	uint8_t id[MESSAGE_TOKEN_HASH_BYTES];
	int64_t until_ms;
};

static struct revocation *find(const struct revocations *r, const uint8_t *id)
{
	struct revocation *found;

	HASH_FIND(hh, r->by_id, id, MESSAGE_TOKEN_HASH_BYTES, found);
	return found;
}

static void forget(struct revocations *r, struct revocation *one)
{
	HASH_DEL(r->by_id, one);
	free(one);
}

static void forget_past(struct revocations *r, int64_t now_ms)
{
	struct revocation *one, *next;

	HASH_ITER(hh, r->by_id, one, next)
	{
		if (one->until_ms <= now_ms)
			forget(r, one);
	}
}

static int put(struct revocations *r, const uint8_t *id, int64_t until_ms)
{
	struct revocation *one = find(r, id);

	if (one) {
		one->until_ms = until_ms > one->until_ms ? until_ms : one->until_ms;
		return 0;
	}
	if (HASH_COUNT(r->by_id) >= REVOCATIONS_MAX)
		return -ENOSPC;
	one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	memcpy(one->id, id, sizeof(one->id));
	one->until_ms = until_ms;
	HASH_ADD(hh, r->by_id, id, sizeof(one->id), one);
	if (one->hh.tbl)
		return 0;
	free(one);
	return -ENOMEM;
}

/* --- the file --- */

static int save(const struct revocations *r, int dir)
{
	const struct revocation *one;
	FILE *out;
	int fd, rc = 0;

	unlinkat(dir, FRESH, 0);
	fd = openat(dir, FRESH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	for (one = r->by_id; one; one = one->hh.next) {
		for (size_t i = 0; i < sizeof(one->id); i++)
			fprintf(out, "%02x", one->id[i]);
		fprintf(out, " %lld\n", (long long)one->until_ms);
	}
	if (fflush(out) != 0 || fsync(fd) < 0)
		rc = -errno;
	if (fclose(out) != 0 && !rc)
		rc = -errno;
	if (!rc && renameat(dir, FRESH, dir, REVOCATIONS_FILE) < 0)
		rc = -errno;
	if (!rc && fsync(dir) < 0)
		rc = -errno;
	if (rc)
		unlinkat(dir, FRESH, 0);
	return rc;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_line(struct revocations *r, struct slice line)
{
	const size_t digits = 2 * (size_t)MESSAGE_TOKEN_HASH_BYTES;
	uint8_t id[MESSAGE_TOKEN_HASH_BYTES];
	uint64_t until_ms;

	if (line.n < digits + 2 || line.p[digits] != ' ' ||
	        !slice_to_u64(
	                slice_of(line.p + digits + 1, line.n - digits - 1), INT64_MAX, &until_ms))
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(id); i++) {
		int high = digit(line.p[2 * i]), low = digit(line.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return put(r, id, (int64_t)until_ms);
}

static int take_all(struct revocations *r, struct slice text)
{
	int rc = 0;

	while (!rc && text.n) {
		ptrdiff_t end = slice_find_byte(text, '\n');

		rc = end < 0 ? -EBADMSG : take_line(r, slice_of(text.p, (size_t)end));
		if (!rc)
			text = slice_of(text.p + end + 1, text.n - (size_t)end - 1);
	}
	return rc;
}

/* Only this program writes the file: anything unusual was put there by somebody else. */
static int read_file(int fd, char **text, size_t *n)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
	        st.st_size < 0 || st.st_size > (off_t)REVOCATIONS_MAX * REVOCATION_LINE_MAX)
		return -EBADMSG;
	*n = (size_t)st.st_size;
	*text = malloc(*n + 1);
	if (!*text)
		return -ENOMEM;
	return read(fd, *text, *n) == (ssize_t)*n ? 0 : -EIO;
}

int revocations_load(struct revocations *r, int dir, int64_t now_ms)
{
	int fd = openat(
	        dir, REVOCATIONS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = read_file(fd, &text, &n);
	if (!rc)
		rc = take_all(r, slice_of(text, n));
	free(text);
	close(fd);
	forget_past(r, now_ms);
	return rc;
}

/* --- one of them --- */

int revocations_add(struct revocations *r, int dir, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES],
        int64_t until_ms, int64_t now_ms)
{
	const struct revocation *before;
	int64_t until_before_ms;
	struct revocation *one;
	int rc;

	forget_past(r, now_ms);
	before = find(r, id);
	until_before_ms = before ? before->until_ms : 0;
	rc = put(r, id, until_ms);
	if (!rc)
		rc = save(r, dir);
	one = rc ? find(r, id) : NULL;
	if (one && until_before_ms)
		one->until_ms = until_before_ms;
	else if (one)
		forget(r, one);
	return rc;
}

bool revocations_has(
        const struct revocations *r, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES], int64_t now_ms)
{
	const struct revocation *one = find(r, id);

	return one && one->until_ms > now_ms;
}

void revocations_free(struct revocations *r)
{
	struct revocation *one, *next;

	HASH_ITER(hh, r->by_id, one, next)
	forget(r, one);
}
