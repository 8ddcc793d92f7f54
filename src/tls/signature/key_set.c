/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public keys, from a JSON Web Key Set or from their bytes. A set is taken whole or not at all. The
 * length and form of each key are checked here, and by OpenSSL whether it is a point of the curve.
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/base64.h"
#include "vethguard/tls/signed_token.h"

#define COORDINATE_BYTES 32
#define POINT_UNCOMPRESSED 4
#define EXPONENT_BYTES_MAX 4
#define EXPONENT_MIN 3

/* --- OpenSSL's form --- */

static EVP_PKEY *from_parameters(const char *type, OSSL_PARAM_BLD *build)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(build);
	EVP_PKEY *key = NULL;

	if (context && parameters && EVP_PKEY_fromdata_init(context) == 1)
		EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
	OSSL_PARAM_free(parameters);
	EVP_PKEY_CTX_free(context);
	return key;
}

static EVP_PKEY *make_p256(const struct public_key *k)
{
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;

	if (build && k->n == PUBLIC_KEY_P256_BYTES && k->bytes[0] == POINT_UNCOMPRESSED &&
	        OSSL_PARAM_BLD_push_utf8_string(
	                build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
	        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, k->bytes, k->n) ==
	                1)
		key = from_parameters("EC", build);
	OSSL_PARAM_BLD_free(build);
	return key;
}

static EVP_PKEY *make_rsa(const struct public_key *k)
{
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	BIGNUM *n = BN_bin2bn(k->bytes, (int)k->n, NULL), *e = BN_new();
	EVP_PKEY *key = NULL;

	if (build && n && e && BN_set_word(e, k->exponent) == 1 && k->exponent >= EXPONENT_MIN &&
	        k->exponent % 2 == 1 && BN_is_odd(n) && BN_num_bits(n) >= PUBLIC_KEY_RSA_BITS_MIN &&
	        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
	        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
		key = from_parameters("RSA", build);
	BN_free(n);
	BN_free(e);
	OSSL_PARAM_BLD_free(build);
	return key;
}

static EVP_PKEY *make(const struct public_key *k)
{
	switch (k->algorithm) {
	case CONFIG_EDDSA:
		return k->n == PUBLIC_KEY_ED25519_BYTES
		               ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->bytes, k->n)
		               : NULL;
	case CONFIG_ES256:
		return make_p256(k);
	case CONFIG_RS256:
		return make_rsa(k);
	default:
		return NULL;
	}
}

/* --- a set --- */

static bool is_same(const struct public_key *a, const struct public_key *b)
{
	return a->algorithm == b->algorithm && a->n == b->n && a->exponent == b->exponent &&
	       memcmp(a->bytes, b->bytes, a->n) == 0;
}

static bool has_same_name(const struct public_key *a, const struct public_key *b)
{
	return a->algorithm == b->algorithm && a->id_n == b->id_n &&
	       memcmp(a->id, b->id, a->id_n) == 0;
}

int key_set_add(struct key_set *set, const struct public_key *key)
{
	struct public_key *k = &set->keys[set->count];

	for (size_t i = 0; i < set->count; i++)
		if (has_same_name(&set->keys[i], key))
			return -EEXIST;
	if (set->count == KEY_SET_KEYS_MAX)
		return -ENOSPC;
	*k = *key;
	k->handle = make(k);
	if (!k->handle)
		return -EINVAL;
	set->count++;
	return 0;
}

void key_set_fini(struct key_set *set)
{
	while (set->count)
		EVP_PKEY_free(set->keys[--set->count].handle);
}

bool key_set_equals(const struct key_set *a, const struct key_set *b)
{
	bool equal = a->count == b->count;

	for (size_t i = 0; equal && i < a->count; i++)
		equal = is_same(&a->keys[i], &b->keys[i]) &&
		        has_same_name(&a->keys[i], &b->keys[i]);
	return equal;
}

/* --- JSON --- */

enum taken { TAKEN, SKIPPED, REFUSED };

struct reading {
	const struct json_tree *tree;
	const struct json_value *jwk;
	char *why;
};

__attribute__((format(printf, 2, 3))) static enum taken refuse(
        const struct reading *r, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(r->why, KEY_SET_WHY_MAX, format, arguments);
	va_end(arguments);
	return REFUSED;
}

static bool text_of(const struct reading *r, const char *member, struct slice *out)
{
	return json_tree_string_of(
	        r->tree, json_tree_member(r->tree, r->jwk, slice_from_string(member)), out);
}

static bool has(const struct reading *r, const char *member)
{
	return json_tree_member(r->tree, r->jwk, slice_from_string(member));
}

/* A member that may be missing, and otherwise is exactly this text. */
static bool is_if_there(const struct reading *r, const char *member, const char *value)
{
	struct slice text;

	return !has(r, member) ||
	       (text_of(r, member, &text) && slice_equals(text, slice_from_string(value)));
}

/* Decodes base64url without padding. Returns false if it is none, or longer than most. */
static bool bytes_of(
        const struct reading *r, const char *member, uint8_t *out, size_t most, size_t *n)
{
	struct slice text;
	ssize_t got;

	if (!text_of(r, member, &text) || slice_find_byte(text, '=') >= 0 ||
	        slice_find_byte(text, '+') >= 0 || slice_find_byte(text, '/') >= 0)
		return false;
	got = base64_decode(text, BASE64_EITHER, out, most);
	*n = got > 0 ? (size_t)got : 0;
	return got > 0;
}

static bool read_ed25519(const struct reading *r, struct public_key *k)
{
	return bytes_of(r, "x", k->bytes, PUBLIC_KEY_ED25519_BYTES, &k->n);
}

static bool read_p256(const struct reading *r, struct public_key *k)
{
	size_t x, y;

	k->bytes[0] = POINT_UNCOMPRESSED;
	k->n = PUBLIC_KEY_P256_BYTES;
	return bytes_of(r, "x", k->bytes + 1, COORDINATE_BYTES, &x) && x == COORDINATE_BYTES &&
	       bytes_of(r, "y", k->bytes + 1 + COORDINATE_BYTES, COORDINATE_BYTES, &y) &&
	       y == COORDINATE_BYTES;
}

static bool read_rsa(const struct reading *r, struct public_key *k)
{
	uint8_t e[EXPONENT_BYTES_MAX];
	size_t n;

	if (!bytes_of(r, "n", k->bytes, sizeof(k->bytes), &k->n) || k->bytes[0] == 0 ||
	        !bytes_of(r, "e", e, sizeof(e), &n))
		return false;
	for (size_t i = 0; i < n; i++)
		k->exponent = k->exponent << 8 | e[i];
	return true;
}

static const struct kind {
	const char *type, *curve; /* kty, crv; NULL: it has no curve */
	const char *algorithm;
	bool (*read)(const struct reading *r, struct public_key *k);
} kinds[CONFIG_ALGORITHM_COUNT] = {
        [CONFIG_EDDSA] = {"OKP", "Ed25519", "EdDSA", read_ed25519},
        [CONFIG_ES256] = {"EC", "P-256", "ES256", read_p256},
        [CONFIG_RS256] = {"RSA", NULL, "RS256", read_rsa},
};

/* Returns the kind of the key, or NULL: it is of no use here. */
static const struct kind *find_kind(const struct reading *r)
{
	for (size_t i = 0; i < CONFIG_ALGORITHM_COUNT; i++)
		if (has(r, "kty") && is_if_there(r, "kty", kinds[i].type) &&
		        (!kinds[i].curve ||
		                (has(r, "crv") && is_if_there(r, "crv", kinds[i].curve))) &&
		        is_if_there(r, "alg", kinds[i].algorithm) && is_if_there(r, "use", "sig"))
			return &kinds[i];
	return NULL;
}

static enum taken take(const struct reading *r, size_t number, struct key_set *set)
{
	const struct kind *kind = find_kind(r);
	struct public_key k = {.n = 0};
	struct slice id = SLICE("");
	int rc;

	if (has(r, "d") || has(r, "k"))
		return refuse(r,
		        "key %zu is a secret one: a key set holds public keys, and whoever has "
		        "read this file may sign",
		        number);
	if (!kind)
		return SKIPPED;
	k.algorithm = (enum config_algorithm)(kind - kinds);
	if (has(r, "kid") && (!text_of(r, "kid", &id) || id.n > sizeof(k.id)))
		return refuse(r, "key %zu: its kid is not a string of at most %d bytes", number,
		        PUBLIC_KEY_ID_MAX);
	memcpy(k.id, id.p, id.n);
	k.id_n = id.n;
	rc = kind->read(r, &k) ? key_set_add(set, &k) : -EINVAL;
	if (rc == -ENOSPC)
		return refuse(r, "there are more than %d keys", KEY_SET_KEYS_MAX);
	if (rc == -EEXIST)
		return refuse(r, "key %zu: another key has the same kid", number);
	if (rc)
		return refuse(r, "key %zu is not a valid %s key", number, kind->algorithm);
	return TAKEN;
}

static bool take_all(const struct json_tree *tree, struct key_set *set, char why[KEY_SET_WHY_MAX])
{
	const struct json_value *keys = json_tree_find(tree, SLICE("keys"));
	struct reading r = {tree, NULL, why};
	size_t number = 0;

	if (!keys || keys->kind != JSON_IS_ARRAY) {
		refuse(&r, "it is not a JSON Web Key Set: {\"keys\": [...]}");
		return false;
	}
	for (uint32_t at = (uint32_t)(keys - tree->values) + 1; at < keys->next; at = r.jwk->next) {
		r.jwk = json_at(tree, at);
		if (take(&r, ++number, set) == REFUSED)
			return false;
	}
	if (!set->count)
		refuse(&r,
		        "none of its %zu keys is for signatures by EdDSA (Ed25519), ES256 or "
		        "RS256",
		        number);
	return set->count > 0;
}

int key_set_read(struct key_set *set, struct slice json, char why[KEY_SET_WHY_MAX])
{
	struct json_tree tree;
	int rc;

	set->count = 0;
	why[0] = '\0';
	rc = json.n > KEY_SET_BYTES_MAX ? -EFBIG : json_read(&tree, json);
	if (rc) {
		snprintf(why, KEY_SET_WHY_MAX, "%s",
		        rc == -EFBIG    ? "it is larger than 64 KiB"
		        : rc == -ENOMEM ? "no memory"
		                        : "it is not JSON");
	} else if (!take_all(&tree, set, why)) {
		key_set_fini(set);
		rc = -EINVAL;
	}
	if (rc != -EFBIG)
		json_fini(&tree);
	return rc == -ENOMEM ? rc : rc ? -EINVAL : 0;
}
