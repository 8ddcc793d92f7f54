/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: vethguardd as a service that guards sandboxes made by others until it is stopped. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_H

#include <stdbool.h>

#define DAEMON_CONFIG "/etc/vethguard/vethguard.yaml" /* used if it exists */
#define DAEMON_STATE "/run/vethguard"
#define DAEMON_DATA "/var/lib/vethguard"
#define DAEMON_AUDIT "/var/log/vethguard/audit.jsonl"
#define DAEMON_SOCKET "control.sock" /* in the state directory */

struct daemon_options {
	const char *config, *socket, *state, *data, *audit; /* NULL: the default */
	/* Argument of --take-over, from the daemon that starts this one; NULL: none
	 * (takeover.c). */
	const char *take_over;
	bool check_config;
	int verbose;
};

/* Runs until SIGTERM. Returns the exit status. Keeps the caller's capabilities. */
int daemon_run(const struct daemon_options *options);

#endif
