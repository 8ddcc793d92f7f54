/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching. All faults of a request are found before anything is made (check.c, locate.c). Then
 * one sandbox is made whose gate is pinned and whose state is on the disk before anybody is told
 * that it is served.
 *
 * attachments_attach_with() shows the order. prepare() checks, loads the policy and makes the
 * sandbox. If it fails, give_up() takes everything back and answers, or has a child read the policy
 * first (deferred.c), after which the whole request begins again. Then the sandbox starts, and
 * settle() writes its state before it can serve.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "supervisor/attach/transaction.h"

bool attach_transaction_refuse(
        struct attach_transaction *t, enum attach_status status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(t->text, sizeof(t->text), format, arguments);
	va_end(arguments);
	t->status = status;
	return false;
}

/* Makes a name that is not in use. */
static void make_name(const struct attachments *all, char out[MESSAGE_NAME_MAX + 1])
{
	uint32_t number;

	random_bytes(&number, sizeof(number));
	do
		snprintf(out, MESSAGE_NAME_MAX + 1, "att-%08x", number++);
	while (attachments_find(all, out)); /* it ends: there are at most ATTACHMENTS_MAX */
}

static bool fill_record(struct attach_transaction *t)
{
	const struct attach_request *r = t->request;
	struct attach_record *record = &t->attachment->record;
	if (r->name && r->name[0])
		snprintf(record->name, sizeof(record->name), "%s", r->name);
	else
		make_name(t->all, record->name);
	record->kind = r->kind;
	memcpy(record->interface, t->interface, sizeof(record->interface));
	record->netns = strdup(r->kind == ATTACH_NETNS && r->netns ? r->netns : "");
	record->policy = strdup(r->policy ? r->policy : "");
	if (r->kind == ATTACH_LISTEN)
		record->listen = r->listen;
	if (r->kind == ATTACH_SESSION)
		record->session = r->session;
	record->container = r->container;
	record->observe = r->observe;
	record->created_ms = clock_real_ms();
	record->expires_ms = r->ttl_s ? record->created_ms + (int64_t)r->ttl_s * 1000 : 0;
	record->generation = 1;
	if (attach_record_set_identity(record, &r->caller) == 0 && record->netns &&
	        record->policy && attach_pairs_copy(&record->labels, &r->labels) == 0 &&
	        attach_pairs_copy(&record->vars, &r->vars) == 0)
		return true;
	return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
}

/* Puts the path of its file in place of a policy of a bundle. Refuses what a bundle revokes or does
 * not allow to begin. */
static bool resolve(struct attach_transaction *t, struct attach_request *request,
        char path[MESSAGE_PATH_MAX + 1])
{
	char why[SIGNED_BUNDLE_WHY_MAX];
	const char *by = request->kind == ATTACH_SESSION && request->name
	                         ? bundles_revoke_session(t->all, request->name)
	                         : NULL;

	if (by)
		return attach_transaction_refuse(
		        t, ATTACH_CONFLICT, "bundle %s revokes sessions of this name", by);
	if (!request->policy)
		return true;
	request->policy = bundles_resolve(t->all, request->policy, path, why);
	return request->policy || attach_transaction_refuse(t, ATTACH_INVALID, "%s", why);
}

static bool load(struct attach_transaction *t, struct generation **out)
{
	struct generation *g = attachment_load(t->attachment, t->request->policy,
	        &t->request->caller, t->files, &t->status, &t->diagnostics);

	*out = g;
	t->remote = !g && t->status == ATTACH_BUSY && t->files == &settings_no_files;
	if (!g)
		snprintf(t->text, sizeof(t->text), "%s", attach_load_failure(t->status));
	return g;
}

static bool make_sandbox(struct attach_transaction *t, struct generation *g)
{
	struct attachment *a = t->attachment;
	struct sandbox *s = sandbox_new(t->all->supervisor, &a->owner, true);

	if (!s) {
		generation_put(g);
		return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
	}
	a->sandbox = s;
	a->record.id = s->id;
	/* Every gateway that takes the same signed tokens gives the same placeholders. */
	if (a->record.kind == ATTACH_SESSION && a->record.session.is_signed)
		memcpy(s->seed, a->record.session.id, sizeof(s->seed));
	memcpy(a->record.seed, s->seed, sizeof(s->seed));
	snprintf(s->name, sizeof(s->name), "%s", a->record.name);
	attachment_pin(t->all, s->id, s->pin);
	s->generation = g;
	s->labels = attach_labels_lines(&a->record.labels);
	s->netns = t->netns;
	t->netns = -1;
	s->divert = t->request->kind == ATTACH_INTERFACE ? &t->divert : NULL;
	s->listen = a->record.kind == ATTACH_LISTEN ? &a->record.listen : NULL;
	s->session = a->record.kind == ATTACH_SESSION ? &a->record.session : NULL;
	if (s->listen || s->session)
		s->pin[0] = 0; /* there is no namespace to keep */
	attachment_watch_policy(a);
	return true;
}

/* Rules of the host are about to change, or a socket's file to be made. If this process dies before
 * it can write the result, the next daemon knows what to remove: this, and nothing else. */
static bool write_beginning(struct attach_transaction *t)
{
	struct attachment *a = t->attachment;
	struct gate shape;
	int rc;

	a->record.undoing = true; /* until settle() */
	if (a->record.kind != ATTACH_INTERFACE && a->record.kind != ATTACH_LISTEN)
		return true; /* other kinds end with the gate's namespace */
	if (a->record.kind == ATTACH_INTERFACE)
		gate_name_host_link(&a->sandbox->gate);
	shape = a->sandbox->gate;
	shape.kind = a->record.kind == ATTACH_LISTEN ? GATE_SOCKET : GATE_DIVERT;
	if (shape.kind == GATE_DIVERT)
		shape.tcp_port = a->sandbox->generation->settings->config.proxy_port;
	memcpy(shape.device, a->record.interface, sizeof(shape.device));
	rc = state_save(t->all->state, &a->record, &shape);
	if (!rc)
		return true;
	state_remove(t->all->state, a->record.name);
	return attach_transaction_refuse(
	        t, ATTACH_FAILED, "its state cannot be written: %s", strerror(-rc));
}

static bool find(struct attach_transaction *t)
{
	return t->request->purpose == ATTACH_TO_CLAIM ? attach_transaction_find_prepared(t)
	                                              : attach_transaction_find_target(t);
}

static bool make(struct attach_transaction *t)
{
	struct generation *g;

	if (t->request->purpose == ATTACH_TO_PREPARE)
		return attach_transaction_make_prepared(t);
	return load(t, &g) && make_sandbox(t, g);
}

static bool prepare(struct attach_transaction *t)
{
	if (!attach_transaction_check_request(t) || !attach_transaction_check_room(t))
		return false;
	t->attachment = attachment_new(t->all);
	if (!t->attachment)
		return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
	if (!fill_record(t) || !find(t))
		return false;
	if (attachment_enter(t->attachment) != 0)
		return attach_transaction_refuse(t, ATTACH_FAILED, "no memory");
	if (!make(t))
		return false;
	switch (t->request->purpose) {
	case ATTACH_TO_CLAIM:
		return attach_transaction_write_claim(t);
	case ATTACH_TO_PREPARE:
		return true;
	default:
		return write_beginning(t);
	}
}

static void give_up(struct attach_transaction *t, attach_done done, void *context)
{
	const struct attach_result result = {
	        .status = t->status, .text = t->text, .diagnostics = t->diagnostics};
	struct attach_request request = *t->request;

	if (t->netns >= 0)
		close(t->netns);
	/* The repeated request must mean the same process. */
	if (t->attachment && request.pid)
		request.pid_start_time = t->attachment->record.pid_start_time;
	if (t->attachment)
		attachment_free(t->attachment);
	if (t->remote)
		attachments_attach_later(t->all, &request, done, context);
	else
		done(context, &result);
	free(t->diagnostics);
}

/* The sandbox starts: writes its state to the disk before it can serve. */
static void settle(struct attachments *all, const char *name)
{
	struct attachment *a = attachments_find(all, name);
	int rc;

	if (!a || a->detaching || a->sandbox->state != SANDBOX_STARTING)
		return; /* it has failed, which was reported */
	a->record.undoing = false;
	rc = attachment_save(a);
	if (!rc)
		rc = attachment_watch(a);
	if (rc == -ESRCH) {
		sandbox_blame_asker(a->sandbox);
		sandbox_fail(a->sandbox, "process %d has ended meanwhile", (int)a->record.pid);
	} else if (rc) {
		sandbox_fail(a->sandbox, "its state cannot be written: %s", strerror(-rc));
	}
}

void attachments_attach(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context)
{
	attachments_attach_with(all, request, &settings_no_files, done, context);
}

void attachments_attach_with(struct attachments *all, const struct attach_request *request,
        const struct settings_files *files, attach_done done, void *context)
{
	struct attach_request own = *request;
	struct attach_transaction t = {.all = all, .request = &own, .netns = -1, .files = files};
	char name[MESSAGE_NAME_MAX + 1], path[MESSAGE_PATH_MAX + 1];

	if (!resolve(&t, &own, path) || !prepare(&t)) {
		give_up(&t, done, context);
		return;
	}
	if (request->purpose == ATTACH_TO_CLAIM) {
		attach_transaction_claim(&t, done, context);
		return;
	}
	if (request->purpose == ATTACH_TO_PREPARE) {
		close(t.netns);
		attachment_answer_prepared(t.attachment, done, context);
		return;
	}
	snprintf(name, sizeof(name), "%s", t.attachment->record.name);
	if (!attachment_wait(t.attachment, OPERATION_ATTACH, 0, done, context)) {
		state_remove(all->state, name);
		attachment_free(t.attachment);
		return;
	}
	sandbox_event(t.attachment->sandbox, SANDBOX_START); /* may free it */
	settle(all, name);
}
