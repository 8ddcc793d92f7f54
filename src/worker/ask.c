/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that a person has to approve: sends questions to the supervisor, and takes its answers
 * and grants. Grants that the sandbox has already come before START, and wait for the proxy. */
#include <errno.h>
#include <stdlib.h>

#include "worker/worker.h"

struct early_grant {
	struct early_grant *next;
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

/* Keeps the message for worker_apply_grants(). */
static int keep(struct worker *w, uint64_t id, const struct reader *body)
{
	struct early_grant *g = malloc(sizeof(*g) + body->left);

	if (!g)
		return -ENOMEM;
	*g = (struct early_grant){.next = w->early_grants, .id = id, .n = body->left};
	memcpy(g->body, body->p, g->n);
	w->early_grants = g;
	return 0;
}

int worker_take_grant(struct worker *w, struct ipc_message *m)
{
	struct message_worker_grant grant;
	struct reader body = m->body;

	if (message_worker_grant_decode(&m->body, &grant) < 0 || m->fd_count)
		return -EBADMSG;
	if (!w->proxy)
		return keep(w, m->head.id, &body);
	proxy_grant(w->proxy, m->head.id, &grant);
	return 0;
}

void worker_apply_grants(struct worker *w)
{
	struct message_worker_grant grant;
	struct early_grant *g;

	while ((g = w->early_grants)) {
		struct reader body = reader_over(g->body, g->n);

		if (w->proxy && message_worker_grant_decode(&body, &grant) == 0)
			proxy_grant(w->proxy, g->id, &grant);
		w->early_grants = g->next;
		free(g);
	}
}
