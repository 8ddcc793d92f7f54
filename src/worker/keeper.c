/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of its pair to the keeper: the sandbox's CA once, credentials when they are
 * needed. */
#include <errno.h>

#include "worker/worker.h"

enum { QUESTION_CA = 1, QUESTION_CREDENTIAL };

/* The id of a question for a credential carries its index, so that nothing has to be remembered. */
static uint64_t credential_id(uint32_t credential)
{
	return (uint64_t)QUESTION_CREDENTIAL << 32 | credential;
}

static int take_ca(struct worker *w, struct ipc_message *m)
{
	struct message_ca ca;
	struct ca *issuer;

	if (w->serving || m->head.id != QUESTION_CA || message_ca_decode(&m->body, &ca) < 0)
		return -EBADMSG;
	issuer = ca_from_der(ca.intermediate, ca.key);
	if (!issuer)
		return -EBADMSG;
	worker_serve(w, issuer);
	return 0;
}

static int take_credential(struct worker *w, struct ipc_message *m)
{
	struct message_credential c;
	char error[256];

	if (message_credential_decode(&m->body, &c) < 0 ||
	        m->head.id != credential_id(c.credential) ||
	        c.credential >= policy_credential_count(&w->policy))
		return -EBADMSG;
	slice_escape(c.error, error, sizeof error);
	credential_store_answer(
	        w->credentials, c.credential, c.value, c.ttl_s, c.available ? NULL : error);
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
	default:
		return -EBADMSG;
	}
}

/* Without the keeper no credential can be had; the supervisor, which watches it, decides what
 * follows. */
static void on_end(struct ipc_peer *peer, int error)
{
	struct worker *w = container_of(peer, struct worker, keeper);

	(void)error;
	if (!w->serving)
		worker_fail(w, "the keeper went away before it gave the sandbox's CA");
	else
		credential_store_fail_all(w->credentials, "the keeper is gone");
}

int keeper_open(struct worker *w, int fd)
{
	uint8_t message[64];
	int r = ipc_peer_open(w->loop, &w->keeper, fd, "keeper", on_message, on_end);

	if (r < 0)
		return r;
	return ipc_send(&w->keeper, message,
	        message_empty(message, sizeof message, MESSAGE_CA_GET, QUESTION_CA), NULL, 0);
}

int keeper_ask(void *context, uint32_t credential)
{
	struct worker *w = context;
	const struct message_credential_get get = {.credential = credential};
	uint8_t message[64];
	size_t n = message_credential_get_encode(
	        message, sizeof message, MESSAGE_CREDENTIAL_GET, credential_id(credential), &get);

	return w->keeper.open ? ipc_send(&w->keeper, message, n, NULL, 0) : -EPIPE;
}
