/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of its socket pair to the keeper: gets the sandbox's CA, again when another one
 * is to sign from now on, and credentials when they are needed. */
#include <errno.h>

#include "worker/worker.h"

enum { QUESTION_CA = 1, QUESTION_CREDENTIAL };

#define SEAL_OVERHEAD 128  /* head and lengths of MESSAGE_CREDENTIAL_SEAL */
#define GENERATION_BITS 24 /* low bits of the generation that fit into a question's id */

/* The id of a question for a credential holds the credential's index and the policy's generation,
 * so that nothing has to be remembered. */
static uint64_t credential_id(uint64_t generation, uint32_t credential)
{
	return generation << (64 - GENERATION_BITS) | (uint64_t)QUESTION_CREDENTIAL << 32 |
	       credential;
}

static bool is_credential_id(uint64_t id, uint32_t credential)
{
	return (id & (UINT64_MAX >> GENERATION_BITS)) == credential_id(0, credential);
}

int keeper_read_ca(struct worker *w, struct ipc_message *m)
{
	struct message_ca ca;
	struct ca *issuer;

	if (m->head.id != QUESTION_CA || message_ca_decode(&m->body, &ca) < 0)
		return -EBADMSG;
	issuer = ca_from_der(ca.intermediate, ca.key);
	if (!issuer || ca_set_chain(issuer, ca.above, ca.above_count) < 0) {
		ca_free(issuer);
		return -EBADMSG;
	}
	ca_free(w->issuer);
	w->issuer = issuer;
	return 0;
}

static int take_ca(struct worker *w, struct ipc_message *m)
{
	int rc = keeper_read_ca(w, m);

	if (rc < 0)
		return rc;
	if (w->leaf_issuer) {
		leaf_issuer_replace(w->leaf_issuer, w->issuer);
		w->issuer = NULL;
		return 0;
	}
	rc = w->state == WORKER_STARTING ? worker_serve(w) : 0;
	if (rc < 0)
		worker_fail(w, "cannot serve: %s", strerror(-rc));
	return 0;
}

static int take_credential(struct worker *w, struct ipc_message *m)
{
	struct message_credential c;
	char error[256];

	if (message_credential_decode(&m->body, &c) < 0 ||
	        !is_credential_id(m->head.id, c.credential))
		return -EBADMSG;
	/* The question is from before a policy change: the index may belong to another credential
	 * now. */
	if (m->head.id != credential_id(w->generation, c.credential))
		return 0;
	if (c.credential >= policy_credential_count(&w->policy))
		return -EBADMSG;
	slice_escape(c.error, error, sizeof(error));
	credential_store_answer(w->credentials, c.credential, c.value, c.ttl_ms, c.renew_ms,
	        c.available ? NULL : error);
	return 0;
}

static int take_signature(struct worker *w, struct ipc_message *m)
{
	struct message_token_signature s;
	char error[512];

	if (message_token_signature_decode(&m->body, &s) < 0)
		return -EBADMSG;
	slice_escape(s.error, error, sizeof(error));
	credential_store_signed(
	        w->credentials, m->head.id, s.signature, s.signature.n ? NULL : error);
	return 0;
}

static int on_message(struct ipc_peer *peer, struct ipc_message *m)
{
	struct worker *w = container_of(peer, struct worker, keeper);

	switch (m->head.type) {
	case MESSAGE_CA:
		return take_ca(w, m);
	case MESSAGE_CREDENTIAL:
		return take_credential(w, m);
	case MESSAGE_CREDENTIAL_SIGNED:
		return take_signature(w, m);
	default:
		return -EBADMSG;
	}
}

/* The keeper has ended, so no credential can be fetched. If it died, another keeper may take over:
 * questions stay open as long as an answer may take, and a worker without its CA waits as long as
 * it is allowed to. If it broke the protocol, no other keeper is waited for. */
static void on_end(struct ipc_peer *peer, int error)
{
	struct worker *w = container_of(peer, struct worker, keeper);

	w->keeper_broke = error != 0;
	if (error && w->state == WORKER_STARTING)
		worker_fail(w, "the keeper broke the protocol before it gave the sandbox's CA");
	else if (error)
		credential_store_fail_all(w->credentials, "the keeper is gone");
}

static size_t ca_question(uint8_t *message, size_t cap)
{
	return message_empty(message, cap, MESSAGE_CA_GET, QUESTION_CA);
}

int keeper_ask_ca(int fd)
{
	uint8_t message[64];
	int rc = ipc_send_blocking(fd, message, ca_question(message, sizeof(message)), NULL, 0);

	return rc == -EPIPE ? 0 : rc; /* on_end() is told */
}

int keeper_replace(struct worker *w, int fd)
{
	uint8_t message[64];
	int rc;

	if (w->state ==
	        WORKER_STARTING) /* like the first keeper: no question but the CA's matters yet */
		credential_store_fail_all(w->credentials, "the keeper is gone");
	ipc_peer_close(&w->keeper);
	w->keeper_broke = false;
	rc = keeper_open(w, fd);
	if (rc == 0 && w->state != WORKER_STARTING)
		credential_store_ask_again(w->credentials);
	/* Also while the worker serves: a keeper knows the end only of a CA that it made itself. */
	if (rc == 0)
		rc = ipc_send(&w->keeper, message, ca_question(message, sizeof(message)), NULL, 0);
	return rc == -EPIPE ? 0 : rc; /* it is gone already: on_end() is told */
}

int keeper_open(struct worker *w, int fd)
{
	return ipc_peer_open(w->loop, &w->keeper, fd, "keeper", on_message, on_end);
}

int keeper_seal(void *context, struct slice name, const struct jar_token *token)
{
	struct worker *w = context;
	const struct message_credential_seal seal = {
	        .name = name, .jwt = token->jwt, .end = token->end, .value = token->value};
	struct secret message;
	int rc;

	if (!w->keeper.open) /* this worker has it; another one will ask for a new login */
		return 0;
	rc = secret_alloc(&message, SEAL_OVERHEAD + name.n + token->end.n + token->value.n);
	if (rc < 0)
		return rc;
	rc = ipc_send_secret(&w->keeper, message.p,
	        message_credential_seal_encode(
	                message.p, message.cap, MESSAGE_CREDENTIAL_SEAL, 0, &seal),
	        NULL, 0);
	secret_free(&message);
	return rc == -EPIPE ? 0 : rc;
}

int keeper_ask(void *context, uint32_t credential, bool renew)
{
	struct worker *w = context;
	const struct message_credential_get get = {
	        .credential = credential, .generation = w->generation, .renew = renew};
	uint8_t message[64];
	size_t n = message_credential_get_encode(message, sizeof(message), MESSAGE_CREDENTIAL_GET,
	        credential_id(w->generation, credential), &get);
	int rc;

	if (w->keeper_broke)
		return -EPIPE;
	if (!w->keeper.open) /* asked again when another keeper is there */
		return 0;
	rc = ipc_send(&w->keeper, message, n, NULL, 0);
	return rc == -EPIPE ? 0 : rc;
}

int keeper_sign(
        void *context, uint64_t id, uint32_t credential, uint16_t scheme, struct slice digest)
{
	struct worker *w = context;
	const struct message_credential_sign sign = {.credential = credential,
	        .generation = w->generation,
	        .scheme = scheme,
	        .digest = digest};
	uint8_t message[128];
	int rc;

	if (w->keeper_broke)
		return -EPIPE;
	if (!w->keeper.open)
		return -EAGAIN;
	rc = ipc_send(&w->keeper, message,
	        message_credential_sign_encode(
	                message, sizeof(message), MESSAGE_CREDENTIAL_SIGN, id, &sign),
	        NULL, 0);
	return rc == -EPIPE ? -EAGAIN : rc;
}
