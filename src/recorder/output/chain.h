/* SPDX-License-Identifier: Apache-2.0 */
/* chain: the hash chain through the lines of one log (wire/seal.h says what a line's end looks
 * like). */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_CHAIN_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_CHAIN_H

#include "vethguard/tls/digest.h"
#include "vethguard/wire/seal.h"

#define CHAIN_MARK_BYTES (SEAL_CHAIN_DIGITS + SEAL_UID_DIGITS + SEAL_HASH_DIGITS + sizeof(uint64_t))

struct chain {
	struct digest digest;
	struct seal_link last; /* the line that the next one refers to */
};

/* Starts a chain of its own; loads SHA-256. 0 or -errno of digest_init. */
int chain_init(struct chain *chain);
void chain_fini(struct chain *chain);
/* A new chain under a random name: the next line has no predecessor. */
void chain_restart(struct chain *chain);
/* Goes on behind a line (without newline) that an earlier run wrote. 0, or -EBADMSG: it is no such
 * line or its hash is wrong, and the chain is unchanged. */
int chain_resume(struct chain *chain, struct slice line);
/* The line that the next one refers to, for another recorder that may have to go on behind it. */
void chain_mark(const struct chain *chain, uint8_t out[CHAIN_MARK_BYTES]);
/* Goes on behind the line that was marked. 0, or -EBADMSG: that is no mark, and the chain is
 * unchanged. */
int chain_follow(struct chain *chain, struct slice mark);
/* out holds, from start on, a line's object without its closing brace: ends and seals it, with
 * newline. 0, or -ENOBUFS, -ENOMEM, -EIO with the chain unchanged (and out holding more than
 * before). */
int chain_seal(
        struct chain *chain, struct buf *out, size_t start, const char *uid, uint64_t type_uid);

#endif
