/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "recorder/output/summary.h"

#include "../samples.h"

static char texts[MESSAGE_UNUSUAL_MAX][SUMMARY_SHOWN_MAX];

static void count_denied(struct summary *s, const char *host, unsigned times)
{
	struct event e = sample_denied();

	e.host = slice_from_string(host);
	for (unsigned i = 0; i < times; i++)
		summary_count(s, &e);
}

static void test_each_decision_has_its_count(void **state)
{
	struct event e = sample_packet();
	struct message_summary m;
	struct summary s;

	(void)state;
	summary_init(&s);
	e.count = 41;
	summary_count(&s, &e);
	e = sample_http();
	summary_count(&s, &e);
	e.decision = EVENT_OBSERVED;
	summary_count(&s, &e);
	count_denied(&s, "a.example", 2);
	e = sample_denied();
	e.cause = EVENT_CAUSE_CONNECT;
	summary_count(&s, &e);
	e.cause = EVENT_CAUSE_TIMEOUT;
	e.status = 504;
	summary_count(&s, &e);
	e = sample_finding(EVENT_FINDING_SMUGGLING);
	summary_count(&s, &e);
	e = sample_lifecycle(EVENT_START);
	summary_count(&s, &e);
	summary_report(&s, &m, texts);
	assert_int_equal(m.dropped, 41);
	assert_int_equal(m.allowed, 1);
	assert_int_equal(m.observed, 1);
	assert_int_equal(m.denied, 2);
	assert_int_equal(m.failed, 2); /* and among nothing that was refused */
	assert_int_equal(m.findings, 1);
	assert_int_equal(m.lines, 9);
	assert_int_equal(m.unusual_count, 2);
	assert_true(slice_equals(m.unusual[0].what, SLICE("udp 8.8.8.8:9999")));
	assert_true(slice_equals(m.unusual[1].what, SLICE("POST https://a.example")));
	summary_fini(&s);
}

static void test_top_eight_in_order(void **state)
{
	struct message_summary m;
	struct summary s;
	char name[16];

	(void)state;
	summary_init(&s);
	for (unsigned i = 1; i <= 20; i++) {
		snprintf(name, sizeof(name), "h%u.example", i);
		count_denied(&s, name, i);
	}
	summary_report(&s, &m, texts);
	assert_int_equal(m.unusual_count, MESSAGE_UNUSUAL_MAX);
	for (unsigned i = 0; i < MESSAGE_UNUSUAL_MAX; i++)
		assert_int_equal(m.unusual[i].count, 20 - i);
	summary_fini(&s);
}

/* A sandbox that makes up names cannot hide the one it really wants, nor grow the table. */
/* They are counted, and not suggested as rules. */
static void test_names_of_a_search_list_are_not_named(void **state)
{
	struct event e = {.kind = EVENT_DNS,
	        .decision = EVENT_DENIED,
	        .cause = EVENT_CAUSE_SEARCH_LIST,
	        .host = SLICE("api.example.corp.example")};
	struct message_summary m;
	struct summary s;

	(void)state;
	summary_init(&s);
	summary_count(&s, &e);
	summary_report(&s, &m, texts);
	assert_int_equal(m.denied, 1);
	assert_int_equal(m.unusual_count, 0);
	e.cause = EVENT_CAUSE_POLICY;
	summary_count(&s, &e);
	summary_report(&s, &m, texts);
	assert_int_equal(m.unusual_count, 1);
	assert_true(slice_equals(m.unusual[0].what, SLICE("DNS api.example.corp.example")));
	summary_fini(&s);
}

static void test_made_up_names_do_not_hide_a_frequent_one(void **state)
{
	struct message_summary m;
	struct summary s;
	char name[32];

	(void)state;
	summary_init(&s);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "n%u.example", i);
		count_denied(&s, name, 1);
		if (i % 20 == 0)
			count_denied(&s, "wanted.example", 2);
	}
	assert_int_equal(s.count, SUMMARY_DESTINATIONS_MAX);
	summary_report(&s, &m, texts);
	assert_true(slice_equals(m.unusual[0].what, SLICE("POST https://wanted.example")));
	/* Never more than really happened. */
	assert_in_range(m.unusual[0].count, 400, 500);
	for (unsigned i = 1; i < m.unusual_count; i++)
		assert_int_equal(m.unusual[i].count, 1);
	summary_fini(&s);
}

static void test_texts_are_escaped_and_bounded(void **state)
{
	static char host[EVENT_TEXT_MAX];
	struct event e = sample_denied();
	struct message_summary m;
	struct summary s;

	(void)state;
	memset(host, '\x1b', sizeof(host));
	e.host = slice_of(host, sizeof(host));
	summary_init(&s);
	summary_count(&s, &e);
	summary_report(&s, &m, texts);
	assert_in_range(m.unusual[0].what.n, 1, SUMMARY_SHOWN_MAX - 1);
	assert_true(m.unusual[0].what.n <= MESSAGE_WHAT_MAX);
	for (size_t i = 0; i < m.unusual[0].what.n; i++)
		assert_in_range(m.unusual[0].what.p[i], 0x20, 0x7e);
	summary_fini(&s);
}

static void test_kinds_without_a_name(void **state)
{
	struct event e = {
	        .kind = EVENT_PACKET, .decision = EVENT_DROPPED, .count = 1, .ethertype = 0x88cc};
	struct message_summary m;
	struct summary s;

	(void)state;
	summary_init(&s);
	summary_count(&s, &e);
	e = sample_dns();
	e.decision = EVENT_DENIED;
	summary_count(&s, &e);
	summary_count(&s, &e);
	summary_report(&s, &m, texts);
	assert_true(slice_equals(m.unusual[0].what, SLICE("DNS api.github.com")));
	assert_true(slice_equals(m.unusual[1].what, SLICE("frame 0x88cc")));
	summary_fini(&s);
}

static void test_nothing_counted(void **state)
{
	struct message_summary m;
	struct summary s;

	(void)state;
	summary_init(&s);
	summary_report(&s, &m, texts);
	assert_int_equal(m.unusual_count, 0);
	assert_int_equal(m.lines, 0);
	summary_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_each_decision_has_its_count),
	        cmocka_unit_test(test_top_eight_in_order),
	        cmocka_unit_test(test_names_of_a_search_list_are_not_named),
	        cmocka_unit_test(test_made_up_names_do_not_hide_a_frequent_one),
	        cmocka_unit_test(test_texts_are_escaped_and_bounded),
	        cmocka_unit_test(test_kinds_without_a_name),
	        cmocka_unit_test(test_nothing_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
