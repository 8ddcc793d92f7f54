/* SPDX-License-Identifier: Apache-2.0 */
/* The leaf issuer: which leaves are kept, dropped and refused. The clock is the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "vethguard/base/clock.h"
#include "vethguard/issuer/leaf_issuer.h"

static int64_t real_offset_ms;

int64_t clock_real_ms(void)
{
	return (int64_t)time(NULL) * 1000 + real_offset_ms;
}

int64_t clock_monotonic_ms(void)
{
	return 0;
}

int64_t clock_monotonic_us(void)
{
	return 0;
}

static struct leaf_issuer *leaf_issuer;

static void open_issuer(uint32_t leaves, uint32_t blocked_per_minute)
{
	struct leaf_issuer_limits limits = {leaves, blocked_per_minute};
	struct ca *root = ca_new_root(SLICE("root"), 30);
	struct ca *issuer = ca_new_intermediate(root, SLICE("issuer"), 30);

	ca_free(root);
	leaf_issuer = leaf_issuer_new(issuer, &limits);
	assert_non_null(leaf_issuer);
}

static int close_issuer(void **state)
{
	(void)state;
	leaf_issuer_free(leaf_issuer);
	leaf_issuer = NULL;
	real_offset_ms = 0;
	return 0;
}

static struct tls_identity *get(const char *host, bool mentioned, int64_t now_ms)
{
	return leaf_issuer_get(
	        leaf_issuer, slice_from_string(host), NULL, TLS_KEY_ECDSA, mentioned, now_ms);
}

/* As get, but held, so that a later leaf cannot be at the same address. */
static struct tls_identity *get_held(const char *host, bool mentioned, int64_t now_ms)
{
	struct tls_identity *identity = get(host, mentioned, now_ms);

	assert_non_null(identity);
	tls_identity_retain(identity);
	return identity;
}

static void test_kept(void **state)
{
	(void)state;
	open_issuer(4, 10);
	struct tls_identity *a = get_held("a.example", true, 0);
	struct tls_identity *b = get_held("b.example", true, 0);
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(get("a.example", true, 5), a);
	assert_ptr_equal(get("b.example", true, 5), b);
	assert_ptr_not_equal(get("a.example", false, 5), a); /* the other table */
	tls_identity_release(a);
	tls_identity_release(b);
}

static void test_addresses(void **state)
{
	struct ip v4 = {.family = 4, .bytes = {192, 0, 2, 1}};
	struct ip other = {.family = 4, .bytes = {192, 0, 2, 2}};
	struct ip v6 = {.family = 6, .bytes = {192, 0, 2, 1}};
	struct slice none = {"", 0};
	(void)state;

	open_issuer(8, 10);
	struct tls_identity *a = leaf_issuer_get(leaf_issuer, none, &v4, TLS_KEY_ECDSA, true, 0);
	tls_identity_retain(a);
	assert_ptr_equal(leaf_issuer_get(leaf_issuer, none, &v4, TLS_KEY_ECDSA, true, 0), a);
	assert_ptr_not_equal(leaf_issuer_get(leaf_issuer, none, &other, TLS_KEY_ECDSA, true, 0), a);
	assert_ptr_not_equal(leaf_issuer_get(leaf_issuer, none, &v6, TLS_KEY_ECDSA, true, 0), a);
	assert_ptr_not_equal(
	        leaf_issuer_get(leaf_issuer, SLICE("192.0.2.1"), NULL, TLS_KEY_ECDSA, true, 0), a);
	tls_identity_release(a);
}

/* Kinds of keys have leaves of their own, kept and counted like any. */
static void test_kinds_are_apart(void **state)
{
	struct slice a = SLICE("a");
	(void)state;

	open_issuer(8, 2);
	struct tls_identity *ecdsa = get_held("a", true, 0);
	struct tls_identity *rsa = leaf_issuer_get(leaf_issuer, a, NULL, TLS_KEY_RSA, true, 0);
	assert_non_null(rsa);
	tls_identity_retain(rsa);
	assert_ptr_not_equal(ecdsa, rsa);
	assert_ptr_equal(get("a", true, 0), ecdsa);
	assert_ptr_equal(leaf_issuer_get(leaf_issuer, a, NULL, TLS_KEY_RSA, true, 0), rsa);
	/* Both kinds of keys share the bound on leaves of names that no rule mentions. */
	assert_non_null(leaf_issuer_get(leaf_issuer, a, NULL, TLS_KEY_RSA, false, 0));
	assert_non_null(leaf_issuer_get(leaf_issuer, a, NULL, TLS_KEY_ECDSA, false, 0));
	assert_null(leaf_issuer_get(leaf_issuer, SLICE("b"), NULL, TLS_KEY_RSA, false, 0));
	assert_null(leaf_issuer_get(leaf_issuer, SLICE("b"), NULL, TLS_KEY_ECDSA, false, 0));
	assert_non_null(leaf_issuer_get(leaf_issuer, a, NULL, TLS_KEY_RSA, false, 0));
	tls_identity_release(ecdsa);
	tls_identity_release(rsa);
}

static void test_nothing_for_nonsense(void **state)
{
	char long_host[255];
	struct ip nothing = {0};
	(void)state;

	open_issuer(4, 2);
	memset(long_host, 'a', sizeof(long_host));
	assert_null(leaf_issuer_get(leaf_issuer, slice_of("", 0), NULL, TLS_KEY_ECDSA, true, 0));
	assert_null(
	        leaf_issuer_get(leaf_issuer, slice_of("", 0), &nothing, TLS_KEY_ECDSA, true, 0));
	assert_null(leaf_issuer_get(
	        leaf_issuer, slice_of(long_host, 254), NULL, TLS_KEY_ECDSA, true, 0));
	assert_null(get("*.example", true, 0));
	assert_non_null(leaf_issuer_get(
	        leaf_issuer, slice_of(long_host, 253), NULL, TLS_KEY_ECDSA, true, 0));
}

static void test_least_recently_used_goes(void **state)
{
	(void)state;
	open_issuer(3, 10);
	struct tls_identity *a = get_held("a", true, 0), *b = get_held("b", true, 0),
	                    *c = get_held("c", true, 0);
	assert_ptr_equal(get("a", true, 0), a);
	get("d", true, 0); /* drops b */
	assert_ptr_equal(get("a", true, 0), a);
	assert_ptr_equal(get("c", true, 0), c);
	assert_ptr_not_equal(get("b", true, 0), b);
	tls_identity_release(a);
	tls_identity_release(b);
	tls_identity_release(c);
}

static void test_flood_of_blocked_names_evicts_no_mentioned_one(void **state)
{
	char name[32];
	(void)state;

	open_issuer(2, 50);
	struct tls_identity *a = get_held("a", true, 0), *b = get_held("b", true, 0);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "flood-%d", i);
		assert_non_null(get(name, false, 0));
	}
	assert_ptr_equal(get("a", true, 0), a);
	assert_ptr_equal(get("b", true, 0), b);
	tls_identity_release(a);
	tls_identity_release(b);
}

static unsigned flood(const char *prefix, unsigned count, bool mentioned, int64_t now_ms)
{
	unsigned issued = 0;
	char name[64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s-%u.example", prefix, i);
		issued += get(name, mentioned, now_ms) != NULL;
	}
	return issued;
}

static void test_rate_of_blocked_names(void **state)
{
	(void)state;
	open_issuer(8, 6);
	assert_int_equal(flood("a", 20, false, 1000), 6);
	assert_int_equal(flood("b", 20, false, 1000 + 9999), 0);
	assert_int_equal(flood("c", 20, false, 1000 + 10000), 1); /* one each ten seconds */
	assert_int_equal(flood("d", 20, false, 1000 + 40000), 3);
	assert_int_equal(flood("e", 20, false, 1000 + 100 * 60000),
	        6); /* never more than the bucket holds */
	/* a clock that goes back gives nothing */
	assert_int_equal(flood("f", 20, false, 0), 0);
	/* what is kept costs nothing; what is mentioned is not limited */
	assert_non_null(get("e-5.example", false, 1000 + 100 * 60000));
	assert_int_equal(flood("g", 20, true, 1000 + 100 * 60000), 20);
}

static void test_rate_zero_refuses_all_blocked(void **state)
{
	(void)state;
	open_issuer(8, 0);
	assert_int_equal(flood("a", 5, false, 0), 0);
	assert_int_equal(flood("a", 5, false, INT64_MAX / 2), 0);
	assert_int_equal(flood("a", 5, true, 0), 5);
}

static void test_renewed_before_expiry(void **state)
{
	(void)state;
	open_issuer(4, 10);
	struct tls_identity *a = get_held("a", true, 0);
	real_offset_ms = (4 * 24 * 3600 - 60) *
	                 1000LL; /* five days from the start, so a day and a minute are left */
	assert_ptr_equal(get("a", true, 0), a);
	real_offset_ms = (4 * 24 * 3600 + 60) * 1000LL;
	struct tls_identity *renewed = get("a", true, 0);
	assert_non_null(renewed);
	assert_ptr_not_equal(renewed, a);
	assert_true(tls_identity_expires_s(renewed) > tls_identity_expires_s(a));
	assert_ptr_equal(get("a", true, 0), renewed);
	tls_identity_release(a);
}

/* A leaf that ends with its issuer is kept to the end, and none follows until another issuer signs.
 */
static void test_ends_with_its_issuer(void **state)
{
	(void)state;
	open_issuer(4, 10);
	real_offset_ms = (28 * 24 * 3600 - 7200) * 1000LL; /* two hours are left */
	struct tls_identity *a = get_held("a", true, 0);
	assert_ptr_equal(get("a", true, 0), a);
	real_offset_ms += 7300 * 1000LL;
	assert_null(get("a", true, 0));
	assert_null(get("b", true, 0));
	real_offset_ms = 0; /* the clock of certificates is the machine's */
	struct ca *root = ca_new_root(SLICE("root"), 30);
	leaf_issuer_replace(leaf_issuer, ca_new_intermediate(root, SLICE("next"), 30));
	ca_free(root);
	struct tls_identity *b = get("a", true, 0);
	assert_non_null(b);
	assert_ptr_not_equal(b, a);
	tls_identity_release(a);
}

/* With room for one leaf the one just returned stays valid until the next call, evicted or not. */
static void test_last_leaf_is_held(void **state)
{
	(void)state;
	open_issuer(1, 10);
	struct tls_identity *a = get("a", true, 0);
	assert_true(tls_identity_expires_s(a) > 0);
	struct tls_identity *b = get("b", true, 0);
	assert_true(tls_identity_expires_s(b) > 0);
	leaf_issuer_free(leaf_issuer);
	open_issuer(0, 10); /* a bound of nothing still serves */
	a = get("a", true, 0);
	assert_true(tls_identity_expires_s(a) > 0);
	b = get("b", false, 0);
	assert_true(tls_identity_expires_s(b) > 0);
}

#define ISSUER_TEST(test) cmocka_unit_test_teardown(test, close_issuer)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ISSUER_TEST(test_kept),
	        ISSUER_TEST(test_addresses),
	        ISSUER_TEST(test_kinds_are_apart),
	        ISSUER_TEST(test_nothing_for_nonsense),
	        ISSUER_TEST(test_least_recently_used_goes),
	        ISSUER_TEST(test_flood_of_blocked_names_evicts_no_mentioned_one),
	        ISSUER_TEST(test_rate_of_blocked_names),
	        ISSUER_TEST(test_rate_zero_refuses_all_blocked),
	        ISSUER_TEST(test_renewed_before_expiry),
	        ISSUER_TEST(test_ends_with_its_issuer),
	        ISSUER_TEST(test_last_leaf_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
