/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens: OpenSSL verifies them; and keys that are invalid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "vethguard/tls/jwt.h"

static size_t decode(struct slice text, uint8_t *out)
{
	char padded[2048];
	size_t n = 0, end;

	for (; n < text.n; n++)
		padded[n] = (char)(text.p[n] == '-' ? '+' : text.p[n] == '_' ? '/' : text.p[n]);
	end = (n * 3) / 4;
	while (n % 4)
		padded[n++] = '=';
	assert_true(EVP_DecodeBlock(out, (const unsigned char *)padded, (int)n) >= 0);
	return end;
}

static EVP_PKEY *make_key(unsigned bits, char *pem, size_t pem_size)
{
	EVP_PKEY *key = EVP_RSA_gen(bits);
	BIO *bio = BIO_new(BIO_s_mem());
	int n;

	assert_non_null(key);
	assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
	n = BIO_read(bio, pem, (int)pem_size - 1);
	assert_true(n > 0);
	pem[n] = '\0';
	BIO_free(bio);
	return key;
}

static void test_signed(void **state)
{
	char pem[8192];
	EVP_PKEY *key = make_key(2048, pem, sizeof(pem));
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t bytes[2048];
	struct buf token;
	ptrdiff_t first, second;
	struct slice text;
	size_t n;

	(void)state;
	buf_init(&token, 8192);
	assert_int_equal(buf_append(&token, "Bearer ", 7), 0);
	assert_int_equal(
	        jwt_sign_rs256(slice_from_string(pem), SLICE("{\"iss\":\"1\"}"), &token), 0);
	text = slice_of(buf_bytes(&token) + 7, token.len - 7);
	first = slice_find_byte(text, '.');
	n = decode(slice_of(text.p, (size_t)first), bytes);
	assert_true(slice_equals(slice_of(bytes, n), SLICE("{\"alg\":\"RS256\",\"typ\":\"JWT\"}")));
	second = first + 1 +
	         slice_find_byte(slice_of(text.p + first + 1, text.n - (size_t)first - 1), '.');
	n = decode(slice_of(text.p + first + 1, (size_t)(second - first - 1)), bytes);
	assert_true(slice_equals(slice_of(bytes, n), SLICE("{\"iss\":\"1\"}")));
	n = decode(slice_of(text.p + second + 1, text.n - (size_t)second - 1), bytes);
	assert_int_equal(n, 256);
	assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
	assert_int_equal(
	        EVP_DigestVerify(context, bytes, n, (const unsigned char *)text.p, (size_t)second),
	        1);
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	buf_fini(&token);
}

static void test_keys_that_are_none(void **state)
{
	static const char *const texts[] = {"", "secret",
	        "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
	        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE "
	        "KEY-----\n"};
	char pem[8192];
	EVP_PKEY *key = make_key(1024, pem, sizeof(pem));
	struct buf token;

	(void)state;
	buf_init(&token, 8192);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(
		        jwt_sign_rs256(slice_from_string(texts[i]), SLICE("{}"), &token), -EINVAL);
	assert_int_equal(
	        jwt_sign_rs256(slice_from_string(pem), SLICE("{}"), &token), -EKEYREJECTED);
	EVP_PKEY_free(key);
	key = EVP_EC_gen("P-256");
	BIO *bio = BIO_new(BIO_s_mem());
	assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
	int n = BIO_read(bio, pem, sizeof(pem) - 1);
	assert_int_equal(jwt_sign_rs256(slice_of(pem, (size_t)n), SLICE("{}"), &token), -EINVAL);
	BIO_free(bio);
	EVP_PKEY_free(key);
	assert_int_equal(token.len, 0);
	buf_fini(&token);
}

static void test_no_room(void **state)
{
	char pem[8192];
	EVP_PKEY *key = make_key(2048, pem, sizeof(pem));

	(void)state;
	for (size_t max = 0; max < 400; max += 25) {
		struct buf token;

		buf_init(&token, max);
		assert_int_equal(
		        jwt_sign_rs256(slice_from_string(pem), SLICE("{}"), &token), -ENOMEM);
		buf_fini(&token);
	}
	EVP_PKEY_free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_signed),
	        cmocka_unit_test(test_keys_that_are_none),
	        cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
