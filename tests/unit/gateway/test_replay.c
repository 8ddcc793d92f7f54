/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of callbacks: each is good once, until it has expired, and their number is bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"

static struct gateway gateway;

static bool take(uint32_t number, int64_t for_ms)
{
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES] = {0};

	memcpy(hash, &number, sizeof(number));
	return replay_take(&gateway, hash, clock_real_ms() + for_ms);
}

static void test_once(void **state)
{
	(void)state;
	assert_true(take(1, 60000));
	assert_false(take(1, 60000));
	assert_true(take(2, 60000));
	assert_false(take(1, 600000));
	assert_false(take(2, 0));
	assert_false(take(3, 0)); /* expired while its body came */
	replay_free(&gateway);
	assert_null(gateway.used);
	assert_true(take(1, 60000));
	replay_free(&gateway);
}

/* Expired signatures are forgotten: the check of their expiry refuses them. */
static void test_forgotten(void **state)
{
	(void)state;
	assert_true(take(1, 1));
	usleep(2000);
	assert_true(take(2, 60000));
	assert_int_equal(HASH_COUNT(gateway.used), 1);
	replay_free(&gateway);
}

static void test_bound(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < GATEWAY_USED_SIGNATURES_MAX; i++)
		assert_true(take(i, 600000));
	assert_false(take(GATEWAY_USED_SIGNATURES_MAX, 600000));
	assert_int_equal(HASH_COUNT(gateway.used), GATEWAY_USED_SIGNATURES_MAX);
	replay_free(&gateway);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_once),
	        cmocka_unit_test(test_forgotten), cmocka_unit_test(test_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
