/* SPDX-License-Identifier: Apache-2.0 */
/* source_lease_file: the data needed to give a lease back, in memory and in a file. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_LEASE_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_LEASE_FILE_H

#include "supervisor/os/identity.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/message.h"

#define LEASE_FILE_MAX 65536 /* bytes */

struct lease_words {
	char id[MESSAGE_LEASE_MAX + 1];
	struct policy_credential credential; /* only location, argv and timeout are used */
	struct identity identity;
	int64_t ends_ms; /* Unix time */
	char *texts;     /* owned: what credential points to; NULL: borrowed */
};

/* Copies everything. Returns 0 or -ENOMEM. */
int lease_words_copy(struct lease_words *out, const struct lease_words *words);
void lease_words_fini(struct lease_words *words);

/* Writes the file of this process with this number, whole or not at all. Returns 0 or -errno. */
int lease_file_write(int directory, uint64_t number, const struct lease_words *words);
void lease_file_remove(int directory, uint64_t number);
/* Calls each with the words of every file of a process that is gone. Such a file becomes this
 * process's, under the number (from *last_number on). A file that cannot be parsed is removed,
 * after a warning. */
void lease_files_take(int directory, uint64_t *last_number,
        void (*each)(void *context, uint64_t number, struct lease_words *words), void *context);

#endif
