/* SPDX-License-Identifier: Apache-2.0 */
/* Writes events to the recorder's ring. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "worker/worker.h"

/* While events wait, nothing begins that would make more: no request starts, and no DNS query is
 * answered. Otherwise only the worker's memory would bound the backlog. */
static void hold_all(const struct events *ev)
{
	const struct worker *w = ev->worker;
	bool behind = ev->backlog.len > 0;

	if (w->proxy)
		proxy_hold(w->proxy, ev->held || behind);
	if (w->responder)
		responder_hold(w->responder, behind);
}

static void drain_backlog(struct events *ev)
{
	while (ev->backlog.len >= 2) {
		const uint8_t *p = buf_bytes(&ev->backlog);
		size_t n = (size_t)p[0] << 8 | p[1];

		if (ring_write(&ev->ring, p + 2, n) == -EAGAIN)
			return;
		buf_consume(&ev->backlog, n + 2);
	}
	buf_fini(&ev->backlog);
	hold_all(ev);
}

static void on_space(struct loop_io *io, unsigned what)
{
	struct events *ev = container_of(io, struct events, space);
	uint64_t count;

	(void)what;
	if (read(io->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		worker_fail(ev->worker, "the event ring cannot be waited for");
	else
		drain_backlog(ev);
}

int events_open(struct events *ev, struct worker *w, int memory_fd, int data_fd, int space_fd)
{
	int rc = ring_open_writer(&ev->ring, memory_fd, data_fd, space_fd);

	if (rc < 0)
		return rc;
	ev->worker = w;
	buf_init(&ev->backlog, EVENT_BACKLOG_MAX);
	return loop_io_open_level(w->loop, &ev->space, space_fd, LOOP_READ, on_space);
}

static void keep(struct events *ev, size_t n)
{
	uint8_t length[2] = {(uint8_t)(n >> 8), (uint8_t)n};

	if (buf_append(&ev->backlog, length, 2) < 0 || buf_append(&ev->backlog, ev->record, n) < 0)
		worker_fail(ev->worker,
		        "the recorder has not taken events for too long; nothing passes any more");
	hold_all(ev);
}

void events_put(struct events *ev, const struct event *event)
{
	size_t n = event_encode(event, ev->record, sizeof(ev->record));

	if (n == 0)
		return;
	log_debug("event %016" PRIx64 ": recorded, %s, %zu bytes", event->id,
	        event_kind_name(event->kind), n);
	if (ev->backlog.len || ring_write(&ev->ring, ev->record, n) == -EAGAIN)
		keep(ev, n);
}

void events_hold(struct events *ev, bool hold)
{
	ev->held = hold;
	if (ev->worker) /* HOLD may come before events_open() */
		hold_all(ev);
}

void events_close(struct events *ev)
{
	drain_backlog(ev);
	loop_io_close(&ev->space);
	buf_fini(&ev->backlog);
	ring_close(&ev->ring);
}
