/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_store: the place of a secret that its service changes (a refresh token). The next secret
 * is written by vethguard-fetch into a file beside it, which then takes its name: whoever dies in
 * between, one of the two is whole. One fetch at a time uses the secret, of whatever daemon or run.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_STORE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_STORE_H

#include "supervisor/os/identity.h"

#define STORE_PATH_MAX 4096

struct source_store {
	const struct identity *identity; /* borrowed */
	char path[STORE_PATH_MAX];       /* empty: nothing is stored */
	char fresh[STORE_PATH_MAX + 32];
	int file;  /* the secret's, locked; -1: not open */
	int next;  /* fresh, open; -1: not open */
	bool made; /* fresh is there */
};

/* Locks the secret's open file (copied) and makes the empty one, with the rights of identity.
 * Returns its descriptor for the writer; -EAGAIN: another fetch uses the secret; or -errno. */
int source_store_open(
        struct source_store *store, const struct identity *identity, const char *path, int file);
/* What was written takes the secret's place, on the disk. Returns 0 or -errno. */
int source_store_commit(struct source_store *store);
/* Removes what was not committed, and unlocks. Allowed on a zeroed struct. */
void source_store_close(struct source_store *store);

#endif
