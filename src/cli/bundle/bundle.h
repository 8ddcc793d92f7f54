/* SPDX-License-Identifier: Apache-2.0 */
/* bundle: `vethguard bundle ...`: signed bundles of policies, key sets and revocations. */
#ifndef VETHGUARD_SRC_CLI_BUNDLE_BUNDLE_H
#define VETHGUARD_SRC_CLI_BUNDLE_BUNDLE_H

#include "cli/attach/commands.h"
#include "vethguard/bundle/signed_bundle.h"

int cli_bundle(int argc, char **argv);

int bundle_create_command(int argc, char **argv);
int bundle_show_command(int argc, char **argv);
int bundle_verify_command(int argc, char **argv);
int bundle_list_command(int argc, char **argv);

#define BUNDLE_FAILED 1 /* exit status: the bundle is not good */

/* file.c. Reads a whole regular file of at most max bytes. Returns false after a message. */
bool bundle_read(const char *path, size_t max, struct buf *out);
/* Prints "vethguard: error: ..." and returns false. path: before the text; NULL: none. */
bool bundle_complain(const char *path, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* draft.c: what a bundle is made of. */
struct bundle_parts {
	struct signed_bundle_draft draft;
	struct buf texts[SIGNED_BUNDLE_FILES_MAX]; /* of its files */
	char names[SIGNED_BUNDLE_FILES_MAX][CONFIG_BUNDLE_FILE_MAX + 1];
	struct buf revocations; /* the file */
	struct slice sessions[SIGNED_BUNDLE_REVOKED_MAX];
	struct signed_bundle_token tokens[SIGNED_BUNDLE_REVOKED_MAX];
};
/* Adds a file, or those files of a directory whose names end with suffix. Returns false after a
 * message. */
bool bundle_add(struct bundle_parts *parts, const char *path, const char *suffix);
/* Adds the revocations of a file, whose lines are "session NAME", "token SIGNER ID", empty, or
 * comments ("#"). Returns false after a message. */
bool bundle_add_revocations(struct bundle_parts *parts, const char *path);
void bundle_parts_fini(struct bundle_parts *parts);

#endif
