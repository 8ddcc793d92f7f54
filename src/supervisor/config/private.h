/* SPDX-License-Identifier: Apache-2.0 */
/* settings_private: what the files that load settings share. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_PRIVATE_H

#include "supervisor/config/settings.h"
#include "supervisor/config/fingerprint.h"

enum settings_whose {
	SETTINGS_CALLERS, /* opened with the rights of who named the policy */
	SETTINGS_OWN,     /* the configuration */
	SETTINGS_HOSTS,   /* resolv.conf, hosts: the host's */
};

/* A file as it was read: not its text, which may hold a password, but what tells it from others. */
struct settings_input {
	enum settings_whose whose;
	char *path; /* owned */
	size_t n;
	uint64_t hash[2];
	struct policy_file_facts facts;
	struct fingerprint fingerprint;
};

/* A file on its way to policy_load(), and whether any took rights that its user does not have. */
struct settings_opening {
	const struct identity *identity;
	struct policy_reader files;
	struct policy_file_facts facts; /* of the file read last */
	struct fingerprint fingerprint; /* and this, where it is known */
	bool lent;
	const char *path;
	char **text;
	size_t *n;
	enum settings_whose whose;
	struct settings *for_whom;          /* remembers what was read; NULL: nobody does */
	const struct settings_files *given; /* settings_load() */
	bool remote;                        /* one of the caller's is not local, nor given */
	bool config_remote;                 /* the configuration is not */
};

/* settings.c: a reader's function; context is an opening. */
int settings_read(void *context, const char *path, char **text, size_t *n);
/* writers.c: adds to *writers those that have rights in directories above the open file, by the
 * path that it was opened by and by the one that it is really at. It is local (local_file.h), and
 * nothing else is waited for: where it is not on the root directory's file system, only what is
 * above it on its own mount is sure to be looked at. */
void settings_add_path_writers(int fd, const char *path, struct policy_writers *writers);
const struct identity *settings_config_identity(const struct identity *caller);
/* files.c: what a child has read, as reading it would give it. 0 or -errno;
 * LOCAL_FILE_UNKNOWN: it was not read. */
int settings_files_get(const struct settings_files *files, const char *path, char **text, size_t *n,
        struct policy_file_facts *facts);
/* hosts.c: a file of the host's, in memory that is the caller's to free. */
struct slice settings_host_file(const char *path, char **memory, struct fingerprint *fingerprint);
/* The configuration's name servers, or else the host's. */
void settings_find_servers(struct settings *s);
/* The configuration's hosts and those of the host. 0 or -ENOMEM. */
int settings_find_hosts(struct settings *s);
/* egress.c: 0, or -EINVAL with what is wrong in diags. That this host has the source addresses. */
int settings_check_egress_address(
        const struct config *c, const char *config_path, struct diag_list *diags);
/* That the way out can carry what the policy allows: CONNECT carries TCP only. */
int settings_check_egress(
        const struct settings *s, const char *policy_path, struct diag_list *diags);
/* The proxy's user and password, of its URL or of a file (wait as source_file_open() has it): fills
 * in s->egress_pair. Also -ENOMEM and the like. */
int settings_read_egress_pair(
        struct settings *s, const struct identity *identity, bool wait, struct diag_list *diags);

/* config_files.c: what is right and seldom meant, or not there now. local: of files only those that
 * are (local_file.h) are looked into. */
void settings_note_config(
        const struct config *c, const char *path, bool local, struct diag_list *notes);

/* config/cache.c */
void settings_cache_remember(struct settings *s, enum settings_whose whose, const char *path,
        struct slice text, const struct policy_file_facts *facts,
        const struct fingerprint *fingerprint);
void settings_cache_forget(struct settings *s);
/* What was loaded for the same before, where every file is still what it was, or NULL. */
struct settings *settings_cache_find(struct settings *registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files);
/* The next one that asks for the same may find it. */
void settings_cache_offer(struct settings **registry, struct settings *s,
        const struct identity *identity, const char *policy_path, const char *config_path,
        const struct policy_load_options *options);

#endif
