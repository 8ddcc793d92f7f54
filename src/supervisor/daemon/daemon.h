/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: vethguardd that guards sandboxes of others until it is told to stop. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_DAEMON_H

#include <stdbool.h>

#define DAEMON_CONFIG "/etc/vethguard/vethguard.yaml" /* used where it is there */
#define DAEMON_STATE "/run/vethguard"
#define DAEMON_DATA "/var/lib/vethguard"
#define DAEMON_AUDIT "/var/log/vethguard/audit.jsonl"
#define DAEMON_SOCKET "control.sock" /* in the state directory */

struct daemon_options {
	const char *config, *socket, *state, *data, *audit; /* NULL: the default */
	const char
	        *take_over; /* of a daemon that starts this one; NULL: nobody does (takeover.c) */
	bool check_config;
	int verbose;
};

/* Runs until SIGTERM. The exit status. Capabilities are as the caller has left them. */
int daemon_run(const struct daemon_options *options);

#endif
