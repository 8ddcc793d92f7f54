/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that are signed: what is verified, and everything that is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "token_maker.h"

#define NOW_S 1790000000
#define GOOD_CLAIMS \
	"{\"iss\":\"https://control\",\"aud\":\"gateway\",\"exp\":1790000600,\"jti\":\"a\"}"
#define ROOM 16384

static EVP_PKEY *keys[CONFIG_ALGORITHM_COUNT];
static struct token_signer control, other;
static const struct token_signer *const both[] = {&control, &other};
static char text[ROOM], why[KEY_SET_WHY_MAX];

static const char *const headers[CONFIG_ALGORITHM_COUNT] = {
        [CONFIG_EDDSA] = "{\"alg\":\"EdDSA\",\"kid\":\"0\",\"typ\":\"JWT\"}",
        [CONFIG_ES256] = "{\"typ\":\"at+jwt\",\"kid\":\"1\",\"alg\":\"ES256\"}",
        [CONFIG_RS256] = "{\"alg\":\"RS256\",\"kid\":\"2\"}",
};

static int read_set(struct key_set *set, const char *json)
{
	memset(set, 0, sizeof(*set));
	return key_set_read(set, slice_from_string(json), why);
}

static int setup(void **state)
{
	char json[ROOM] = "{\"keys\":[", jwk[2048], more[64];

	(void)state;
	for (unsigned i = 0; i < CONFIG_ALGORITHM_COUNT; i++) {
		keys[i] = token_key((enum config_algorithm)i);
		snprintf(more, sizeof(more), "\"kid\":\"%u\",\"use\":\"sig\"", i);
		token_jwk(keys[i], more, jwk, sizeof(jwk));
		strcat(json, i ? "," : "");
		strcat(json, jwk);
	}
	strcat(json, "]}");
	control.terms = (struct config_terms){.issuer = "https://control",
	        .audience_count = 1,
	        .audiences = {"gateway"},
	        .algorithms = 7,
	        .lifetime_s = 3600};
	other.terms = control.terms;
	strcpy(other.terms.issuer, "https://other");
	assert_int_equal(read_set(&control.keys, json), 0);
	assert_int_equal(control.keys.count, CONFIG_ALGORITHM_COUNT);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONFIG_ALGORITHM_COUNT; i++)
		EVP_PKEY_free(keys[i]);
	key_set_fini(&control.keys);
	return 0;
}

/* Returns the signer's index, or -1 with *reason. */
static int check(const char *token, const char **reason)
{
	struct signed_claims claims;
	int signer = signed_token_check(slice_from_string(token), both, 2, NOW_S, &claims, reason);

	if (signer >= 0) {
		assert_int_equal(claims.expires_s, NOW_S + 600);
		signed_claims_fini(&claims);
	}
	return signer;
}

static void refused(const char *token, const char *words)
{
	const char *reason;

	assert_int_equal(check(token, &reason), -1);
	if (!strstr(reason, words))
		fail_msg("%s: %s, not: %s", token, reason, words);
}

static void refused_claims(const char *claims, const char *words)
{
	token_make(keys[CONFIG_EDDSA], headers[CONFIG_EDDSA], claims, text);
	refused(text, words);
}

static void refused_header(const char *header, const char *words)
{
	token_make(keys[CONFIG_EDDSA], header, GOOD_CLAIMS, text);
	refused(text, words);
}

static void test_good(void **state)
{
	const char *reason;

	(void)state;
	for (unsigned i = 0; i < CONFIG_ALGORITHM_COUNT; i++) {
		token_make(keys[i], headers[i], GOOD_CLAIMS, text);
		assert_true(signed_token_is_like(slice_from_string(text)));
		assert_int_equal(check(text, &reason), 0);
		assert_null(reason);
	}
	token_make(keys[CONFIG_ES256], "{\"alg\":\"ES256\"}", GOOD_CLAIMS, text);
	assert_int_equal(check(text, &reason), 0); /* the only key of its algorithm */
	token_make(keys[CONFIG_EDDSA], headers[CONFIG_EDDSA],
	        "{\"iss\":\"https://control\",\"aud\":[\"x\",\"gateway\"],\"exp\":1790000600,"
	        "\"nbf\":1790000060,\"iat\":1}",
	        text);
	assert_int_equal(check(text, &reason), 0);
}

/* A signer of sessions signs no callbacks, and the other way round. */
static void test_callbacks(void **state)
{
	struct signed_claims claims;
	const char *reason;

	(void)state;
	token_make(keys[CONFIG_EDDSA], headers[CONFIG_EDDSA], GOOD_CLAIMS, text);
	assert_int_equal(
	        signed_callback_check(slice_from_string(text), both, 2, NOW_S, &claims, &reason),
	        -1);
	control.terms.callbacks = true;
	refused(text, "no key that is known");
	assert_int_equal(
	        signed_callback_check(slice_from_string(text), both, 2, NOW_S, &claims, &reason),
	        0);
	signed_claims_fini(&claims);
	assert_int_equal(signed_callback_check(
	                         slice_from_string(text), both, 2, NOW_S + 600, &claims, &reason),
	        -1);
	control.terms.callbacks = false;
}

/* Each bit of a token counts. */
static void test_changed(void **state)
{
	const char *reason;

	(void)state;
	for (unsigned i = 0; i < CONFIG_ALGORITHM_COUNT; i++) {
		token_make(keys[i], headers[i], GOOD_CLAIMS, text);
		for (size_t at = 0; at < strlen(text); at += 7) {
			const char was = text[at];

			text[at] = was == 'A' ? 'B' : 'A';
			if (check(text, &reason) != -1)
				fail_msg("algorithm %u, letter %zu of %zu", i, at, strlen(text));
			text[at] = was;
		}
		for (size_t n = strlen(text) - 1; n > 0; n -= n > 40 ? 40 : n) {
			text[n] = '\0';
			if (check(text, &reason) != -1)
				fail_msg("algorithm %u, %zu letters", i, n);
		}
	}
}

static void test_headers(void **state)
{
	(void)state;
	refused_header("{\"alg\":\"none\"}", "alg");
	refused_header("{\"alg\":\"None\",\"kid\":\"0\"}", "alg");
	refused_header("{\"alg\":\"HS256\",\"kid\":\"0\"}", "alg");
	refused_header("{\"alg\":\"HS512\",\"kid\":\"2\"}", "alg");
	refused_header("{\"alg\":\"eddsa\",\"kid\":\"0\"}", "alg");
	refused_header("{\"alg\":\"PS256\",\"kid\":\"2\"}", "alg");
	refused_header("{\"alg\":\"ES384\",\"kid\":\"1\"}", "alg");
	refused_header("{\"alg\":7}", "alg");
	refused_header("{\"kid\":\"0\"}", "alg");
	refused_header("{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\",\"kid\":\"0\"}", "JSON");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"0\",\"crit\":[\"exp\"]}", "members");
	refused_header("{\"alg\":\"EdDSA\",\"jku\":\"https://evil/keys\"}", "members");
	refused_header("{\"alg\":\"EdDSA\",\"jwk\":{}}", "members");
	refused_header("{\"alg\":\"EdDSA\",\"x5u\":\"https://evil\"}", "members");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"0\",\"b64\":false}", "members");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"../../etc/passwd\"}", "no key");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"/dev/null\"}", "no key");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"0' OR 1=1\"}", "no key");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"1\"}", "no key");
	refused_header("{\"alg\":\"ES256\",\"kid\":\"0\"}", "no key");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"\"}", "kid");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":0}", "kid");
	refused_header("{\"alg\":\"EdDSA\",\"kid\":\"0\",\"typ\":\"JWE\"}", "typ");
	refused_header("[\"EdDSA\"]", "members");
	refused_header("{}x", "JSON");
	refused_header("", "not a token");
}

static void test_claims(void **state)
{
	(void)state;
#define ISS "\"iss\":\"https://control\","
#define AUD "\"aud\":\"gateway\","
#define EXP "\"exp\":1790000600"
	refused_claims("{" AUD EXP "}", "iss");
	refused_claims("{\"iss\":\"https://other\"," AUD EXP "}", "iss");
	refused_claims("{\"iss\":\"https://control/\"," AUD EXP "}", "iss");
	refused_claims("{\"iss\":[\"https://control\"]," AUD EXP "}", "iss");
	refused_claims("{" ISS EXP "}", "aud");
	refused_claims("{" ISS "\"aud\":\"gateway2\"," EXP "}", "aud");
	refused_claims("{" ISS "\"aud\":[]," EXP "}", "aud");
	refused_claims("{" ISS "\"aud\":[\"gateway\",7]," EXP "}", "aud");
	refused_claims("{" ISS "\"aud\":{\"gateway\":1}," EXP "}", "aud");
	refused_claims("{" ISS "\"aud\":\"gateway\"}", "no exp");
	refused_claims("{" ISS AUD "\"exp\":\"1790000600\"}", "no exp");
	refused_claims("{" ISS AUD "\"exp\":1790000600.5}", "no exp");
	refused_claims("{" ISS AUD "\"exp\":-1}", "no exp");
	refused_claims("{" ISS AUD "\"exp\":99999999999999999999999}", "no exp");
	refused_claims("{" ISS AUD "\"exp\":1789913600}", "expired"); /* yesterday */
	refused_claims("{" ISS AUD "\"exp\":1790000000}", "expired");
	refused_claims("{" ISS AUD "\"exp\":1790003700}", "longer");
	refused_claims("{" ISS AUD EXP ",\"nbf\":1790000061}", "not valid yet");
	refused_claims("{" ISS AUD EXP ",\"iat\":1790000061}", "not valid yet");
	refused_claims("{" ISS AUD EXP ",\"nbf\":\"now\"}", "not valid yet");
	refused_claims("{" ISS ISS AUD EXP "}", "JSON");
	refused_claims("[" EXP "]", "JSON");
	refused_claims("\"" GOOD_CLAIMS "\"", "JSON");
	refused_claims("{" ISS AUD EXP "}{}", "JSON");
}

static void test_keys(void **state)
{
	const char *reason;

	(void)state;
	/* A signature by one algorithm is none of another one. */
	token_make(keys[CONFIG_RS256], headers[CONFIG_EDDSA], GOOD_CLAIMS, text);
	refused(text, "no key");
	token_make(keys[CONFIG_EDDSA], headers[CONFIG_RS256], GOOD_CLAIMS, text);
	refused(text, "no key");
	/* Another gateway's key with the same id. */
	EVP_PKEY *stranger = token_key(CONFIG_EDDSA);

	token_make(stranger, headers[CONFIG_EDDSA], GOOD_CLAIMS, text);
	refused(text, "no key");
	EVP_PKEY_free(stranger);
	token_make(keys[CONFIG_ES256], headers[CONFIG_ES256], GOOD_CLAIMS, text);
	control.terms.algorithms = 1 << CONFIG_EDDSA | 1 << CONFIG_RS256;
	refused(text, "no key");
	control.terms.algorithms = 7;
	assert_int_equal(check(text, &reason), 0);
	assert_int_equal(
	        signed_token_check(slice_from_string(text), both, 0, NOW_S, NULL, &reason), -1);
}

static void test_form(void **state)
{
	static const char *const wrong[] = {"", ".", "..", "a.b", "a.b.c.d", "vgs_abc", "a..c",
	        "a.b.", ".b.c", "a b.c.d", "a.b.c=", "a+b.c.d", "a.b/.c", "a.b.\xc3\xa9"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(signed_token_is_like(slice_from_string(wrong[i])));
		refused(wrong[i], "not a token");
	}
	memset(text, 'a', SIGNED_TOKEN_MAX + 1);
	text[10] = text[20] = '.';
	text[SIGNED_TOKEN_MAX] = '\0';
	assert_true(signed_token_is_like(slice_from_string(text)));
	refused(text, "signature");
	strcat(text, "a");
	refused(text, "not a token");
}

static void refused_set(const char *json, const char *words)
{
	struct key_set set;

	assert_int_not_equal(read_set(&set, json), 0);
	assert_int_equal(set.count, 0);
	if (!strstr(why, words))
		fail_msg("%s: %s, not: %s", json, why, words);
}

#define X32 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"

static void test_sets(void **state)
{
	char jwk[2048], json[ROOM];
	struct key_set set;

	(void)state;
	refused_set("", "JSON");
	refused_set("[]", "Key Set");
	refused_set("{}", "Key Set");
	refused_set("{\"keys\":{}}", "Key Set");
	refused_set("{\"keys\":[]}", "none of its 0");
	refused_set("{\"keys\":[7]}", "none of its 1");
	refused_set("{\"keys\":[{\"kty\":\"oct\",\"k\":\"aaaa\"}]}", "secret");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" X32
	            "\",\"d\":\"a\"}]}",
	        "secret");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed448\",\"x\":\"" X32 "\"}]}", "none");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"x\":\"" X32 "\"}]}", "none");
	refused_set("{\"keys\":[{\"crv\":\"Ed25519\",\"x\":\"" X32 "\"}]}", "none");
	refused_set(
	        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}]}", "not a valid");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":7}]}", "not a valid");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}]}", "not a valid");
	refused_set("{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" X32 "\",\"y\":\"" X32
	            "\"}]}",
	        "not a valid"); /* no point of the curve */
	refused_set(
	        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"a\",\"y\":\"a\"}]}", "none");
	refused_set(
	        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"" X32 "\",\"e\":\"AQAB\"}]}", "not a valid");
	refused_set("{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" X32
	            "\",\"kid\":7}]}",
	        "kid");
	token_jwk(keys[CONFIG_RS256], "\"kid\":\"a\",\"alg\":\"RS512\"", jwk, sizeof(jwk));
	snprintf(json, sizeof(json), "{\"keys\":[%s]}", jwk);
	refused_set(json, "none");
	token_jwk(keys[CONFIG_RS256], "\"kid\":\"a\",\"use\":\"enc\"", jwk, sizeof(jwk));
	snprintf(json, sizeof(json), "{\"keys\":[%s]}", jwk);
	refused_set(json, "none");
	token_jwk(keys[CONFIG_EDDSA], "\"kid\":\"a\"", jwk, sizeof(jwk));
	snprintf(json, sizeof(json), "{\"keys\":[%s,%s]}", jwk, jwk);
	refused_set(json, "another key has the same kid");
	snprintf(json, sizeof(json),
	        "{\"more\":1,\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-521\"},%s]}", jwk);
	assert_int_equal(read_set(&set, json), 0);
	assert_int_equal(set.count, 1);
	assert_true(key_set_equals(&set, &set));
	assert_false(key_set_equals(&set, &control.keys));
	key_set_fini(&set);
}

static void test_many_keys(void **state)
{
	char jwk[256], json[ROOM] = "{\"keys\":[", more[64];
	struct key_set set;

	(void)state;
	for (unsigned i = 0; i <= KEY_SET_KEYS_MAX; i++) {
		snprintf(more, sizeof(more), "\"kid\":\"%u\"", i);
		token_jwk(keys[CONFIG_EDDSA], more, jwk, sizeof(jwk));
		strcat(json, i ? "," : "");
		strcat(json, jwk);
		if (i + 1 == KEY_SET_KEYS_MAX) {
			char whole[ROOM + 4];

			snprintf(whole, sizeof(whole), "%s]}", json);
			assert_int_equal(read_set(&set, whole), 0);
			assert_int_equal(set.count, KEY_SET_KEYS_MAX);
			key_set_fini(&set);
		}
	}
	strcat(json, "]}");
	refused_set(json, "more than 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good),
	        cmocka_unit_test(test_callbacks),
	        cmocka_unit_test(test_changed),
	        cmocka_unit_test(test_headers),
	        cmocka_unit_test(test_claims),
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_form),
	        cmocka_unit_test(test_sets),
	        cmocka_unit_test(test_many_keys),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
