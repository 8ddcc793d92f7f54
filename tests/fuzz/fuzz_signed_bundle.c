/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a bundle's file, and as the content of one that is signed. Beyond memory safety: no
 * file is signed by a key that nobody has; what is taken keeps its bounds, and says the same after
 * it was written again.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/bundle/signed_bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* A public key whose private half was thrown away. */
static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                          "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
                          "-----END PUBLIC KEY-----\n";

static void try_file(struct slice file)
{
	static struct sign_key key;
	char why[SIGNED_BUNDLE_WHY_MAX] = "";
	struct signed_bundle *b;

	if (!key.handle)
		require(!sign_key_public(SLICE(pem), &key));
	require(signed_bundle_open(file, &key, 1, &b, why) != SIGNED_BUNDLE_GOOD);
	require(!b && why[0]);
}

static struct signed_bundle *take(struct slice content)
{
	static const uint8_t none[SIGNED_BUNDLE_SIGNATURE_BYTES];
	char why[SIGNED_BUNDLE_WHY_MAX] = "";
	struct signed_bundle *b = NULL;
	struct buf file;

	buf_init(&file, SIGNED_BUNDLE_BYTES_MAX);
	if (signed_bundle_join(none, content, &file) == 0) {
		enum signed_bundle_fault fault =
		        signed_bundle_open_unverified(buf_slice(&file), &b, why);

		require((fault == SIGNED_BUNDLE_GOOD) == (b != NULL) && (b || why[0]));
	}
	buf_fini(&file);
	return b;
}

/* Writes what was read, and reads it again. */
static void write_again(const struct signed_bundle *b)
{
	struct signed_bundle_draft draft = {.name = b->name,
	        .serial = b->serial,
	        .expires_s = b->expires_s,
	        .file_count = b->file_count,
	        .session_count = b->session_count,
	        .token_count = b->token_count,
	        .sessions = b->sessions,
	        .tokens = b->tokens};
	struct signed_bundle *again;
	struct buf content;

	memcpy(draft.files, b->files, sizeof(draft.files));
	buf_init(&content, SIGNED_BUNDLE_BYTES_MAX / 2);
	if (signed_bundle_write(&draft, &content) == 0) {
		again = take(buf_slice(&content));
		require(again && again->serial == b->serial && again->expires_s == b->expires_s &&
		        again->file_count == b->file_count &&
		        again->session_count == b->session_count &&
		        again->token_count == b->token_count);
		for (size_t i = 0; i < b->file_count; i++)
			require(slice_equals(again->files[i].text, b->files[i].text));
		signed_bundle_free(again);
	}
	buf_fini(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = slice_of(data, size);
	char why[SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *b;

	try_file(text);
	b = take(text);
	if (!b)
		return 0;
	require(b->serial >= 1 && b->serial <= SIGNED_BUNDLE_SERIAL_MAX);
	require(config_bundle_is_name(b->name) && b->file_count <= SIGNED_BUNDLE_FILES_MAX);
	for (size_t i = 0; i < b->file_count; i++)
		require(config_bundle_is_file(b->files[i].name) &&
		        !memchr(b->files[i].name.p, '/', b->files[i].name.n));
	write_again(b);
	if (b->file_count <= 4)
		signed_bundle_check(b, NULL, why);
	signed_bundle_free(b);
	return 0;
}
