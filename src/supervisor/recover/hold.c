/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sandboxes at once, for an upgrade: suspended, given up to another daemon or taken back. And
 * single ones that are not served: rules of the host keep their interface closed, and these rules
 * are still watched and repaired.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/recover/recover.h"

static void on_held_change(struct gate *gate, int result)
{
	struct attachment *a = container_of(gate, struct attachment, gate);
	char text[GATE_WHY_MAX + MESSAGE_NAME_MAX + 128];

	if (result == GATE_AWAY)
		return; /* it is closed anyway */
	if (result < 0) {
		log_sandbox(LOG_LEVEL_ERROR, a->record.name,
		        "the rules that keep its interface closed cannot be examined or set again: "
		        "%s",
		        gate->why);
		return;
	}
	a->mended++;
	log_sandbox(LOG_LEVEL_WARN, a->record.name,
	        "the rules that keep its interface closed were changed from outside and are in "
	        "order again: %s",
	        gate->why);
	snprintf(text, sizeof(text),
	        "The rules that keep the interface of %s closed, which no worker serves, were "
	        "changed from outside and have been set again: %s.",
	        a->record.name, gate->why);
	outbox_finding(a->all->supervisor, NULL, EVENT_FINDING_FENCE_CHANGED, text);
}

void attachment_hold(struct attachment *a)
{
	int rc;

	if (a->gate.kind != GATE_DIVERT || a->all->held)
		return;
	rc = gate_hold(&a->gate, a->all->supervisor->gates, on_held_change);
	if (rc)
		on_held_change(&a->gate, rc);
}

static bool is_quiet(const struct attachment *a)
{
	static const bool quiet[SANDBOX_STATE_COUNT] = {[SANDBOX_SERVING] = true,
	        [SANDBOX_ASLEEP] = true,
	        [SANDBOX_RESTARTING] = true,
	        [SANDBOX_CLOSED] = true};

	if (a->pending || a->later || a->detaching)
		return false;
	return !a->sandbox || (quiet[a->sandbox->state] && !sandbox_is_changing(a->sandbox));
}

bool attachments_are_quiet(const struct attachments *all)
{
	const struct attachment *a;

	for (a = all->by_name; a; a = a->hh.next)
		if (!is_quiet(a))
			return false;
	return !all->reload_all && !all->deferred;
}

void attachments_hold(struct attachments *all)
{
	struct attachment *a, *next;

	all->held = true;
	ca_pause(all->supervisor, true);
	HASH_ITER(hh, all->by_name, a, next)
	{
		loop_alarm_cancel(&a->expiry);
		loop_io_close(&a->process);
		if (a->sandbox)
			sandbox_stop_verifying(a->sandbox);
		else
			gate_unwatch(&a->gate);
	}
}

/* Taking back. */

static void on_knock(struct gate *gate)
{
	const struct sandbox *s = container_of(gate, struct sandbox, gate);

	attachment_knocked(container_of(s->owner, struct attachment, owner));
}

/* The other daemon's worker served here; now nothing does. */
static void listen_early(struct attachment *a)
{
	struct sandbox *s = a->sandbox;

	if (s && s->state == SANDBOX_HANDED_OFF && gate_listen(&s->gate) == 0)
		gate_await(&s->gate, a->all->supervisor->loop, on_knock);
}

static void take_back(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	int rc;

	attachment_forget_knock(a);
	if (!s && a->gate.held)
		attachment_hold(a);
	if (a->ready && attachment_watch_prepared(a) != 0)
		attachment_detach(a, false);
	if (a->record.prepared)
		return;
	if (s && s->state == SANDBOX_HANDED_OFF)
		sandbox_event(s, SANDBOX_ROLL_BACK);
	else if (s && sandbox_resume_verifying(s) != 0)
		sandbox_fail(s, "its fence cannot be watched; the sandbox is cut off");
	rc = attachment_watch(a);
	if (rc == -ESRCH)
		attachment_detach(a, true);
	else if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its end cannot be noticed: %s",
		        strerror(-rc));
}

static void all_are_back(struct attachments *all)
{
	log_info("all %zu sandboxes are taken back", attachments_count(all));
}

void attachments_release(struct attachments *all)
{
	static const struct recovery_queue turns = {listen_early, take_back, all_are_back};
	struct attachment *a;
	int rc;

	all->held = false;
	ca_pause(all->supervisor, false);
	for (a = all->by_name; a; a = a->hh.next)
		a->left = !a->detaching;
	rc = recovery_queue_run(all, &turns);
	if (rc)
		log_error("sandboxes cannot be taken back: %s", strerror(-rc));
}

bool attachment_report(struct attachment *a)
{
	const struct sandbox *s = a->sandbox;

	a->told = (!s && !a->left && !a->reading) ||
	          (s && (s->state == SANDBOX_SERVING || s->state == SANDBOX_ASLEEP ||
	                        s->state == SANDBOX_CLOSED));
	return a->told;
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
		sandbox_give_away(s);
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
