/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revocations: signed tokens that are refused although they are valid. A signer's token can be
 * valid for its lifetime at most, so a revocation is forgotten after that. They outlive the daemon:
 * file "revoked-tokens" of the state directory, one line "HEX UNTIL" for each, written whole.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SESSION_REVOCATIONS_H
#define VETHGUARD_SRC_SUPERVISOR_SESSION_REVOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "vethguard/wire/message.h"

#define REVOCATIONS_MAX 16384
#define REVOCATIONS_FILE "revoked-tokens"
#define REVOCATION_LINE_MAX (2 * MESSAGE_TOKEN_HASH_BYTES + 24)

struct revocation;

struct revocations {
	struct revocation *by_id; /* hash table */
};

/* Reads them from the directory. Returns 0; -EBADMSG: the file is damaged; or -errno. A missing
 * file has none. */
int revocations_load(struct revocations *r, int dir, int64_t now_ms);
/* Adds one, until that Unix time, and writes the file. Returns 0; -ENOSPC: there are
 * REVOCATIONS_MAX; or -errno: nothing has changed. */
int revocations_add(struct revocations *r, int dir, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES],
        int64_t until_ms, int64_t now_ms);
bool revocations_has(
        const struct revocations *r, const uint8_t id[MESSAGE_TOKEN_HASH_BYTES], int64_t now_ms);
void revocations_free(struct revocations *r);

#endif
