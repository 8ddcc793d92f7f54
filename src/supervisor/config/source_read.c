/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: sources on a file system that may stop answering. A child opens the file, with the rights
 * and checks of source_file_open(), and copies it into a pipe. The keeper gets the pipe only when
 * the whole file is in it, so that it never waits for a file system, and the supervisor still reads
 * no byte of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vethguard/base/secret.h"
#include "supervisor/os/helper_child.h"
#include "supervisor/config/sources.h"

#define PIPE_BYTES (2 * SECRET_MAX)

struct source_read {
	struct sources *sources;
	struct helper_child *helper;
	uint64_t id;
	uint32_t index;
	int output;
	char path[4096];
};

/* In the child. */

static int say(int report, const char *text)
{
	(void)!write(report, text, strlen(text));
	return 1;
}

static int copy_by(char bytes[SECRET_MAX], int from, int output, char error[SOURCE_ERROR_MAX])
{
	size_t have = 0;

	while (have < SECRET_MAX) {
		ssize_t n = read(from, bytes + have, SECRET_MAX - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			snprintf(error, SOURCE_ERROR_MAX, "its file cannot be read: %s",
			        strerror(errno));
			return -1;
		}
		if (n == 0)
			return write(output, bytes, have) == (ssize_t)have ? 0 : -1;
		have += (size_t)n;
	}
	snprintf(error, SOURCE_ERROR_MAX, "its file has more than the %d bytes of a credential",
	        SECRET_MAX);
	return -1;
}

/* The locked memory of secret_alloc() belongs to the parent. */
static int copy(int from, int output, char error[SOURCE_ERROR_MAX])
{
	char bytes[SECRET_MAX] = {0};
	int rc;

	if (mlock(bytes, sizeof(bytes)) < 0) {
		snprintf(error, SOURCE_ERROR_MAX, "there is no locked memory for it: %s",
		        strerror(errno));
		return -1;
	}
	rc = copy_by(bytes, from, output, error);
	secret_wipe(bytes, sizeof(bytes));
	return rc;
}

static int run(void *context, int report, int output)
{
	const struct source_read *r = context;
	char error[SOURCE_ERROR_MAX] = "its file cannot be handed on";
	int fd = source_file_open(&r->sources->identity, r->path, true, error);

	return fd < 0 || copy(fd, output, error) != 0 ? say(report, error) : 0;
}

/* In the parent. */

static void on_done(void *context, const struct helper_child_result *result)
{
	struct source_read *r = context;
	char text[SOURCE_ERROR_MAX] = "its file cannot be read: the process that read it died",
	     shown[256];
	int output = -1;
	ssize_t n;

	r->helper = NULL;
	slice_escape(slice_from_string(r->path), shown, sizeof(shown));
	if (result->late) {
		snprintf(text, sizeof(text),
		        "%s: its file system has not answered for %d seconds: repair that mount, "
		        "or "
		        "keep the file on a local one",
		        shown, SOURCE_READ_MS / 1000);
	} else if (result->status == 0) {
		output = r->output;
		r->output = -1;
	} else if (result->status > 0) {
		n = read(result->report, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = 0;
	}
	sources_read_ended(r->sources, r->index, r->id, output, output < 0 ? text : NULL);
}

static int start(struct source_read *r)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* If this fails: the default size holds SECRET_MAX. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	r->output = ends[0];
	const struct helper_child_plan plan = {.run = run,
	        .context = r,
	        .output = ends[1],
	        .uid = r->sources->identity.uid,
	        .ms = SOURCE_READ_MS};
	int rc = helper_child_start(r->sources->loop, &plan, on_done, r, &r->helper);
	close(ends[1]);
	return rc;
}

struct source_read *source_read_start(struct sources *sources, const char *path, uint64_t id,
        uint32_t index, char error[SOURCE_ERROR_MAX])
{
	struct source_read *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	if (r) {
		r->sources = sources;
		r->id = id;
		r->index = index;
		r->output = -1;
		snprintf(r->path, sizeof(r->path), "%s", path);
		rc = start(r);
	}
	if (!rc)
		return r;
	snprintf(error, SOURCE_ERROR_MAX, "%s",
	        rc == -EAGAIN ? HELPER_CHILDREN_FULL : "its file cannot be read: no memory");
	source_read_free(r);
	return NULL;
}

void source_read_free(struct source_read *r)
{
	if (!r)
		return;
	helper_child_cancel(r->helper);
	if (r->output >= 0)
		close(r->output);
	free(r);
}
