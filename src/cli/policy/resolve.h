/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_resolve: where the host names of a policy lead, found out as a sandbox's proxy would: from
 * the configuration's hosts, /etc/hosts, and the name servers that the configuration or
 * /etc/resolv.conf has. And whether the proxy would dial these addresses.
 */
#ifndef VETHGUARD_SRC_CLI_POLICY_RESOLVE_H
#define VETHGUARD_SRC_CLI_POLICY_RESOLVE_H

#include "vethguard/loop/resolver.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/json.h"

#define RESOLVE_NAMES_MAX 1024 /* of one policy; of others is told how many they are */
#define RESOLVE_TOTAL_MS 60000 /* all names of one policy */
#define RESOLVE_TEXT_MAX 1024

enum resolve_state {
	RESOLVE_PASSES,    /* every address may be dialled */
	RESOLVE_PARTLY,    /* some may */
	RESOLVE_REFUSED,   /* none may */
	RESOLVE_NOWHERE,   /* there is no address: error says why */
	RESOLVE_NOT_ASKED, /* and not known without asking */
};

struct resolve_address {
	struct ip ip;
	bool own;     /* of this machine */
	bool refused; /* the proxy would not dial it */
};

struct resolve_name {
	char host[POLICY_HOST_MAX + 1];
	enum policy_scheme scheme;
	uint16_t port;
	char file[DIAG_FILE_MAX]; /* where the policy names it first */
	unsigned line, column;
	enum resolve_state state;
	size_t count;
	struct resolve_address addresses[RESOLVER_ADDRESSES_MAX];
	const char *error;
};

struct resolve {
	struct config config;
	const char *config_path;   /* borrowed; NULL: none was given */
	bool ask;                  /* name servers; else only what is known without them */
	struct config_host *hosts; /* owned: the configuration's and /etc/hosts */
	size_t host_count;
	size_t server_count;
	struct config_server servers[CONFIG_SERVERS_MAX];
	struct resolve_name *names; /* owned */
	size_t count, dropped;
};

/* Reads the configuration (NULL: the defaults). False after a message on stderr; close it in either
 * case. */
bool resolve_open(struct resolve *r, const char *config_path, bool ask);
void resolve_close(struct resolve *r);
/* Forgets the names of one policy. */
void resolve_clear(struct resolve *r);
/* An each_host of policy_load(): context is the struct resolve. */
void resolve_add(void *context, const struct policy_host_place *place);
/* Finds out where the names lead, at most RESOLVE_TOTAL_MS long. Those whose connections the policy
 * refuses (NULL: no matter) are dropped first. False: no memory, with a message on stderr. */
bool resolve_names(struct resolve *r, const struct policy *policy);
/* Whether a request for it would fail for that. */
bool resolve_fails(const struct resolve_name *name);
/* One sentence without the host: "leads to 10.0.0.5, which is private: permit it with ...". out. */
const char *resolve_text(
        const struct resolve *r, const struct resolve_name *name, char out[RESOLVE_TEXT_MAX]);
/* Members "state", "addresses" and "message" of the object that is open. */
void resolve_json(const struct resolve *r, const struct resolve_name *name, struct json *j);

#endif
