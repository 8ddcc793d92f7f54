/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "vethguard/wire/event.h"

#include "../recorder/samples.h"

#define HEAD_BYTES 27
#define MAP_OFFSET 19

static uint8_t record[EVENT_BYTES_MAX + 64];

static struct event full(void)
{
	struct event e = sample_http();

	e.duration_us = 77;
	e.cause = EVENT_CAUSE_TIMEOUT;
	e.policy_reason = POLICY_REASON_PATH;
	e.detail = SLICE("detail");
	e.dst = sample_ip("fd00::1");
	e.passthrough = true;
	e.dns_id = 1;
	e.dns_type = 28;
	e.dns_class = 1;
	e.dns_rcode = 3;
	e.answer = sample_ip("fd00::2");
	e.ethertype = 0x86dd;
	e.count = 1ull << 40;
	e.last_ms = SAMPLE_TIME + 1;
	e.verdict_rule = SLICE("source");
	e.finding = EVENT_FINDING_SMUGGLING;
	e.about = 5;
	e.lifecycle = EVENT_STOP;
	return e;
}

static void assert_same(const struct event *a, const struct event *b)
{
	uint8_t second[EVENT_BYTES_MAX];
	size_t n = event_encode(a, record, sizeof(record));

	/* One encoding per event: equal bytes are equal events. */
	assert_int_equal(event_encode(b, second, sizeof(second)), n);
	assert_memory_equal(record, second, n);
}

static void test_every_field_survives(void **state)
{
	struct event e = full(), back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	assert_int_not_equal(n, 0);
	assert_int_equal(event_decode(record, n, &back), 0);
	assert_same(&e, &back);
	assert_int_equal(back.id, e.id);
	assert_int_equal(back.kind, EVENT_HTTP);
	assert_int_equal(back.time_ms, SAMPLE_TIME);
	assert_int_equal(back.duration_us, 77);
	assert_int_equal(back.decision, EVENT_ALLOWED);
	assert_int_equal(back.cause, EVENT_CAUSE_TIMEOUT);
	assert_int_equal(back.policy_reason, POLICY_REASON_PATH);
	assert_true(slice_equals(back.rule, e.rule));
	assert_true(slice_equals(back.credential, e.credential));
	assert_true(slice_equals(back.detail, e.detail));
	assert_true(ip_equals(&back.src, &e.src));
	assert_true(ip_equals(&back.dst, &e.dst));
	assert_true(ip_equals(&back.upstream, &e.upstream));
	assert_int_equal(back.src_port, e.src_port);
	assert_int_equal(back.dst_port, e.dst_port);
	assert_int_equal(back.upstream_port, e.upstream_port);
	assert_true(slice_equals(back.host, e.host));
	assert_int_equal(back.protocol, 6);
	assert_int_equal(back.bytes_out, e.bytes_out);
	assert_int_equal(back.bytes_in, e.bytes_in);
	assert_true(slice_equals(back.sni, e.sni));
	assert_int_equal(back.tls_version, 0x0304);
	assert_true(back.passthrough);
	assert_true(slice_equals(back.scheme, e.scheme));
	assert_true(slice_equals(back.method, e.method));
	assert_true(slice_equals(back.target, e.target));
	assert_true(slice_equals(back.user_agent, e.user_agent));
	assert_int_equal(back.status, 200);
	assert_int_equal(back.http_version, 11);
	assert_int_equal(back.dns_id, 1);
	assert_int_equal(back.dns_type, 28);
	assert_int_equal(back.dns_class, 1);
	assert_int_equal(back.dns_rcode, 3);
	assert_true(ip_equals(&back.answer, &e.answer));
	assert_int_equal(back.ethertype, 0x86dd);
	assert_int_equal(back.count, 1ull << 40);
	assert_int_equal(back.last_ms, SAMPLE_TIME + 1);
	assert_true(slice_equals(back.verdict_rule, e.verdict_rule));
	assert_int_equal(back.finding, EVENT_FINDING_SMUGGLING);
	assert_int_equal(back.about, 5);
	assert_int_equal(back.lifecycle, EVENT_STOP);
}

static void test_absent_fields_cost_nothing(void **state)
{
	struct event e = {.id = 1, .kind = EVENT_LIFECYCLE, .time_ms = SAMPLE_TIME}, back;

	(void)state;
	assert_int_equal(event_encode(&e, record, sizeof(record)), HEAD_BYTES);
	assert_int_equal(event_decode(record, HEAD_BYTES, &back), 0);
	assert_int_equal(back.host.n, 0);
	assert_int_equal(back.src.family, 0);
}

static void test_too_small_a_buffer(void **state)
{
	struct event e = full();
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(event_encode(&e, record, cap), 0);
	assert_int_equal(event_encode(&e, record, n), n);
}

static void test_long_texts_are_cut(void **state)
{
	static char text[3 * EVENT_TEXT_MAX];
	struct event e = sample_http(), back;
	size_t n;

	(void)state;
	memset(text, 'x', sizeof(text));
	e.target = slice_of(text, sizeof(text));
	n = event_encode(&e, record, EVENT_BYTES_MAX);
	assert_int_not_equal(n, 0);
	assert_int_equal(event_decode(record, n, &back), 0);
	assert_int_equal(back.target.n, EVENT_TEXT_MAX);
	e.rule = e.credential = e.detail = e.host = e.sni = e.scheme = e.method = e.user_agent =
	        e.verdict_rule = e.target;
	n = event_encode(&e, record, EVENT_BYTES_MAX);
	assert_in_range(n, 1, EVENT_BYTES_MAX);
	assert_int_equal(event_decode(record, n, &back), 0);
	assert_true(back.user_agent.n >= 1024);
	assert_int_equal(back.user_agent.n, back.target.n);
}

static void test_every_cut_is_refused(void **state)
{
	struct event e = full(), back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1); /* so that a read beyond it is seen */

		memcpy(exact, record, cut);
		assert_int_equal(event_decode(exact, cut, &back), -EBADMSG);
		free(exact);
	}
	record[n] = 0;
	assert_int_equal(event_decode(record, n + 1, &back), -EBADMSG);
}

static void test_beyond_the_bound_is_refused(void **state)
{
	static uint8_t large[EVENT_BYTES_MAX + 1];
	struct event back;

	(void)state;
	assert_int_equal(event_decode(large, sizeof(large), &back), -EBADMSG);
}

/* A field that is there but zero or empty would be a second encoding of the same event. */
static void test_second_spellings_are_refused(void **state)
{
	struct event e = {.id = 1, .kind = EVENT_HTTP, .time_ms = SAMPLE_TIME}, back;
	static const size_t sizes[] = {4, 1, 2, 2, 2};

	(void)state;
	for (unsigned bit = 0; bit < sizeof(sizes) / sizeof(sizes[0]); bit++) {
		size_t n = event_encode(&e, record, sizeof(record));

		record[MAP_OFFSET + 7 - bit / 8] |= (uint8_t)(1u << bit % 8);
		memset(record + n, 0, sizes[bit]);
		assert_int_equal(event_decode(record, n + sizes[bit], &back), -EBADMSG);
	}
}

static void test_unknown_fields_are_refused(void **state)
{
	struct event e = {.id = 1, .kind = EVENT_HTTP, .time_ms = SAMPLE_TIME}, back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	record[MAP_OFFSET] = 0x80;
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
	record[MAP_OFFSET] = 0;
	assert_int_equal(event_decode(record, n, &back), 0);
}

static int decode_after(struct event e)
{
	struct event back;
	size_t n = event_encode(&e, record, sizeof(record));

	return n ? event_decode(record, n, &back) : 0;
}

static void test_values_out_of_range_are_refused(void **state)
{
	struct event e;

	(void)state;
#define REFUSED(field, value)                                \
	do {                                                 \
		e = full();                                  \
		e.field = value;                             \
		assert_int_equal(decode_after(e), -EBADMSG); \
	} while (0)
	REFUSED(kind, EVENT_KIND_COUNT);
	REFUSED(decision, EVENT_DECISION_COUNT);
	REFUSED(cause, EVENT_CAUSE_COUNT);
	REFUSED(policy_reason, POLICY_REASON_COUNT);
	REFUSED(finding, EVENT_FINDING_COUNT);
	REFUSED(lifecycle, EVENT_LIFECYCLE_COUNT);
#undef REFUSED
	e = full();
	e.kind = EVENT_FINDING;
	e.finding = EVENT_FINDING_NONE;
	assert_int_equal(decode_after(e), -EBADMSG);
	assert_int_equal(decode_after(full()), 0);
}

/* An upstream may send any number: the encoder drops it, and a hostile writer's is refused. */
static void test_status_and_version(void **state)
{
	struct event e = {.id = 1,
	        .kind = EVENT_HTTP,
	        .time_ms = SAMPLE_TIME,
	        .status = 42,
	        .http_version = 12};
	struct event back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	assert_int_equal(n, HEAD_BYTES);
	e.status = 200;
	n = event_encode(&e, record, sizeof(record));
	assert_int_equal(event_decode(record, n, &back), 0);
	record[HEAD_BYTES] = 0;
	record[HEAD_BYTES + 1] = 99;
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
	record[HEAD_BYTES] = 1000 >> 8;
	record[HEAD_BYTES + 1] = 1000 & 255;
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
	e.status = 0;
	e.http_version = 10;
	n = event_encode(&e, record, sizeof(record));
	record[HEAD_BYTES] = 12;
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
}

static void test_bad_address_family_is_refused(void **state)
{
	struct event e = {
	        .id = 1, .kind = EVENT_HTTP, .time_ms = SAMPLE_TIME, .src = sample_ip("10.0.0.1")};
	struct event back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	assert_int_equal(record[HEAD_BYTES], 4);
	for (int family = 0; family < 256; family++) {
		record[HEAD_BYTES] = (uint8_t)family;
		assert_int_equal(event_decode(record, n, &back), family == 4 ? 0 : -EBADMSG);
	}
}

static void test_times_are_brought_into_range(void **state)
{
	struct event e = sample_packet(), back;
	size_t n;

	(void)state;
	e.time_ms = -1;
	e.last_ms = INT64_MAX;
	e.count = 0;
	n = event_encode(&e, record, sizeof(record));
	assert_int_equal(event_decode(record, n, &back), 0);
	assert_int_equal(back.time_ms, 0);
	assert_true(back.last_ms < INT64_MAX);
	assert_int_equal(back.count, 1);
	/* The head's time, as a hostile writer would set it. */
	memset(record + 8, 0xff, 8);
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
}

static void test_packets_have_a_count(void **state)
{
	struct event e = {.id = 1, .kind = EVENT_HTTP, .time_ms = SAMPLE_TIME}, back;
	size_t n = event_encode(&e, record, sizeof(record));

	(void)state;
	record[16] = EVENT_PACKET;
	assert_int_equal(event_decode(record, n, &back), -EBADMSG);
}

static void test_texts_for_every_value_and_beyond(void **state)
{
	(void)state;
	for (int i = 0; i < EVENT_CAUSE_COUNT; i++)
		assert_int_not_equal(strlen(event_cause_text((enum event_cause)i)), 0);
	for (int i = 0; i < EVENT_FINDING_COUNT; i++)
		assert_int_not_equal(strlen(event_finding_title((enum event_finding)i)), 0);
	assert_non_null(event_cause_text((enum event_cause)999));
	assert_non_null(event_finding_title((enum event_finding)999));
}

static void test_workers_may_not_report_everything(void **state)
{
	(void)state;
	assert_true(event_kind_is_of_worker(EVENT_HTTP));
	assert_false(event_kind_is_of_worker(EVENT_PACKET));
	assert_false(event_kind_is_of_worker(EVENT_LIFECYCLE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_field_survives),
	        cmocka_unit_test(test_absent_fields_cost_nothing),
	        cmocka_unit_test(test_too_small_a_buffer),
	        cmocka_unit_test(test_long_texts_are_cut),
	        cmocka_unit_test(test_every_cut_is_refused),
	        cmocka_unit_test(test_beyond_the_bound_is_refused),
	        cmocka_unit_test(test_second_spellings_are_refused),
	        cmocka_unit_test(test_unknown_fields_are_refused),
	        cmocka_unit_test(test_values_out_of_range_are_refused),
	        cmocka_unit_test(test_status_and_version),
	        cmocka_unit_test(test_bad_address_family_is_refused),
	        cmocka_unit_test(test_times_are_brought_into_range),
	        cmocka_unit_test(test_packets_have_a_count),
	        cmocka_unit_test(test_texts_for_every_value_and_beyond),
	        cmocka_unit_test(test_workers_may_not_report_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
