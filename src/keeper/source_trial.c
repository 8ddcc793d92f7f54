/* SPDX-License-Identifier: Apache-2.0 */
/* The digest is random, so that a signature made on trial is worth nothing. */
#include "keeper/source_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/source_fetch.h"
#include "vethguard/base/hash.h"
#include "vethguard/tls/tls.h"

#define DIGEST_BYTES 32

struct source_trial {
	struct token_question question;
	struct source *source;         /* NULL: the result is not wanted */
	struct tls_identity *identity; /* NULL: wrong says why */
	char wrong[TLS_IDENTITY_WHY_MAX];
	uint8_t digest[DIGEST_BYTES];
	size_t mark_n;
	uint8_t mark[MESSAGE_CREDENTIAL_MARK_BYTES];
	uint32_t ttl_s;
};

static void trial_free(struct source_trial *t)
{
	tls_identity_release(t->identity);
	free(t);
}

static void tell(struct source *source, const char *why, const struct source_trial *t)
{
	char error[SOURCE_ERROR_MAX];

	snprintf(error, sizeof(error), "its certificate was read, but its key cannot sign: %.440s",
	        why ? why : "");
	source_proceed(source, why ? error : NULL,
	        t ? slice_of((const char *)t->mark, t->mark_n) : SLICE(""), t ? t->ttl_s : 0);
}

static void on_answer(
        struct token_question *question, const struct message_token_signature *m, const char *lost)
{
	struct source_trial *t = container_of(question, struct source_trial, question);
	char why[KEY_TOKENS_WHY_MAX] = "";

	if (!m)
		snprintf(why, sizeof(why), "%s", lost);
	else if (!m->signature.n)
		slice_escape(m->error, why, sizeof(why));
	else if (!tls_identity_verifies(t->identity,
	                 slice_of((const char *)t->digest, sizeof(t->digest)), m->signature))
		snprintf(why, sizeof(why), "it is not the key of the certificate");
	if (t->source) {
		t->source->trial = NULL;
		tell(t->source, why[0] ? why : NULL, t);
	}
	trial_free(t);
}

bool source_trial_prepare(struct source *source, struct slice pem)
{
	struct source_trial *t = calloc(1, sizeof(*t));

	source_trial_cancel(source);
	if (!t)
		return false;
	t->identity = tls_identity_read_elsewhere(pem, t->wrong);
	t->question.on_answer = on_answer;
	t->source = source;
	source->trial = t;
	return true;
}

void source_trial_begin(struct source *source, struct slice mark, uint32_t ttl_s)
{
	struct source_trial *t = source->trial;
	const struct message_token_key_sign wanted = {.uri = slice_from_string(source->key),
	        .scheme = MESSAGE_SCHEME_ANY,
	        .digest = slice_of((const char *)t->digest, sizeof(t->digest))};
	char why[KEY_TOKENS_WHY_MAX];

	random_bytes(t->digest, sizeof(t->digest));
	t->ttl_s = ttl_s;
	t->mark_n = mark.n <= sizeof(t->mark) ? mark.n : 0;
	memcpy(t->mark, mark.p, t->mark_n);
	snprintf(why, sizeof(why), "%s", t->wrong);
	if (t->identity && key_tokens_sign(source->sources->key_tokens, &wanted, &t->question, why))
		return;
	source->trial = NULL;
	trial_free(t);
	tell(source, why, NULL);
}

void source_trial_cancel(struct source *source)
{
	struct source_trial *t = source->trial;

	source->trial = NULL;
	if (!t)
		return;
	t->source = NULL;
	if (token_question_cancel(&t->question))
		trial_free(t);
}
