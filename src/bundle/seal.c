/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outer form of a bundle and its signature. Before the signature is verified, only the length
 * of the file and its first 16 bytes (the magic) are looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bundle/content.h"
#include "vethguard/tls/digest.h"

_Static_assert(sizeof(SIGNED_BUNDLE_MAGIC) - 1 == SIGNED_BUNDLE_MAGIC_BYTES, "the magic's length");

const char *signed_bundle_fault_name(enum signed_bundle_fault fault)
{
	static const char *const names[SIGNED_BUNDLE_FAULT_COUNT] = {[SIGNED_BUNDLE_GOOD] = "good",
	        [SIGNED_BUNDLE_SOURCE] = "source",
	        [SIGNED_BUNDLE_FORM] = "form",
	        [SIGNED_BUNDLE_SIGNATURE] = "signature",
	        [SIGNED_BUNDLE_CONTENT] = "content",
	        [SIGNED_BUNDLE_SERIAL] = "serial",
	        [SIGNED_BUNDLE_DISK] = "disk"};

	return names[fault];
}

/* --- the signature --- */

/* Copies what is signed to out: Ed25519 takes a text in one piece only. */
static int cover(struct slice content, struct buf *out)
{
	int rc;

	buf_init(out, SIGNED_BUNDLE_BYTES_MAX);
	rc = buf_append(out, SIGNED_BUNDLE_MAGIC, SIGNED_BUNDLE_MAGIC_BYTES);
	return rc ? rc : buf_append_slice(out, content);
}

static bool is_signed(struct slice file, const struct sign_key *keys, size_t count)
{
	const uint8_t *signature = (const uint8_t *)file.p + SIGNED_BUNDLE_MAGIC_BYTES;
	struct buf covered;
	bool good = false;
	int rc = cover(
	        slice_of(file.p + SIGNED_BUNDLE_HEAD_BYTES, file.n - SIGNED_BUNDLE_HEAD_BYTES),
	        &covered);

	for (size_t i = 0; !rc && !good && i < count; i++)
		good = sign_key_verify(&keys[i], signature, buf_slice(&covered));
	buf_fini(&covered);
	return good;
}

static enum signed_bundle_fault refuse(
        enum signed_bundle_fault fault, const char *text, char why[SIGNED_BUNDLE_WHY_MAX])
{
	snprintf(why, SIGNED_BUNDLE_WHY_MAX, "%s", text);
	return fault;
}

/* --- reading --- */

static enum signed_bundle_fault check_form(struct slice file, char why[SIGNED_BUNDLE_WHY_MAX])
{
	if (file.n > SIGNED_BUNDLE_BYTES_MAX)
		return refuse(SIGNED_BUNDLE_FORM, "it has more than 1 MiB: make it smaller", why);
	if (file.n <= SIGNED_BUNDLE_HEAD_BYTES ||
	        memcmp(file.p, SIGNED_BUNDLE_MAGIC, SIGNED_BUNDLE_MAGIC_BYTES) != 0)
		return refuse(SIGNED_BUNDLE_FORM,
		        "it is not a bundle: 'vethguard bundle create' makes one", why);
	return SIGNED_BUNDLE_GOOD;
}

static enum signed_bundle_fault take(
        struct slice file, struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX])
{
	const struct slice content =
	        slice_of(file.p + SIGNED_BUNDLE_HEAD_BYTES, file.n - SIGNED_BUNDLE_HEAD_BYTES);
	struct signed_bundle *b = calloc(1, sizeof(*b));
	enum signed_bundle_fault fault = SIGNED_BUNDLE_SOURCE;

	snprintf(why, SIGNED_BUNDLE_WHY_MAX, "no memory");
	if (!b)
		return fault;
	b->memory = malloc(file.n);
	b->n = file.n;
	if (b->memory && digest_once(true, &content, 1, b->digest) == 0) {
		memcpy(b->memory, file.p, file.n);
		fault = bundle_content_read(b, why);
	}
	if (fault == SIGNED_BUNDLE_GOOD)
		*out = b;
	else
		signed_bundle_free(b);
	return fault;
}

enum signed_bundle_fault signed_bundle_open(struct slice file, const struct sign_key *keys,
        size_t key_count, struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX])
{
	enum signed_bundle_fault fault = check_form(file, why);

	*out = NULL;
	if (fault)
		return fault;
	if (!is_signed(file, keys, key_count))
		return refuse(SIGNED_BUNDLE_SIGNATURE,
		        "no known key verifies its signature: it was signed with another key, or "
		        "changed after it was signed",
		        why);
	return take(file, out, why);
}

enum signed_bundle_fault signed_bundle_open_unverified(
        struct slice file, struct signed_bundle **out, char why[SIGNED_BUNDLE_WHY_MAX])
{
	enum signed_bundle_fault fault = check_form(file, why);

	*out = NULL;
	return fault ? fault : take(file, out, why);
}

void signed_bundle_free(struct signed_bundle *b)
{
	if (!b)
		return;
	json_fini(&b->tree);
	free(b->sessions);
	free(b->tokens);
	free(b->memory);
	free(b);
}

/* --- writing --- */

int signed_bundle_join(const uint8_t signature[SIGNED_BUNDLE_SIGNATURE_BYTES], struct slice content,
        struct buf *out)
{
	int rc = buf_append(out, SIGNED_BUNDLE_MAGIC, SIGNED_BUNDLE_MAGIC_BYTES);

	rc = rc ? rc : buf_append(out, signature, SIGNED_BUNDLE_SIGNATURE_BYTES);
	return rc ? rc : buf_append_slice(out, content);
}

int signed_bundle_sign(const struct sign_key *key, struct slice content, struct buf *out)
{
	uint8_t signature[SIGNED_BUNDLE_SIGNATURE_BYTES];
	struct buf covered;
	int rc = cover(content, &covered);

	rc = rc ? rc : sign_key_sign(key, buf_slice(&covered), signature);
	buf_fini(&covered);
	return rc ? rc : signed_bundle_join(signature, content, out);
}
