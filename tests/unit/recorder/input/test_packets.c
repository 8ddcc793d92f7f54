/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "recorder/input/packets.h"

#include "../samples.h"

#define RECORDS_MAX 4096

struct seen {
	unsigned records, refuse_from;
	uint64_t packets, bytes;
	struct event last;
	char rule[PACKETS_RULE_MAX];
};

static bool emit(void *context, struct event *event)
{
	struct seen *seen = context;

	if (seen->refuse_from && seen->records >= seen->refuse_from)
		return false;
	seen->records++;
	seen->packets += event->count;
	seen->bytes += event->bytes_out;
	seen->last = *event;
	snprintf(seen->rule, sizeof(seen->rule), "%.*s", SLICE_ARG(event->verdict_rule));
	return true;
}

static struct nflog_packet packet(uint16_t port)
{
	return (struct nflog_packet){
	        .packet = {.ethertype = 0x0800,
	                .src = sample_ip("10.77.0.2"),
	                .dst = sample_ip("8.8.8.8"),
	                .protocol = 17,
	                .src_port = 1000,
	                .dst_port = port,
	                .length = 60},
	        .prefix = SLICE("vethguard:other"),
	};
}

static void add(struct packets *p, struct nflog_packet n, int64_t ms)
{
	assert_int_equal(packets_add(p, &n, SAMPLE_TIME + ms, ms), 0);
}

static void test_first_at_once_then_once_per_window(void **state)
{
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	add(&p, packet(53), 0);
	assert_true(packets_collect(&p, 0, false, emit, &seen));
	assert_int_equal(seen.records, 1);
	assert_int_equal(seen.packets, 1);
	assert_string_equal(seen.rule, "other");
	for (int i = 1; i <= 100; i++)
		add(&p, packet(53), i);
	packets_collect(&p, PACKETS_WINDOW_MS - 1, false, emit, &seen);
	assert_int_equal(seen.records, 1);
	packets_collect(&p, PACKETS_WINDOW_MS, false, emit, &seen);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.packets, 101);
	assert_int_equal(seen.bytes, 101 * 60);
	assert_int_equal(seen.last.time_ms, SAMPLE_TIME + 1);
	assert_int_equal(seen.last.last_ms, SAMPLE_TIME + 100);
	packets_fini(&p);
}

static void test_quiet_kind_is_forgotten(void **state)
{
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	add(&p, packet(53), 0);
	packets_collect(&p, 0, false, emit, &seen);
	packets_collect(&p, PACKETS_WINDOW_MS, false, emit, &seen);
	assert_int_equal(seen.records, 1);
	assert_int_equal(p.count, 0);
	assert_int_equal(p.next_due_ms, INT64_MAX);
	packets_fini(&p);
}

static void test_each_part_of_the_key_counts(void **state)
{
	struct nflog_packet kinds[7];
	struct packets p;
	struct seen seen = {0};

	(void)state;
	for (size_t i = 0; i < 7; i++)
		kinds[i] = packet(53);
	kinds[1].packet.dst_port = 54;
	kinds[2].packet.protocol = 6;
	kinds[3].packet.src = sample_ip("10.77.0.3");
	kinds[4].packet.dst = sample_ip("::1");
	kinds[5].packet.ethertype = 0x88cc;
	kinds[6].prefix = SLICE("vethguard:source");
	packets_init(&p);
	for (size_t i = 0; i < 7; i++)
		add(&p, kinds[i], 0);
	/* Not part of it: ports that change with every try. */
	kinds[0].packet.src_port = 2222;
	add(&p, kinds[0], 0);
	packets_collect(&p, 0, false, emit, &seen);
	assert_int_equal(seen.records, 7);
	assert_int_equal(seen.packets, 8);
	packets_fini(&p);
}

static void test_full_table_still_counts_exactly(void **state)
{
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	for (unsigned i = 0; i < 3 * PACKETS_MAX; i++)
		add(&p, packet((uint16_t)i), 0);
	assert_int_equal(p.count, PACKETS_MAX);
	packets_collect(&p, 0, false, emit, &seen);
	assert_int_equal(seen.packets, PACKETS_MAX);
	packets_collect(&p, PACKETS_WINDOW_MS, false, emit, &seen);
	assert_int_equal(seen.records, PACKETS_MAX + 1);
	assert_int_equal(seen.packets, 3 * PACKETS_MAX);
	assert_string_equal(seen.rule, "various");
	packets_fini(&p);
}

static void test_uncopied_ones_count_too(void **state)
{
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	assert_int_equal(packets_counted(&p), 0);
	add(&p, packet(53), 0);
	assert_int_equal(packets_add_uncopied(&p, 999, SAMPLE_TIME + 7, 7), 0);
	assert_int_equal(packets_add_uncopied(&p, 1, SAMPLE_TIME + 9, 9), 0);
	assert_int_equal(packets_counted(&p), 1001);
	packets_collect(&p, 0, false, emit, &seen);
	assert_int_equal(packets_counted(&p), 1000);
	packets_collect(&p, 7 + PACKETS_WINDOW_MS, false, emit, &seen);
	assert_int_equal(packets_counted(&p), 0);
	assert_int_equal(seen.packets, 1001);
	assert_string_equal(seen.rule, "various");
	assert_int_equal(seen.last.time_ms, SAMPLE_TIME + 7);
	assert_int_equal(seen.last.last_ms, SAMPLE_TIME + 9);
	packets_fini(&p);
}

static void test_refused_record_is_not_lost(void **state)
{
	struct packets p;
	struct seen seen = {.refuse_from = 3};

	(void)state;
	packets_init(&p);
	for (unsigned i = 0; i < 10; i++)
		add(&p, packet((uint16_t)i), 0);
	assert_false(packets_collect(&p, 0, false, emit, &seen));
	assert_int_equal(seen.packets, 3);
	seen.refuse_from = 0;
	assert_true(packets_collect(&p, 0, false, emit, &seen));
	assert_int_equal(seen.packets, 10);
	packets_fini(&p);
}

static void test_end_records_what_is_open(void **state)
{
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	for (unsigned i = 0; i < PACKETS_MAX + 5; i++)
		add(&p, packet((uint16_t)i), 0);
	packets_collect(&p, 0, false, emit, &seen);
	add(&p, packet(1), 1);
	assert_true(packets_collect(&p, 2, true, emit, &seen));
	assert_int_equal(seen.packets, PACKETS_MAX + 6);
	assert_int_equal(p.count, 0);
	assert_null(p.others);
	packets_fini(&p);
}

static void test_strange_prefixes(void **state)
{
	static const char long_prefix[] = "vethguard:0123456789012345678901234567890123456789";
	struct nflog_packet n = packet(1);
	struct packets p;
	struct seen seen = {0};

	(void)state;
	packets_init(&p);
	n.prefix = SLICE("vethguard:");
	add(&p, n, 0);
	n.prefix = (struct slice){0};
	add(&p, n, 0);
	n.prefix = slice_of(long_prefix, sizeof(long_prefix) - 1);
	add(&p, n, 0);
	packets_collect(&p, 0, false, emit, &seen);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.packets, 3);
	packets_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_first_at_once_then_once_per_window),
	        cmocka_unit_test(test_quiet_kind_is_forgotten),
	        cmocka_unit_test(test_each_part_of_the_key_counts),
	        cmocka_unit_test(test_full_table_still_counts_exactly),
	        cmocka_unit_test(test_uncopied_ones_count_too),
	        cmocka_unit_test(test_refused_record_is_not_lost),
	        cmocka_unit_test(test_end_records_what_is_open),
	        cmocka_unit_test(test_strange_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
