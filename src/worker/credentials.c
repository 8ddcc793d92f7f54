/* SPDX-License-Identifier: Apache-2.0 */
/* Answers an operator's questions about this worker's credentials, and applies the operator's
 * changes. The keeper has done so before, so its answers from now on are the right ones. */
#include <errno.h>
#include <stdio.h>

#include "worker/worker.h"

static void answer(struct worker *w, uint64_t id, uint64_t ended, bool same)
{
	static struct message_worker_credentials m;
	static uint8_t message[64 + sizeof(m)];

	m.ended = ended;
	m.count = same ? policy_credential_count(&w->policy) : 0;
	for (uint32_t i = 0; i < m.count; i++)
		credential_store_usage(
		        w->credentials, i, &m.credentials[i].uses, &m.credentials[i].last_used_ms);
	ipc_send(&w->supervisor, message,
	        message_worker_credentials_encode(
	                message, sizeof(message), MESSAGE_WORKER_CREDENTIALS, id, &m),
	        NULL, 0);
}

int worker_operate(struct worker *w, struct ipc_message *m)
{
	struct message_credential_ask ask;
	size_t ended = 0;
	bool same;

	if (message_credential_ask_decode(&m->body, &ask) < 0 || m->fd_count > 0)
		return -EBADMSG;
	same = ask.generation == w->generation;
	if (same && ask.what == MESSAGE_CREDENTIAL_ROTATE)
		credential_store_rotate(w->credentials, ask.credential);
	if (same && ask.what == MESSAGE_CREDENTIAL_REVOKE) {
		credential_store_revoke(w->credentials, ask.credential);
		if (w->proxy)
			ended = proxy_end_credential(w->proxy, ask.credential, CREDENTIAL_REVOKED);
	}
	answer(w, m->head.id, ended, same);
	return 0;
}
