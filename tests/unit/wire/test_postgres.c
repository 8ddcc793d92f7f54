/* SPDX-License-Identifier: Apache-2.0 */
/* postgres: first messages of clients and messages of a login, cut at every byte; what must be
 * refused; and what the writers make. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/wire/postgres.h"

#define NUMBER_CANCEL "\x04\xd2\x16\x2e"
#define NUMBER_SSL "\x04\xd2\x16\x2f"
#define NUMBER_GSS "\x04\xd2\x16\x30"
#define VERSION_3 "\0\3\0\0"

/* A first message with the length that belongs to it. */
static size_t make(uint8_t *out, const char number[4], struct slice body)
{
	struct writer w = writer_over(out, POSTGRES_STARTUP_MAX + 100);

	writer_u32(&w, (uint32_t)(8 + body.n));
	writer_bytes(&w, number, 4);
	writer_bytes(&w, body.p, body.n);
	assert_false(w.failed);
	return w.len;
}

static enum postgres_status first(
        const char number[4], struct slice body, struct postgres_startup *out)
{
	static uint8_t bytes[POSTGRES_STARTUP_MAX + 100];
	size_t n = make(bytes, number, body);

	return postgres_startup_parse(bytes, n, out);
}

static void test_requests(void **state)
{
	static const struct {
		const char *number;
		struct slice body;
		enum postgres_first kind;
	} cases[] = {
	        {NUMBER_SSL, {"", 0}, POSTGRES_ASKS_TLS},
	        {NUMBER_GSS, {"", 0}, POSTGRES_ASKS_GSS},
	        {NUMBER_CANCEL, {"\0\0\0\7\1\2\3\4", 8}, POSTGRES_CANCELS},
	        {VERSION_3, {"user\0a\0\0", 8}, POSTGRES_STARTS},
	};
	uint8_t bytes[POSTGRES_STARTUP_MAX + 100];
	struct postgres_startup s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = make(bytes, cases[i].number, cases[i].body);

		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(postgres_startup_parse(bytes, cut, &s), POSTGRES_MORE);
		bytes[n] = 'Q'; /* what follows is not of the message */
		assert_int_equal(postgres_startup_parse(bytes, n + 1, &s), POSTGRES_DONE);
		assert_int_equal(s.kind, cases[i].kind);
		assert_int_equal(s.used, n);
	}
}

static void test_parameters(void **state)
{
	static const struct slice body = SLICE("user\0agent\0database\0app\0_pq_.x\0one\0"
	                                       "options\0-c a=b\0empty\0\0\0");
	struct postgres_startup s;
	struct slice rest, name, value;
	size_t count = 0;

	(void)state;
	assert_int_equal(first("\0\3\0\2", body, &s), POSTGRES_DONE);
	assert_true(slice_equals(s.user, SLICE("agent")));
	assert_true(slice_equals(s.database, SLICE("app")));
	assert_int_equal(s.minor, 2);
	assert_int_equal(s.options, 1);
	assert_false(s.replicates);
	for (rest = s.parameters; postgres_parameter_next(&rest, &name, &value); count++)
		assert_true(name.n > 0);
	assert_int_equal(count, 5);
	assert_int_equal(
	        first(VERSION_3, SLICE("user\0a\0replication\0database\0\0"), &s), POSTGRES_DONE);
	assert_true(s.replicates);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *number;
		struct slice body;
	} cases[] = {
	        {VERSION_3, {"", 0}},
	        {VERSION_3, {"\0", 1}},
	        {VERSION_3, {"user\0a\0", 7}},
	        {VERSION_3, {"user\0a", 6}},
	        {VERSION_3, {"user\0a\0x\0\0", 10}},
	        {VERSION_3, {"user\0\0\0", 7}},
	        {VERSION_3, {"database\0a\0\0", 12}},
	        {VERSION_3, {"user\0a\0\0b\0\0", 11}},
	        {VERSION_3, {"user\0a\0user\0b\0\0", 15}},
	        {VERSION_3, {"user\0a\0database\0b\0database\0c\0\0", 30}},
	        {"\0\2\0\0", {"user\0a\0\0", 8}},
	        {"\0\4\0\0", {"user\0a\0\0", 8}},
	        {"\0\0\0\0", {"user\0a\0\0", 8}},
	        {NUMBER_SSL, {"\0", 1}},
	        {NUMBER_GSS, {"abc", 3}},
	        {NUMBER_CANCEL, {"\0\0\0\7\1\2\3", 7}},
	        {NUMBER_CANCEL, {"\0\0\0\7\1\2\3\4\5", 9}},
	};
	static const char *const lengths[] = {"\0\0\0\0", "\0\0\0\7", "\0\0\x27\x11", "\x16\3\1\0",
	        "GET ", "\xff\xff\xff\xff", "\x80\0\0\0"};
	struct postgres_startup s;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(first(cases[i].number, cases[i].body, &s), POSTGRES_BAD);
		assert_true(*s.why);
		assert_int_equal(s.used, 0);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		assert_int_equal(
		        postgres_startup_parse((const uint8_t *)lengths[i], 4, &s), POSTGRES_BAD);
}

static void test_bounds_of_a_startup(void **state)
{
	static char body[POSTGRES_STARTUP_MAX];
	struct writer w = writer_over(body, sizeof(body));
	struct postgres_startup s;

	(void)state;
	writer_bytes(&w, "user\0a", 7);
	for (size_t i = 1; i < POSTGRES_PARAMETERS_MAX; i++)
		writer_bytes(&w, "p\0v", 4);
	writer_u8(&w, 0);
	assert_int_equal(first(VERSION_3, slice_of(body, w.len), &s), POSTGRES_DONE);
	w.len--;
	writer_bytes(&w, "p\0v\0", 5);
	assert_int_equal(first(VERSION_3, slice_of(body, w.len), &s), POSTGRES_BAD);
	memset(body, 'u', sizeof(body));
	memcpy(body, "user", 5);
	memset(body + 5 + POSTGRES_NAME_MAX, 0, 2);
	assert_int_equal(
	        first(VERSION_3, slice_of(body, 5 + POSTGRES_NAME_MAX + 2), &s), POSTGRES_DONE);
	body[5 + POSTGRES_NAME_MAX] = 'u';
	body[5 + POSTGRES_NAME_MAX + 2] = 0;
	assert_int_equal(
	        first(VERSION_3, slice_of(body, 5 + POSTGRES_NAME_MAX + 3), &s), POSTGRES_BAD);
}

static void test_messages(void **state)
{
	const uint8_t bytes[] = {'R', 0, 0, 0, 8, 0, 0, 0, 0, 'Z'};
	struct postgres_message m;

	(void)state;
	for (size_t n = 0; n < 9; n++)
		assert_int_equal(
		        postgres_message_parse(bytes, n, POSTGRES_MESSAGE_MAX, &m), POSTGRES_MORE);
	assert_int_equal(postgres_message_parse(bytes, sizeof(bytes), 9, &m), POSTGRES_DONE);
	assert_int_equal(m.used, 9);
	assert_int_equal(m.body.n, 4);
	assert_int_equal(postgres_message_parse(bytes, sizeof(bytes), 8, &m), POSTGRES_BAD);
	assert_int_equal(
	        postgres_message_parse((const uint8_t *)"R\0\0\0\3", 5, 100, &m), POSTGRES_BAD);
	assert_int_equal(postgres_message_parse(
	                         (const uint8_t *)"R\xff\xff\xff\xff", 5, POSTGRES_MESSAGE_MAX, &m),
	        POSTGRES_BAD);
	assert_int_equal(
	        postgres_message_parse((const uint8_t *)"R\0\0\0\4", 5, 100, &m), POSTGRES_DONE);
	assert_int_equal(m.body.n, 0);
}

static void test_authentication(void **state)
{
	static const struct {
		struct slice body;
		bool good;
	} cases[] = {
	        {{"\0\0\0\0", 4}, true},
	        {{"\0\0\0\3", 4}, true},
	        {{"\0\0\0\5salt", 8}, true},
	        {{"\0\0\0\012SCRAM-SHA-256\0\0", 19}, true},
	        {{"\0\0\0\012\0", 5}, true},
	        {{"\0\0\0\013anything", 12}, true},
	        {{"\0\0\0\7", 4}, true},
	        {{"", 0}, false},
	        {{"\0\0\0", 3}, false},
	        {{"\0\0\0\0\0", 5}, false},
	        {{"\0\0\0\5sal", 7}, false},
	        {{"\0\0\0\5salty", 9}, false},
	        {{"\0\0\0\012SCRAM-SHA-256\0", 18}, false},
	        {{"\0\0\0\012SCRAM-SHA-256\0\0x", 20}, false},
	        {{"\0\0\0\012", 4}, false},
	};
	struct postgres_authentication a;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(postgres_authentication_parse(cases[i].body, &a), cases[i].good);
	assert_true(postgres_authentication_parse(
	        SLICE("\0\0\0\012SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"), &a));
	assert_true(a.scram && a.scram_plus);
	assert_true(postgres_authentication_parse(SLICE("\0\0\0\012SCRAM-SHA-1\0\0"), &a));
	assert_false(a.scram || a.scram_plus);
}

static void test_error_codes(void **state)
{
	(void)state;
	assert_true(slice_equals(
	        postgres_error_code(SLICE("SFATAL\0C28P01\0Mno\0\0")), SLICE("28P01")));
	assert_int_equal(postgres_error_code(SLICE("SFATAL\0C28P0\0Mno\0\0")).n, 0);
	assert_int_equal(postgres_error_code(SLICE("C28 01\0\0")).n, 0);
	assert_int_equal(postgres_error_code(SLICE("C28P01")).n, 0);
	assert_int_equal(postgres_error_code(SLICE("")).n, 0);
	assert_int_equal(postgres_error_code(SLICE("\0C28P01\0")).n, 0);
}

/* What is written is what is read, but for the user and the options. */
static void test_writing(void **state)
{
	static const struct slice body =
	        SLICE("user\0a\0_pq_.x\0y\0application_name\0psql\0database\0d\0\0");
	uint8_t bytes[512];
	struct writer w = writer_over(bytes, sizeof(bytes));
	struct postgres_startup s, again;
	struct postgres_message m;

	(void)state;
	assert_int_equal(first("\0\3\0\2", body, &s), POSTGRES_DONE);
	postgres_write_startup(&w, SLICE("agent"), s.parameters);
	assert_int_equal(postgres_startup_parse(bytes, w.len, &again), POSTGRES_DONE);
	assert_int_equal(again.used, w.len);
	assert_true(slice_equals(again.user, SLICE("agent")));
	assert_true(slice_equals(again.database, SLICE("d")));
	assert_int_equal(again.minor, 0);
	assert_int_equal(again.options, 0);
	w = writer_over(bytes, sizeof(bytes));
	postgres_write_negotiation(&w, &s);
	assert_int_equal(postgres_message_parse(bytes, w.len, 512, &m), POSTGRES_DONE);
	assert_int_equal(m.used, w.len);
	assert_true(slice_equals(m.body, SLICE("\0\3\0\0\0\0\0\1_pq_.x\0")));
	w = writer_over(bytes, sizeof(bytes));
	postgres_write_error(&w, "28000", "no");
	assert_int_equal(postgres_message_parse(bytes, w.len, 512, &m), POSTGRES_DONE);
	assert_int_equal(m.used, w.len);
	assert_true(slice_equals(postgres_error_code(m.body), SLICE("28000")));
	w = writer_over(bytes, 8);
	postgres_write_error(&w, "28000", "no");
	assert_true(w.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_requests),
	        cmocka_unit_test(test_parameters),
	        cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_bounds_of_a_startup),
	        cmocka_unit_test(test_messages),
	        cmocka_unit_test(test_authentication),
	        cmocka_unit_test(test_error_codes),
	        cmocka_unit_test(test_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
