/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators' requests about a sandbox's credentials. The keeper acts first, then the workers: a
 * worker forgets a value only after the keeper has stopped giving it out. The operator gets the
 * answer when the workers are done, or after a time limit: a dead worker has nothing to forget.
 *
 * A retired worker finishes its connections with the values that it has, and asks the keeper for
 * further ones. So a rotation makes the keeper fetch for the present worker only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"

#define GRACE_MS 4000 /* time for keeper and supervisor, added to the source's own limit */

struct credential_operation {
	struct credential_operation *prev, *next;
	struct attachment *attachment;
	uint64_t id;
	enum message_credential_what what;
	uint32_t credential;
	struct loop_timer patience;
	unsigned workers; /* workers that have not answered */
	uint64_t ended;
	bool waits;    /* for a worker, because the session was woken */
	bool unsaved;  /* the revocation is done, but could not be saved in the state file */
	bool answered; /* the keeper has answered; the answer is in `keeper` */
	struct message_keeper_credentials keeper;
	bool told; /* the present worker has answered */
	struct message_worker_credentials worker;
	char texts[POLICY_CREDENTIALS_MAX + 1][MESSAGE_CREDENTIAL_ERROR_MAX + 1];
	uint8_t marks[POLICY_CREDENTIALS_MAX + 1][MESSAGE_CREDENTIAL_MARK_BYTES];
};

static void operation_free(struct credential_operation *o)
{
	DL_DELETE(o->attachment->operations, o);
	loop_timer_close(&o->patience);
	free(o);
}

void attachment_credentials_end(struct attachment *a)
{
	while (a->operations)
		operation_free(a->operations);
}

static struct credential_operation *find(struct attachment *a, uint64_t id)
{
	struct credential_operation *o;

	DL_FOREACH(a->operations, o)
	{
		if (o->id == id)
			return o;
	}
	return NULL;
}

static void finish(struct credential_operation *o, enum attach_status status, const char *text)
{
	struct attachment *a = o->attachment;
	const struct attach_credentials view = {.policy = &a->sandbox->generation->settings->policy,
	        .keeper = &o->keeper,
	        .worker = o->told ? &o->worker : NULL,
	        .credential = o->what == MESSAGE_CREDENTIAL_LOOK ? POLICY_NONE : o->credential,
	        .ended = o->ended};
	struct attach_result result = {
	        .status = status, .text = text, .attachment = a, .credentials = &view};

	if (status == ATTACH_OK && o->unsaved) {
		result.status = ATTACH_FAILED;
		result.text = "it is done, but a restart of the daemon would forget it, because "
		              "it cannot be saved";
	}
	attachment_answer(a, OPERATION_CREDENTIAL, o->id, &result);
	operation_free(o);
}

static void on_patience_over(struct loop_timer *timer)
{
	struct credential_operation *o = container_of(timer, struct credential_operation, patience);

	if (o->answered)
		finish(o, ATTACH_OK, "");
	else
		finish(o, ATTACH_BUSY, "the keeper does not answer at the moment");
}

/* --- the workers --- */

static bool has_worker(const struct instance *i)
{
	return role_runs(&i->worker) && i->worker_request != 0 && i->state != INSTANCE_ENDING;
}

/* True for a worker whose uses are counted: the first one, and each further one that serves. Those
 * of earlier policies are not counted. */
static bool counts(const struct sandbox *s, const struct instance *i)
{
	return i == s->current || (i->further && i->state == INSTANCE_SERVING);
}

static void tell_workers(struct credential_operation *o)
{
	struct sandbox *s = o->attachment->sandbox;
	const struct message_credential_ask ask = {.generation = s->generation->number,
	        .what = (uint8_t)o->what,
	        .credential = o->credential};
	const bool all =
	        o->what == MESSAGE_CREDENTIAL_ROTATE || o->what == MESSAGE_CREDENTIAL_REVOKE;
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (has_worker(i) && (all || counts(s, i)) && instance_operate(i, o->id, &ask) == 0)
			o->workers++;
	}
	if (o->workers)
		loop_timer_set(&o->patience, ATTACH_FRESHNESS_MS);
	else
		finish(o, ATTACH_OK, "");
}

static void add_uses(struct credential_operation *o, const struct message_worker_credentials *m)
{
	if (!o->told)
		o->worker = (struct message_worker_credentials){.count = m->count};
	o->told = true;
	for (uint32_t n = 0; n < m->count; n++) {
		o->worker.credentials[n].uses += m->credentials[n].uses;
		if (m->credentials[n].last_used_ms > o->worker.credentials[n].last_used_ms)
			o->worker.credentials[n].last_used_ms = m->credentials[n].last_used_ms;
	}
}

void attachment_credentials_operated(struct attachment *a, const struct instance *i, uint64_t id,
        const struct message_worker_credentials *m)
{
	struct credential_operation *o = find(a, id);

	if (!o || o->workers == 0)
		return;
	o->ended += m->ended;
	if (counts(a->sandbox, i) && m->count)
		add_uses(o, m);
	if (--o->workers == 0)
		finish(o, ATTACH_OK, "");
}

/* --- the keeper --- */

static struct slice keep_mark(uint8_t room[MESSAGE_CREDENTIAL_MARK_BYTES], struct slice mark)
{
	if (mark.n)
		memcpy(room, mark.p, mark.n);
	return slice_of(room, mark.n);
}

/* Copies the answer, because the next message overwrites the texts of this one. */
static void keep(struct credential_operation *o, const struct message_keeper_credentials *m)
{
	o->keeper = *m;
	o->keeper.error = SLICE("");
	o->keeper.mark = keep_mark(o->marks[m->count], m->mark);
	for (uint32_t i = 0; i < m->count; i++) {
		struct slice error = m->credentials[i].error;

		snprintf(o->texts[i], sizeof(o->texts[i]), "%.*s", SLICE_ARG(error));
		o->keeper.credentials[i].error = slice_from_string(o->texts[i]);
		o->keeper.credentials[i].mark = keep_mark(o->marks[i], m->credentials[i].mark);
	}
}

/* Saves a revocation, or its end, in the state file: a revocation outlives the daemon. Returns 0 or
 * -errno. */
static int set_revoked(struct attachment *a, uint32_t credential, bool revoked)
{
	struct generation *g = a->sandbox->generation;
	const uint64_t before = g->revoked, bit = UINT64_C(1) << credential;

	g->revoked = revoked ? before | bit : before & ~bit;
	return g->revoked == before ? 0 : attachment_save(a);
}

void attachment_credentials_answered(
        struct attachment *a, uint64_t id, const struct message_keeper_credentials *m)
{
	struct credential_operation *o = find(a, id);
	char text[MESSAGE_WHAT_MAX + 1];

	if (!o)
		return;
	if (!m && o->what != MESSAGE_CREDENTIAL_REVOKE) {
		finish(o, ATTACH_BUSY, "the keeper died; another one is being started");
		return;
	}
	if (m && m->error.n) {
		snprintf(text, sizeof(text), "%.*s", SLICE_ARG(m->error));
		finish(o, m->count ? ATTACH_SOURCE : ATTACH_BUSY, text);
		return;
	}
	if (m)
		keep(o, m);
	o->answered = true;
	if (o->what == MESSAGE_CREDENTIAL_ROTATE)
		o->unsaved = set_revoked(a, o->credential, false) != 0;
	tell_workers(o);
}

/* Tells the keeper which credentials retired workers may not get any more. This is sent before the
 * question, so the keeper has done it when it answers. */
static void tell_for_retired(struct credential_operation *o, struct message_credential_ask ask)
{
	struct sandbox *s = o->attachment->sandbox;
	struct instance *i;

	if (o->what == MESSAGE_CREDENTIAL_ROTATE)
		ask.what = MESSAGE_CREDENTIAL_FORGET;
	else if (o->what != MESSAGE_CREDENTIAL_REVOKE)
		return;
	DL_FOREACH(s->instances, i)
	{
		ask.sandbox_id = i->id;
		if (i != s->current && i->credentials == s->generation)
			credential_tell(s->supervisor, supervisor_next_id(s->supervisor), &ask);
	}
}

/* --- the beginning --- */

/* Returns the index of the credential, or POLICY_NONE with the list of known names in text. */
static uint32_t index_of(const struct policy *policy, const char *name, char *text, size_t size)
{
	const uint32_t count = policy_credential_count(policy);
	struct policy_credential c;
	size_t n;

	n = (size_t)snprintf(text, size, "the policy has no credential \"%.64s\"%s", name,
	        count ? "; it has " : ", and no other one");
	for (uint32_t i = 0; i < count; i++) {
		policy_credential(policy, i, &c);
		if (slice_equals(c.name, slice_from_string(name)))
			return i;
		if (n < size)
			n += (size_t)snprintf(
			        text + n, size - n, "%s%.*s", i ? ", " : "", SLICE_ARG(c.name));
	}
	return POLICY_NONE;
}

/* Wakes a session that is asleep. Returns true if its worker is being started, for this operation
 * or for a connection. */
static bool wakes(struct sandbox *s)
{
	sandbox_event(s, SANDBOX_WAKE); /* if it is asleep */
	return s->session && s->state == SANDBOX_RESTARTING && s->sleep.waking;
}

/* Asks the keeper. If none runs, a revocation can go on without it: only workers hold the value
 * then, and the next keeper is told what is revoked. */
static void begin(struct credential_operation *o)
{
	struct sandbox *s = o->attachment->sandbox;
	const struct message_credential_ask ask = {.sandbox_id = s->current ? s->current->id : 0,
	        .generation = s->generation->number,
	        .what = (uint8_t)o->what,
	        .credential = o->credential};
	int rc = -EAGAIN;

	if (o->what != MESSAGE_CREDENTIAL_REVOKE && wakes(s)) {
		o->waits = true;
		return;
	}
	if (s->current && s->current->credentials == s->generation) {
		tell_for_retired(o, ask);
		rc = credential_ask(s->supervisor, s, o->id, &ask);
	}
	if (rc && o->what == MESSAGE_CREDENTIAL_REVOKE) {
		tell_for_retired(o, ask);
		o->answered = true;
		tell_workers(o);
	} else if (rc) {
		finish(o, ATTACH_BUSY, "no worker or no keeper runs at the moment");
	}
}

void attachment_credentials_changed(struct attachment *a)
{
	struct credential_operation *o, *next;

	if (a->sandbox->state == SANDBOX_RESTARTING)
		return;
	DL_FOREACH_SAFE(a->operations, o, next)
	{
		if (!o->waits)
			continue;
		o->waits = false;
		begin(o);
	}
}

static int64_t patience_ms(
        const struct attachment *a, enum message_credential_what what, uint32_t credential)
{
	struct policy_credential c;

	if (what != MESSAGE_CREDENTIAL_CHECK && what != MESSAGE_CREDENTIAL_ROTATE)
		return ATTACH_FRESHNESS_MS;
	policy_credential(&a->sandbox->generation->settings->policy, credential, &c);
	return 2 * (int64_t)c.timeout_ms + GRACE_MS; /* one fetch may be under way already */
}

/* Also gives back the lease of a value that a service has made for the sandbox. */
static void give_back(struct sandbox *s, uint32_t credential)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (i->credentials == s->generation)
			sources_give_back(&i->sources, credential);
	}
}

static void operate(struct attachment *a, enum message_credential_what what, uint32_t credential,
        attach_done done, void *context)
{
	struct loop *loop = a->all->supervisor->loop;
	struct credential_operation *o = calloc(1, sizeof(*o));

	if (!o || loop_timer_open(loop, &o->patience, on_patience_over) != 0) {
		free(o);
		attach_refuse(done, context, ATTACH_FAILED, "no memory");
		return;
	}
	o->attachment = a;
	o->id = supervisor_next_id(a->all->supervisor);
	o->what = what;
	o->credential = credential;
	DL_APPEND(a->operations, o);
	if (!attachment_wait(a, OPERATION_CREDENTIAL, o->id, done, context)) {
		operation_free(o);
		return;
	}
	loop_timer_set(&o->patience, patience_ms(a, what, credential));
	if (what == MESSAGE_CREDENTIAL_REVOKE)
		give_back(a->sandbox, credential);
	if (what == MESSAGE_CREDENTIAL_REVOKE)
		o->unsaved = set_revoked(a, credential, true) != 0;
	begin(o);
}

void attachments_credentials(struct attachments *all, const char *name,
        enum message_credential_what what, const char *credential, attach_done done, void *context)
{
	struct attachment *a = attachments_find_served(all, name, done, context);
	char text[SANDBOX_FAILURE_MAX];
	uint32_t index = 0;

	if (!a)
		return;
	if (credential)
		index = index_of(
		        &a->sandbox->generation->settings->policy, credential, text, sizeof(text));
	if (index == POLICY_NONE)
		attach_refuse(done, context, ATTACH_INVALID, "%s", text);
	else if (sandbox_is_changing(a->sandbox))
		attach_refuse(done, context, ATTACH_BUSY, "a reload of %s is under way", name);
	else
		operate(a, what, index, done, context);
}
