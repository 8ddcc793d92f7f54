/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an attachment. Either the daemon ends, and gate, rules and state are left for the next
 * one; or the attachment ends (detached, expired, its process gone), and nothing is left.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/recover/recover.h"
#include "supervisor/sandbox/limits.h"
#include "supervisor/sandbox/tools_memory.h"
#include "supervisor/sandbox/names_file.h"

/* Waiting must not give an agent the open network: an expired interface is no longer guarded but
 * shut, and stays in the registry and on the disk until it is detached. */
static bool stays_shut(const struct attachment *a)
{
	return a->shut && a->record.kind == ATTACH_INTERFACE;
}

void attachment_settle_shut(struct attachment *a)
{
	if (a->sandbox) {
		gate_close(&a->sandbox->gate);
		a->gate = a->sandbox->gate; /* its shape: what has to be removed */
		sandbox_free(a->sandbox);
		a->sandbox = NULL;
	}
	attachment_forget_policy(a);
	attachment_hold(a);
	a->detaching = a->undone = a->shut = a->recoverable = false;
	snprintf(a->trouble, sizeof(a->trouble),
	        "its time is over: interface %s stays shut until this sandbox is detached",
	        a->record.interface);
	log_sandbox(LOG_LEVEL_INFO, a->record.name, "%s", a->trouble);
}

static void settle_or_free(struct attachment *a)
{
	if (stays_shut(a) && !a->all->stopping)
		attachment_settle_shut(a);
	else
		attachment_free(a);
}

/* From here on it may be incomplete. If this process dies, the next daemon is to remove the rest,
 * instead of showing a sandbox that it can neither serve nor repair. */
static void write_end(struct attachment *a, const struct gate *gate)
{
	int rc;

	if (stays_shut(a) || a->record.undoing || !a->record.policy)
		return; /* nothing to write, or written already; or its file is damaged, and stays
		           as it is */
	a->record.undoing = true;
	rc = state_save(a->all->state, &a->record, gate);
	if (rc)
		log_sandbox(LOG_LEVEL_DEBUG, a->record.name, "its end cannot be written: %s",
		        strerror(-rc));
}

void attachment_undo(struct attachment *a)
{
	char pin[MESSAGE_PATH_MAX + 1];
	struct gate *gate = a->sandbox ? &a->sandbox->gate : &a->gate;
	int rc;

	if (a->undone)
		return;
	a->undone = true;
	attachment_pin(a->all, a->record.id, pin);
	write_end(a, gate);
	rc = gate_remove(gate, a->all->supervisor->gates, pin, a->shut);
	if (rc)
		log_sandbox(LOG_LEVEL_WARN, a->record.name,
		        "its gate cannot be removed completely: %s", strerror(-rc));
	attachment_remove_socket(a);
	names_file_remove(a->all->supervisor->names, a->record.id);
	limits_remove(a->all->supervisor->limits, a->record.id);
	tools_memory_remove(a->all->supervisor->names, a->record.id);
	rc = stays_shut(a) ? 0 : state_remove(a->all->state, a->record.name);
	if (rc)
		log_sandbox(LOG_LEVEL_WARN, a->record.name, "its state file cannot be removed: %s",
		        strerror(-rc));
	if (!stays_shut(a))
		log_sandbox(LOG_LEVEL_INFO, a->record.name, "detached");
}

/* Examines what is there instead of remembering what was done. */
static struct attach_traces traces_of(const struct attachment *a)
{
	char pin[MESSAGE_PATH_MAX + 1];

	attachment_pin(a->all, a->record.id, pin);
	return (struct attach_traces){.gate = access(pin, F_OK) == 0,
	        .names = names_file_exists(a->all->supervisor->names, a->record.id),
	        .state = state_exists(a->all->state, a->record.name),
	        .workers = a->sandbox && a->sandbox->instances};
}

static void finish(struct attachment *a)
{
	struct attach_traces traces;
	const struct attach_result result = {.status = ATTACH_OK,
	        .text = "",
	        .summary = a->summed ? &a->summary : NULL,
	        .traces = &traces,
	        .attachment = a};

	if (a->detaching)
		attachment_undo(a);
	traces = traces_of(a);
	attachment_answer(a, OPERATION_DETACH, 0, &result);
	settle_or_free(a);
}

static void on_unlinked(void *context)
{
	struct attachment *a = context;

	a->unlinking = NULL;
	finish(a);
}

void attachment_detach_now(struct attachment *a)
{
	if (!a->unlinking)
		return;
	gate_unlink_end(a->unlinking);
	on_unlinked(a);
}

/* The kernel deletes a veth gate's link, which takes a while; nothing else waits for it. */
void attachment_end(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	struct gate *gate = s ? &s->gate : &a->gate;

	if (!a->detaching || a->undone || a->all->stopping || gate->kind != GATE_VETH ||
	        gate->netns < 0) {
		finish(a);
		return;
	}
	write_end(a, gate);
	if (gate_unlink(gate, a->all->supervisor->loop, on_unlinked, a, &a->unlinking) != 0) {
		finish(a);
		return;
	}
	if (s) {
		gate_move(&a->gate, &s->gate);
		sandbox_free(s);
		a->sandbox = NULL;
	}
}

void attachment_detach(struct attachment *a, bool shut)
{
	loop_alarm_cancel(&a->expiry);
	if (a->detaching) {
		if (!a->undone)
			a->shut = a->shut && shut; /* a request overrides the expiry */
		return;
	}
	a->detaching = true;
	a->shut = shut;
	if (a->sandbox)
		gateway_cut(a->all->supervisor, a->sandbox);
	attachment_leave_prepared(a);
	if (a->sandbox)
		sandbox_event(a->sandbox, SANDBOX_END); /* may free a */
	else
		attachment_end(a);
}
