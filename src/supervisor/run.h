/* SPDX-License-Identifier: Apache-2.0 */
/* run: the messages exchanged with one `vethguard run`, which owns one sandbox. */
#ifndef VETHGUARD_SRC_SUPERVISOR_RUN_H
#define VETHGUARD_SRC_SUPERVISOR_RUN_H

#include "supervisor/supervisor.h"

struct run {
	struct ipc_peer peer;
	struct sandbox_owner owner;
	struct supervisor *supervisor;
	char config_path[MESSAGE_PATH_MAX + 1]; /* empty: none */
	struct sandbox *sandbox;                /* NULL once it has ended */
	uint64_t start_id;                      /* id of RUN_START; answers carry it */
	uint64_t variables_id;                  /* id of RUN_ENV_GET; 0: none is pending */
	uint64_t reload_id;                     /* id of RUN_RELOAD; 0: none is pending */
	bool started;
};

/* Takes ownership of fd. Makes the sandbox at once, so that its worker starts while `run` still
 * sends START. Returns 0 or -errno. */
int run_open(struct run *run, struct supervisor *supervisor, int fd);
/* Ends the sandbox as if the command had ended. */
void run_end(struct run *run);
void run_close(struct run *run);

/* run.c, for run_reload.c: sends the message in its buffer; tells what holds now. */
void run_say(struct run *run, const uint8_t *message, size_t size);
void run_tell_ready(struct run *run, struct sandbox *s, uint64_t id);
bool run_copy_path(struct slice from, char *to, size_t size);
/* run_reload.c: MESSAGE_RUN_RELOAD, and how it ended. Returns 0 or -EBADMSG. */
int run_reload(struct run *run, struct ipc_message *message);
void run_replaced(struct sandbox_owner *owner, struct sandbox *s, const char *error);

#endif
