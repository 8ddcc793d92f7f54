/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_resolve: finds out where a policy's host names lead, as a sandbox's proxy would: from the
 * configuration's hosts, /etc/hosts, and the name servers of the configuration or /etc/resolv.conf.
 * Also tells whether the proxy would dial these addresses.
 */
#ifndef VETHGUARD_SRC_CLI_POLICY_RESOLVE_H
#define VETHGUARD_SRC_CLI_POLICY_RESOLVE_H

#include "vethguard/loop/resolver.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/json.h"

#define RESOLVE_NAMES_MAX 1024 /* of one policy; more are only counted */
#define RESOLVE_TOTAL_MS 60000 /* for all names of one policy */
#define RESOLVE_TEXT_MAX 1024

enum resolve_state {
	RESOLVE_PASSES,    /* every address may be dialed */
	RESOLVE_PARTLY,    /* some may be dialed */
	RESOLVE_REFUSED,   /* none may be dialed */
	RESOLVE_NOWHERE,   /* there is no address: error says why */
	RESOLVE_NOT_ASKED, /* not known without asking, and not asked */
};

struct resolve_address {
	struct ip ip;
	bool own;     /* an address of this machine */
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
	bool ask;                  /* ask name servers; else use only what is known without them */
	struct config_host *hosts; /* owned: of the configuration and /etc/hosts */
	size_t host_count;
	size_t server_count;
	struct config_server servers[CONFIG_SERVERS_MAX];
	struct resolve_name *names; /* owned */
	size_t count, dropped;
};

/* Reads the configuration (NULL: the defaults). Returns false after a message on stderr. Call
 * resolve_close() in either case. */
bool resolve_open(struct resolve *r, const char *config_path, bool ask);
void resolve_close(struct resolve *r);
/* Forgets the names of one policy. */
void resolve_clear(struct resolve *r);
/* An each_host of policy_load(). context: the struct resolve. */
void resolve_add(void *context, const struct policy_host_place *place);
/* Finds out where the names lead, within RESOLVE_TOTAL_MS. First drops those whose connections the
 * policy refuses (NULL: drops none). Returns false if out of memory, after a message on stderr. */
bool resolve_names(struct resolve *r, const struct policy *policy);
/* True if a request to the name would fail because of that. */
bool resolve_fails(const struct resolve_name *name);
/* Writes one sentence without the host: "leads to 10.0.0.5, which is private: permit it with ...".
 * Returns out. */
const char *resolve_text(
        const struct resolve *r, const struct resolve_name *name, char out[RESOLVE_TEXT_MAX]);
/* Adds members "state", "addresses" and "message" to the open object. */
void resolve_json(const struct resolve *r, const struct resolve_name *name, struct json *j);

#endif
