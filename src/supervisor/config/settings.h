/* SPDX-License-Identifier: Apache-2.0 */
/* settings: what the operator wrote (configuration, policy) and what the host says (resolvers,
 * hosts, trusted CAs). */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SETTINGS_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SETTINGS_H

#include "vethguard/policy/config.h"
#include "vethguard/policy/load.h"
#include "vethguard/base/secret.h"
#include "vethguard/base/table.h"
#include "supervisor/os/identity.h"

struct settings_input;

/* The files of a policy, read by a child process that may wait for them (os/helper_child.h). They
 * are held in memory, and several may be read for one caller at a time
 * (HELPER_CHILDREN_OF_ONE_MAX), so their total has a limit: about half a million destinations. */
#define SETTINGS_FILES_MIB 16
#define SETTINGS_FILES_MAX ((size_t)SETTINGS_FILES_MIB << 20) /* bytes */
struct settings_files;
/* In the child: reads the policy and all that it includes, in order, with the rights of identity,
 * and writes what it read to the file report. Returns 0 or -errno; a file that cannot be read is no
 * error. */
int settings_files_read(const struct identity *identity, const char *policy_path,
        const struct policy_load_options *options, int report);
/* Parses what is in report so far. Returns NULL if there is no memory or it is no such report. */
struct settings_files *settings_files_open(int report);
/* Returns the file that the child was about to read, or NULL. Borrowed. */
const char *settings_files_waits_for(const struct settings_files *files);
/* Returns the first file that went beyond SETTINGS_FILES_MAX, or NULL. Borrowed. */
const char *settings_files_beyond(const struct settings_files *files);
void settings_files_free(struct settings_files *files); /* NULL is allowed */
/* No files: all files of the policy have to be local. */
extern const struct settings_files settings_no_files;

/* The settings of one sandbox, or shared by sandboxes that were loaded from the same files: nothing
 * changes them, except image_file, which is made when first needed. */
struct settings {
	unsigned refs;
	struct config config;
	uint8_t *image; /* owned: the compiled policy */
	size_t image_size;
	struct policy policy;      /* borrows image */
	int image_file;            /* sealed memory with the image; -1: not made yet */
	size_t file_count;         /* the policy's files, the main one first, for watching */
	char **files;              /* owned: absolute paths */
	struct secret egress_pair; /* "user:password" for egress.proxy, or empty */
	/* Owned: location of the policy's first env: source; NULL: none. */
	char *env_source;
	/* Owned: valid but probably unintended settings, a line each; NULL: none. */
	char *notes;
	size_t server_count;
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;
	/* Owned: the configuration's, then those of /etc/hosts. */
	struct config_host *hosts;

	/* For config/cache.c. */
	struct settings **registry; /* the registry that holds it; NULL: none */
	UT_hash_handle hh;
	char *key;
	bool remembers; /* records what was read in inputs */
	struct settings_input *inputs;
	size_t input_count;
};

/*
 * Loads configuration and policy. Files are opened with the rights of identity, or else with the
 * supervisor's; error texts never quote a file that needed the latter. Paths are NUL-terminated;
 * config_path may be empty. Of options, observe, the variables and `more` are used.
 *
 * registry: the shared settings; NULL: not shared. files: NULL: every file is read, however long
 * that takes; otherwise the policy's files are taken from there, and all others are read only if
 * they are local (local_file.h).
 *
 * Returns one reference, or NULL with errno. EINVAL: the policy, or a file it names, is wrong;
 * ECANCELED: the configuration is wrong; for both *error is the text for the operator (malloc'd,
 * several lines, caller frees). ENOMEM; EREMOTE: a file of the policy is neither local nor in
 * files; for both *error is NULL.
 */
struct settings *settings_load(struct settings **registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, char **error);
/* Keeps sealed memory with the image (takes fd) for all that share the settings. */
void settings_keep_image(struct settings *settings, int fd);
void settings_put(struct settings *settings); /* NULL is allowed */
/* Returns true if both have the same egress settings: name servers, static hosts, permitted
 * networks, source addresses, the proxy and its password. Trusted CAs are not compared
 * (memory_bundle_equal()). */
bool settings_same_egress(const struct settings *a, const struct settings *b);
/* Reads a daemon's configuration at path (empty: none), which has to be local, into config,
 * initialized by config_init(). Returns 0; an error with the faults in diags; or -ENOMEM. */
int settings_load_config(const char *path, struct config *config, struct diag_list *diags);
/* Adds to diags what a daemon's configuration names but is not available now: CA files, the proxy's
 * password, the directory of the audit log. */
void settings_check_config_files(const struct config *c, const char *path, struct diag_list *diags);
#define SETTINGS_NOT_LOCAL                                                                         \
	"lies on a file system that may stop answering (FUSE, NFS, overlay or the like), and the " \
	"daemon waits for none: keep it on a local one"

#endif
