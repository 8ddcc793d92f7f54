/* SPDX-License-Identifier: Apache-2.0 */
/* A role's reply to DESCRIBE. */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/jail/answer.h"

#define ANSWER_MAX (JAIL_TEXT_MAX + 64)

int jail_answer(struct ipc_peer *supervisor, struct ipc_message *question)
{
	struct message_text m;
	uint8_t *out;
	char *text;
	int rc = -ENOMEM;

	if (!reader_done(&question->body) || question->fd_count > 0)
		return -EBADMSG;
	text = malloc(JAIL_TEXT_MAX);
	out = malloc(ANSWER_MAX);
	if (text && out) {
		jail_describe(text, JAIL_TEXT_MAX);
		m.text = slice_from_string(text);
		rc = ipc_send(supervisor, out,
		        message_text_encode(
		                out, ANSWER_MAX, MESSAGE_DESCRIPTION, question->head.id, &m),
		        NULL, 0);
	}
	free(text);
	free(out);
	return rc == -EPIPE ? 0 : rc;
}
