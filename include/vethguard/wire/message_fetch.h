/* SPDX-License-Identifier: Apache-2.0 */
/* message_fetch: what supervisor and fetch send each other. */
#ifndef VETHGUARD_WIRE_MESSAGE_FETCH_H
#define VETHGUARD_WIRE_MESSAGE_FETCH_H

#include "vethguard/policy/config.h"
#include "vethguard/wire/message_type.h"

#define MESSAGE_FETCH_ARGUMENTS_MAX POLICY_ARGV_MAX
#define MESSAGE_FETCH_ARGUMENT_MAX 8192
#define MESSAGE_FETCH_ADDRESSES_MAX 8
#define MESSAGE_FETCH_SECRETS_MAX 2
#define MESSAGE_FETCH_SITES_MAX 3
struct message_fetch_site {
	struct slice url;
	uint32_t address_count; /* of its host, from /etc/hosts or the configuration; 0: the resolvers are asked */
	struct ip addresses[MESSAGE_FETCH_ADDRESSES_MAX];
};
struct message_fetch {
	uint32_t secret_count; /* one for each argument whose value comes from a file, in the order of the arguments */
	bool stores;           /* an empty file is sent too, for the secret that replaces "refresh_token" */
	uint32_t argument_count; /* at least 1: as struct policy_credential has them, "file:" values without a path */
	struct slice arguments[MESSAGE_FETCH_ARGUMENTS_MAX];
	uint32_t site_count; /* at least 1: the service, then those where the login to it is */
	struct message_fetch_site sites[MESSAGE_FETCH_SITES_MAX];
	uint32_t server_count; /* resolvers */
	struct config_server servers[CONFIG_SERVERS_MAX];
};

#define MESSAGE_FETCHED_TTL_MAX_S (30u * 24 * 3600)
#define MESSAGE_LEASE_MAX 512
struct message_fetched {
	uint32_t ttl_s; /* how long the value may be used, at most the bound above; 0: the service does not tell */
	bool same;      /* the pipe is empty: the previous value may be used for ttl_s */
	bool renewable; /* its lease can be renewed */
	bool stored;    /* the file that was empty has the next secret; it must replace the old one before the value is
	                   used */
	struct slice lease; /* id of the value's lease at the service, which is no secret; empty: none */
};
#define MESSAGE_RETRY_MAX_S 3600u
struct message_fetch_failed {
	uint32_t retry_s; /* how long the service wants no request, at most the bound above; 0: it does not say */
	bool stored;      /* as in FETCHED; may be set although the rest of the answer was useless */
	struct slice text;
};

MESSAGE_CODEC(fetch);
MESSAGE_CODEC(fetched);
MESSAGE_CODEC(fetch_failed);

#endif
