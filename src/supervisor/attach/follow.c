/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that ends with a process. At first this is the process that prepares the namespace for
 * an engine, so the sandbox ends too if the container is never made. When the engine has made the
 * container, the sandbox follows the container's own process.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/process.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/attach/process.h"

static void refuse(attach_done done, void *context, pid_t pid, int rc)
{
	if (rc == -ESRCH)
		attach_refuse(done, context, ATTACH_INVALID, "there is no process %d", (int)pid);
	else
		attach_refuse(
		        done, context, ATTACH_FAILED, "process %d: %s", (int)pid, strerror(-rc));
}

static void set_process(struct attachment *a, pid_t pid, uint64_t start_time)
{
	a->record.pid = pid;
	a->record.pid_start_time = start_time;
}

/* The process so far counts until the other one is watched and its number is on the disk. */
static int follow(struct attachment *a, pid_t pid, int pidfd)
{
	const pid_t former = a->record.pid;
	const uint64_t former_start = a->record.pid_start_time;
	struct loop_io watch = {0};
	uint64_t start_time;
	int rc = process_start_time(pid, &start_time);

	if (!rc)
		rc = attachment_watch_beside(a, &watch, pidfd);
	if (!rc) {
		set_process(a, pid, start_time);
		rc = attachment_save(a);
	}
	if (!rc) {
		attachment_follow_watch(a, &watch);
		return 0;
	}
	set_process(a, former, former_start);
	loop_io_close(&watch);
	close(pidfd);
	return rc;
}

void attachments_follow(struct attachments *all, const char *name, pid_t pid, uint64_t start_time,
        attach_done done, void *context)
{
	struct attachment *a = attachments_find_served(all, name, done, context);
	struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	int rc;

	if (!a)
		return;
	if (a->record.kind != ATTACH_NETNS) {
		attach_refuse(done, context, ATTACH_INVALID,
		        "%s was not attached by its namespace: only such a sandbox can follow "
		        "another process",
		        name);
		return;
	}
	rc = attach_process_open(pid, start_time);
	if (rc >= 0)
		rc = follow(a, pid, rc);
	if (rc)
		refuse(done, context, pid, rc);
	else
		done(context, &result);
}
