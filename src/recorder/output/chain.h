/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the hash chain through the lines of one log (wire/seal.h describes the end of a line). */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_CHAIN_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_CHAIN_H

#include "vethguard/tls/digest.h"
#include "vethguard/wire/seal.h"

#define CHAIN_MARK_BYTES (SEAL_CHAIN_DIGITS + SEAL_UID_DIGITS + SEAL_HASH_DIGITS + sizeof(uint64_t))

struct chain {
	struct digest digest;
	struct seal_link last; /* the line that the next one refers to */
};

/* Starts a new chain; loads SHA-256. Returns 0 or -errno of digest_init(). */
int chain_init(struct chain *chain);
void chain_fini(struct chain *chain);
/* Starts a new chain under a random name: the next line has no predecessor. */
void chain_restart(struct chain *chain);
/* Continues after a line (without newline) that an earlier run wrote. Returns 0, or -EBADMSG: it is
 * no such line or its hash is wrong, and the chain is unchanged. */
int chain_resume(struct chain *chain, struct slice line);
/* Writes which line the next one refers to, for another recorder that may have to continue after
 * it. */
void chain_mark(const struct chain *chain, uint8_t out[CHAIN_MARK_BYTES]);
/* Continues after the marked line. Returns 0, or -EBADMSG: that is no mark, and the chain is
 * unchanged. */
int chain_follow(struct chain *chain, struct slice mark);
/* Ends and seals a line, with newline. out holds, from start on, its object without the closing
 * brace. Returns 0, or -ENOBUFS, -ENOMEM, -EIO with the chain unchanged (and out holding more than
 * before). */
int chain_seal(
        struct chain *chain, struct buf *out, size_t start, const char *uid, uint64_t type_uid);

#endif
