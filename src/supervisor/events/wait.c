/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings whose writer still exists (a worker of a killed supervisor is being killed too, and holds
 * its ring locked until it has exited), and rings for which there are no descriptors until others
 * are read. They are tried again every RETRY_MS, a few in a turn of the loop; nothing waits for
 * them. A ring that stays locked is left for the next start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/os/fd_limit.h"
#include "supervisor/events/files.h"
#include "supervisor/supervisor.h"

#define RETRY_MS 20
#define RETRIES_IN_A_TURN 64

struct waiting_ring {
	struct waiting_ring *next;
	struct recording_orphan file;
	int64_t until_ms;
};

static bool is_over(struct supervisor *sv, const struct waiting_ring *w)
{
	int rc = recording_adopt_ring(sv, &w->file);

	if (rc == -EWOULDBLOCK && loop_now_ms(sv->loop) < w->until_ms)
		return false;
	if (rc)
		log_error("events of sandbox %llx cannot be read: %s; they stay for the next start",
		        (unsigned long long)w->file.sandbox_id,
		        rc == -EWOULDBLOCK ? "their writer lives on" : strerror(-rc));
	return true;
}

/* Rings that were not tried come first the next time. */
static void on_retry(struct loop_timer *timer)
{
	struct recording *r = container_of(timer, struct recording, retry);
	struct supervisor *sv = container_of(r, struct supervisor, recording);
	struct waiting_ring *still = NULL, **end = &still, *w;

	for (size_t tried = 0; tried < RETRIES_IN_A_TURN && r->waiting && fd_limit_left();
	        tried++) {
		w = r->waiting;
		r->waiting = w->next;
		w->next = NULL;
		if (is_over(sv, w)) {
			free(w);
			continue;
		}
		*end = w;
		end = &w->next;
	}
	for (end = &r->waiting; *end; end = &(*end)->next)
		;
	*end = still;
	if (r->waiting)
		loop_timer_set(timer, RETRY_MS);
}

int recording_wait_for_ring(struct supervisor *sv, const struct recording_orphan *file)
{
	struct recording *r = &sv->recording;
	struct waiting_ring *w = calloc(1, sizeof(*w));
	int rc = w ? 0 : -ENOMEM;

	if (!rc && !r->retry.event)
		rc = loop_timer_open(sv->loop, &r->retry, on_retry);
	if (rc) {
		free(w);
		return rc;
	}
	*w = (struct waiting_ring){r->waiting, *file, loop_now_ms(sv->loop) + RECORDING_ADOPT_MS};
	r->waiting = w;
	loop_timer_set(&r->retry, RETRY_MS);
	return 0;
}

void recording_wait_fini(struct recording *r)
{
	while (r->waiting) {
		struct waiting_ring *w = r->waiting;

		r->waiting = w->next;
		free(w);
	}
	if (r->retry.event)
		loop_timer_close(&r->retry);
}
