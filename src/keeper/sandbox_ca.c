/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intermediates of workers. A worker in store has one before its sandbox is known, under the
 * current CA. When CAs change, a worker keeps its intermediate as long as what signed it is kept;
 * then, or when the intermediate is about to end, it is sent another, without being asked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "keeper/sandbox.h"
#include "keeper/token.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define MESSAGE_ROOT_BYTES (192 + MESSAGE_PEM_MAX)
/* A leaf lasts a week, so its CA lasts longer than any leaf that it makes. */
#define RENEW_BEFORE_S (30 * 24 * 3600)

/* The root that the sandbox knows: what the supervisor says, or what its worker was given when it
 * got its sandbox. Empty: none yet. */
static struct slice known_root(const struct sandbox *sandbox)
{
	if (sandbox->root_known)
		return slice_of(sandbox->root, CA_FINGERPRINT_BYTES);
	if (sandbox->described && sandbox->authority)
		return slice_of(
		        sandbox->authority->root_described.fingerprint, CA_FINGERPRINT_BYTES);
	return slice_of("", 0);
}

/* Tells the supervisor which root its worker's chain ends at, under the id of what it asked, or of
 * the worker. */
static int tell_root(const struct sandboxes *all, const struct authority *a, uint64_t id)
{
	uint8_t message[MESSAGE_ROOT_BYTES];
	struct message_keeper_root answer = {
	        .root = slice_of(a->root_described.fingerprint, CA_FINGERPRINT_BYTES),
	        .ca = slice_of(a->described.fingerprint, CA_FINGERPRINT_BYTES)};
	struct buf pem;
	int rc;

	buf_init(&pem, MESSAGE_PEM_MAX);
	rc = authorities_trusted(all->authorities, a, &pem);
	answer.root_pem = buf_slice(&pem);
	if (rc == 0)
		rc = ipc_send(all->sources->supervisor, message,
		        message_keeper_root_encode(
		                message, sizeof(message), MESSAGE_KEEPER_ROOT, id, &answer),
		        NULL, 0);
	buf_fini(&pem);
	return rc;
}

/* A worker that has not asked yet gets it when it asks. */
static int send_intermediate(struct sandbox *sandbox)
{
	return sandbox->ca_question ? authority_send(sandbox->authority, sandbox->intermediate,
	                                      &sandbox->worker, sandbox->ca_question)
	                            : 0;
}

/* Sends the worker and the supervisor the CA data that they wait for or must know. */
static void pass_on(struct sandbox *sandbox)
{
	int rc = send_intermediate(sandbox);

	if (rc == 0 && sandbox->described && sandbox->all->sources->supervisor->open)
		rc = tell_root(sandbox->all, sandbox->authority,
		        sandbox->told ? sandbox->id : sandbox->request);
	sandbox->told |= rc == 0;
	if (rc < 0 && rc != -EPIPE) /* as in send_credential() */
		log_warn("the %s gets no other CA: %s", sandbox->label, strerror(-rc));
}

/* Gives the sandbox its new intermediate. Takes made; under is the caller's reference. */
static void take(struct sandbox *sandbox, struct authority *under, struct ca *made)
{
	ca_free(sandbox->intermediate);
	authority_get(under);
	authority_put(sandbox->authority);
	sandbox->intermediate = made;
	sandbox->authority = under;
	if (sandbox->root_known) /* the oldest root may change */
		memcpy(sandbox->root, under->root_described.fingerprint, sizeof(sandbox->root));
}

void sandbox_forget_job(struct sandbox *sandbox)
{
	token_cancel(sandbox->job);
	authority_put(sandbox->job_under);
	sandbox->job = NULL;
	sandbox->job_under = NULL;
}

static void refuse_start(struct sandbox *sandbox, const char *why)
{
	uint8_t message[CA_WHY_MAX + 64];
	struct message_text text = {slice_from_string(why)};

	if (!sandbox->all->sources->supervisor->open)
		return;
	ipc_send(sandbox->all->sources->supervisor, message,
	        message_text_encode(
	                message, sizeof(message), MESSAGE_FAILED, sandbox->request, &text),
	        NULL, 0);
}

static void on_signed(void *context, struct ca *made, const char *why)
{
	struct sandbox *sandbox = context;
	struct authority *under = sandbox->job_under;
	char text[CA_WHY_MAX];

	sandbox->job = NULL;
	sandbox->job_under = NULL;
	if (made) {
		take(sandbox, under, made);
		pass_on(sandbox);
	} else {
		snprintf(text, sizeof(text), "its certificate cannot be signed: %.440s", why);
		log_warn("the %s: %s", sandbox->label, text);
		if (sandbox->described && !sandbox->told && !sandbox->root_known)
			refuse_start(sandbox, text);
	}
	authority_put(under);
}

static enum sandbox_made make_later(struct sandbox *sandbox, struct authority *a, char *why)
{
	if (sandbox->job && sandbox->job_under == a)
		return SANDBOX_MADE_LATER;
	sandbox_forget_job(sandbox);
	sandbox->job = authority_intermediate_later(
	        a, sandbox->all->token, sandbox->names, on_signed, sandbox, why);
	if (!sandbox->job)
		return SANDBOX_NOT_MADE;
	sandbox->job_under = authority_get(a);
	return SANDBOX_MADE_LATER;
}

enum sandbox_made sandbox_make_intermediate(struct sandbox *sandbox, char why[CA_WHY_MAX])
{
	struct authority *a = authorities_find(sandbox->all->authorities, known_root(sandbox));
	struct ca *made;

	why[0] = 0;
	if (sandbox->waits)
		return SANDBOX_NOT_MADE;
	if (a && ca_key_is_elsewhere(a->ca))
		return make_later(sandbox, a, why);
	made = a ? authority_intermediate(a, sandbox->names) : NULL;
	if (!made)
		return SANDBOX_NOT_MADE;
	sandbox_forget_job(sandbox);
	take(sandbox, a, made);
	return SANDBOX_MADE;
}

/* A worker waits while no CA can sign for it. */
int sandbox_on_ca_get(struct sandbox *sandbox, const struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->head.id == 0)
		return -EBADMSG;
	sandbox->ca_question = message->head.id;
	if (!sandbox->intermediate)
		return 0;
	return authority_send(
	        sandbox->authority, sandbox->intermediate, &sandbox->worker, message->head.id);
}

static bool can_sign(const struct sandbox *sandbox)
{
	return sandbox->intermediate &&
	       ca_expires_s(sandbox->intermediate) > clock_real_ms() / 1000;
}

/* A worker in store loses an intermediate whose CA is gone, because a new sandbox would get it. */
static void forget_intermediate(struct sandbox *sandbox)
{
	ca_free(sandbox->intermediate);
	authority_put(sandbox->authority);
	sandbox->intermediate = NULL;
	sandbox->authority = NULL;
}

static bool same_names(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

int sandbox_take_names(struct sandbox *sandbox, struct slice names)
{
	char *copy = NULL;

	sandbox->waits = false;
	if (same_names(sandbox->names, "") ? names.n == 0
	                                   : slice_equals(names, slice_from_string(sandbox->names)))
		return 0;
	if (names.n) {
		copy = strndup(names.p, names.n);
		if (!copy)
			return -ENOMEM;
	}
	free(sandbox->names);
	sandbox->names = copy;
	forget_intermediate(sandbox); /* it may sign for others */
	return 0;
}

/* While a token is unavailable, a worker that replaces another one (a reload) gets that worker's
 * intermediate: both belong to the same sandbox, and a policy must be replaceable at any time. */
static bool share_intermediate(struct sandbox *sandbox)
{
	struct secret key = {0};
	struct ca *copy = NULL;
	struct sandbox *other;

	DL_FOREACH(sandbox->all->first, other)
	{
		if (other == sandbox || !other->described ||
		        strcmp(other->name, sandbox->name) != 0 || !can_sign(other) ||
		        !same_names(other->names, sandbox->names) ||
		        !ca_key_is_elsewhere(other->authority->ca))
			continue;
		if (ca_key_der(other->intermediate, &key) == 0)
			copy = ca_from_der(
			        ca_certificate_der(other->intermediate), secret_slice(&key));
		secret_free(&key);
		if (copy)
			take(sandbox, other->authority, copy);
		return copy != NULL;
	}
	return false;
}

/* Any described worker's message with this id; a worker that is gone needs no answer, and gets the
 * current root's. */
int sandboxes_send_root(
        struct sandboxes *all, const struct ipc_message *message, char why[CA_WHY_MAX])
{
	enum sandbox_made made;
	struct sandbox *sandbox;
	bool had;

	DL_FOREACH(all->first, sandbox)
	{
		if (sandbox->request != message->head.id)
			continue;
		had = can_sign(sandbox);
		made = had ? SANDBOX_MADE : sandbox_make_intermediate(sandbox, why);
		sandbox->told = made == SANDBOX_MADE ||
		                (made == SANDBOX_NOT_MADE && share_intermediate(sandbox));
		if (sandbox->told && !had && send_intermediate(sandbox) == -ENOMEM)
			return -ENOMEM; /* a worker that is gone needs none */
		if (sandbox->told)
			return tell_root(all, sandbox->authority, message->head.id);
		if (made == SANDBOX_MADE_LATER || sandbox->root_known)
			return 0; /* the worker may serve; it is told once a CA has signed */
		if (!why[0])
			snprintf(why, CA_WHY_MAX, "%s",
			        all->authorities->problem[0]
			                ? all->authorities->problem
			                : "no CA can sign for it: the current one has ended, or "
			                  "there "
			                  "is no memory ('vethguard ca show')");
		return -ENOKEY;
	}
	return all->authorities->count ? tell_root(all, all->authorities->list[0], message->head.id)
	                               : 0;
}

static bool is_due(const struct sandbox *sandbox, int64_t now_s)
{
	const struct authorities *all = sandbox->all->authorities;
	const struct authority *next = authorities_find(all, known_root(sandbox));
	int64_t ends_s;

	if (sandbox->waits)
		return false;
	if (!sandbox->intermediate ||
	        !authorities_have(all, sandbox->authority->described.fingerprint))
		return true;
	if (!sandbox->described && next != sandbox->authority)
		return true;
	ends_s = ca_expires_s(sandbox->intermediate);
	return ends_s - now_s < RENEW_BEFORE_S && next && ca_expires_s(next->ca) > ends_s;
}

static void renew(struct sandbox *sandbox)
{
	char why[CA_WHY_MAX];

	switch (sandbox_make_intermediate(sandbox, why)) {
	case SANDBOX_MADE:
		pass_on(sandbox);
		break;
	case SANDBOX_NOT_MADE:
		if (!sandbox->described && !sandbox->root_known)
			forget_intermediate(sandbox);
		break;
	case SANDBOX_MADE_LATER:
		break;
	}
}

void sandboxes_renew(struct sandboxes *all, bool every)
{
	const int64_t now_s = clock_real_ms() / 1000;
	struct sandbox *sandbox;

	DL_FOREACH(all->first, sandbox)
	{
		if ((every && !sandbox->waits) || is_due(sandbox, now_s))
			renew(sandbox);
	}
}
