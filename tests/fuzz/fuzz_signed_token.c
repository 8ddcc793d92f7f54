/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a token, as a key set and as claims. Beyond memory safety: no text is a token of a
 * key that nobody has; a key set that was refused is empty, and one that was read is read the same
 * again; claims that pass have an issuer, an audience and a time that lies ahead.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"
#include "vethguard/tls/signed_token.h"

#define NOW_S 1790000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* A public key whose private half was thrown away. */
static const char set_text[] =
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"one\",\"x\":"
        "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"},{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\",\"y\":"
        "\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\",\"kid\":\"one\"}]}";

static const struct token_signer *signer(void)
{
	static struct token_signer s;
	char why[KEY_SET_WHY_MAX];

	if (s.keys.count)
		return &s;
	s.terms = (struct config_terms){.issuer = "https://a",
	        .audience_count = 1,
	        .audiences = {"b"},
	        .algorithms = 7,
	        .lifetime_s = 3600};
	require(key_set_read(&s.keys, SLICE(set_text), why) == 0);
	return &s;
}

static void try_token(struct slice text)
{
	const struct token_signer *signers[] = {signer()};
	struct signed_claims claims;
	const char *why = NULL;

	require(signed_token_check(text, signers, 1, NOW_S, &claims, &why) < 0);
	require(why != NULL);
}

static void try_set(struct slice text)
{
	static struct key_set set, again;
	char why[KEY_SET_WHY_MAX];

	if (key_set_read(&set, text, why) != 0) {
		require(set.count == 0 && why[0]);
		return;
	}
	require(set.count > 0 && set.count <= KEY_SET_KEYS_MAX);
	require(key_set_read(&again, text, why) == 0 && key_set_equals(&set, &again));
	key_set_fini(&set);
	key_set_fini(&again);
}

/* The claims of a token whose signature was right. */
static void try_claims(struct slice text)
{
	static struct signed_claims claims;
	static char payload[BASE64_SIZE(SIGNED_TOKEN_MAX)];
	struct signed_token token = {.id_n = 0};
	struct slice issuer;

	if (text.n > SIGNED_TOKEN_MAX * 3 / 4)
		return;
	token.payload = slice_of(payload, base64_encode(text.p, text.n, base64_url, payload));
	if (signed_token_read_claims(&token, &claims) != NULL)
		return;
	if (!signed_claims_check(&claims, &signer()->terms, NOW_S)) {
		require(json_tree_string(&claims.tree, SLICE("iss"), &issuer));
		require(slice_equals(issuer, SLICE("https://a")));
		require(json_tree_find(&claims.tree, SLICE("aud")) != NULL);
		require(claims.expires_s > NOW_S);
	}
	json_tree_find(&claims.tree, SLICE("/org/team~1a/b"));
	signed_claims_fini(&claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = slice_of(data, size);

	try_token(text);
	try_set(text);
	try_claims(text);
	return 0;
}
