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
	uint64_t start_id;                      /* id of SESSION_START; answers carry it */
	uint64_t variables_id;                  /* id of SESSION_ENV_GET; 0: none is pending */
	bool started;
};

/* Takes ownership of fd. Makes the sandbox at once, so that its worker starts while `run` still
 * sends START. Returns 0 or -errno. */
int run_open(struct run *run, struct supervisor *supervisor, int fd);
/* Ends the sandbox as if the command had ended. */
void run_end(struct run *run);
void run_close(struct run *run);

#endif
