/* SPDX-License-Identifier: Apache-2.0 */
/* responder: what each kind of query is answered, and what is recorded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "responder_fixture.h"
#include "still_clock.h"

/* The linker wraps: clock_gettime */
#define WINDOW_MS 1000

static uint8_t answer[DNS_ANSWER_MAX];
static size_t answer_n;

static void ask_bytes(const uint8_t *query, size_t n)
{
	const struct responder_peer peer = {.client = {.family = 4, .bytes = {10, 200, 0, 2}},
	        .client_port = 4444,
	        .asked_port = 53};

	answer_n = responder_answer(fixture.responder, query, n, &peer, answer, sizeof(answer));
}

static void ask_class(const char *name, uint16_t type, uint16_t class)
{
	uint8_t query[512];

	ask_bytes(query, make_query(query, name, type, class));
	assert_true(answer_n >= 12);
	assert_memory_equal(answer, "\xab\xcd", 2);
}

static void ask(const char *name, uint16_t type)
{
	ask_class(name, type, 1);
}

/* Expects an answer or none. */
static void ask_in_vain(const char *name)
{
	uint8_t query[512];

	ask_bytes(query, make_query(query, name, DNS_A, 1));
}

static unsigned rcode(void)
{
	return answer[3] & 15;
}

static unsigned answers(void)
{
	return answer[6] << 8 | answer[7];
}

static void expect_verdict(const char *name, enum event_decision decision, const char *rule)
{
	size_t before = fixture.count;

	ask(name, DNS_A);
	assert_int_equal(rcode(), DNS_NOERROR);
	assert_int_equal(answers(), 1);
	assert_int_equal(fixture.count, before + 1);
	if (fixture.event.decision != decision)
		fail_msg("%s: decision %d", name, fixture.event.decision);
	if (rule)
		assert_string_equal(fixture.rule, rule);
	assert_string_equal(fixture.host, name);
	assert_int_equal(fixture.event.answer.family, 4);
}

static void the_policy_names_the_decision(void **state)
{
	(void)state;
	expect_verdict("api.example.com", EVENT_ALLOWED, "api");
	expect_verdict("git.example.com", EVENT_ALLOWED, NULL);
	expect_verdict("a.files.example.com", EVENT_ALLOWED, "files");
	expect_verdict("wiki", EVENT_ALLOWED, NULL);
	expect_verdict("files.example.com", EVENT_DENIED, "");
	expect_verdict("evil.example", EVENT_DENIED, "");
	assert_int_equal(fixture.event.policy_reason, POLICY_REASON_DEFAULT);
	expect_verdict("bad.example.com", EVENT_DENIED, "never");
	assert_int_equal(fixture.event.policy_reason, POLICY_REASON_RULE);
	/* Denied over https, allowed for ssh. */
	expect_verdict("mixed.example.com", EVENT_ALLOWED, NULL);
}

static void observing(void **state)
{
	(void)state;
	expect_verdict("api.example.com", EVENT_ALLOWED, "api");
	expect_verdict("git.example.com", EVENT_ALLOWED, NULL);
	expect_verdict("evil.example", EVENT_OBSERVED, "");
	expect_verdict("bad.example.com", EVENT_OBSERVED, "never");
}

static void events_are_filled(void **state)
{
	(void)state;
	ask("API.Example.COM", DNS_AAAA);
	assert_string_equal(fixture.host, "api.example.com");
	assert_memory_equal(answer + 12, "\3API\7Example\3COM", 16); /* the question as it was */
	assert_int_equal(fixture.event.kind, EVENT_DNS);
	assert_int_equal(fixture.event.dns_id, 0xabcd);
	assert_int_equal(fixture.event.dns_type, DNS_AAAA);
	assert_int_equal(fixture.event.dns_class, 1);
	assert_int_equal(fixture.event.answer.family, 6);
	assert_int_equal(fixture.event.src_port, 4444);
	assert_int_equal(fixture.event.dst_port, 53);
	assert_int_equal(fixture.event.protocol, 17);
	assert_int_equal(fixture.event.bytes_out, 12 + 17 + 4);
	assert_int_equal(fixture.event.bytes_in, answer_n);
	assert_true(fixture.event.time_ms > 0);
}

static void one_name_has_one_pair_of_addresses(void **state)
{
	uint8_t first[4];
	struct slice host;

	(void)state;
	ask("api.example.com", DNS_A);
	memcpy(first, answer + answer_n - 4, 4);
	assert_true(names_lookup(fixture.names, &fixture.event.answer, &host));
	assert_true(slice_equals(host, SLICE("api.example.com")));
	ask("other.example.com", DNS_A);
	assert_memory_not_equal(first, answer + answer_n - 4, 4);
	ask("api.EXAMPLE.com", DNS_A);
	assert_memory_equal(first, answer + answer_n - 4, 4);
	ask("api.example.com", DNS_AAAA);
	assert_true(names_lookup(fixture.names, &fixture.event.answer, &host));
	assert_true(slice_equals(host, SLICE("api.example.com")));
}

static void other_types_have_no_data(void **state)
{
	static const uint16_t types[] = {2, 5, 6, 12, 15, 16, 33, 64, 65, 252, 255, 65535};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask("api.example.com", types[i]);
		assert_int_equal(rcode(), DNS_NOERROR);
		assert_int_equal(answers(), 0);
		assert_int_equal(answer[9], 1); /* a SOA, so that it is cached */
		assert_int_equal(fixture.event.answer.family, 0);
	}
	ask("", 2);
	assert_int_equal(rcode(), DNS_NOERROR);
	assert_int_equal(answers(), 0);
}

static void names_that_do_not_exist(void **state)
{
	static const char *const names[] = {"localhost", "a.localhost", "LOCALHOST", "x.onion",
	        "onion", "a.invalid", "printer", "wpad", "1.2.3.4", "a.b*", "a b.example.com",
	        "2.0.200.10.in-addr.arpa", "0.1.200.10.in-addr.arpa", "8.8.8.8.in-addr.arpa"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int aaaa = 0; aaaa < 2; aaaa++) {
			ask(names[i], aaaa ? DNS_AAAA : DNS_A);
			if (rcode() != DNS_NXDOMAIN || answers() != 0)
				fail_msg("%s", names[i]);
			assert_int_equal(fixture.event.dns_rcode, DNS_NXDOMAIN);
		}
	}
	ask("0.1.200.10.in-addr.arpa", DNS_PTR);
	assert_int_equal(rcode(), DNS_NXDOMAIN);
	assert_int_equal(fixture.event.decision, EVENT_ALLOWED);
	ask("8.8.8.8.in-addr.arpa", DNS_PTR);
	assert_int_equal(rcode(), DNS_NXDOMAIN);
	assert_int_equal(fixture.event.decision, EVENT_DENIED);
	/* Names that only look alike. */
	expect_verdict("notlocalhost.example", EVENT_DENIED, "");
	expect_verdict("localhost.example", EVENT_DENIED, "");
	expect_verdict("notonion.example", EVENT_DENIED, "");
}

static void expect_searched(const char *name, const char *domain)
{
	static const uint16_t types[] = {DNS_A, DNS_AAAA, 16, 33, DNS_SVCB, DNS_HTTPS, DNS_ANY};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		uint32_t given = names_count(fixture.names);

		ask(name, types[i]);
		if (rcode() != DNS_NXDOMAIN || answers() != 0)
			fail_msg("%s: rcode %u", name, rcode());
		assert_int_equal(answer[9], 1); /* a SOA, so that it is cached */
		assert_int_equal(fixture.event.decision, EVENT_DENIED);
		assert_int_equal(fixture.event.cause, EVENT_CAUSE_SEARCH_LIST);
		assert_int_equal(fixture.event.dns_rcode, DNS_NXDOMAIN);
		assert_string_equal(fixture.host, name);
		assert_string_equal(fixture.search_domain, domain);
		assert_int_equal(names_count(fixture.names), given);
	}
}

static void a_search_list_goes_on_to_the_allowed_name(void **state)
{
	(void)state;
	expect_searched("api.example.com.corp.example", "corp.example");
	expect_searched("api.example.com.default.svc.cluster.local", "default.svc.cluster.local");
	expect_searched("api.example.com.local", "local");
	expect_searched("git.example.com.corp.example", "corp.example"); /* tcp:// only */
	expect_searched("a.b.files.example.com.corp.example", "corp.example");
	expect_searched("wiki.corp.example", "corp.example");
	/* Denied for https, allowed for ssh: an allowed name. */
	expect_searched("mixed.example.com.corp.example", "corp.example");
	/* The longest allowed name that it can be. */
	expect_searched("wiki.api.example.com.corp.example", "api.example.com.corp.example");
	expect_searched("a.files.example.com.b.files.example.org", "b.files.example.org");
	/* The real name is there, and a search list's mistake has not changed it. */
	expect_verdict("api.example.com", EVENT_ALLOWED, "api");
	assert_string_equal(fixture.search_domain, "");
}

static void what_no_search_list_has_made(void **state)
{
	static const char *const names[] = {"evil.example", "evil.example.corp.example",
	        "files.example.com.corp.example", "api.example.com-corp.example",
	        "xapi.example.com.corp.example", "bad.example.com.corp.example",
	        "example.com.corp.example", "wikis.corp.example", "corp.example.api.example.comx"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		expect_verdict(names[i], EVENT_DENIED, "");
		assert_string_equal(fixture.search_domain, "");
		assert_int_equal(fixture.event.cause, EVENT_CAUSE_POLICY);
	}
	/* A name that a rule allows is allowed, whatever it begins with. */
	expect_verdict("api.example.com.files.example.com", EVENT_ALLOWED, "files");
	expect_verdict("wiki.files.example.com", EVENT_ALLOWED, "files");
	assert_string_equal(fixture.search_domain, "");
}

static void a_search_domain_has_few_labels(void **state)
{
	char name[256] = "api.example.com";
	char domain[256] = "";

	(void)state;
	for (int i = 0; i < ALLOWED_SEARCH_LABELS; i++)
		strcat(domain, i ? ".d" : "d");
	strcat(strcat(name, "."), domain);
	expect_searched(name, domain);
	strcat(name, ".d");
	expect_verdict(name, EVENT_DENIED, "");
}

/* A name that mode observe only lets pass is not an allowed name; one that a rule allows is, here
 * too. */
static void observing_a_search_list(void **state)
{
	(void)state;
	expect_searched("api.example.com.corp.example", "corp.example");
	expect_verdict("evil.example.corp.example", EVENT_OBSERVED, "");
	expect_verdict("bad.example.com.corp.example", EVENT_OBSERVED, "");
}

static void other_classes_and_versions(void **state)
{
	uint8_t query[512];
	size_t n;

	(void)state;
	ask_class("version.bind", 16, 3);
	assert_int_equal(rcode(), DNS_REFUSED);
	ask_class("api.example.com", DNS_A, 255);
	assert_int_equal(rcode(), DNS_REFUSED);
	assert_int_equal(answers(), 0);
	n = make_query(query, "api.example.com", DNS_A, 1);
	query[11] = 1;
	memcpy(query + n, "\0\0\x29\4\xd0\0\1\0\0\0\0", 11);
	ask_bytes(query, n + 11);
	assert_int_equal(fixture.event.dns_rcode, DNS_BADVERS);
	assert_int_equal(answers(), 0);
}

static void malformed_queries(void **state)
{
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);

	(void)state;
	ask_bytes(query, n - 1);
	assert_int_equal(answer_n, 12);
	assert_int_equal(rcode(), DNS_FORMERR);
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_CLIENT);
	assert_int_equal(fixture.count, 1);
	query[2] = 0x28; /* UPDATE */
	ask_bytes(query, n);
	assert_int_equal(answer_n, 12);
	assert_int_equal(rcode(), DNS_NOTIMP);
	query[2] = 0x80; /* a response: silence, but a record */
	ask_bytes(query, n);
	assert_int_equal(answer_n, 0);
	ask_bytes(query, 11);
	assert_int_equal(answer_n, 0);
	ask_bytes(query, 0);
	assert_int_equal(answer_n, 0);
	assert_int_equal(fixture.count, 5);
	assert_int_equal(fixture.event.decision, EVENT_DENIED);
}

static void a_full_pool_is_a_failure(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%d.example", i);
		ask(name, DNS_A);
		assert_int_equal(answers(), 1);
	}
	ask("one-more.example", DNS_A);
	assert_int_equal(rcode(), DNS_SERVFAIL);
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_LIMIT);
	ask("one-more.example", 16); /* needs no address */
	assert_int_equal(rcode(), DNS_NOERROR);
	ask("n0.example", DNS_AAAA); /* has one already */
	assert_int_equal(answers(), 1);
}

static void over_the_rate(void **state)
{
	(void)state;
	clock_stop();
	for (int i = 0; i < 3; i++) {
		ask("api.example.com", DNS_A);
		assert_int_equal(answers(), 1);
	}
	for (int i = 0; i < 3; i++) {
		ask("api.example.com", DNS_A);
		assert_int_equal(rcode(), DNS_REFUSED);
		assert_int_equal(answers(), 0);
	}
	for (int i = 0; i < 47; i++) {
		ask_in_vain("api.example.com");
		assert_int_equal(answer_n, 0);
	}
	ask_bytes((const uint8_t *)"garbage", 7);
	assert_int_equal(answer_n, 0);
	assert_int_equal(fixture.count, 3); /* none of those has a record of its own */
	assert_int_equal(responder_refused(fixture.responder), 51);
	clock_move(WINDOW_MS - 1);
	ask_in_vain("api.example.com");
	assert_int_equal(answer_n, 0);
	assert_int_equal(fixture.count, 3);
	clock_move(1);
	ask("api.example.com", DNS_A);
	assert_int_equal(answers(), 1);
	assert_int_equal(fixture.count, 5);
	assert_int_equal(responder_refused(fixture.responder), 52);
}

static void refusals_are_recorded_without_another_query(void **state)
{
	(void)state;
	clock_stop(); /* for the ten of them */
	for (int i = 0; i < 10; i++)
		ask_in_vain("api.example.com");
	assert_int_equal(fixture.count, 3);
	run_loop(1100);
	assert_int_equal(fixture.count, 4);
	assert_string_equal(fixture.detail, "7 queries beyond 3 in a second were refused.");
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_LIMIT);
	assert_int_equal(fixture.event.src_port, 4444);
}

static int teardown_clock(void **state)
{
	clock_go();
	return teardown(state);
}

#define CLOCKED(test) cmocka_unit_test_setup_teardown(test, setup_slow, teardown_clock)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_LOOP(the_policy_names_the_decision),
	        cmocka_unit_test_setup_teardown(observing, setup_observe, teardown),
	        IN_LOOP(events_are_filled),
	        IN_LOOP(one_name_has_one_pair_of_addresses),
	        IN_LOOP(other_types_have_no_data),
	        IN_LOOP(names_that_do_not_exist),
	        IN_LOOP(a_search_list_goes_on_to_the_allowed_name),
	        IN_LOOP(what_no_search_list_has_made),
	        IN_LOOP(a_search_domain_has_few_labels),
	        cmocka_unit_test_setup_teardown(observing_a_search_list, setup_observe, teardown),
	        IN_LOOP(other_classes_and_versions),
	        IN_LOOP(malformed_queries),
	        IN_LOOP(a_full_pool_is_a_failure),
	        CLOCKED(over_the_rate),
	        CLOCKED(refusals_are_recorded_without_another_query),
	};

	return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
