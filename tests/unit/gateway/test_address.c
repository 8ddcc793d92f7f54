/* SPDX-License-Identifier: Apache-2.0 */
/* What one address may do before it has proved anything. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/gateway.h"
#include "vethguard/base/clock.h"

#define PER_ADDRESS 4

static struct gateway gateway;
static struct ipc_peer supervisor; /* the other end */
static size_t told;
static uint64_t told_count;
static struct ip told_source;

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct message_gateway_guesses m;

	(void)peer;
	assert_int_equal(message->head.type, MESSAGE_GATEWAY_GUESSES);
	assert_int_equal(message_gateway_guesses_decode(&message->body, &m), 0);
	told++;
	told_count = m.count;
	told_source = m.source;
	loop_stop(gateway.loop);
	return 0;
}

static void on_end(struct ipc_peer *peer, int error)
{
	(void)peer, (void)error;
}

static int begin(void **state)
{
	int pair[2];

	(void)state;
	memset(&gateway, 0, sizeof(gateway));
	gateway.loop = loop_new();
	gateway.start.unauthenticated_per_address = PER_ADDRESS;
	rate_init(&gateway.findings, 1, 2, clock_monotonic_ms());
	told = 0;
	return ipc_pair(pair) ||
	       ipc_peer_open(gateway.loop, &gateway.supervisor, pair[0], "supervisor", on_message,
	               on_end) ||
	       ipc_peer_open(gateway.loop, &supervisor, pair[1], "gateway", on_message, on_end);
}

static int end(void **state)
{
	(void)state;
	addresses_free(&gateway);
	assert_null(gateway.addresses);
	ipc_peer_close(&gateway.supervisor);
	ipc_peer_close(&supervisor);
	loop_free(gateway.loop);
	return 0;
}

static struct address *from(const char *text)
{
	struct ip source;

	assert_true(ip_parse(slice_from_string(text), &source));
	return address_begin(&gateway, &source);
}

static void so_many_at_a_time(void **state)
{
	struct address *a[PER_ADDRESS], *other;

	(void)state;
	for (size_t i = 0; i < PER_ADDRESS; i++) {
		a[i] = from("192.0.2.1");
		assert_non_null(a[i]);
	}
	assert_null(from("192.0.2.1"));
	other = from("192.0.2.2");
	assert_non_null(other);
	address_end(&gateway, a[0], true);
	assert_non_null(from("192.0.2.1"));
	assert_null(from("192.0.2.1"));
}

static void of_ipv6_a_network_counts(void **state)
{
	(void)state;
	assert_non_null(from("2001:db8::1"));
	assert_non_null(from("2001:db8::2"));
	assert_non_null(from("2001:db8::ffff:1"));
	assert_non_null(from("2001:db8:0:0:ffff::1"));
	assert_null(from("2001:db8::3"));
	assert_non_null(from("2001:db8:0:1::1"));
}

/* Attempts that prove nothing use up an address's allowance; those that prove something do not. */
static void fruitless_ones_run_out(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		struct address *a = from("192.0.2.1");

		assert_non_null(a);
		address_end(&gateway, a, true);
	}
	for (struct address *a; n < 100000 && (a = from("192.0.2.1")); n++)
		address_end(&gateway, a, false);
	assert_true(n >= 200 && n < 100000);
	assert_non_null(from("192.0.2.2"));
}

static void many_failures_wait_and_are_told(void **state)
{
	struct address *a = from("192.0.2.1"), *b;

	(void)state;
	for (size_t i = 1; i < 10; i++)
		assert_int_equal(address_failed(&gateway, a), WAIT_REFUSE);
	for (size_t i = 0; i < 50; i++)
		assert_int_equal(address_failed(&gateway, a), WAIT_REFUSE_LONG);
	assert_int_equal(loop_run(gateway.loop), 0);
	assert_int_equal(told, 1); /* once a minute */
	assert_int_equal(told_count, 10);
	assert_true(ip_equals(&told_source, &a->key));
	b = from("2001:db8::7");
	assert_int_equal(address_failed(&gateway, b), WAIT_REFUSE);
}

/* A flood from everywhere: the number of remembered addresses is bounded, and one with a connection
 * stays. */
static void there_are_not_more(void **state)
{
	struct address *kept = from("203.0.113.1"), *a;
	char text[32];

	(void)state;
	for (unsigned i = 0; i < 2 * GATEWAY_ADDRESSES_MAX; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1", i >> 8, i & 255);
		a = from(text);
		assert_non_null(a);
		address_end(&gateway, a, true);
		assert_true(HASH_COUNT(gateway.addresses) <= GATEWAY_ADDRESSES_MAX);
	}
	assert_ptr_equal(from("203.0.113.1"), kept);
	assert_int_equal(kept->connections, 2);
}

/* Signature checks cost CPU time that the sessions need: an address gets a bounded number. */
static void wrong_signatures_are_bounded(void **state)
{
	struct address *a, *other;
	char text[32];
	unsigned n = 0;

	(void)state;
	rate_init(&gateway.checks, 1000, 2, clock_monotonic_ms());
	a = from("192.0.2.1");
	other = from("192.0.2.2");
	while (n < 1000 && address_may_check(&gateway, a)) {
		address_check_failed(&gateway, a);
		n++;
	}
	assert_in_range(n, 100, 999); /* the bound of one address */
	assert_true(address_may_check(&gateway, other));
	/* The bound of all addresses together: each address here sends one wrong signature. */
	for (n = 0; n < 10000; n++) {
		snprintf(text, sizeof(text), "10.0.%u.%u", n / 250, n % 250);
		a = from(text);
		if (!address_may_check(&gateway, a))
			break;
		address_check_failed(&gateway, a);
	}
	assert_in_range(n, 1000, 9999);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {TEST(so_many_at_a_time), TEST(of_ipv6_a_network_counts),
	        TEST(fruitless_ones_run_out), TEST(many_failures_wait_and_are_told),
	        TEST(there_are_not_more), TEST(wrong_signatures_are_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
