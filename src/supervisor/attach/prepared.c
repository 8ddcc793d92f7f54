/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared namespaces: an attachment without a sandbox. Its gate is made, connected, pinned and
 * watched, and nobody listens, so the fence refuses everything. claim.c gives it to a sandbox. A
 * gate is given away once: it does not come back when its sandbox ends, and another one is
 * prepared.
 *
 * They wait in a list, the oldest first, because a claim is to find one without looking through all
 * attachments. A prepared namespace that is damaged beyond repair (its link is gone, for example)
 * leaves the registry by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/transaction.h"
#include "supervisor/recover/recover.h"

/* Workers in the pool for claims that come at once; more claims than that start theirs. */
#define POOLED_FOR_CLAIMS 12

static void want_workers(const struct attachments *all)
{
	const size_t more =
	        all->prepared_count < POOLED_FOR_CLAIMS ? all->prepared_count : POOLED_FOR_CLAIMS;

	worker_pool_want(all->supervisor, ATTACH_POOLED_WORKERS + more);
}

static int by_age(const struct attachment *a, const struct attachment *b)
{
	return a->record.id < b->record.id ? -1 : 1;
}

/* After a restart they come in any order. */
static void enter(struct attachment *a)
{
	const struct attachment *first = a->all->prepared;

	a->ready = true;
	if (first && by_age(a, first->prepared_prev) < 0)
		DL_INSERT_INORDER2(a->all->prepared, a, by_age, prepared_prev, prepared_next);
	else
		DL_APPEND2(a->all->prepared, a, prepared_prev, prepared_next);
	a->all->prepared_count++;
	want_workers(a->all);
}

void attachment_leave_prepared(struct attachment *a)
{
	if (!a->ready)
		return;
	a->ready = false;
	DL_DELETE2(a->all->prepared, a, prepared_prev, prepared_next);
	a->all->prepared_count--;
	if (!a->all->stopping)
		want_workers(a->all);
}

static void on_change(struct gate *gate, int result)
{
	struct attachment *a = container_of(gate, struct attachment, gate);
	char text[GATE_WHY_MAX + MESSAGE_NAME_MAX + 128];

	if (result < 0) {
		log_sandbox(LOG_LEVEL_WARN, a->record.name,
		        "%s: it was prepared, and is prepared no longer",
		        result == -ENOLINK ? "its link, or its namespace, is gone" : gate->why);
		attachment_detach(a, false);
		return;
	}
	a->mended++;
	log_sandbox(LOG_LEVEL_WARN, a->record.name,
	        "its fence was changed from outside and is in order again: %s", gate->why);
	snprintf(text, sizeof(text),
	        "The fence of %s, which is prepared, was changed from outside and has been set "
	        "again: %s.",
	        a->record.name, gate->why);
	outbox_finding(a->all->supervisor, NULL, EVENT_FINDING_FENCE_CHANGED, text);
}

int attachment_watch_prepared(struct attachment *a)
{
	return gate_watch(&a->gate, a->all->supervisor->gates, on_change);
}

/* Another daemon that may go on still has it: then nothing is removed. Otherwise a prepared
 * namespace that cannot be claimed any more (it is gone, for example) is removed like one whose
 * daemon died while it was made. */
static void give_up(struct attachment *a, int error)
{
	const char *why = a->gate.why[0] ? a->gate.why : strerror(-error);

	log_sandbox(LOG_LEVEL_WARN, a->record.name,
	        "it was prepared, and is prepared no longer: %s", why);
	if (a->all->take) {
		snprintf(a->trouble, sizeof(a->trouble), "it cannot be claimed: %s", why);
		return;
	}
	attachment_undo(a);
	attachment_free(a);
}

void attachment_recover_prepared(struct attachment *a)
{
	char pin[MESSAGE_PATH_MAX + 1];
	int rc;

	attachment_forget_knock(a);
	attachment_pin(a->all, a->record.id, pin);
	rc = gate_adopt(&a->gate, a->all->supervisor->gates, pin);
	if (rc >= 0) {
		gate_doze(&a->gate);
		rc = attachment_watch_prepared(a);
	}
	if (rc == 0)
		enter(a);
	else
		give_up(a, rc);
}

static bool is_claimed(const struct attachments *all, uint64_t id)
{
	const struct attachment *a;

	for (a = all->by_name; a; a = a->hh.next)
		if (a->record.claimed && a->record.id == id)
			return true;
	return false;
}

void attachments_drop_claimed(struct attachments *all)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	{
		if (!a->record.prepared || !is_claimed(all, a->record.id))
			continue;
		state_remove(all->state, a->record.name);
		attachment_free(a);
	}
}

/* The addresses, port and bounds of the daemon's configuration as it is now. */
static bool assign(struct attach_transaction *t, struct gate *gate)
{
	struct config *config = calloc(1, sizeof(*config));

	t->diagnostics = attachments_config_objection(t->all, config);
	if (!config || t->diagnostics || !config->pool4.base.family) {
		free(config);
		return attach_transaction_refuse(t, ATTACH_FAILED,
		        "the daemon's configuration cannot be used, or there is no memory");
	}
	gate_assign(gate, &config->pool4, &config->pool6);
	gate->tcp_port = config->proxy_port;
	gate->bounds = sandbox_bounds(&config->limits);
	config_fini(config);
	free(config);
	if (t->request->same_addresses)
		gate_same_macs(gate);
	return true;
}

static bool refuse_gate(struct attach_transaction *t, const struct gate *gate, int rc)
{
	const bool asked = gate_fault_of(gate, rc) == GATE_FAULT_ASKED;
	char why[GATE_WHY_MAX];

	return attach_transaction_refuse(
	        t, asked ? ATTACH_INVALID : ATTACH_FAILED, "%s", gate_failure(gate, rc, why));
}

/* Whatever fails, nothing is left. If this process dies here, the link dies with the gate, and an
 * unknown pin is removed at the next start. */
static bool make_gate(struct attach_transaction *t)
{
	struct attachment *a = t->attachment;
	struct gate *gate = &a->gate;
	char pin[MESSAGE_PATH_MAX + 1];
	int rc = gate_open(gate, t->all->supervisor->gates, t->netns);

	if (!rc)
		rc = gate_connect(gate);
	if (rc)
		return refuse_gate(t, gate, rc);
	gate_doze(gate);
	attachment_pin(t->all, a->record.id, pin);
	rc = gate_pin(gate, pin);
	if (!rc)
		rc = attachment_save(a);
	if (!rc)
		rc = attachment_watch_prepared(a);
	if (!rc)
		return true;
	state_remove(t->all->state, a->record.name);
	gate_remove(gate, t->all->supervisor->gates, pin, false);
	return attach_transaction_refuse(
	        t, ATTACH_FAILED, "its gate cannot be kept: %s", strerror(-rc));
}

bool attach_transaction_make_prepared(struct attach_transaction *t)
{
	struct attachment *a = t->attachment;

	a->record.prepared = true;
	a->record.id = supervisor_next_id(t->all->supervisor);
	return assign(t, &a->gate) && make_gate(t);
}

void attachment_answer_prepared(struct attachment *a, attach_done done, void *context)
{
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	enter(a);
	done(context, &result);
}
