/* SPDX-License-Identifier: Apache-2.0 */
/* run_options: the command line of `vethguard run`. */
#ifndef VETHGUARD_SRC_CLI_RUN_OPTIONS_H
#define VETHGUARD_SRC_CLI_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vethguard/policy/load.h"
#include "vethguard/wire/message.h"

#define RUN_ENV_MAX 256
#define RUN_DEVICES_MAX 32

struct run_options {
	const char *policy, *config, *name, *user, *audit; /* NULL: not given */
	bool observe, clean_env, proxy_env;
	unsigned verbose;
	const char *env[RUN_ENV_MAX]; /* NAME or NAME=VALUE */
	size_t env_count;
	const char *keep[RUN_ENV_MAX]; /* NAME */
	size_t keep_count;
	const char *devices[RUN_DEVICES_MAX]; /* paths in /dev */
	size_t device_count;
	struct policy_variable variables[POLICY_VARIABLES_MAX];
	size_t variable_count;
	/* `sidecar run` only: see struct message_run_start. */
	uint16_t shared_dns_port; /* 0: none of it */
	int shared_packets;       /* NFLOG socket; -1: none */
	uint16_t shared_udp_ports[MESSAGE_SHARED_UDP_MAX];
	size_t shared_udp_count;
	char **command; /* ends with NULL; at least one word */
};

/* Returns 0: go on; else *status is the exit status (--help was printed, or a mistake reported). */
int run_options_parse(char **argv, struct run_options *out, int *status);

#endif
