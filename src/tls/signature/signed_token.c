/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifies a token in this order: its form, its header, its signature by a key that the header
 * names, and only then its claims. An invalid token costs at most one signature for each signer
 * whose key has the header's id.
 */
#include <errno.h>
#include <openssl/evp.h>

#include "vethguard/base/base64.h"
#include "vethguard/tls/signed_token.h"
#include "tls/signature/raw_signature.h"

#define HEADER_MAX 1024

static bool is_base64url(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            c == '-' || c == '_'))
			return false;
	}
	return s.n > 0;
}

/* Takes what precedes the next dot off the text. */
static struct slice take_part(struct slice *text)
{
	ptrdiff_t dot = slice_find_byte(*text, '.');
	struct slice part = slice_of(text->p, dot < 0 ? text->n : (size_t)dot);
	const size_t used = part.n + (dot >= 0);

	*text = slice_of(text->p + used, text->n - used);
	return part;
}

bool signed_token_is_like(struct slice text)
{
	return text.n <= SIGNED_TOKEN_MAX && is_base64url(take_part(&text)) &&
	       is_base64url(take_part(&text)) && is_base64url(text);
}

/* --- the header --- */

/* The members that a header may have. Any other could say how to read the token, or where a key
 * is (crit, jku, jwk, x5u, x5c), and makes it invalid. */
static bool members_are_known(const struct json_tree *tree)
{
	static const char *const known[] = {"alg", "typ", "kid", "x5t", "x5t#S256", NULL};
	const struct json_value *object = json_at(tree, 0);

	for (uint32_t at = 1; at < object->next; at = json_at(tree, at + 1)->next) {
		const struct slice key = json_text(tree, json_at(tree, at));
		size_t i = 0;

		while (known[i] && !slice_equals(key, slice_from_string(known[i])))
			i++;
		if (!known[i])
			return false;
	}
	return object->kind == JSON_IS_OBJECT;
}

static bool type_is_right(const struct json_tree *tree)
{
	struct slice type;

	if (!json_tree_find(tree, SLICE("typ")))
		return true;
	return json_tree_string(tree, SLICE("typ"), &type) &&
	       (slice_equals_ignoring_case(type, SLICE("JWT")) ||
	               slice_equals_ignoring_case(type, SLICE("at+jwt")));
}

static bool find_algorithm(const struct json_tree *tree, enum config_algorithm *out)
{
	struct slice name;

	if (!json_tree_string(tree, SLICE("alg"), &name))
		return false;
	for (unsigned i = 0; i < CONFIG_ALGORITHM_COUNT; i++) {
		*out = (enum config_algorithm)i;
		if (slice_equals(name, slice_from_string(config_algorithm_name(*out))))
			return true;
	}
	return false;
}

static const char *check_header(const struct json_tree *tree, struct signed_token *out)
{
	struct slice id = SLICE("");

	if (!members_are_known(tree))
		return "its header has members that are not taken";
	if (!type_is_right(tree))
		return "its typ is not JWT";
	if (!find_algorithm(tree, &out->algorithm))
		return "its alg is none of EdDSA, ES256, RS256";
	if (json_tree_find(tree, SLICE("kid")) &&
	        (!json_tree_string(tree, SLICE("kid"), &id) || !id.n || id.n > sizeof(out->id)))
		return "its kid is not a string of at most 255 bytes";
	memcpy(out->id, id.p, id.n);
	out->id_n = id.n;
	return NULL;
}

static const char *read_header(struct slice encoded, struct signed_token *out)
{
	char text[HEADER_MAX];
	ssize_t n = base64_decode(encoded, BASE64_EITHER, text, sizeof(text));
	struct json_tree tree;
	const char *why;

	if (n <= 0)
		return "its header is not base64url of at most 1 KiB";
	why = json_read(&tree, slice_of(text, (size_t)n)) == 0 ? check_header(&tree, out)
	                                                       : "its header is not JSON";
	json_fini(&tree);
	return why;
}

const char *signed_token_read(struct slice text, struct signed_token *out)
{
	const char *start = text.p;
	struct slice header, payload;
	ssize_t n;

	if (!signed_token_is_like(text))
		return "it is not a token";
	header = take_part(&text);
	payload = take_part(&text);
	out->covered = slice_of(start, header.n + 1 + payload.n);
	out->payload = payload;
	n = base64_decode(text, BASE64_EITHER, out->signature, sizeof(out->signature));
	if (n <= 0)
		return "its signature is not base64url of at most 512 bytes";
	out->signature_n = (size_t)n;
	return read_header(header, out);
}

/* --- the signature --- */

static bool verify(EVP_PKEY *key, const EVP_MD *digest, struct slice signature, struct slice text)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context && EVP_DigestVerifyInit(context, NULL, digest, NULL, key) == 1 &&
	            EVP_DigestVerify(context, (const uint8_t *)signature.p, signature.n,
	                    (const uint8_t *)text.p, text.n) == 1;

	EVP_MD_CTX_free(context);
	return good;
}

bool signed_token_is_signed_by(const struct signed_token *t, const struct public_key *key)
{
	const struct slice raw = slice_of(t->signature, t->signature_n);
	uint8_t der[DER_SIGNATURE_MAX];
	size_t n;

	if (t->algorithm != key->algorithm)
		return false;
	switch (t->algorithm) {
	case CONFIG_EDDSA:
		return raw.n == RAW_SIGNATURE_BYTES && verify(key->handle, NULL, raw, t->covered);
	case CONFIG_ES256:
		n = raw.n == RAW_SIGNATURE_BYTES ? raw_signature_to_der(t->signature, der) : 0;
		return n && verify(key->handle, EVP_sha256(), slice_of(der, n), t->covered);
	case CONFIG_RS256:
		return raw.n == key->n && verify(key->handle, EVP_sha256(), raw, t->covered);
	default:
		return false;
	}
}

/* A header without kid means the only key of its algorithm. */
static const struct public_key *find_key(const struct key_set *set, const struct signed_token *t)
{
	const struct public_key *found = NULL;

	for (size_t i = 0; i < set->count; i++) {
		const struct public_key *k = &set->keys[i];

		if (k->algorithm != t->algorithm)
			continue;
		if (!t->id_n && found)
			return NULL;
		if (!t->id_n || (k->id_n == t->id_n && memcmp(k->id, t->id, t->id_n) == 0))
			found = k;
	}
	return found;
}

static bool is_signed_by(const struct signed_token *t, const struct token_signer *signer)
{
	const struct public_key *key = find_key(&signer->keys, t);

	return key && (signer->terms.algorithms >> t->algorithm & 1) &&
	       signed_token_is_signed_by(t, key);
}

/* --- the claims --- */

const char *signed_token_read_claims(const struct signed_token *t, struct signed_claims *claims)
{
	ssize_t n = base64_decode(t->payload, BASE64_EITHER, claims->text, sizeof(claims->text));

	if (n <= 0)
		return "its claims are not base64url";
	if (json_read(&claims->tree, slice_of(claims->text, (size_t)n)) == 0 &&
	        json_at(&claims->tree, 0)->kind == JSON_IS_OBJECT)
		return NULL;
	signed_claims_fini(claims);
	return "its claims are not a JSON object";
}

void signed_claims_fini(struct signed_claims *claims)
{
	json_fini(&claims->tree);
}

/* A time that may be missing, and otherwise must not lie ahead. */
static bool is_past(const struct json_tree *tree, struct slice name, int64_t now_s)
{
	const struct json_value *value = json_tree_find(tree, name);
	int64_t at;

	return !value || (json_tree_whole(tree, value, &at) && at <= now_s + SIGNED_TOKEN_SKEW_S);
}

const char *signed_claims_check(
        struct signed_claims *claims, const struct config_terms *terms, int64_t now_s)
{
	const struct json_tree *tree = &claims->tree;
	struct slice issuer;
	bool meant = false;

	if (!json_tree_string(tree, SLICE("iss"), &issuer) ||
	        !slice_equals(issuer, slice_from_string(terms->issuer)))
		return "its iss is another one than its key's";
	for (size_t i = 0; i < terms->audience_count; i++)
		meant = meant || json_tree_has(tree, json_tree_find(tree, SLICE("aud")),
		                         slice_from_string(terms->audiences[i]), false);
	if (!meant)
		return "its aud is another one";
	if (!json_tree_whole(tree, json_tree_find(tree, SLICE("exp")), &claims->expires_s))
		return "it has no exp";
	if (claims->expires_s <= now_s)
		return "it has expired";
	if (claims->expires_s - now_s > (int64_t)terms->lifetime_s + SIGNED_TOKEN_SKEW_S)
		return "it is valid for longer than the signer's lifetime";
	if (!is_past(tree, SLICE("nbf"), now_s) || !is_past(tree, SLICE("iat"), now_s))
		return "it is not valid yet";
	return NULL;
}

static int check(struct slice text, const struct token_signer *const signers[], size_t count,
        bool callbacks, int64_t now_s, struct signed_claims *claims, const char **why)
{
	struct signed_token t;

	*why = signed_token_read(text, &t);
	if (*why)
		return -1;
	*why = "no key that is known has signed it";
	for (size_t i = 0; i < count; i++) {
		if (signers[i]->terms.callbacks != callbacks || !is_signed_by(&t, signers[i]))
			continue;
		*why = signed_token_read_claims(&t, claims);
		if (*why)
			return -1;
		*why = signed_claims_check(claims, &signers[i]->terms, now_s);
		if (!*why)
			return (int)i;
		signed_claims_fini(claims);
	}
	return -1;
}

int signed_token_check(struct slice text, const struct token_signer *const signers[], size_t count,
        int64_t now_s, struct signed_claims *claims, const char **why)
{
	return check(text, signers, count, false, now_s, claims, why);
}

int signed_callback_check(struct slice text, const struct token_signer *const signers[],
        size_t count, int64_t now_s, struct signed_claims *claims, const char **why)
{
	return check(text, signers, count, true, now_s, claims, why);
}
