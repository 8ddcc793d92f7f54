/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a bundle comes from: a URL, which vethguard-fetch asks, or a file. The file is read again
 * once its path leads to another file (as in the folder of a ConfigMap) or the file has changed.
 * Neither source is trusted: only a good signature makes a bundle. So a file may belong to anybody.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/os/local_file.h"
#include "supervisor/os/operator_file.h"

#define WHY_MAX (PATH_MAX + 256)

/* --- bytes --- */

/* Reads to the end of fd. Returns 0; -EFBIG; or -errno. */
static int read_all(int fd, struct buf *out)
{
	ssize_t n = 1;

	buf_init(out, SIGNED_BUNDLE_BYTES_MAX + 1);
	while (n) {
		uint8_t *room;

		if (out->len > SIGNED_BUNDLE_BYTES_MAX)
			return -EFBIG;
		room = buf_reserve(out, 1);
		if (!room)
			return -ENOMEM;
		n = read(fd, room, out->cap - out->start - out->len);
		if (n < 0 && errno != EINTR)
			return -errno;
		buf_commit(out, n > 0 ? (size_t)n : 0);
		n = n < 0 ? 1 : n;
	}
	return 0;
}

/* Takes the bundle of an open file. Returns true if it is in force now. */
static bool take_from(struct bundle *b, int fd)
{
	struct buf bytes;
	int rc = read_all(fd, &bytes);
	bool taken = false;

	if (rc == -EFBIG)
		bundle_fail(b, SIGNED_BUNDLE_FORM, "it has more than 1 MiB: make it smaller");
	else if (rc)
		bundle_fail(b, SIGNED_BUNDLE_SOURCE, strerror(-rc));
	else
		taken = bundle_take(b, buf_slice(&bytes));
	buf_fini(&bytes);
	return taken;
}

/* --- a file --- */

static void look_at_file(struct bundle *b, bool now)
{
	struct stat st;
	int fd = local_file_open(b->config.source);

	b->looked_ms = clock_real_ms();
	if (fd < 0) {
		memset(&b->seen, 0, sizeof(b->seen));
		bundle_fail(b, SIGNED_BUNDLE_SOURCE,
		        fd == LOCAL_FILE_UNKNOWN
		                ? "the file is on a file system that may not answer: keep it on a "
		                  "local one"
		        : fd == -EINVAL ? "it is not a regular file"
		                        : strerror(-fd));
		return;
	}
	if (fstat(fd, &st) == 0 && (now || !gateway_file_is_same(&st, &b->seen))) {
		b->seen = st;
		take_from(b, fd);
		if (b->fault == SIGNED_BUNDLE_SOURCE || b->fault == SIGNED_BUNDLE_DISK)
			memset(&b->seen, 0, sizeof(b->seen)); /* the next look may succeed */
	}
	close(fd);
}

/* --- a URL --- */

static void on_fetched(void *context, const struct key_fetched *fetched)
{
	struct bundle *b = context;
	int64_t wait_s = b->config.refresh_s;

	b->over = true;
	if (b->all->held || b->all->stopping)
		return; /* nothing changes now; it is asked again */
	b->looked_ms = clock_real_ms();
	if (fetched->error) {
		bundle_fail(b, SIGNED_BUNDLE_SOURCE, fetched->error);
		wait_s = wait_s < BUNDLES_AGAIN_S ? wait_s : BUNDLES_AGAIN_S;
	} else if (fetched->same) {
		b->fault = SIGNED_BUNDLE_GOOD;
	} else if (take_from(b, fetched->fd)) {
		snprintf(b->etag, sizeof(b->etag), "%s", fetched->etag);
	}
	b->again_ms = loop_now_ms(b->all->supervisor->loop) + wait_s * 1000;
}

static void ask(struct bundle *b, bool now)
{
	struct supervisor *sv = b->all->supervisor;

	if (b->over) {
		key_fetch_free(b->running);
		b->running = NULL;
		b->over = false;
	}
	if (b->running || (!now && loop_now_ms(sv->loop) < b->again_ms))
		return;
	b->running = key_fetch_start(
	        &sv->leases, KEY_FETCH_BUNDLE, b->config.source, b->etag, on_fetched, b);
}

void bundle_look(struct bundle *b, bool now)
{
	if (b->damaged || !b->key_count)
		return; /* it was told; a reload of the configuration opens it again */
	if (b->config.refresh_s)
		ask(b, now);
	else
		look_at_file(b, now);
}

/* --- keys, and what was kept --- */

/* Reads a public key. Returns false after a fault. */
static bool read_key(struct bundle *b, const char *path)
{
	char why[WHY_MAX], text[BUNDLES_LOCAL_MAX];
	int fd = operator_file_open("bundles.keys", path, false, why, sizeof(why));
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	const char *objection = NULL;

	if (n < 0)
		objection = strerror(errno);
	else if (n == (ssize_t)sizeof(text))
		objection = "it is too long for a public key";
	else if (fd >= 0)
		objection = sign_key_public(slice_of(text, (size_t)n), &b->keys[b->key_count]);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !objection) {
		b->key_count++;
		return true;
	}
	if (objection)
		snprintf(why, sizeof(why), "bundles.keys: %s: %s", path, objection);
	bundle_fail(b, SIGNED_BUNDLE_SOURCE, why);
	return false;
}

/* Puts the bundle that was kept in force again. */
static void read_kept(struct bundle *b)
{
	char why[SIGNED_BUNDLE_WHY_MAX], text[2 * SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *kept = NULL;
	enum signed_bundle_fault fault = SIGNED_BUNDLE_DISK;
	struct buf file;
	int rc;

	buf_init(&file, SIGNED_BUNDLE_BYTES_MAX);
	rc = bundle_store_read(&b->store, &file);
	if (rc)
		snprintf(why, sizeof(why), "%s", rc == -EBADMSG ? "it is damaged" : strerror(-rc));
	else
		fault = signed_bundle_open(buf_slice(&file), b->keys, b->key_count, &kept, why);
	buf_fini(&file);
	if (!fault && !slice_equals(kept->name, slice_from_string(b->config.name))) {
		snprintf(why, sizeof(why), "its name is %.*s", SLICE_ARG(kept->name));
		fault = SIGNED_BUNDLE_CONTENT;
	}
	if (!fault) {
		rc = bundle_store_extract(&b->store, kept);
		rc = rc ? rc : bundle_set_active(b, kept);
		fault = rc ? SIGNED_BUNDLE_DISK : fault;
		snprintf(why, sizeof(why), "%s", rc ? strerror(-rc) : "");
	}
	if (!fault) {
		log_info("bundle %s: serial %llu, which was kept, is in force", b->config.name,
		        (unsigned long long)b->active->serial);
		return;
	}
	signed_bundle_free(kept);
	if (rc == -ENOENT && !b->store.highest)
		return; /* none was taken yet */
	bundle_store_hide(&b->store);
	snprintf(text, sizeof(text), "its copy on this machine cannot be used: %s", why);
	bundle_fail(b, fault, text);
}

void bundle_open(struct bundle *b)
{
	int rc = bundle_store_open(&b->store, b->all->bundles.dir, b->config.name);

	if (rc) {
		char why[SIGNED_BUNDLE_WHY_MAX];

		b->damaged = true;
		snprintf(why, sizeof(why),
		        "its copy in %.256s/%s cannot be used (%s), so the daemon does not know "
		        "which serials it has taken. Look at it, remove that directory, and reload",
		        b->all->bundles.path, b->config.name,
		        rc == -EBADMSG ? "it is damaged" : strerror(-rc));
		bundle_fail(b, SIGNED_BUNDLE_DISK, why);
		return;
	}
	for (size_t i = 0; i < b->config.key_count; i++)
		if (!read_key(b, b->config.keys[i]))
			break;
	if (b->key_count)
		read_kept(b);
	else
		bundle_store_hide(&b->store);
}

void bundle_free(struct bundle *b)
{
	if (!b)
		return;
	key_fetch_free(b->running);
	while (b->key_count)
		sign_key_fini(&b->keys[--b->key_count]);
	bundle_store_close(&b->store);
	signed_bundle_free(b->active);
	free(b->tokens);
	free(b);
}
