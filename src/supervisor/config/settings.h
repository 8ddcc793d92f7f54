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

/* The files of a policy, read by a child that may wait for them (os/helper_child.h). They are in
 * memory, and of one caller several may be read at a time (HELPER_CHILDREN_OF_ONE_MAX): so together
 * they have a bound of their own, which is about half a million destinations. */
#define SETTINGS_FILES_MIB 16
#define SETTINGS_FILES_MAX ((size_t)SETTINGS_FILES_MIB << 20) /* bytes */
struct settings_files;
/* In the child: reads the policy and all that it includes, in their order, with the rights of
 * identity, and writes what it read to report (a file). 0 or -errno; a file that cannot be read is
 * no error. */
int settings_files_read(const struct identity *identity, const char *policy_path,
        const struct policy_load_options *options, int report);
/* What is in report so far. NULL: no memory, or it is no such report. */
struct settings_files *settings_files_open(int report);
/* The file that it was about to read, or NULL. Borrowed. */
const char *settings_files_waits_for(const struct settings_files *files);
/* The first file that went beyond SETTINGS_FILES_MAX, or NULL. Borrowed. */
const char *settings_files_beyond(const struct settings_files *files);
void settings_files_free(struct settings_files *files); /* NULL is harmless */
/* None: whatever is needed has to be local. */
extern const struct settings_files settings_no_files;

/* Of one sandbox, or shared by those that were loaded from the same: nobody changes it, but for
 * image_file, which is made when it is needed first. */
struct settings {
	unsigned refs;
	struct config config;
	uint8_t *image; /* owned: the compiled policy */
	size_t image_size;
	struct policy policy; /* borrows image */
	int image_file;       /* sealed memory with the image; -1: not made yet */
	size_t file_count;    /* the policy's files, the main one first: for whoever watches them */
	char **files;         /* owned: absolute paths */
	struct secret egress_pair; /* "user:password" for egress.proxy, or empty */
	char *env_source; /* owned: where the policy's first env: source stands; NULL: there is none
	                   */
	char *notes; /* owned: what is no fault but probably not meant, a line each; NULL: nothing
	              */
	size_t server_count;
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;
	struct config_host *hosts; /* owned: those of the configuration, then those of /etc/hosts */

	/* For config/cache.c. */
	struct settings **registry; /* that has it; NULL: none */
	UT_hash_handle hh;
	char *key;
	bool remembers; /* what was read, in inputs */
	struct settings_input *inputs;
	size_t input_count;
};

/* Loads all of it, with the rights of identity where these suffice and else with the supervisor's;
 * of files that took the latter no error quotes a word. Paths are NUL-terminated; config_path may
 * be empty; of options observe and the variables count. registry: of those that are shared (NULL:
 * none is). files: NULL: every file is read however long that takes; else those of the policy are
 * taken from there, and all others are read only where they are local (local_file.h). One
 * reference; or NULL with errno: EINVAL the policy, or a file it names, is wrong; ECANCELED the
 * configuration is: both with what to tell the operator (malloc'd, several lines, caller frees) in
 * *error; ENOMEM, and EREMOTE a file of the policy is not local, nor in files: *error is NULL. */
struct settings *settings_load(struct settings **registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, char **error);
void settings_put(struct settings *settings); /* NULL is harmless */
/* Whether both say the same of the way out: name servers, static hosts, permitted networks, source
 * addresses, the proxy and its password. Trusted CAs are not among it (memory_bundle_equal). */
bool settings_same_egress(const struct settings *a, const struct settings *b);
/* Reads a daemon's configuration at path (empty: none), which has to be local, into config
 * (config_init). 0; or an error with what is wrong in diags, or -ENOMEM. */
int settings_load_config(const char *path, struct config *config, struct diag_list *diags);
/* What a daemon's configuration names and cannot be had now: CA files, the proxy's password, the
 * directory of the log. */
void settings_check_config_files(const struct config *c, const char *path, struct diag_list *diags);
#define SETTINGS_NOT_LOCAL                                                                         \
	"lies on a file system that may stop answering (FUSE, NFS, overlay or the like), and the " \
	"daemon waits for none: keep it on a local one"

/* True: the host's name server is an address of its own (loopback): only the host itself can ask
 * it.
 */
bool settings_host_asks_itself(void);

#endif
