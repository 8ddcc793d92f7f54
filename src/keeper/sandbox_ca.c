/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intermediates of workers. A worker in store has one before its sandbox is known, under the
 * current CA. When CAs change, a worker keeps its intermediate as long as what signed it is kept;
 * then, or when the intermediate is about to end, it is sent another, without being asked.
 */
#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "keeper/sandbox.h"
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

bool sandbox_make_intermediate(struct sandbox *sandbox)
{
	struct authority *a = authorities_find(sandbox->all->authorities, known_root(sandbox));
	struct ca *made = a ? authority_intermediate(a) : NULL;

	if (!made)
		return false;
	ca_free(sandbox->intermediate);
	authority_put(sandbox->authority);
	sandbox->intermediate = made;
	sandbox->authority = authority_get(a);
	if (sandbox->root_known) /* what is the oldest may change */
		memcpy(sandbox->root, a->root_described.fingerprint, sizeof(sandbox->root));
	return true;
}

/* A worker that no CA can sign for waits until one can. */
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

static bool can_sign(const struct sandbox *sandbox)
{
	return sandbox->intermediate &&
	       ca_expires_s(sandbox->intermediate) > clock_real_ms() / 1000;
}

/* Any described worker's message with this id; a worker that is gone needs no answer, and gets the
 * current root's. */
int sandboxes_send_root(
        struct sandboxes *all, const struct ipc_message *message, char why[CA_WHY_MAX])
{
	struct sandbox *sandbox;

	DL_FOREACH(all->first, sandbox)
	{
		if (sandbox->request != message->head.id)
			continue;
		sandbox->told = can_sign(sandbox) || sandbox_make_intermediate(sandbox);
		if (sandbox->told)
			return tell_root(all, sandbox->authority, message->head.id);
		if (sandbox->root_known) /* its worker may serve: told when a CA can sign */
			return 0;
		snprintf(why, CA_WHY_MAX, "%s",
		        all->authorities->problem[0]
		                ? all->authorities->problem
		                : "no CA can sign for it: the current one has ended, or there is "
		                  "no memory ('vethguard ca show')");
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

	if (!sandbox->intermediate ||
	        !authorities_have(all, sandbox->authority->described.fingerprint))
		return true;
	if (!sandbox->described && next != sandbox->authority)
		return true;
	ends_s = ca_expires_s(sandbox->intermediate);
	return ends_s - now_s < RENEW_BEFORE_S && next && ca_expires_s(next->ca) > ends_s;
}

/* A worker in store loses what no CA stands behind: it would be a new sandbox's. */
static void forget_intermediate(struct sandbox *sandbox)
{
	ca_free(sandbox->intermediate);
	authority_put(sandbox->authority);
	sandbox->intermediate = NULL;
	sandbox->authority = NULL;
}

static void renew(struct sandbox *sandbox)
{
	int rc = sandbox_make_intermediate(sandbox) ? 0 : -ENOKEY;

	if (rc && !sandbox->described && !sandbox->root_known)
		forget_intermediate(sandbox);
	if (rc == 0 && sandbox->ca_question)
		rc = authority_send(sandbox->authority, sandbox->intermediate, &sandbox->worker,
		        sandbox->ca_question);
	if (rc == 0 && sandbox->described && sandbox->all->sources->supervisor->open)
		rc = tell_root(sandbox->all, sandbox->authority,
		        sandbox->told ? sandbox->id : sandbox->request);
	sandbox->told |= rc == 0;
	if (rc < 0 && rc != -ENOKEY && rc != -EPIPE) /* as in send_credential() */
		log_warn("the %s gets no other CA: %s", sandbox->label, strerror(-rc));
}

void sandboxes_renew(struct sandboxes *all, bool every)
{
	const int64_t now_s = clock_real_ms() / 1000;
	struct sandbox *sandbox;

	DL_FOREACH(all->first, sandbox)
	{
		if (every || is_due(sandbox, now_s))
			renew(sandbox);
	}
}
