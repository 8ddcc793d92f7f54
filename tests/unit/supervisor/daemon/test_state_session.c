/* SPDX-License-Identifier: Apache-2.0 */
/* State files of sessions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "state_fixture.h"

static struct attach_record sample(void)
{
	struct attach_record record = {.name = "one",
	        .id = 7,
	        .kind = ATTACH_SESSION,
	        .session = {.hash = {0xab, [31] = 0xcd}, .from_count = 2},
	        .policy = (char *)(uintptr_t) "/etc/p.yaml",
	        .created_ms = 1,
	        .expires_ms = 99,
	        .generation = 1};

	ip_prefix_parse(SLICE("203.0.113.0/24"), &record.session.from[0]);
	ip_prefix_parse(SLICE("2001:db8::/32"), &record.session.from[1]);
	return record;
}

static void save_sample(void)
{
	struct attach_record record = sample();
	struct gate gate;

	gate_init(&gate);
	gate.kind = GATE_SOCKET;
	assert_int_equal(state_save(dir, &record, &gate), 0);
}

static void what_is_written_is_read(void **state)
{
	const struct attach_record was = sample();
	char error[STATE_ERROR_MAX];
	struct attach_record is;
	struct gate gate;

	(void)state;
	save_sample();
	assert_int_equal(load(&is, &gate, error), 0);
	assert_int_equal(is.kind, ATTACH_SESSION);
	assert_memory_equal(is.session.hash, was.session.hash, sizeof(was.session.hash));
	assert_int_equal(is.session.from_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(ip_equals(&is.session.from[i].base, &was.session.from[i].base));
		assert_int_equal(is.session.from[i].bits, was.session.from[i].bits);
	}
	assert_int_equal(is.expires_ms, 99);
	assert_int_equal(gate.kind, GATE_SOCKET);
	attach_record_fini(&is);
}

static void values_out_of_bounds_are_refused(void **state)
{
	(void)state;
	refuses("\"session\": {", "\"session\": 1, \"more\": {", "damaged");
	refuses("\"session\": {", "\"sessions\": {", "damaged");
	refuses("\"kind\": \"session\"", "\"kind\": \"netns\"", "session");
	refuses("\"kind\": \"session\"", "\"kind\": \"listen\"", "listen");
	refuses("\"token\": \"ab", "\"token\": \"AB", "session");
	refuses("\"token\": \"ab", "\"token\": \"a", "session");
	refuses("\"token\": \"ab", "\"token\": \"abab", "session");
	refuses("\"token\"", "\"tokens\"", "session");
	refuses("\"from\": [", "\"from\": [7, ", "session");
	refuses("\"from\": [", "\"from\": [\"10.0.0.1/8\", ", "session");
	refuses("\"from\": [", "\"from\": [\"\", ", "session");
	refuses("\"from\": [",
	        "\"from\": [\"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", "
	        "\"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", \"::/0\", ",
	        "session");
	refuses("203.0.113.0/24", "203.0.113.0/33", "session");
	refuses("\"from\":", "\"form\":", "session");
	refuses("\"token\": \"ab", "\"by_address\": 1, \"token\": \"ab", "session");
	refuses("\"token\": \"ab", "\"callback\": 1, \"token\": \"ab", "session");
	refuses("\"token\": \"ab", "\"callback\": true, \"by_address\": true, \"token\": \"ab",
	        "session");
}

static void an_address_is_kept(void **state)
{
	struct attach_record was = sample(), is;
	char error[STATE_ERROR_MAX];
	struct gate gate;

	(void)state;
	gate_init(&gate);
	gate.kind = GATE_SOCKET;
	was.session.by_address = true;
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_int_equal(load(&is, &gate, error), 0);
	assert_true(is.session.by_address);
	assert_false(is.session.callback);
	assert_int_equal(is.session.from_count, 2);
	attach_record_fini(&is);
	was.session.by_address = false;
	was.session.callback = true;
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_int_equal(load(&is, &gate, error), 0);
	assert_true(is.session.callback);
	attach_record_fini(&is);
	was.session.by_address = true;
	was.session.callback = false;
	was.session.from_count = 0; /* of anybody */
	assert_int_equal(state_save(dir, &was, &gate), 0);
	assert_int_not_equal(load(&is, &gate, error), 0);
}

static void what_it_is_in_words(void **state)
{
	struct attach_record record = sample();
	char text[128];

	(void)state;
	attach_record_describe(&record, text, sizeof(text));
	assert_string_equal(text, "session, policy /etc/p.yaml");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(what_is_written_is_read),
	        TEST(values_out_of_bounds_are_refused), TEST(an_address_is_kept),
	        cmocka_unit_test(what_it_is_in_words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
