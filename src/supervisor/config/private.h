/* SPDX-License-Identifier: Apache-2.0 */
/* settings_private: what the files that load settings share. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_PRIVATE_H

#include "supervisor/config/settings.h"
#include "supervisor/config/fingerprint.h"

enum settings_whose {
	SETTINGS_CALLERS, /* opened with the rights of the user who named the policy */
	SETTINGS_OWN,     /* the configuration */
	SETTINGS_HOSTS,   /* the host's resolv.conf and hosts */
	SETTINGS_FLOOR,   /* the floor, read with the supervisor's own rights */
	SETTINGS_NO_FLOOR /* a floor that did not exist */
};

/* A file as it was read: its hash, not its text, which may hold a password. */
struct settings_input {
	enum settings_whose whose;
	char *path; /* owned */
	size_t n;
	uint64_t hash[2];
	struct policy_file_facts facts;
	struct fingerprint fingerprint;
};

#define PATH_LOOKS_MAX 24
#define PATH_LOOK_MAX \
	96 /* bytes of a path, with its NUL: directories with longer paths are not kept */

/* The state of a directory, or why it could not be examined, with the rights of that moment. */
struct path_look {
	char path[PATH_LOOK_MAX];
	struct stat st;
	int rc;
};

/* The directories that one load has looked at. It lasts no longer than that load. */
struct path_looks {
	uid_t uid; /* the rights with which they were looked at */
	gid_t gid;
	size_t count;
	struct path_look items[PATH_LOOKS_MAX];
};

/* The context of settings_read(): a file being read, and whether any file needed rights its user
 * does not have. */
struct settings_opening {
	const struct identity *identity;
	struct policy_reader files;
	struct policy_file_facts facts; /* of the file read last */
	struct fingerprint fingerprint; /* the same, if known */
	bool lent;
	const char *path;
	char **text;
	size_t *n;
	enum settings_whose whose;
	struct settings *for_whom;          /* records what was read; NULL: nothing does */
	const struct settings_files *given; /* see settings_load() */
	struct path_looks *looks;           /* borrowed; NULL: none are kept */
	bool remote;        /* one of the caller's files is neither local nor given */
	bool config_remote; /* the configuration is not local */
};

/* settings_read.c: the read function of a policy_reader; context is a settings_opening. */
int settings_read(void *context, const char *path, char **text, size_t *n);
/* path_writers.c: adds to *writers the users with rights in the directories above the open file,
 * along the path it was opened by and along its real path; is_real: both are known to be the same
 * (local_file_find_real()). The file is local (local_file.h), and nothing else is waited for: if it
 * is not on the root directory's file system, only the directories on its own mount are certain to
 * be examined. A directory that is in looks with the same rights is not looked at again; NULL: each
 * is. */
void settings_add_path_writers(int fd, const char *path, bool is_real, struct path_looks *looks,
        struct policy_writers *writers);
const struct identity *settings_config_identity(const struct identity *caller);
/* settings.c: the supervisor's own. */
const struct identity *settings_own_identity(void);
/* floor.c: the read_floor function of a policy_reader; context is a settings_opening. */
int settings_read_floor(void *context, const char *path, char **text, size_t *n,
        char objection[POLICY_WRITERS_TEXT_MAX]);
/* Sets the floor of a policy that a daemon with this configuration loads, or that a run loads. */
void settings_set_floor(const struct config *config, bool is_run, const char *config_path,
        struct policy_load_options *options, struct diag_list *notes);
/* files.c: gives what a child has read, as reading the file would. Returns 0 or -errno;
 * LOCAL_FILE_UNKNOWN: the child did not read it. */
int settings_files_get(const struct settings_files *files, const char *path, char **text, size_t *n,
        struct policy_file_facts *facts);
/* hosts.c: reads a file of the host into *memory, which the caller frees. */
struct slice settings_host_file(const char *path, char **memory, struct fingerprint *fingerprint);
/* Sets s->servers: the configuration's name servers, or else the host's. */
void settings_find_servers(struct settings *s);
/* Reads the part of the configuration that is needed to ask a service: resolvers, hosts, trusted
 * CAs; no policy. Returns one reference, or NULL. config_path: NULL or empty: none. */
struct settings *settings_of_services(const char *config_path);
/* Sets s->hosts: the configuration's and the host's. Returns 0 or -ENOMEM. */
int settings_find_hosts(struct settings *s);
/* egress.c: checks that this host has the source addresses. Returns 0, or -EINVAL with the fault in
 * diags. */
int settings_check_egress_address(
        const struct config *c, const char *config_path, struct diag_list *diags);
/* Checks that the egress proxy can carry what the policy allows: CONNECT carries TCP only. Returns
 * the same. */
int settings_check_egress(
        const struct settings *s, const char *policy_path, struct diag_list *diags);
/* Fills in s->egress_pair: the proxy's user and password, from its URL or a file (wait: see
 * source_file_open()). Returns the same, or -ENOMEM and the like. */
int settings_read_egress_pair(
        struct settings *s, const struct identity *identity, bool wait, struct diag_list *diags);

/* config_files.c: notes settings that are valid but rarely meant, or not available now. local: only
 * local files (local_file.h) are read. */
void settings_note_config(
        const struct config *c, const char *path, bool local, struct diag_list *notes);

/* floor.c: adds to diags what is wrong with the daemon's floor. */
void settings_check_floor(const struct config *c, const char *config_path, struct diag_list *diags);

/* cache.c */
void settings_cache_remember(struct settings *s, enum settings_whose whose, const char *path,
        struct slice text, const struct policy_file_facts *facts,
        const struct fingerprint *fingerprint);
void settings_cache_forget(struct settings *s);
/* Returns settings loaded before with the same arguments if every file is unchanged, else NULL. */
struct settings *settings_cache_find(struct settings *registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files);
/* Registers s for later calls with the same arguments. */
void settings_cache_offer(struct settings **registry, struct settings *s,
        const struct identity *identity, const char *policy_path, const char *config_path,
        const struct policy_load_options *options);

#endif
