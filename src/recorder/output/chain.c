/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line carries its own hash and, covered by that hash, the hash of the line before. Removing,
 * adding or editing a line means rewriting every later line, and anybody who has noted a later hash
 * elsewhere sees it.
 */
#include <errno.h>

#include "vethguard/base/hash.h"

#include "recorder/output/chain.h"

int chain_init(struct chain *chain)
{
	int rc = digest_init(&chain->digest);

	chain_restart(chain);
	return rc;
}

void chain_fini(struct chain *chain)
{
	digest_fini(&chain->digest);
}

void chain_restart(struct chain *chain)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[SEAL_CHAIN_DIGITS / 2];

	memset(&chain->last, 0, sizeof(chain->last));
	random_bytes(raw, sizeof(raw));
	for (size_t i = 0; i < sizeof(raw); i++) {
		chain->last.chain_uid[2 * i] = digits[raw[i] >> 4];
		chain->last.chain_uid[2 * i + 1] = digits[raw[i] & 15];
	}
}

static int hash_covered(struct chain *chain, struct slice covered, char out[DIGEST_SHA256_HEX + 1])
{
	const struct slice parts[] = {covered, SLICE(SEAL_CLOSE)};

	return digest_sha256_hex(&chain->digest, parts, 2, out);
}

int chain_resume(struct chain *chain, struct slice line)
{
	char hash[DIGEST_SHA256_HEX + 1];
	struct seal seal;
	int rc = seal_parse(line, &seal);

	if (rc == 0)
		rc = hash_covered(chain, seal.covered, hash);
	if (rc != 0 || strcmp(hash, seal.own.hash) != 0)
		return -EBADMSG;
	chain->last = seal.own;
	return 0;
}

void chain_mark(const struct chain *chain, uint8_t out[CHAIN_MARK_BYTES])
{
	const struct seal_link *last = &chain->last;

	memcpy(out, last->chain_uid, SEAL_CHAIN_DIGITS);
	out += SEAL_CHAIN_DIGITS;
	memcpy(out, last->uid, SEAL_UID_DIGITS);
	out += SEAL_UID_DIGITS;
	memcpy(out, last->hash, SEAL_HASH_DIGITS);
	memcpy(out + SEAL_HASH_DIGITS, &last->type_uid, sizeof(last->type_uid));
}

static bool take_digits(const char **mark, char *out, size_t digits)
{
	memcpy(out, *mark, digits);
	out[digits] = '\0';
	*mark += digits;
	return strspn(out, "0123456789abcdef") == digits;
}

int chain_follow(struct chain *chain, struct slice mark)
{
	struct seal_link last = {.has_previous = true};
	const char *at = mark.p;

	if (mark.n != CHAIN_MARK_BYTES || !take_digits(&at, last.chain_uid, SEAL_CHAIN_DIGITS) ||
	        !take_digits(&at, last.uid, SEAL_UID_DIGITS) ||
	        !take_digits(&at, last.hash, SEAL_HASH_DIGITS))
		return -EBADMSG;
	memcpy(&last.type_uid, at, sizeof(last.type_uid));
	chain->last = last;
	return 0;
}

int chain_seal(
        struct chain *chain, struct buf *out, size_t start, const char *uid, uint64_t type_uid)
{
	struct seal_link own = chain->last;
	int rc = seal_append_link(out, &chain->last);

	if (rc != 0)
		return rc;
	rc = hash_covered(chain, slice_of(buf_bytes(out) + start, out->len - start), own.hash);
	if (rc == 0)
		rc = seal_append_hash(out, own.hash);
	if (rc != 0)
		return rc;
	own.has_previous = true;
	own.type_uid = type_uid;
	memcpy(own.uid, uid, SEAL_UID_DIGITS);
	own.uid[SEAL_UID_DIGITS] = '\0';
	chain->last = own;
	return 0;
}
