/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token that does not answer in time is given up: all waiting jobs fail, the pair is closed, and
 * the supervisor ends the token process, because nothing else interrupts a module's call.
 */
#include "keeper/token.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "vethguard/base/log.h"

#define NO_TOKEN "the token is not there ('vethguard ca show' says why)"
#define MESSAGE_OUT_MAX 1024

struct token_job {
	struct token_job *prev, *next;
	struct token *token;
	uint64_t id;
	const struct ca *issuer;
	struct ca_draft *draft; /* owned; NULL: the job was canceled */
	bool sent;
	uint8_t digest[MESSAGE_DIGEST_BYTES];
	token_done done;
	void *context;
};

static void job_free(struct token_job *job)
{
	DL_DELETE(job->token->first, job);
	ca_draft_free(job->draft);
	free(job);
}

static void finish(struct token_job *job, struct ca *made, const char *why)
{
	token_done done = job->done;
	void *context = job->context;

	job_free(job);
	done(context, made, why);
}

static int send_first(struct token *t)
{
	uint8_t message[128];
	struct token_job *job = t->first;
	struct message_token_sign m = {slice_of((const char *)job->digest, sizeof(job->digest))};

	job->sent = true;
	loop_timer_set(&t->timer, TOKEN_SIGN_MS);
	return ipc_send(&t->peer, message,
	        message_token_sign_encode(
	                message, sizeof(message), MESSAGE_TOKEN_SIGN, job->id, &m),
	        NULL, 0);
}

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

/* Fails all waiting jobs. Their owners may ask again from within, and then learn at once that there
 * is no token. */
static void lose(struct token *t, const char *why)
{
	ipc_peer_close(&t->peer);
	loop_timer_cancel(&t->timer);
	if (t->trial == TOKEN_TRIED)
		t->trial = TOKEN_UNTRIED;
	while (t->first)
		finish(t->first, NULL, why);
}

static void on_late(struct loop_timer *timer)
{
	struct token *t = container_of(timer, struct token, timer);
	char why[128];

	snprintf(why, sizeof(why), "the token has not signed within %d seconds",
	        TOKEN_SIGN_MS / 1000);
	tell(t, why);
	lose(t, why);
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct token *t = container_of(peer, struct token, peer);

	if (error == -EBADMSG)
		tell(t, "it broke the protocol with the keeper");
	lose(t, "the token's process has ended");
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct token *t = container_of(peer, struct token, peer);
	struct message_token_signature m;
	struct token_job *job = t->first;
	char why[CA_WHY_MAX] = "";
	struct ca *made = NULL;

	if (message->head.type != MESSAGE_TOKEN_SIGNATURE || message->fd_count > 0 || !job ||
	        job->id != message->head.id ||
	        message_token_signature_decode(&message->body, &m) < 0)
		return -EBADMSG;
	loop_timer_cancel(&t->timer);
	if (m.signature.n && job->draft) {
		made = ca_draft_finish(job->draft, job->issuer,
		        m.kind == MESSAGE_TOKEN_RSA ? CA_SIGNATURE_RSA : CA_SIGNATURE_ECDSA,
		        m.signature, why);
		job->draft = NULL;
	} else {
		slice_escape(m.error, why, sizeof(why));
	}
	finish(job, made, why);
	return peer->open && t->first && !t->first->sent ? send_first(t) : 0;
}

void token_init(struct token *t, struct loop *loop, struct ipc_peer *supervisor)
{
	*t = (struct token){.loop = loop, .supervisor = supervisor};
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
	int rc = 0;

	if (!reader_done(&message->body) || message->fd_count != 1)
		return -EBADMSG;
	if (t->peer.open)
		lose(t, "another process speaks to the token now");
	forget_trial(t);
	if (!t->timer.event)
		rc = loop_timer_open(t->loop, &t->timer, on_late);
	if (rc < 0)
		return rc;
	rc = ipc_peer_open(t->loop, &t->peer, message->fds[0], "token", on_message, on_end);
	message->fds[0] = -1;
	return rc;
}

struct token_job *token_sign(struct token *t, const struct ca *issuer,
        const struct ca_wanted *wanted, token_done done, void *context, char why[CA_WHY_MAX])
{
	struct token_job *job = t->peer.open ? calloc(1, sizeof(*job)) : NULL;

	snprintf(why, CA_WHY_MAX, "%s", t->peer.open ? "no memory" : NO_TOKEN);
	if (!job)
		return NULL;
	job->draft = ca_draft_new(issuer, wanted, job->digest);
	if (!job->draft) {
		snprintf(why, CA_WHY_MAX, "the CA has ended, or there is no memory");
		free(job);
		return NULL;
	}
	job->token = t;
	job->id = ++t->last_id;
	job->issuer = issuer;
	job->done = done;
	job->context = context;
	DL_APPEND(t->first, job);
	if (t->first == job && send_first(t) < 0) {
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
	if (!job->sent) {
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
	while (t->first)
		job_free(t->first);
	ipc_peer_close(&t->peer);
	loop_timer_close(&t->timer);
	forget_trial(t);
}
