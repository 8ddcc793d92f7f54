/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_store: replaces a secret that its service changes (a refresh token). vethguard-fetch
 * writes the next secret into a file beside the old one, and that file is then renamed over it: if
 * a process dies in between, one of the two is whole. A lock makes sure that only one fetch at a
 * time uses the secret, among all daemons and runs.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_STORE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_STORE_H

#include "supervisor/os/identity.h"

#define STORE_PATH_MAX 4096

struct source_store {
	const struct identity *identity; /* borrowed */
	char path[STORE_PATH_MAX];       /* path of the secret; empty: nothing is stored */
	char fresh[STORE_PATH_MAX + 32];
	int file;  /* the secret's file, locked; -1: not open */
	int next;  /* the file for the next secret, open; -1: not open */
	bool made; /* the file for the next secret exists */
};

/* Locks the secret's open file (copied) and makes the empty file for the next secret, with the
 * rights of identity. Returns that file's descriptor for the writer; -EAGAIN: another fetch uses
 * the secret; or -errno. */
int source_store_open(
        struct source_store *store, const struct identity *identity, const char *path, int file);
/* Renames the written file over the secret, durably. Returns 0 or -errno. */
int source_store_commit(struct source_store *store);
/* Removes a file that was not committed, and unlocks the secret. Allowed on a zeroed struct. */
void source_store_close(struct source_store *store);

#endif
