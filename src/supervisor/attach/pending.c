/* SPDX-License-Identifier: Apache-2.0 */
/* The pending operations on an attachment, and how each is answered. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "supervisor/attach/attachment.h"

void attach_refuse(
        attach_done done, void *context, enum attach_status status, const char *format, ...)
{
	struct attach_result result = {.status = status};
	char text[SANDBOX_FAILURE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	result.text = text;
	done(context, &result);
}

static void pending_free(struct attach_pending *p)
{
	DL_DELETE(p->attachment->pending, p);
	loop_timer_close(&p->patience);
	free(p);
}

static void on_patience_over(struct loop_timer *timer)
{
	struct attach_pending *p = container_of(timer, struct attach_pending, patience);
	attach_done done = p->done;
	void *context = p->context;

	pending_free(p);
	attach_refuse(done, context, ATTACH_BUSY, "its worker does not answer at the moment");
}

bool attachment_wait(struct attachment *a, enum attach_operation operation, uint64_t id,
        attach_done done, void *context)
{
	struct attach_pending *p = NULL;
	int count;

	DL_COUNT(a->pending, p, count);
	p = count < ATTACH_PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p || loop_timer_open(a->all->supervisor->loop, &p->patience, on_patience_over) != 0) {
		free(p);
		attach_refuse(done, context, ATTACH_BUSY, "too many operations on %s are under way",
		        a->record.name);
		return false;
	}
	p->attachment = a;
	p->operation = operation;
	p->id = id;
	p->done = done;
	p->context = context;
	DL_APPEND(a->pending, p);
	if (operation == OPERATION_STATS)
		loop_timer_set(&p->patience, ATTACH_FRESHNESS_MS);
	return true;
}

void attachment_answer(struct attachment *a, enum attach_operation operation, uint64_t id,
        const struct attach_result *result)
{
	struct attach_pending *p, *next;

	DL_FOREACH_SAFE(a->pending, p, next)
	{
		attach_done done = p->done;
		void *context = p->context;

		if (p->operation != operation || p->id != id)
			continue;
		pending_free(p);
		done(context, result);
	}
}

void attachment_answer_all(struct attachment *a)
{
	const bool stopping = a->all->stopping;
	const struct attach_result result = {.status = stopping ? ATTACH_BUSY : ATTACH_CONFLICT,
	        .text = stopping ? "the daemon is stopping"
	                         : "the sandbox is gone: it was detached, or has ended"};

	while (a->pending)
		attachment_answer(a, a->pending->operation, a->pending->id, &result);
}
