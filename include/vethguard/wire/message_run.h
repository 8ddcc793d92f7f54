/* SPDX-License-Identifier: Apache-2.0 */
/* message_run: what vethguard run and its supervisor send each other; message_summary comes from the recorder. */
#ifndef VETHGUARD_WIRE_MESSAGE_RUN_H
#define VETHGUARD_WIRE_MESSAGE_RUN_H

#include "vethguard/wire/message_type.h"

struct message_status {
	int32_t status;
};

#define MESSAGE_SHARED_UDP_MAX 8 /* FENCE_SHARED_PORTS_MAX */
struct message_run_start {
	struct slice name;                                 /* of the sandbox; empty: the supervisor makes one up */
	struct slice policy_path, config_path, audit_path; /* absolute; empty: none */
	struct slice directory;                            /* absolute working directory, for exec: sources */
	uint32_t user_id, group_id; /* the invoking user: runs exec: sources, owns the audit file */
	bool observe;
	bool rootless;
	uint16_t shared_dns_port; /* port of the name service in a namespace that guard and sandbox share
	                             (fence/shared.h); 0: the sandbox has a namespace of its own */
	size_t shared_udp_count;
	/* Ports at which the fence of that namespace lets datagrams reach the guard. */
	uint16_t shared_udp_ports[MESSAGE_SHARED_UDP_MAX];
	uint8_t log_level;
	size_t variable_count;
	struct policy_variable variables[POLICY_VARIABLES_MAX]; /* of the policy; policy_load() checks them */
};

#define MESSAGE_ROLE_NAME_MAX 127
struct message_role {
	uint32_t left;     /* number of messages that follow */
	uint32_t pid;      /* as the supervisor sees it */
	struct slice name; /* "the worker of x" */
	struct slice text; /* jail_describe(); empty: the role did not reply in time */
};

struct message_names {
	size_t count;
	struct slice names[MESSAGE_ENV_MAX];
};

#define MESSAGE_WATCHED_MAX (POLICY_INCLUDE_FILES_MAX + 1) /* included ones, and the policy's own */
struct message_paths {
	size_t count;
	struct slice paths[MESSAGE_WATCHED_MAX];
};

struct message_run_ready {
	struct slice sandbox; /* its name */
	struct slice audit_path;
	struct ip gate4, gate6;
	uint16_t proxy_port;
	struct slice root_pem;
	size_t env_count;
	struct {
		struct slice name, value; /* variable and its placeholder */
	} env[MESSAGE_ENV_MAX];
	size_t file_count;
	struct slice files[MESSAGE_ENV_MAX]; /* files of file: sources, absolute; the command can see none of them */
	struct message_paths watched;        /* files that the policy was read from, absolute */
};

MESSAGE_CODEC(status);
MESSAGE_CODEC(run_start);
MESSAGE_CODEC(names);
MESSAGE_CODEC(role);
MESSAGE_CODEC(run_ready);

#endif
