/* SPDX-License-Identifier: Apache-2.0 */
/* The memories in which this worker counts what its policy limits. They come before the policy that
 * needs them. One that is here already stays, because the proxy counts in it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "worker/worker.h"

#define FDS_WITH_QUOTAS 3 /* counters, quotas, bell */

/* Takes fd. Returns the place of the memory in the list; PROXY_COUNTERS_MAX: it cannot be mapped,
 * or there is no room for it. Then it is missing, and its limits let nothing pass. */
static size_t take_memory(struct worker *w, struct slice shared, int fd)
{
	size_t i;

	for (i = 0; i < w->counters.count; i++)
		if (slice_equals(slice_from_string(w->counters.of[i].shared), shared)) {
			close(fd);
			return i;
		}
	if (i == PROXY_COUNTERS_MAX) {
		close(fd);
		return i;
	}
	if (counters_open(&w->counters.of[i].memory, fd) != 0)
		return PROXY_COUNTERS_MAX;
	snprintf(w->counters.of[i].shared, sizeof(w->counters.of[i].shared), "%.*s",
	        SLICE_ARG(shared));
	w->counters.of[i].quotas.bell = -1;
	w->counters.count++;
	return i;
}

/* Takes both descriptors. */
static void take_quotas(struct worker *w, size_t i, int memory, int bell)
{
	if (i < PROXY_COUNTERS_MAX && !w->counters.of[i].quotas.memory) {
		quotas_open(&w->counters.of[i].quotas, memory, bell);
		return;
	}
	close(memory);
	close(bell);
}

/* Returns the descriptor, which is not the message's any more. */
static int take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int worker_take_limits(struct worker *w, struct ipc_message *m)
{
	struct message_worker_limits limits;
	size_t count = 0;
	int *fds;

	if (message_worker_limits_decode(&m->body, &limits) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < limits.count; i++)
		count += limits.has_quotas[i] ? FDS_WITH_QUOTAS : 1;
	if (m->fd_count != count)
		return -EBADMSG;
	fds = m->fds;
	for (size_t i = 0; i < limits.count; i++) {
		size_t place = take_memory(w, limits.shared[i], take(fds++));

		if (!limits.has_quotas[i])
			continue;
		take_quotas(w, place, fds[0], fds[1]);
		take(fds++);
		take(fds++);
	}
	return 0;
}
