/* SPDX-License-Identifier: Apache-2.0 */
/* settings: what the operator wrote (configuration, policy) and what the host says (resolvers,
 * hosts, trusted CAs). */
#ifndef SUPERVISOR_SETTINGS_H
#define SUPERVISOR_SETTINGS_H

#include "vethguard/policy/config.h"
#include "vethguard/policy/load.h"
#include "vethguard/base/secret.h"
#include "supervisor/identity.h"

struct settings {
	struct config config;
	uint8_t *image; /* owned: the compiled policy */
	size_t image_size;
	struct policy policy; /* borrows image */
	size_t file_count;    /* the policy's files, the main one first: for whoever watches them */
	char **files;         /* owned: absolute paths */
	struct secret egress_pair; /* "user:password" for egress.proxy, or empty */
	size_t server_count;
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;
	struct config_host *hosts; /* owned: those of the configuration, then those of /etc/hosts */
};

/* Loads all of it, with the rights of identity where these suffice and else with the supervisor's;
 * of files that took the latter no error quotes a word. Paths are NUL-terminated; config_path may
 * be empty; of options (NULL: none) observe and the variables count. 0, or -EINVAL with what to
 * tell the operator (malloc'd, several lines, caller frees) in *error, or -ENOMEM with *error NULL.
 */
int settings_load(struct settings *settings, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        char **error);
void settings_fini(struct settings *settings);

/* resolv.conf(5): its nameserver lines. Addresses with a zone and malformed ones are passed over.
 * Returns the count. */
size_t settings_parse_resolv(struct slice text, struct config_server *out, size_t max);
/* hosts(5): one entry per name and address, canonical; malformed lines and names are passed over; a
 * name that one of the first `own` entries has is the configuration's and is not added. *count goes
 * on from its value up to max. False: there were more. */
bool settings_parse_hosts(
        struct slice text, struct config_host *hosts, size_t own, size_t *count, size_t max);

#endif
