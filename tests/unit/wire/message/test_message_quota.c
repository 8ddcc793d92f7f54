/* SPDX-License-Identifier: Apache-2.0 */
/* The messages about budgets that hosts share: each passes encoding and decoding, and each field is
 * refused beyond its bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "message_fixture.h"

#define NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct message_quota_start a_start(void)
{
	return (struct message_quota_start){.tls = true,
	        .has_password = true,
	        .port = 6379,
	        .database = 15,
	        .host = SLICE("quota.example"),
	        .user = SLICE("me"),
	        .address_count = 2,
	        .addresses = {ip4(1), ip6(2)},
	        .server_count = 1,
	        .servers = {{ip4(3), 53}}};
}

static void start(void **state)
{
	struct message_quota_start m = a_start();

	(void)state;
	ROUNDTRIP(quota_start, &m, NOTHING);
#define WITH(field, value) \
	m = a_start();     \
	m.field = (value); \
	REFUSES_TO_ENCODE(quota_start, &m)
	WITH(port, 0);
	WITH(database, 16);
	WITH(host, SLICE(""));
	WITH(host, longer(POLICY_HOST_MAX + 1));
	WITH(host, SLICE("a\0b"));
	WITH(user, longer(CONFIG_QUOTA_USER_MAX + 1));
	WITH(address_count, MESSAGE_QUOTA_ADDRESSES_MAX + 1);
	WITH(address_count, 3); /* the third has no family */
	WITH(server_count, CONFIG_SERVERS_MAX + 1);
#undef WITH
}

static void budgets(void **state)
{
	static struct message_quota_budgets m;
	const struct message_quota_budget good = {
	        .index = 127, .period_s = 60, .amount = 1, .name = SLICE(NAME)};

	(void)state;
	m = (struct message_quota_budgets){.memory = UINT64_MAX, .count = 1, .budgets = {good}};
	ROUNDTRIP(quota_budgets, &m, NOTHING);
#define WITH(field, value)            \
	m.budgets[0] = good;          \
	m.budgets[0].field = (value); \
	REFUSES_TO_ENCODE(quota_budgets, &m)
	WITH(index, MESSAGE_QUOTA_BUDGETS_MAX);
	WITH(period_s, 59);
	WITH(period_s, 31 * 86400 + 1);
	WITH(amount, 0);
	WITH(amount, UINT64_C(1) << 40);
	WITH(name, slice_of(NAME, 63));
	WITH(name, SLICE(NAME "0"));
	WITH(name, SLICE("0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"));
#undef WITH
	for (size_t i = 0; i < MESSAGE_QUOTA_BUDGETS_MAX; i++)
		m.budgets[i] = good;
	m.count = MESSAGE_QUOTA_BUDGETS_MAX;
	assert_true(message_quota_budgets_encode(
	                    wire_bytes, sizeof(wire_bytes), MESSAGE_QUOTA_BUDGETS, ID, &m) > 0);
	m.count++;
	REFUSES_TO_ENCODE(quota_budgets, &m);
}

static void end(void **state)
{
	const struct message_quota_end m = {7};

	(void)state;
	ROUNDTRIP(quota_end, &m, NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(start), cmocka_unit_test(budgets), cmocka_unit_test(end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
