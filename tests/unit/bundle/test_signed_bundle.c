/* SPDX-License-Identifier: Apache-2.0 */
/* Signed bundles: what is taken, and everything that is refused: by its form, its signature, its
 * content. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/bundle/signed_bundle.h"

#define PEM_ROOM 1024
#define POLICY "vethguard: 1\nallow:\n  - {to: \"https://api.example\"}\n"
#define SET                                                                              \
	"{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": \"one\", \"x\": " \
	"\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"
#define SET_IN_JSON                                                                            \
	"{\\\"keys\\\": [{\\\"kty\\\": \\\"OKP\\\", \\\"crv\\\": \\\"Ed25519\\\", \\\"x\\\": " \
	"\\\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\\\"}]}"

enum { ED25519, P256, KINDS };
static struct sign_key private[KINDS], public[KINDS];
static char why[SIGNED_BUNDLE_WHY_MAX];

static void write_pem(EVP_PKEY *key, bool is_public, char out[PEM_ROOM])
{
	BIO *bio = BIO_new(BIO_s_mem());
	int n;

	assert_true(is_public ? PEM_write_bio_PUBKEY(bio, key)
	                      : PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL));
	n = BIO_read(bio, out, PEM_ROOM - 1);
	assert_true(n > 0);
	out[n] = '\0';
	BIO_free(bio);
}

static EVP_PKEY *make_key(int kind)
{
	return kind == ED25519 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
	                       : EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < KINDS; i++) {
		EVP_PKEY *key = make_key(i);
		char pem[PEM_ROOM];

		write_pem(key, false, pem);
		assert_null(sign_key_private(slice_from_string(pem), &private[i]));
		assert_non_null(sign_key_public(slice_from_string(pem), &public[i]));
		write_pem(key, true, pem);
		assert_null(sign_key_public(slice_from_string(pem), &public[i]));
		EVP_PKEY_free(key);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < KINDS; i++) {
		sign_key_fini(&private[i]);
		sign_key_fini(&public[i]);
	}
	return 0;
}

/* Signs a content. */
static void sign(int kind, const char *content, struct buf *out)
{
	buf_init(out, 4 * SIGNED_BUNDLE_BYTES_MAX);
	assert_int_equal(signed_bundle_sign(&private[kind], slice_from_string(content), out), 0);
}

static enum signed_bundle_fault open_content(const char *content, struct signed_bundle **b)
{
	struct buf file;
	enum signed_bundle_fault fault;

	sign(ED25519, content, &file);
	fault = signed_bundle_open(buf_slice(&file), public, KINDS, b, why);
	buf_fini(&file);
	return fault;
}

/* --- good ones --- */

static void test_round_trip(void **state)
{
	const struct slice sessions[] = {SLICE("agent-7"), SLICE("x")};
	const struct signed_bundle_token tokens[] = {
	        {SLICE("control"), SLICE("run \"1\"\n\xc3\xbc")}};
	const struct signed_bundle_draft draft = {.name = SLICE("fleet"),
	        .serial = SIGNED_BUNDLE_SERIAL_MAX,
	        .expires_s = 1790000000,
	        .file_count = 2,
	        .files = {{SLICE("a.yaml"), SLICE(POLICY)}, {SLICE("control.jwks"), SLICE(SET)}},
	        .session_count = 2,
	        .token_count = 1,
	        .sessions = sessions,
	        .tokens = tokens};
	struct buf content;

	(void)state;
	buf_init(&content, SIGNED_BUNDLE_BYTES_MAX);
	assert_int_equal(signed_bundle_write(&draft, &content), 0);
	for (int i = 0; i < KINDS; i++) {
		struct signed_bundle *b;
		struct buf file;

		buf_init(&file, SIGNED_BUNDLE_BYTES_MAX);
		assert_int_equal(signed_bundle_sign(&private[i], buf_slice(&content), &file), 0);
		assert_int_equal(signed_bundle_open(buf_slice(&file), public, KINDS, &b, why), 0);
		assert_true(slice_equals(b->name, SLICE("fleet")));
		assert_true(b->serial == SIGNED_BUNDLE_SERIAL_MAX);
		assert_int_equal(b->expires_s, 1790000000);
		assert_false(signed_bundle_has_expired(b, 1789999999));
		assert_true(signed_bundle_has_expired(b, 1790000000));
		assert_int_equal(b->file_count, 2);
		assert_true(
		        slice_equals(signed_bundle_find(b, SLICE("a.yaml"))->text, SLICE(POLICY)));
		assert_null(signed_bundle_find(b, SLICE("b.yaml")));
		assert_int_equal(b->session_count, 2);
		assert_true(slice_equals(b->sessions[1], SLICE("x")));
		assert_int_equal(b->token_count, 1);
		assert_true(slice_equals(b->tokens[0].id, tokens[0].id));
		assert_true(signed_bundle_check(b, "/nonexistent", why));
		signed_bundle_free(b);
		buf_fini(&file);
	}
	buf_fini(&content);
}

static void test_least(void **state)
{
	struct signed_bundle *b;

	(void)state;
	assert_int_equal(open_content("{\"name\":\"a\",\"serial\":1}", &b), 0);
	assert_int_equal(b->file_count + b->session_count + b->token_count, 0);
	assert_false(signed_bundle_has_expired(b, INT64_MAX));
	assert_true(signed_bundle_check(b, NULL, why));
	signed_bundle_free(b);
	signed_bundle_free(NULL);
}

/* --- signatures --- */

static void refused(struct slice file, size_t keys, enum signed_bundle_fault expected)
{
	struct signed_bundle *b;

	assert_int_equal(signed_bundle_open(file, public, keys, &b, why), expected);
	assert_null(b);
	assert_true(why[0]);
}

static void test_signature(void **state)
{
	struct buf file;
	uint8_t *p;

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		sign(kind, "{\"name\":\"a\",\"serial\":1}", &file);
		p = buf_bytes(&file);
		for (size_t i = 0; i < file.len; i++) {
			p[i] ^= 1;
			refused(buf_slice(&file), KINDS,
			        i < SIGNED_BUNDLE_MAGIC_BYTES ? SIGNED_BUNDLE_FORM
			                                      : SIGNED_BUNDLE_SIGNATURE);
			p[i] ^= 1;
		}
		for (size_t n = 0; n < file.len; n++)
			refused(slice_of(p, n), KINDS,
			        n <= SIGNED_BUNDLE_HEAD_BYTES ? SIGNED_BUNDLE_FORM
			                                      : SIGNED_BUNDLE_SIGNATURE);
		assert_int_equal(buf_append(&file, "\n", 1), 0);
		refused(buf_slice(&file), KINDS, SIGNED_BUNDLE_SIGNATURE);
		buf_fini(&file);
	}
}

static void test_other_key(void **state)
{
	struct buf file;

	(void)state;
	sign(P256, "{\"name\":\"a\",\"serial\":1}", &file);
	refused(buf_slice(&file), 1, SIGNED_BUNDLE_SIGNATURE); /* only the Ed25519 key */
	refused(buf_slice(&file), 0, SIGNED_BUNDLE_SIGNATURE);
	/* r and s of zero, and of all ones */
	memset(buf_bytes(&file) + SIGNED_BUNDLE_MAGIC_BYTES, 0, SIGNED_BUNDLE_SIGNATURE_BYTES);
	refused(buf_slice(&file), KINDS, SIGNED_BUNDLE_SIGNATURE);
	memset(buf_bytes(&file) + SIGNED_BUNDLE_MAGIC_BYTES, 0xff, SIGNED_BUNDLE_SIGNATURE_BYTES);
	refused(buf_slice(&file), KINDS, SIGNED_BUNDLE_SIGNATURE);
	buf_fini(&file);
}

static void test_too_long(void **state)
{
	char *text = malloc(SIGNED_BUNDLE_BYTES_MAX + 2);
	struct buf out;

	(void)state;
	memset(text, ' ', SIGNED_BUNDLE_BYTES_MAX + 1);
	memcpy(text, SIGNED_BUNDLE_MAGIC, SIGNED_BUNDLE_MAGIC_BYTES);
	refused(slice_of(text, SIGNED_BUNDLE_BYTES_MAX + 1), KINDS, SIGNED_BUNDLE_FORM);
	assert_non_null(strstr(why, "1 MiB"));
	refused(slice_of(text, SIGNED_BUNDLE_BYTES_MAX), KINDS, SIGNED_BUNDLE_SIGNATURE);
	buf_init(&out, SIGNED_BUNDLE_BYTES_MAX);
	assert_int_not_equal(
	        signed_bundle_sign(&private[0], slice_of(text, SIGNED_BUNDLE_BYTES_MAX), &out), 0);
	buf_fini(&out);
	free(text);
}

static void test_keys(void **state)
{
	EVP_PKEY *others[] = {EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048),
	        EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384"),
	        EVP_PKEY_Q_keygen(NULL, NULL, "EC", "secp256k1"),
	        EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), EVP_PKEY_Q_keygen(NULL, NULL, "ED448")};
	static const char *const texts[] = {"", "x", "-----BEGIN PUBLIC KEY-----\n",
	        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"};
	struct sign_key key;
	char pem[PEM_ROOM * 2];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		BIO *bio = BIO_new(BIO_s_mem());
		int n;

		assert_true(PEM_write_bio_PUBKEY(bio, others[i]));
		n = BIO_read(bio, pem, sizeof(pem));
		assert_non_null(strstr(sign_key_public(slice_of(pem, (size_t)n), &key), "neither"));
		assert_null(key.handle);
		BIO_free(bio);
		EVP_PKEY_free(others[i]);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_non_null(sign_key_public(slice_from_string(texts[i]), &key));
		assert_non_null(sign_key_private(slice_from_string(texts[i]), &key));
	}
}

/* --- content --- */

#define HEAD "{\"name\":\"a\",\"serial\":1,"

static void test_content(void **state)
{
	static const char *const bad[][2] = {{"[]", "not a JSON object"}, {"{", "not JSON"},
	        {"{\"name\":\"a\",\"serial\":1}x", "not JSON"},
	        {"{\"name\":\"a\",\"name\":\"b\",\"serial\":1}", "not JSON"},
	        {"{\"serial\":1}", "name"}, {"{\"name\":\"A\",\"serial\":1}", "name"},
	        {"{\"name\":\"-a\",\"serial\":1}", "name"},
	        {"{\"name\":\"\",\"serial\":1}", "name"},
	        {"{\"name\":\"a/b\",\"serial\":1}", "name"},
	        {"{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaa\",\"serial\":1}", "name"},
	        {"{\"name\":1,\"serial\":1}", "name"}, {"{\"name\":\"a\"}", "serial"},
	        {"{\"name\":\"a\",\"serial\":0}", "serial"},
	        {"{\"name\":\"a\",\"serial\":-1}", "serial"},
	        {"{\"name\":\"a\",\"serial\":1.5}", "serial"},
	        {"{\"name\":\"a\",\"serial\":\"1\"}", "serial"},
	        {"{\"name\":\"a\",\"serial\":1000000000000000}", "serial"},
	        {HEAD "\"expires\":0}", "expires"}, {HEAD "\"expires\":\"never\"}", "expires"},
	        {HEAD "\"expires\":null}", "expires"}, {HEAD "\"more\":1}", "does not know"},
	        {HEAD "\"files\":[]}", "files"}, {HEAD "\"files\":{\"a.yaml\":1}}", "a.yaml"},
	        {HEAD "\"files\":{\"a.yaml\":{}}}", "a.yaml"},
	        {HEAD "\"files\":{\"a\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\".yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"..yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"../a.yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"a/b.yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"/a.yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"a b.yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"a.yaml\\u0001.yaml\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"a.pem\":\"\"}}", "ends with"},
	        {HEAD "\"files\":{\"a.yaml\":\"\",\"a.yaml\":\"\"}}", "not JSON"},
	        {HEAD "\"revoked\":[]}", "revoked"},
	        {HEAD "\"revoked\":{\"x\":[]}}", "does not know"},
	        {HEAD "\"revoked\":{\"sessions\":{}}}", "list"},
	        {HEAD "\"revoked\":{\"sessions\":[1]}}", "sessions"},
	        {HEAD "\"revoked\":{\"sessions\":[\"\"]}}", "sessions"},
	        {HEAD "\"revoked\":{\"tokens\":[\"a\"]}}", "tokens"},
	        {HEAD "\"revoked\":{\"tokens\":[{}]}}", "signer"},
	        {HEAD "\"revoked\":{\"tokens\":[{\"signer\":\"a\"}]}}", "id"},
	        {HEAD "\"revoked\":{\"tokens\":[{\"signer\":\"a\",\"id\":1}]}}", "id"},
	        {HEAD "\"revoked\":{\"tokens\":[{\"signer\":\"a\",\"id\":\"b\",\"c\":1}]}}",
	                "does not know"}};
	struct signed_bundle *b;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(open_content(bad[i][0], &b), SIGNED_BUNDLE_CONTENT);
		assert_null(b);
		if (!strstr(why, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], why);
	}
}

/* Repeats item, count times, between before and after. */
static enum signed_bundle_fault open_many(
        const char *before, const char *item, size_t count, const char *after)
{
	struct signed_bundle *b = NULL;
	struct buf text;
	enum signed_bundle_fault fault;

	buf_init(&text, SIGNED_BUNDLE_BYTES_MAX);
	assert_int_equal(buf_append(&text, before, strlen(before)), 0);
	for (size_t i = 0; i < count; i++)
		if (strchr(item, '%'))
			assert_int_equal(
			        buf_printf(&text, "%s\"f%zu.yaml\":\"\"", i ? "," : "", i), 0);
		else
			assert_int_equal(buf_printf(&text, "%s%s", i ? "," : "", item), 0);
	assert_int_equal(buf_append(&text, after, strlen(after) + 1), 0);
	fault = open_content((const char *)buf_bytes(&text), &b);
	signed_bundle_free(b);
	buf_fini(&text);
	return fault;
}

static void test_counts(void **state)
{
	static const char token[] = "{\"signer\":\"a\",\"id\":\"b\"}";

	(void)state;
	assert_int_equal(open_many(HEAD "\"files\":{", "%", SIGNED_BUNDLE_FILES_MAX, "}}"), 0);
	assert_int_equal(open_many(HEAD "\"files\":{", "%", SIGNED_BUNDLE_FILES_MAX + 1, "}}"),
	        SIGNED_BUNDLE_CONTENT);
	assert_int_equal(open_many(HEAD "\"revoked\":{\"sessions\":[", "\"s\"",
	                         SIGNED_BUNDLE_REVOKED_MAX, "]}}"),
	        0);
	assert_int_equal(open_many(HEAD "\"revoked\":{\"sessions\":[", "\"s\"",
	                         SIGNED_BUNDLE_REVOKED_MAX + 1, "]}}"),
	        SIGNED_BUNDLE_CONTENT);
	assert_int_equal(open_many(HEAD "\"revoked\":{\"tokens\":[", token,
	                         SIGNED_BUNDLE_REVOKED_MAX, "]}}"),
	        0);
	assert_int_equal(open_many(HEAD "\"revoked\":{\"tokens\":[", token,
	                         SIGNED_BUNDLE_REVOKED_MAX + 1, "]}}"),
	        SIGNED_BUNDLE_CONTENT);
}

static void test_lengths(void **state)
{
	static const struct {
		const char *before, *after;
		size_t max;
	} texts[] = {{HEAD "\"revoked\":{\"sessions\":[\"", "\"]}}", SIGNED_BUNDLE_SESSION_MAX},
	        {HEAD "\"revoked\":{\"tokens\":[{\"signer\":\"", "\",\"id\":\"b\"}]}}",
	                SIGNED_BUNDLE_SIGNER_MAX},
	        {HEAD "\"revoked\":{\"tokens\":[{\"signer\":\"a\",\"id\":\"", "\"}]}}",
	                SIGNED_BUNDLE_ID_MAX},
	        {HEAD "\"files\":{\"", ".yaml\":\"\"}}", CONFIG_BUNDLE_FILE_MAX - 5}};
	struct signed_bundle *b;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (size_t more = 0; more < 2; more++) {
			snprintf(text, sizeof(text), "%s%0*d%s", texts[i].before,
			        (int)(texts[i].max + more), 0, texts[i].after);
			assert_int_equal(open_content(text, &b),
			        more ? SIGNED_BUNDLE_CONTENT : SIGNED_BUNDLE_GOOD);
			signed_bundle_free(b);
		}
}

/* --- everything in it --- */

static bool check_files(const char *files)
{
	char text[4096];
	struct signed_bundle *b;
	bool good;

	snprintf(text, sizeof(text), HEAD "\"files\":{%s}}", files);
	assert_int_equal(open_content(text, &b), 0);
	good = signed_bundle_check(b, "/nonexistent", why);
	signed_bundle_free(b);
	return good;
}

#define ONE "vethguard: 1\\n"

static void test_check(void **state)
{
	static const char *const good[] = {"\"a.yaml\":\"" ONE
	                                   "allow: [{to: 'https://a.example'}]\"",
	        "\"k.jwks\":\"" SET_IN_JSON "\"",
	        /* variables without a value: a label of a host, a whole host, a segment */
	        "\"a.yaml\":\"" ONE
	        "allow: [{to: 'https://${t}.example', paths: ['/${u}/x']}, {to: 'https://${h}'}]\"",
	        "\"a.yaml\":\"" ONE
	        "variables: {t: {default: b}}\\nallow: [{to: 'https://${t}.example'}]\"",
	        "\"a.yaml\":\"" ONE "variables: {t: {}}\\nallow: [{to: 'https://${t}.example'}]\"",
	        /* a part that needs the credential of the file that includes it */
	        "\"a.yaml\":\"" ONE
	        "include: part.yaml\\ncredentials: {k: {source: 'file:/k', inject: bearer}}\","
	        "\"part.yaml\":\"" ONE
	        "allow: [{name: r, to: 'https://a.example', credential: k}]\""};
	static const char *const bad[][2] = {{"\"a.yaml\":\"\"", "a.yaml"},
	        {"\"a.yaml\":\"" ONE "allow: [x://y]\"", "a.yaml:2"},
	        {"\"b.yaml\":\"" ONE "allow: []\",\"a.yaml\":\"" ONE "default: allow\"",
	                "a.yaml:2"},
	        {"\"a.yaml\":\"" ONE "include: b.yaml\"", "b.yaml"},
	        {"\"a.yaml\":\"" ONE "include: /etc/passwd\"", "passwd"},
	        {"\"a.yaml\":\"" ONE "include: ../x.yaml\"", "x.yaml"},
	        {"\"a.yaml\":\"" ONE "include: /bundle/k.jwks\",\"k.jwks\":\"" SET_IN_JSON "\"",
	                "k.jwks"},
	        {"\"a.yaml\":\"" ONE "include: 'preset:pypi'\"", "preset"},
	        {"\"part.yaml\":\"" ONE
	         "allow: [{name: r, to: 'https://a.example', credential: k}]\"",
	                "part.yaml"},
	        {"\"a.yaml\":\"" ONE "credentials: {k: {source: 'file:k', inject: bearer}}\\n"
	         "allow: [{name: r, to: 'https://a.example', credential: k}]\"",
	                "absolute"},
	        {"\"a.yaml\":\"" ONE "credentials: {k: {source: 'env:K', inject: bearer}}\\n"
	         "allow: [{name: r, to: 'https://a.example', credential: k}]\"",
	                "env:"},
	        {"\"k.jwks\":\"{}\"", "k.jwks"},
	        {"\"k.jwks\":\"{\\\"keys\\\": [{\\\"kty\\\": \\\"oct\\\", \\\"k\\\": "
	         "\\\"AAAA\\\"}]}\"",
	                "k.jwks"}};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!check_files(good[i]))
			fail_msg("%s: %s", good[i], why);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(check_files(bad[i][0]));
		if (!strstr(why, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], why);
	}
}

static void test_unverified(void **state)
{
	struct signed_bundle *b;
	struct buf file;

	(void)state;
	sign(ED25519, "{\"name\":\"a\",\"serial\":1}", &file);
	buf_bytes(&file)[SIGNED_BUNDLE_MAGIC_BYTES] ^= 1;
	assert_int_equal(signed_bundle_open_unverified(buf_slice(&file), &b, why), 0);
	signed_bundle_free(b);
	assert_int_equal(signed_bundle_open_unverified(slice_of(buf_bytes(&file), 80), &b, why),
	        SIGNED_BUNDLE_FORM);
	buf_fini(&file);
	for (int i = 0; i < SIGNED_BUNDLE_FAULT_COUNT; i++)
		assert_non_null(signed_bundle_fault_name((enum signed_bundle_fault)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
	        cmocka_unit_test(test_least), cmocka_unit_test(test_signature),
	        cmocka_unit_test(test_other_key), cmocka_unit_test(test_too_long),
	        cmocka_unit_test(test_keys), cmocka_unit_test(test_content),
	        cmocka_unit_test(test_counts), cmocka_unit_test(test_lengths),
	        cmocka_unit_test(test_check), cmocka_unit_test(test_unverified)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
