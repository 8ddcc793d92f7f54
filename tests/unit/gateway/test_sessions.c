/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's sessions: found by their tokens, from where they may come, until they end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/visitor.h"

static struct gateway gateway;

static int begin(void **state)
{
	(void)state;
	memset(&gateway, 0, sizeof(gateway));
	list_init(&gateway.by_address);
	return digest_init(&gateway.digest);
}

static int end(void **state)
{
	(void)state;
	sessions_free(&gateway);
	digest_fini(&gateway.digest);
	assert_null(gateway.by_hash);
	assert_null(gateway.by_id);
	return 0;
}

static struct ip address(const char *text)
{
	struct ip out;

	assert_true(ip_parse(slice_from_string(text), &out));
	return out;
}

/* from: networks with a space between. */
static int set(uint64_t id, const char *token, const char *from)
{
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	const struct slice text = slice_from_string(token);
	struct message_gateway_session m = {.sandbox_id = id};
	char copy[256];

	assert_int_equal(digest_sha256(&gateway.digest, &text, 1, hash), 0);
	m.token_hash = slice_of(hash, sizeof(hash));
	snprintf(copy, sizeof(copy), "%s", from);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		assert_true(ip_prefix_parse(slice_from_string(word), &m.from[m.from_count++]));
	return sessions_set(&gateway, &m);
}

static uint64_t finds(const char *token, const char *source)
{
	const struct ip from = address(source);
	const struct session *s = sessions_find(&gateway, slice_from_string(token), &from);

	return s ? s->id : 0;
}

static void each_is_found_by_its_token(void **state)
{
	char token[32];

	(void)state;
	for (uint64_t id = 1; id <= 500; id++) {
		snprintf(token, sizeof(token), "token-%u", (unsigned)id);
		assert_int_equal(set(id, token, ""), 0);
	}
	for (uint64_t id = 1; id <= 500; id++) {
		snprintf(token, sizeof(token), "token-%u", (unsigned)id);
		assert_int_equal(finds(token, "192.0.2.1"), id);
	}
	assert_int_equal(finds("token-501", "192.0.2.1"), 0);
	assert_int_equal(finds("token-", "192.0.2.1"), 0);
	assert_int_equal(finds("", "192.0.2.1"), 0);
	assert_int_equal(finds("Token-1", "192.0.2.1"), 0);
}

static void one_that_ended_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(set(1, "a", ""), 0);
	assert_int_equal(set(2, "b", ""), 0);
	sessions_end(&gateway, 1);
	assert_int_equal(finds("a", "192.0.2.1"), 0);
	assert_int_equal(finds("b", "192.0.2.1"), 2);
	sessions_end(&gateway, 1);
	sessions_end(&gateway, 77);
	assert_int_equal(set(1, "a2", ""), 0);
	assert_int_equal(set(1, "a3", ""), 0); /* changed */
	assert_int_equal(finds("a2", "192.0.2.1"), 0);
	assert_int_equal(finds("a3", "192.0.2.1"), 1);
}

/* Two tokens with one hash do not exist; a supervisor that claims so is not believed. */
static void a_token_is_of_one_session(void **state)
{
	(void)state;
	assert_int_equal(set(1, "a", ""), 0);
	assert_int_equal(set(2, "a", ""), -EEXIST);
	assert_int_equal(finds("a", "192.0.2.1"), 1);
	sessions_end(&gateway, 1);
	assert_int_equal(finds("a", "192.0.2.1"), 0);
}

static void networks(void **state)
{
	(void)state;
	assert_int_equal(set(1, "a", "192.0.2.0/24 2001:db8::/32"), 0);
	assert_int_equal(finds("a", "192.0.2.255"), 1);
	assert_int_equal(finds("a", "2001:db8:ffff::1"), 1);
	assert_int_equal(finds("a", "192.0.3.1"), 0);
	assert_int_equal(finds("a", "2001:db9::1"), 0);
	assert_int_equal(finds("a", "::ffff:192.0.2.1"), 0);
	assert_int_equal(set(1, "a", "0.0.0.0/0"), 0);
	assert_int_equal(finds("a", "203.0.113.9"), 1);
	assert_int_equal(finds("a", "2001:db8::1"), 0);
}

static void there_are_not_more(void **state)
{
	char token[32];

	(void)state;
	for (uint64_t id = 1; id <= GATEWAY_SESSIONS_MAX; id++) {
		snprintf(token, sizeof(token), "%u", (unsigned)id);
		assert_int_equal(set(id, token, ""), 0);
	}
	assert_int_equal(set(GATEWAY_SESSIONS_MAX + 1, "more", ""), -ENOMEM);
	assert_int_equal(set(1, "1", "192.0.2.0/24"), 0); /* a change is not a further session */
	assert_int_equal(finds("more", "192.0.2.1"), 0);
}

static uint64_t finds_address(const char *source)
{
	const struct ip from = address(source);
	const struct session *s = sessions_find_address(&gateway, &from);

	return s ? s->id : 0;
}

static void an_address_is_a_proof_only_where_it_was_said(void **state)
{
	struct message_gateway_session m = {
	        .sandbox_id = 2, .token_hash = SLICE(""), .from_count = 1, .by_address = true};

	(void)state;
	assert_int_equal(set(1, "one", "10.0.0.1/32"), 0);
	assert_int_equal(finds_address("10.0.0.1"), 0); /* it has a token */
	assert_true(ip_prefix_parse(SLICE("10.0.1.0/24"), &m.from[0]));
	assert_int_equal(sessions_set(&gateway, &m), 0);
	assert_int_equal(sessions_set(&gateway, &m), 0); /* told again */
	assert_int_equal(finds_address("10.0.1.7"), 2);
	assert_int_equal(finds_address("10.0.2.7"), 0);
	assert_int_equal(finds_address("::1"), 0);
	assert_int_equal(finds("", "10.0.1.7"), 0);
	m.from_count = 0;
	assert_int_equal(sessions_set(&gateway, &m), 0);
	assert_int_equal(finds_address("10.0.1.7"), 0); /* nobody, not anybody */
	m.from_count = 1;
	assert_int_equal(sessions_set(&gateway, &m), 0);
	sessions_end(&gateway, 2);
	assert_int_equal(finds_address("10.0.1.7"), 0);
	assert_true(list_is_empty(&gateway.by_address));
}

/* A token of either kind opens nothing of the other. */
static void questions_have_sessions_of_their_own(void **state)
{
	const struct slice token = SLICE("asks");
	const struct ip from = address("10.0.0.1"), elsewhere = address("10.0.0.2");
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	struct message_gateway_session m = {.sandbox_id = 2, .from_count = 1, .callback = true};

	(void)state;
	assert_int_equal(set(1, "one", ""), 0);
	assert_int_equal(digest_sha256(&gateway.digest, &token, 1, hash), 0);
	m.token_hash = slice_of(hash, sizeof(hash));
	assert_true(ip_prefix_parse(SLICE("10.0.0.1/32"), &m.from[0]));
	assert_int_equal(sessions_set(&gateway, &m), 0);
	assert_int_equal(finds("one", "10.0.0.1"), 1);
	assert_int_equal(finds("asks", "10.0.0.1"), 0);
	assert_null(sessions_find_asking(&gateway, SLICE("one"), &from));
	assert_null(sessions_find_asking(&gateway, SLICE("asks"), &elsewhere));
	assert_int_equal(sessions_find_asking(&gateway, token, &from)->id, 2);
	assert_null(sessions_find_certificate(&gateway, hash, &from, false));
	assert_int_equal(sessions_find_certificate(&gateway, hash, &from, true)->id, 2);
	sessions_end(&gateway, 2);
	assert_null(sessions_find_asking(&gateway, token, &from));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {TEST(each_is_found_by_its_token),
	        TEST(one_that_ended_is_unknown), TEST(a_token_is_of_one_session), TEST(networks),
	        TEST(there_are_not_more), TEST(an_address_is_a_proof_only_where_it_was_said),
	        TEST(questions_have_sessions_of_their_own)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
