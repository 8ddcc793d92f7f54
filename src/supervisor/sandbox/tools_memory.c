/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/sandbox/tools_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "supervisor/supervisor.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/policy/tools.h"

#define EMPTY_BYTES 64 /* more than a message without a body has */
#define NAME_BYTES 24  /* an id of 16 hex digits, and ".tools" */

static void name_of(uint64_t id, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%016" PRIx64 ".tools", id);
}

/* Opens the sandbox's file, or makes it. Returns a descriptor or -errno. A damaged file is
 * replaced: the descriptions that come next count as the first ones. */
static int open_file(const struct sandbox *s)
{
	int directory = s->supervisor->names, fd;
	char name[NAME_BYTES];

	name_of(s->id, name);
	fd = shared_names_open_at(directory, name);
	if (fd == -EBADMSG) {
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "the memory of tool descriptions is damaged: the next descriptions count "
		        "as the first");
		if (unlinkat(directory, name, 0) < 0)
			return -errno;
	} else if (fd != -ENOENT) {
		return fd;
	}
	return shared_names_create_at(directory, name, MESSAGE_TOOLS_MAX);
}

static int hand_over(struct instance *i, int fd)
{
	uint8_t message[EMPTY_BYTES];
	size_t n = message_empty(
	        message, sizeof(message), MESSAGE_WORKER_TOOLS, supervisor_next_id(i->supervisor));
	int rc = role_send(&i->worker, message, n, &fd, 1);

	return rc ? sandbox_failed(i->sandbox, rc, "the worker") : 0;
}

int tools_memory_tell(struct instance *i, const struct generation *g)
{
	struct sandbox *s = i->sandbox;
	int fd, rc;

	if (!policy_has_tools(&g->settings->policy))
		return 0;
	if (!s->persistent && s->tools < 0)
		s->tools = shared_names_create(MESSAGE_TOOLS_MAX);
	fd = s->persistent ? open_file(s) : s->tools;
	if (fd < 0)
		return sandbox_failed(s, fd, "memory for what is said of tools");
	rc = hand_over(i, fd);
	if (s->persistent)
		close(fd);
	return rc;
}

void tools_memory_remove(int directory, uint64_t id)
{
	char name[NAME_BYTES];

	name_of(id, name);
	unlinkat(directory, name, 0);
}
