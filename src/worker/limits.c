/* SPDX-License-Identifier: Apache-2.0 */
/* The memories in which this worker counts what its policy limits. They come before the policy that
 * needs them. One that is here already stays, because the proxy counts in it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "worker/worker.h"

static bool has_memory(const struct worker *w, struct slice shared)
{
	for (size_t i = 0; i < w->counters.count; i++)
		if (slice_equals(slice_from_string(w->counters.of[i].shared), shared))
			return true;
	return false;
}

/* Takes fd. If the memory cannot be mapped, or there is no room for it, it is missing: its limits
 * let nothing pass. */
static void take_memory(struct worker *w, struct slice shared, int fd)
{
	size_t i = w->counters.count;

	if (has_memory(w, shared) || i == PROXY_COUNTERS_MAX) {
		close(fd);
		return;
	}
	if (counters_open(&w->counters.of[i].memory, fd) != 0)
		return;
	snprintf(w->counters.of[i].shared, sizeof(w->counters.of[i].shared), "%.*s",
	        SLICE_ARG(shared));
	w->counters.count++;
}

int worker_take_limits(struct worker *w, struct ipc_message *m)
{
	struct message_worker_limits limits;

	if (message_worker_limits_decode(&m->body, &limits) < 0 || m->fd_count != limits.count)
		return -EBADMSG;
	for (size_t i = 0; i < limits.count; i++) {
		int fd = m->fds[i];

		m->fds[i] = -1;
		take_memory(w, limits.shared[i], fd);
	}
	return 0;
}
