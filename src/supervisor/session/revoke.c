/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revoking sessions. A session with a token of its own ends, and with it its token. One that signed
 * tokens stand for would begin again with the next connection, so what names it is remembered until
 * no such token can be valid any more.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/session/session.h"

static void on_token(
        void *owner, const struct gateway_question *q, struct slice text, const struct ip *source)
{
	attachments_show_token(owner, q, text, source);
}

void attachments_open_tokens(struct attachments *all)
{
	struct gateway_life *life = &all->supervisor->gateway;
	int rc = revocations_load(&all->revocations, all->state, clock_real_ms());

	all->revocations_damaged = rc != 0;
	if (rc)
		log_error(
		        "the file " REVOCATIONS_FILE " of the state directory cannot be used: %s; "
		        "signed tokens are refused until it is repaired or removed, and the daemon "
		        "started again",
		        rc == -EBADMSG ? "it is damaged" : strerror(-rc));
	life->token_owner = all;
	life->on_token = on_token;
}

/* Remembers it. Returns false after an answer. */
static bool remember(struct attachments *all, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES],
        uint32_t lifetime_s, attach_done done, void *context)
{
	const int64_t now_ms = clock_real_ms();
	const int64_t until_ms = now_ms + ((int64_t)lifetime_s + SIGNED_TOKEN_SKEW_S) * 1000;
	int rc = all->revocations_damaged
	                 ? -EBADMSG
	                 : revocations_add(&all->revocations, all->state, id, until_ms, now_ms);

	if (!rc) {
		gateway_signers_send(
		        all->supervisor); /* the gateway asks again about every token */
		return true;
	}
	attach_refuse(done, context, rc == -ENOSPC ? ATTACH_BUSY : ATTACH_FAILED,
	        "its revocation cannot be written: %s",
	        rc == -EBADMSG  ? "the file " REVOCATIONS_FILE " is damaged"
	        : rc == -ENOSPC ? "there are too many"
	                        : strerror(-rc));
	return false;
}

void attachments_revoke(struct attachments *all, const char *name, attach_done done, void *context)
{
	const struct attachment *a = attachments_find_session(all, name, done, context);
	const struct session_token *token = a ? &a->record.session : NULL;

	if (a && (!token->is_signed || remember(all, token->id, token->lifetime_s, done, context)))
		attachments_detach(all, name, done, context);
}

static const struct config_signer *find_signer(const struct attachments *all, const char *name)
{
	const struct config_gateway *g = &all->supervisor->gateway.config;

	for (size_t i = 0; i < g->signer_count; i++)
		if (strcmp(g->signers[i].name, name) == 0)
			return &g->signers[i];
	return NULL;
}

static struct attachment *find_by_id(
        const struct attachments *all, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES])
{
	struct attachment *a;

	for (a = all->by_name; a; a = a->hh.next)
		if (a->record.kind == ATTACH_SESSION && a->record.session.is_signed &&
		        memcmp(a->record.session.id, id, MESSAGE_TOKEN_HASH_BYTES) == 0)
			return a;
	return NULL;
}

void attachments_revoke_token(struct attachments *all, const char *signer, const char *value,
        attach_done done, void *context)
{
	static const struct attach_result good = {.status = ATTACH_OK, .text = ""};
	const struct config_signer *s = find_signer(all, signer);
	uint8_t id[MESSAGE_TOKEN_HASH_BYTES];
	struct attachment *a;

	if (!s) {
		attach_refuse(done, context, ATTACH_NOT_FOUND,
		        "the configuration has no signer %.64s", signer);
		return;
	}
	if (attach_signed_id(signer, slice_from_string(value), id) != 0) {
		attach_refuse(done, context, ATTACH_INVALID, "id: no token can have it");
		return;
	}
	if (!remember(all, id, s->terms.lifetime_s, done, context))
		return;
	a = find_by_id(all, id);
	if (a && !a->detaching)
		attachments_detach(all, a->record.name, done, context);
	else
		done(context, &good);
}
