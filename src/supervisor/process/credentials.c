/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper answers a question under its id, at once or when the source has answered. A question
 * is forgotten when it is answered or the keeper ends. The answer to credential_tell(), which
 * nobody waits for, is dropped.
 */
#include "supervisor/process/credentials.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "supervisor/supervisor.h"

static uint8_t buffer[256];

int credential_tell(struct supervisor *sv, uint64_t id, const struct message_credential_ask *ask)
{
	if (!role_runs(&sv->keeper) || !sv->keeper_life.ready)
		return -EAGAIN;
	return role_send(&sv->keeper, buffer,
	        message_credential_ask_encode(
	                buffer, sizeof(buffer), MESSAGE_KEEPER_CREDENTIAL, id, ask),
	        NULL, 0);
}

int credential_ask(struct supervisor *sv, const struct sandbox *s, uint64_t id,
        const struct message_credential_ask *ask)
{
	struct credential_question *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	rc = credential_tell(sv, id, ask);
	if (rc) {
		free(q);
		return rc;
	}
	q->id = id;
	q->sandbox = s->id;
	DL_APPEND(sv->credential_questions, q);
	return 0;
}

static void end(struct supervisor *sv, struct credential_question *q,
        const struct message_keeper_credentials *m)
{
	struct sandbox *s = supervisor_find(sv, q->sandbox);
	uint64_t id = q->id;

	DL_DELETE(sv->credential_questions, q);
	free(q);
	if (s && s->owner->credentials)
		s->owner->credentials(s->owner, id, m);
}

int credential_answered(struct supervisor *sv, struct ipc_message *message)
{
	static struct message_keeper_credentials m;
	struct credential_question *q;

	if (message->head.id > sv->last_id ||
	        message_keeper_credentials_decode(&message->body, &m) != 0)
		return -EBADMSG;
	DL_FOREACH(sv->credential_questions, q)
	{
		if (q->id == message->head.id) {
			end(sv, q, &m);
			return 0;
		}
	}
	return 0;
}

void credential_keeper_lost(struct supervisor *sv)
{
	while (sv->credential_questions)
		end(sv, sv->credential_questions, NULL);
}

void credential_fini(struct supervisor *sv)
{
	struct credential_question *q, *next;

	DL_FOREACH_SAFE(sv->credential_questions, q, next)
	free(q);
	sv->credential_questions = NULL;
}
