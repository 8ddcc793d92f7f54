/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a person has to approve, and rules that the sandbox proposes: sends both to the
 * supervisor, and takes its answers and grants. The grants and proposals that the sandbox already
 * has arrive before START, and wait here for the proxy. */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "worker/worker.h"

struct early_grant {
	struct early_grant *next;
	bool proposed; /* a proposal, not a grant */
	uint64_t id;
	size_t n;
	uint8_t body[]; /* as it came */
};

int worker_ask(void *context, uint64_t id, const struct message_worker_ask *question)
{
	static uint8_t message[MESSAGE_BYTES_MAX];
	struct worker *w = context;
	size_t n = message_worker_ask_encode(
	        message, sizeof(message), MESSAGE_WORKER_ASK, id, question);

	return n ? ipc_send(&w->supervisor, message, n, NULL, 0) : -EMSGSIZE;
}

void worker_ask_end(void *context, uint64_t id)
{
	struct worker *w = context;
	uint8_t message[64];

	ipc_send(&w->supervisor, message,
	        message_empty(message, sizeof(message), MESSAGE_WORKER_ASK_END, id), NULL, 0);
}

int worker_take_answer(struct worker *w, struct ipc_message *m)
{
	struct message_worker_answer answer;

	if (message_worker_answer_decode(&m->body, &answer) < 0 || m->fd_count)
		return -EBADMSG;
	if (w->proxy)
		proxy_answer(w->proxy, m->head.id, answer.approved, answer.text);
	return 0;
}

int worker_propose(void *context, uint64_t id, const struct policy_proposal *proposal)
{
	static uint8_t message[PROPOSAL_BYTES_MAX];
	struct worker *w = context;
	const struct message_worker_proposal m = {.to = slice_from_string(proposal->to),
	        .methods = slice_from_string(proposal->methods),
	        .paths = slice_from_string(proposal->paths),
	        .reason = slice_from_string(proposal->reason)};
	size_t n = message_worker_proposal_encode(
	        message, sizeof(message), MESSAGE_WORKER_PROPOSAL, id, &m);

	return n ? ipc_send(&w->supervisor, message, n, NULL, 0) : -EMSGSIZE;
}

/* Keeps the message for worker_apply_grants(). */
static int keep(struct worker *w, bool proposed, uint64_t id, const struct reader *body)
{
	struct early_grant *g = malloc(sizeof(*g) + body->left);

	if (!g)
		return -ENOMEM;
	*g = (struct early_grant){.proposed = proposed, .id = id, .n = body->left};
	memcpy(g->body, body->p, g->n);
	LL_APPEND(w->early_grants, g);
	return 0;
}

int worker_take_grant(struct worker *w, struct ipc_message *m)
{
	struct message_worker_grant grant;
	struct reader body = m->body;

	if (message_worker_grant_decode(&m->body, &grant) < 0 || m->fd_count)
		return -EBADMSG;
	if (!w->proxy)
		return keep(w, false, m->head.id, &body);
	proxy_grant(w->proxy, m->head.id, &grant);
	return 0;
}

int worker_take_proposed(struct worker *w, struct ipc_message *m)
{
	struct message_worker_proposed proposed;
	struct reader body = m->body;

	if (message_worker_proposed_decode(&m->body, &proposed) < 0 || m->fd_count)
		return -EBADMSG;
	if (!w->proxy)
		return keep(w, true, m->head.id, &body);
	proxy_proposed(w->proxy, m->head.id, &proposed);
	return 0;
}

void worker_apply_grants(struct worker *w)
{
	struct message_worker_proposed proposed;
	struct message_worker_grant grant;
	struct early_grant *g;

	while ((g = w->early_grants)) {
		struct reader body = reader_over(g->body, g->n);

		if (!w->proxy)
			;
		else if (!g->proposed && message_worker_grant_decode(&body, &grant) == 0)
			proxy_grant(w->proxy, g->id, &grant);
		else if (g->proposed && message_worker_proposed_decode(&body, &proposed) == 0)
			proxy_proposed(w->proxy, g->id, &proposed);
		LL_DELETE(w->early_grants, g);
		free(g);
	}
}
