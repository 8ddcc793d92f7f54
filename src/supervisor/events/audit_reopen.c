/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child opens the file for appending and for reading, identifies it, and sends both descriptors
 * in one datagram: the parent touches nothing that may hang.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/peer.h"
#include "supervisor/events/audit_reopen.h"
#include "supervisor/os/helper_child.h"

#define OPENED_FDS 2

/* The child's report; the descriptors are sent separately. */
struct told {
	int error;
	struct audit_identity identity;
};

struct audit_opening {
	struct helper_child *helper;
	int from_child;
	void (*done)(void *context, const struct audit_opened *opened);
	void *context;
};

static uint8_t buffer[MESSAGE_BYTES_MAX];

int audit_identify(int fd, struct audit_identity *out)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*out = (struct audit_identity){st.st_dev, st.st_ino};
	return 0;
}

/* In the child, which ends next. */

struct wanted {
	const char *path;
	const struct identity *opener;
};

static int open_and_send(const struct wanted *w, int output, struct audit_identity *identity)
{
	int fds[OPENED_FDS];
	size_t n = message_empty(buffer, sizeof(buffer), MESSAGE_RECORDER_REOPEN, 0);
	int rc;

	fds[0] = w->opener ? audit_file_open(w->opener, w->path) : audit_file_open_own(w->path);
	if (fds[0] < 0)
		return fds[0];
	fds[1] = audit_file_reader(fds[0]);
	rc = fds[1] < 0 ? fds[1] : audit_identify(fds[0], identity);
	return rc ? rc : ipc_send_blocking(output, buffer, n, fds, OPENED_FDS);
}

static int run(void *context, int report, int output)
{
	struct told told = {0};

	told.error = open_and_send(context, output, &told.identity);
	return write(report, &told, sizeof(told)) == (ssize_t)sizeof(told) ? 0 : 1;
}

/* In the parent. */

/* The child has ended, so the datagram is there or will not come. */
static int take_descriptors(int fd, struct audit_opened *opened)
{
	struct ipc_message message;
	int rc = ipc_receive_blocking(fd, 0, buffer, &message);

	if (rc)
		return rc;
	if (message.fd_count != OPENED_FDS) {
		for (size_t i = 0; i < message.fd_count; i++)
			close(message.fds[i]);
		return -EBADMSG;
	}
	opened->log = message.fds[0];
	opened->reader = message.fds[1];
	return 0;
}

static void on_done(void *context, const struct helper_child_result *result)
{
	struct audit_opening *o = context;
	struct audit_opened opened = {.error = -EIO, .log = -1, .reader = -1};
	struct told told;

	if (result->late) {
		opened.error = -ETIMEDOUT;
	} else if (result->status == 0 &&
	           read(result->report, &told, sizeof(told)) == sizeof(told)) {
		opened.error = told.error ? told.error : take_descriptors(o->from_child, &opened);
		opened.identity = told.identity;
	}
	o->done(o->context, &opened);
	close(o->from_child);
	free(o);
}

static int begin(struct audit_opening *o, struct loop *loop, struct wanted *wanted)
{
	int pair[2], error = ipc_pair(pair);

	if (error)
		return error;
	const struct helper_child_plan plan = {.run = run,
	        .context = wanted,
	        .output = pair[1],
	        .uid = HELPER_CHILD_NOBODY,
	        .ms = AUDIT_OPENING_MS};
	o->from_child = pair[0];
	error = helper_child_start(loop, &plan, on_done, o, &o->helper);
	close(pair[1]);
	if (error)
		close(pair[0]);
	return error;
}

int audit_reopen_start(struct loop *loop, const char *path, const struct identity *opener,
        void (*done)(void *context, const struct audit_opened *opened), void *context,
        struct audit_opening **out)
{
	struct audit_opening *o = calloc(1, sizeof(*o));
	struct wanted wanted = {path, opener};
	int rc = o ? 0 : -ENOMEM;

	if (!rc) {
		o->done = done;
		o->context = context;
		rc = begin(o, loop, &wanted);
	}
	if (rc)
		free(o);
	else
		*out = o;
	return rc;
}

void audit_reopen_cancel(struct audit_opening *o)
{
	if (!o)
		return;
	helper_child_cancel(o->helper);
	close(o->from_child);
	free(o);
}
