/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claiming a prepared namespace: the request is checked and its policy loaded as for any
 * attachment. Until then a refusal leaves the prepared one as it is. Then its gate, id and pin go
 * over to the new attachment, whose file is written first. If this process dies between the two
 * files, the next daemon finds both with one id, and the claimed one counts (recover.c).
 *
 * The answer comes when clients wait at the gate instead of being refused: the worker is about to
 * serve them. A caller that has to know that it does asks to wait.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/process.h"
#include "supervisor/attach/transaction.h"
#include "supervisor/os/local_file.h"
#include "supervisor/sandbox/names_file.h"

static bool find_by_netns(struct attach_transaction *t, struct attachment **out)
{
	const struct attach_request *r = t->request;
	int fd = attach_netns_open(&r->caller, r->netns);
	struct attach_target target;
	struct stat st;
	int rc = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (rc)
		return attach_transaction_refuse(t, ATTACH_INVALID, "%s: %s", r->netns,
		        rc == -EINVAL              ? "is not a network namespace"
		        : rc == LOCAL_FILE_UNKNOWN ? "may lie on a file system that does not "
		                                     "answer: name it as /run/netns/NAME"
		                                   : strerror(-rc));
	target = attach_target_of_netns(&st);
	*out = attachments_at(t->all, &target);
	if (!*out)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "%s is not prepared: attach it, or claim one that is", r->netns);
	return (*out)->ready ||
	       attach_transaction_refuse(t, ATTACH_CONFLICT,
	               "that network namespace already belongs to sandbox %s", (*out)->record.name);
}

static bool take_over_seed(struct attach_transaction *t)
{
	const struct attachment *like;

	if (!t->request->like)
		return true;
	like = attachments_find(t->all, t->request->like);
	if (!like || !like->sandbox)
		return attach_transaction_refuse(t, ATTACH_INVALID,
		        "like: there is no sandbox %.64s whose names and placeholders could be "
		        "taken over",
		        t->request->like);
	t->like = like;
	return true;
}

bool attach_transaction_find_prepared(struct attach_transaction *t)
{
	struct attach_record *record = &t->attachment->record;

	t->prepared = t->all->prepared;
	if (t->request->netns && !find_by_netns(t, &t->prepared))
		return false;
	if (!t->prepared)
		return attach_transaction_refuse(t, ATTACH_BUSY,
		        "no namespace is prepared: 'vethguard prepare --count N' prepares N of "
		        "them, and 'vethguard attach' needs none");
	free(record->netns);
	record->netns = strdup(t->prepared->record.netns);
	if (!record->netns)
		return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
	return take_over_seed(t);
}

/* The synthetic names of the other sandbox, as they are now; or none. A table may be there already:
 * that of a claim which had not been written when the daemon died. */
static int take_names(const struct attach_transaction *t)
{
	const int names = t->all->supervisor->names;
	const uint64_t id = t->attachment->record.id;

	names_file_remove(names, id);
	return t->like ? names_file_copy(names, t->like->record.id, id) : 0;
}

/* What it is to trust is known before its worker starts, if the keeper has told it once. */
static void take_roots(struct sandbox *s)
{
	const struct message_keeper_ca *view = ca_view(s->supervisor);

	if (!view || view->trusted.n >= sizeof(s->root_pem))
		return;
	sandbox_trust(s, view->trusted);
}

/* The last step that can refuse: nothing of the prepared one has changed. */
bool attach_transaction_write_claim(struct attach_transaction *t)
{
	struct attachment *a = t->attachment;
	struct sandbox *s = a->sandbox;
	int rc = sandbox_expose(s, s->generation);

	if (rc)
		return attach_transaction_refuse(t, attachment_fault_status(s), "%s", s->failure);
	rc = sandbox_set_id(s, t->prepared->record.id);
	if (rc)
		return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
	a->record.id = s->id;
	a->record.claimed = true;
	attachment_pin(t->all, s->id, s->pin);
	take_roots(s);
	if (t->like) {
		memcpy(a->record.seed, t->like->record.seed, sizeof(a->record.seed));
		memcpy(s->seed, a->record.seed, sizeof(s->seed));
	}
	rc = take_names(t);
	if (!rc)
		rc = state_save(t->all->state, &a->record, &t->prepared->gate);
	if (!rc)
		return true;
	state_remove(t->all->state, a->record.name);
	names_file_remove(t->all->supervisor->names, s->id);
	return attach_transaction_refuse(
	        t, ATTACH_FAILED, "its state cannot be written: %s", strerror(-rc));
}

/* From here on the namespace is the claimer's. */
static void take_over(struct attachment *a, struct attachment *prepared)
{
	const struct attach_target target = prepared->target;
	int rc = state_remove(a->all->state, prepared->record.name);

	if (rc)
		log_sandbox(LOG_LEVEL_WARN, prepared->record.name,
		        "its state file cannot be removed: %s", strerror(-rc));
	sandbox_take_gate(a->sandbox, &prepared->gate);
	attachment_free(prepared);
	rc = attachment_settle_at(a, &target);
	if (!rc)
		rc = attachment_watch(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its end cannot be noticed: %s",
		        strerror(-rc));
}

/* The gate was made for no policy: this one may have ports of datagrams. */
static void settle_ports(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	const size_t ports = s->gate.udp_port_count;
	const struct fence_bounds bounds = s->gate.bounds;
	int rc = 0;

	sandbox_settle_ports(s);
	if (s->gate.udp_port_count != ports ||
	        memcmp(&s->gate.bounds, &bounds, sizeof(bounds)) != 0)
		rc = attachment_save(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

void attachment_answer_claim(struct attachment *a, attach_done done, void *context)
{
	char text[SANDBOX_FAILURE_MAX];
	struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	if (a->sandbox->state == SANDBOX_CLOSED) {
		snprintf(text, sizeof(text), "%.1900s; nothing passes there", a->sandbox->failure);
		result = (struct attach_result){.status = ATTACH_FAILED, .text = text};
	}
	if (done)
		done(context, &result);
	else
		attachment_answer(a, OPERATION_ATTACH, 0, &result);
}

void attach_transaction_claim(struct attach_transaction *t, attach_done done, void *context)
{
	struct attachment *a = t->attachment;
	/* The first sandbox makes the root CA known; the answer contains it. */
	const bool waits = t->request->wait || !a->sandbox->root_pem[0];

	take_over(a, t->prepared);
	settle_ports(a);
	if (waits && !attachment_wait(a, OPERATION_ATTACH, 0, done, context)) {
		attachment_detach(a, false);
		return;
	}
	sandbox_event(a->sandbox, SANDBOX_CLAIM); /* if it fails, the waiting caller is answered */
	if (!waits)
		attachment_answer_claim(a, done, context);
	if (a->sandbox->state == SANDBOX_CLOSED) /* the recorder may not know it */
		attachment_detach(a, false);
}

/* The end of a claim. */

void attachments_give_back(
        struct attachments *all, const char *name, attach_done done, void *context)
{
	const struct attachment *a = attachments_find(all, name);

	if (a && a->record.prepared)
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "%s is prepared, and nobody has claimed it: 'vethguard prepare --remove' "
		        "takes prepared ones away",
		        name);
	else if (a && !a->record.claimed && !attachment_is_left(a))
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "%s was attached, not claimed: 'vethguard detach' ends it", name);
	else
		attachments_detach(all, name, done, context);
}
