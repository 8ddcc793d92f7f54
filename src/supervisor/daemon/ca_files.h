/* SPDX-License-Identifier: Apache-2.0 */
/* ca_files: the files of the operator's own CA that the configuration names. Only the keeper reads
 * them. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_CA_FILES_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_CA_FILES_H

#include "vethguard/policy/config.h"

#define CA_FILES_MAX 3
#define CA_FILES_WHY_MAX (PATH_MAX + 256)

struct ca_files {
	uint8_t configured; /* bits of message_keeper_ca_ask; 0: the configuration names none */
	size_t count;
	int fds[CA_FILES_MAX];
};

/* Opens them, in the order of the bits. Returns 0, or -errno with why (bits are set, no descriptor
 * is open): one is missing, or others could read the key or replace a file. */
int ca_files_open(
        const struct config_ca *config, struct ca_files *files, char why[CA_FILES_WHY_MAX]);
/* Opens the file with a token's PIN, under the same rules as for a private key. Returns a
 * descriptor or -errno with why. */
int ca_files_open_pin(const char *path, char why[CA_FILES_WHY_MAX]);
void ca_files_close(struct ca_files *files);

#endif
