/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens at the gateway: found while they last, forgotten with their session and its
 * signers, and signers that come in part. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "gateway/visitor.h"
#include "token_maker.h"
#include "vethguard/base/clock.h"

static struct gateway gateway;
static struct ip from = {.family = 4, .bytes = {10, 0, 0, 1}};

static int begin(void **state)
{
	(void)state;
	memset(&gateway, 0, sizeof(gateway));
	return digest_init(&gateway.digest);
}

static int end(void **state)
{
	(void)state;
	sessions_free(&gateway);
	signers_free(&gateway);
	digest_fini(&gateway.digest);
	assert_null(gateway.tokens);
	return 0;
}

static struct session *make(uint64_t id)
{
	const struct message_gateway_session m = {.sandbox_id = id, .token_hash = SLICE("")};

	assert_int_equal(sessions_set(&gateway, &m), 0);
	return sessions_get(&gateway, id);
}

static int add(const char *token, struct session *s, int64_t for_ms)
{
	const struct slice text = slice_from_string(token);
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];

	assert_int_equal(digest_sha256(&gateway.digest, &text, 1, hash), 0);
	return tokens_add(&gateway, hash, s, clock_real_ms() + for_ms);
}

static struct session *find(const char *token)
{
	return sessions_find(&gateway, slice_from_string(token), &from);
}

static void test_found(void **state)
{
	struct session *one = make(1), *two = make(2);
	char text[32];

	(void)state;
	assert_null(find(""));
	assert_int_equal(add("a.b.c", one, 60000), 0);
	assert_int_equal(add("d.e.f", two, 60000), 0);
	assert_int_equal(add("g.h.i", two, 0), 0);
	assert_ptr_equal(find("a.b.c"), one);
	assert_ptr_equal(find("d.e.f"), two);
	assert_null(find("g.h.i")); /* expired */
	assert_null(find("a.b.C"));
	assert_int_equal(add("a.b.c", two, 60000), 0); /* said anew */
	assert_ptr_equal(find("a.b.c"), two);
	assert_int_equal(one->token_count, 0);
	sessions_end(&gateway, 2);
	assert_null(find("a.b.c"));
	assert_null(find("d.e.f"));
	for (unsigned i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "a.b.%u", i);
		assert_int_equal(add(text, one, 60000), 0);
	}
	assert_int_equal(one->token_count, 16); /* the newest */
	assert_null(find("a.b.3"));
	assert_ptr_equal(find("a.b.4"), one);
	tokens_forget_all(&gateway);
	assert_null(find("a.b.19"));
}

static void test_networks(void **state)
{
	struct message_gateway_session m = {
	        .sandbox_id = 3, .token_hash = SLICE(""), .from_count = 1};

	(void)state;
	assert_true(ip_prefix_parse(SLICE("192.0.2.0/24"), &m.from[0]));
	assert_int_equal(sessions_set(&gateway, &m), 0);
	assert_int_equal(add("a.b.c", sessions_get(&gateway, 3), 60000), 0);
	assert_null(find("a.b.c"));
}

static int give(EVP_PKEY *key, const char *issuer, uint32_t index, uint32_t count)
{
	static uint8_t bytes[PUBLIC_KEY_ED25519_BYTES];
	size_t n = sizeof(bytes);
	const struct message_gateway_signer m = {.index = index,
	        .count = count,
	        .issuer = slice_from_string(issuer),
	        .audience_count = 1,
	        .audiences = {SLICE("g")},
	        .algorithms = 7,
	        .lifetime_s = 3600,
	        .key_count = 1,
	        .keys = {{CONFIG_EDDSA, SLICE("k"), {(const char *)bytes, n}, 0}}};

	assert_int_equal(EVP_PKEY_get_raw_public_key(key, bytes, &n), 1);
	return signers_take(&gateway, &m);
}

static bool knows(EVP_PKEY *key, const char *issuer)
{
	char claims[256], text[1024];

	snprintf(claims, sizeof(claims), "{\"iss\":\"%s\",\"aud\":\"g\",\"exp\":%lld}", issuer,
	        (long long)(clock_real_ms() / 1000 + 60));
	token_make(key, "{\"alg\":\"EdDSA\",\"kid\":\"k\"}", claims, text);
	return signers_know(&gateway, slice_from_string(text));
}

static void test_signers(void **state)
{
	const struct message_gateway_signer none = {.count = 0};
	EVP_PKEY *a = token_key(CONFIG_EDDSA), *b = token_key(CONFIG_EDDSA);

	(void)state;
	assert_int_equal(give(a, "A", 1, 2), -EBADMSG); /* the second before the first */
	assert_int_equal(give(a, "A", 0, 2), 0);
	assert_false(knows(a, "A")); /* not all are there */
	assert_int_equal(give(b, "B", 1, 2), 0);
	assert_true(knows(a, "A") && knows(b, "B"));
	assert_false(knows(a, "B") || knows(b, "A"));
	assert_int_equal(add("a.b.c", make(1), 60000), 0);
	assert_int_equal(give(b, "B", 0, 1), 0);
	assert_null(find("a.b.c"));
	assert_false(knows(a, "A"));
	assert_true(knows(b, "B"));
	assert_int_equal(give(a, "A", 1, 2), -EBADMSG);
	assert_int_equal(give(a, "A", 0, 2), 0); /* and never the second */
	assert_int_equal(signers_take(&gateway, &none), 0);
	assert_false(knows(b, "B"));
	assert_int_equal(gateway.signers.count, 0);
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_found, begin, end),
	        cmocka_unit_test_setup_teardown(test_networks, begin, end),
	        cmocka_unit_test_setup_teardown(test_signers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
