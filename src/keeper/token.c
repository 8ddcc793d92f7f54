/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/token.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/log.h"

#define NO_TOKEN "the token is not there ('vethguard ca show' says why)"
#define MESSAGE_OUT_MAX 1024

struct token_job {
	struct token_question question;
	const struct ca *issuer;
	struct ca_draft *draft; /* owned; NULL: the job was canceled */
	token_done done;
	void *context;
};

static void tell(struct token *t, const char *text)
{
	uint8_t message[MESSAGE_OUT_MAX];
	struct message_text m = {slice_from_string(text)};

	if (t->supervisor->open)
		ipc_send(t->supervisor, message,
		        message_text_encode(
		                message, sizeof(message), MESSAGE_KEEPER_TOKEN_SAYS, 0, &m),
		        NULL, 0);
}

static void on_lost(struct token_queue *queue, const char *why)
{
	struct token *t = container_of(queue, struct token, queue);

	if (why)
		tell(t, why);
	if (t->trial == TOKEN_TRIED)
		t->trial = TOKEN_UNTRIED;
}

static void job_free(struct token_job *job)
{
	ca_draft_free(job->draft);
	free(job);
}

static void on_answer(
        struct token_question *question, const struct message_token_signature *m, const char *lost)
{
	struct token_job *job = container_of(question, struct token_job, question);
	token_done done = job->done;
	void *context = job->context;
	char why[CA_WHY_MAX] = "";
	struct ca *made = NULL;

	if (!m) {
		snprintf(why, sizeof(why), "%s", lost);
	} else if (m->signature.n && job->draft) {
		made = ca_draft_finish(job->draft, job->issuer,
		        m->kind == MESSAGE_TOKEN_RSA ? CA_SIGNATURE_RSA : CA_SIGNATURE_ECDSA,
		        m->signature, why);
		job->draft = NULL;
	} else {
		slice_escape(m->error, why, sizeof(why));
	}
	job_free(job);
	done(context, made, why);
}

void token_init(struct token *token, struct loop *loop, struct ipc_peer *supervisor)
{
	*token = (struct token){.supervisor = supervisor};
	token_queue_init(&token->queue, loop, on_lost);
}

static void forget_trial(struct token *t)
{
	ca_free(t->below);
	ca_free(t->trial_ca);
	t->below = t->trial_ca = NULL;
	t->trial = TOKEN_UNTRIED;
	t->why[0] = 0;
}

int token_connect(struct token *t, struct ipc_message *message)
{
	int rc;

	if (!reader_done(&message->body) || message->fd_count != 1)
		return -EBADMSG;
	if (t->queue.peer.open)
		token_queue_lose(&t->queue, "another process speaks to the token now");
	forget_trial(t);
	rc = token_queue_connect(&t->queue, message->fds[0]);
	message->fds[0] = -1;
	return rc;
}

static int ask(struct token *t, struct token_job *job, const uint8_t *digest)
{
	uint8_t message[128];
	const struct message_token_sign m = {slice_of((const char *)digest, MESSAGE_DIGEST_BYTES)};
	size_t n = message_token_sign_encode(
	        message, sizeof(message), MESSAGE_TOKEN_SIGN, token_queue_next_id(&t->queue), &m);

	return token_queue_add(&t->queue, &job->question, message, n);
}

struct token_job *token_sign(struct token *t, const struct ca *issuer,
        const struct ca_wanted *wanted, token_done done, void *context, char why[CA_WHY_MAX])
{
	struct token_job *job = t->queue.peer.open ? calloc(1, sizeof(*job)) : NULL;
	uint8_t digest[MESSAGE_DIGEST_BYTES];

	snprintf(why, CA_WHY_MAX, "%s", t->queue.peer.open ? "no memory" : NO_TOKEN);
	if (!job)
		return NULL;
	job->draft = ca_draft_new(issuer, wanted, digest);
	if (!job->draft) {
		snprintf(why, CA_WHY_MAX, "the CA has ended, or there is no memory");
		free(job);
		return NULL;
	}
	job->question.on_answer = on_answer;
	job->issuer = issuer;
	job->done = done;
	job->context = context;
	if (ask(t, job, digest) < 0) {
		job_free(job);
		snprintf(why, CA_WHY_MAX, NO_TOKEN);
		return NULL;
	}
	return job;
}

/* The result of a canceled job is thrown away when the token answers. */
static void ignore(void *context, struct ca *made, const char *why)
{
	(void)context, (void)why;
	ca_free(made);
}

void token_cancel(struct token_job *job)
{
	if (!job)
		return;
	if (token_question_cancel(&job->question)) {
		job_free(job);
		return;
	}
	ca_draft_free(job->draft);
	job->draft = NULL;
	job->done = ignore;
	job->context = NULL;
}

static void on_tried(void *context, struct ca *made, const char *why)
{
	struct token *t = context;

	t->trial = TOKEN_TRIED;
	t->below = made;
	snprintf(t->why, sizeof(t->why), "%s", made ? "" : why);
	ca_free(t->trial_ca);
	t->trial_ca = NULL;
	tell(t, "");
}

static void start_trial(struct token *t, struct slice certificate)
{
	char why[CA_WHY_MAX];

	forget_trial(t);
	t->trial_ca = ca_from_certificate(certificate, why);
	if (t->trial_ca && token_sign(t, t->trial_ca,
	                           &(struct ca_wanted){SLICE(CA_TRIAL_NAME), CA_TRIAL_DAYS, NULL},
	                           on_tried, t, why)) {
		t->trial = TOKEN_TRYING;
		return;
	}
	ca_free(t->trial_ca);
	t->trial_ca = NULL;
	t->trial = TOKEN_TRIED;
	snprintf(t->why, sizeof(t->why), "%s", why);
}

bool token_try(struct token *t, struct slice certificate, bool anew, struct ca **below)
{
	struct ca_description d;

	*below = NULL;
	if (ca_describe(certificate, &d) < 0)
		return false;
	if (t->trial == TOKEN_TRYING)
		return false;
	if (t->trial != TOKEN_TRIED || (anew && !t->below && !t->why[0]) ||
	        memcmp(d.fingerprint, t->tried, sizeof(t->tried)) != 0) {
		start_trial(t, certificate);
		memcpy(t->tried, d.fingerprint, sizeof(t->tried));
	}
	if (t->trial != TOKEN_TRIED)
		return false;
	*below = t->below;
	t->below = NULL;
	if (t->why[0]) /* the next check tries again */
		t->trial = TOKEN_UNTRIED;
	return true;
}

void token_fini(struct token *t)
{
	token_queue_fini(&t->queue);
	forget_trial(t);
}
