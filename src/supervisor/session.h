/* SPDX-License-Identifier: Apache-2.0 */
/* session: the messages exchanged with one `vethguard run`, which owns one sandbox. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SESSION_H
#define VETHGUARD_SRC_SUPERVISOR_SESSION_H

#include "supervisor/supervisor.h"

struct session {
	struct ipc_peer peer;
	struct sandbox_owner owner;
	struct supervisor *supervisor;
	char config_path[MESSAGE_PATH_MAX + 1]; /* empty: none */
	struct sandbox *sandbox;                /* NULL once it has ended */
	uint64_t start_id;                      /* id of SESSION_START; answers carry it */
	uint64_t variables_id;                  /* id of SESSION_ENV_GET; 0: none is pending */
	uint64_t reload_id;                     /* id of SESSION_RELOAD; 0: none is pending */
	bool started;
};

/* Takes ownership of fd. Makes the sandbox at once, so that its worker starts while `run` still
 * sends START. Returns 0 or -errno. */
int session_open(struct session *session, struct supervisor *supervisor, int fd);
/* Ends the sandbox as if the command had ended. */
void session_end(struct session *session);
void session_close(struct session *session);

/* session.c, for the other file: sends the message in its buffer; tells what holds now. */
void session_say(struct session *session, const uint8_t *message, size_t size);
void session_tell_ready(struct session *session, struct sandbox *s, uint64_t id);
bool session_copy_path(struct slice from, char *to, size_t size);
/* session_reload.c: MESSAGE_SESSION_RELOAD, and how it ended. Returns 0 or -EBADMSG. */
int session_reload(struct session *session, struct ipc_message *message);
void session_replaced(struct sandbox_owner *owner, struct sandbox *s, const char *error);

#endif
