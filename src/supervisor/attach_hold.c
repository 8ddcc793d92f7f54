/* SPDX-License-Identifier: Apache-2.0 */
/* All sandboxes at once, for an upgrade: held still, given up to another daemon or taken back. */
#include <errno.h>

#include "vethguard/base/log.h"
#include "supervisor/attachment.h"

static bool is_quiet(const struct attachment *a)
{
	static const bool quiet[SANDBOX_STATE_COUNT] = {
	        [SANDBOX_SERVING] = true, [SANDBOX_RESTARTING] = true, [SANDBOX_CLOSED] = true};

	if (a->pending || a->detaching)
		return false;
	return !a->sandbox || (quiet[a->sandbox->state] && !sandbox_is_changing(a->sandbox));
}

bool attachments_are_quiet(const struct attachments *all)
{
	const struct attachment *a;

	for (a = all->by_name; a; a = a->hh.next)
		if (!is_quiet(a))
			return false;
	return !all->reload_all;
}

void attachments_hold(struct attachments *all)
{
	struct attachment *a, *next;

	all->held = true;
	HASH_ITER(hh, all->by_name, a, next)
	{
		loop_timer_cancel(&a->expiry);
		loop_io_close(&a->process);
		if (a->sandbox)
			sandbox_look_away(a->sandbox);
	}
}

static void release(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	int error;

	if (s && s->state == SANDBOX_AWAY)
		sandbox_event(s, SANDBOX_TAKEN_BACK);
	else if (s && sandbox_look_again(s) != 0)
		sandbox_fail(s, "its fence cannot be watched; the sandbox is cut off");
	error = attachment_watch(a);
	if (error == -ESRCH)
		attachment_detach(a, true);
	else if (error)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its end cannot be noticed: %s",
		        strerror(-error));
}

void attachments_release(struct attachments *all)
{
	struct attachment *a, *next;

	all->held = false;
	HASH_ITER(hh, all->by_name, a, next)
	release(a);
}

void attachments_give_up(struct attachments *all)
{
	struct attachment *a, *next;

	all->stopping = true;
	if (!all->by_name)
		all->on_empty(all);
	HASH_ITER(hh, all->by_name, a, next)
	{
		struct sandbox *s = a->sandbox;

		if (!s) {
			attachment_free(a);
			continue;
		}
		s->is_given = true;
		if (s->state != SANDBOX_AWAY)
			sandbox_event(s, SANDBOX_END);
		else if (!s->instances)
			sandbox_event(s, SANDBOX_WORKERS_GONE);
	}
}

void attachments_end_given(struct attachments *all)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	{
		if (a->sandbox)
			sandbox_event(a->sandbox, SANDBOX_END);
	}
}
