/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures for a worker's TLS handshakes, by the key of one of its credentials in a token. The
 * worker names the credential by its number; the supervisor has told the keeper the key's URI.
 * Every question is answered, unless its worker is gone or the policy has changed meanwhile. A
 * worker gets no signature by the key of a revoked credential.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "keeper/sandbox.h"
#include "vethguard/base/log.h"

#define SIGNATURES_MAX 16 /* open questions of one worker; an intact one has no more */
#define MESSAGE_OUT_MAX (MESSAGE_SIGNATURE_MAX + MESSAGE_WHAT_MAX + 64)
#define REVOKED "an operator has revoked the credential"

struct sandbox_signature {
	struct token_question question;
	struct sandbox_signature *prev, *next;
	struct sandbox *sandbox; /* NULL: nobody waits any more */
	uint64_t id;             /* of the worker's question */
	uint32_t credential;
};

static void reply(struct sandbox *sandbox, uint64_t id, const struct message_token_signature *m)
{
	uint8_t message[MESSAGE_OUT_MAX];
	int rc = ipc_send(&sandbox->worker, message,
	        message_token_signature_encode(
	                message, sizeof(message), MESSAGE_CREDENTIAL_SIGNED, id, m),
	        NULL, 0);

	if (rc < 0 && rc != -EPIPE)
		log_warn("cannot answer the %s: %s", sandbox->label, strerror(-rc));
}

static void reply_error(struct sandbox *sandbox, uint64_t id, const char *why)
{
	reply(sandbox, id,
	        &(struct message_token_signature){
	                .signature = SLICE(""), .error = slice_from_string(why)});
}

static void forget(struct sandbox_signature *s)
{
	if (s->sandbox) {
		DL_DELETE(s->sandbox->signatures, s);
		s->sandbox->signature_count--;
	}
	free(s);
}

static void on_answer(
        struct token_question *question, const struct message_token_signature *m, const char *why)
{
	struct sandbox_signature *s = container_of(question, struct sandbox_signature, question);

	if (s->sandbox && s->sandbox->sources[s->credential].revoked)
		reply_error(s->sandbox, s->id, REVOKED);
	else if (s->sandbox && m)
		reply(s->sandbox, s->id, m);
	else if (s->sandbox)
		reply_error(s->sandbox, s->id, why);
	forget(s);
}

/* Asks the token. Returns false, and why says why, if the token is not asked. */
static bool begin(struct sandbox *sandbox, uint64_t id, const struct source *source,
        const struct message_credential_sign *m, char why[KEY_TOKENS_WHY_MAX])
{
	const struct message_token_key_sign wanted = {
	        .uri = slice_from_string(source->key), .scheme = m->scheme, .digest = m->digest};
	struct sandbox_signature *s = calloc(1, sizeof(*s));

	snprintf(why, KEY_TOKENS_WHY_MAX, "no memory");
	if (!s)
		return false;
	s->question.on_answer = on_answer;
	s->id = id;
	if (!key_tokens_sign(sandbox->all->key_tokens, &wanted, &s->question, why)) {
		free(s);
		return false;
	}
	s->sandbox = sandbox;
	s->credential = source->credential;
	DL_APPEND(sandbox->signatures, s);
	sandbox->signature_count++;
	return true;
}

int sandbox_on_sign(struct sandbox *sandbox, struct ipc_message *message)
{
	struct message_credential_sign m;
	const struct source *source;
	char why[KEY_TOKENS_WHY_MAX];

	if (message_credential_sign_decode(&message->body, &m) < 0)
		return -EBADMSG;
	if (!sandbox->described || m.generation != sandbox->generation) {
		reply_error(sandbox, message->head.id, "the policy is changing: try again");
		return 0;
	}
	if (m.credential >= sandbox->source_count || sandbox->signature_count == SIGNATURES_MAX)
		return -EBADMSG;
	source = &sandbox->sources[m.credential];
	if (!source->key)
		snprintf(why, sizeof(why), "this credential has no key in a token");
	else if (source->revoked)
		snprintf(why, sizeof(why), REVOKED);
	else if (begin(sandbox, message->head.id, source, &m, why))
		return 0;
	reply_error(sandbox, message->head.id, why);
	return 0;
}

void sandbox_forget_signatures(struct sandbox *sandbox)
{
	struct sandbox_signature *s, *next;

	DL_FOREACH_SAFE(sandbox->signatures, s, next)
	{
		DL_DELETE(sandbox->signatures, s);
		s->sandbox = NULL;
		if (token_question_cancel(&s->question))
			free(s);
	}
	sandbox->signature_count = 0;
}
