/* SPDX-License-Identifier: Apache-2.0 */
/* message_quota: what supervisor and vethguard-quota send each other about budgets that several hosts share. Part of
 * wire/message.h, which includes it. */
#ifndef VETHGUARD_WIRE_MESSAGE_QUOTA_H
#define VETHGUARD_WIRE_MESSAGE_QUOTA_H

#include "vethguard/policy/config.h"
#include "vethguard/wire/message_type.h"

#define MESSAGE_QUOTA_ADDRESSES_MAX 8
#define MESSAGE_QUOTA_BUDGETS_MAX 128 /* of one memory */
#define MESSAGE_QUOTA_NAME_BYTES 64   /* of a budget at the server: hexadecimal digits */

/* fds: bell (eventfd), trusted CAs (PEM), then the password's file if has_password. */
struct message_quota_start {
	uint8_t log_level;
	bool tls;
	bool has_password;
	uint16_t port;
	uint32_t database;
	struct slice host, user;
	uint32_t
	        address_count; /* of the host, from its text, /etc/hosts or the configuration; 0: resolvers are asked */
	struct ip addresses[MESSAGE_QUOTA_ADDRESSES_MAX];
	uint32_t server_count; /* resolvers */
	struct config_server servers[CONFIG_SERVERS_MAX];
};

/* Budgets of a memory of quotas, in addition to those that were told before. fd: the memory. */
struct message_quota_budgets {
	uint64_t memory; /* number of the memory */
	uint32_t count;
	struct message_quota_budget {
		uint32_t index; /* in the memory */
		uint32_t period_s;
		uint64_t amount;
		struct slice name; /* of MESSAGE_QUOTA_NAME_BYTES */
	} budgets[MESSAGE_QUOTA_BUDGETS_MAX];
};

struct message_quota_end {
	uint64_t memory;
};

MESSAGE_CODEC(quota_start);
MESSAGE_CODEC(quota_budgets);
MESSAGE_CODEC(quota_end);

#endif
