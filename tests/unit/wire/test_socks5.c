/* SPDX-License-Identifier: Apache-2.0 */
/* socks5: greetings and requests, cut at every byte, and what must be refused with which reply. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/wire/socks5.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void test_greetings(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool offered;
	} cases[] = {
	        {"\5\1\0", 3, true},
	        {"\5\2\0\2", 4, true},
	        {"\5\3\1\2\0", 5, true},
	        {"\5\1\2", 3, false},
	        {"\5\2\1\2", 4, false},
	        {"\5\0", 2, false},
	        {"\5\1\xff", 3, false},
	};
	struct socks5_greeting g;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;

		for (size_t n = 0; n < cases[i].n; n++)
			assert_int_equal(socks5_greeting_parse(p, n, &g), SOCKS5_MORE);
		assert_int_equal(socks5_greeting_parse(p, cases[i].n, &g), SOCKS5_DONE);
		assert_int_equal(g.no_authentication, cases[i].offered);
		assert_int_equal(g.used, cases[i].n);
	}
}

static void test_a_greeting_of_all_methods(void **state)
{
	uint8_t bytes[SOCKS5_GREETING_MAX + 8];
	struct socks5_greeting g;

	(void)state;
	memset(bytes, 0x80, sizeof(bytes));
	bytes[0] = SOCKS5_VERSION;
	bytes[1] = 255;
	assert_int_equal(socks5_greeting_parse(bytes, SOCKS5_GREETING_MAX - 1, &g), SOCKS5_MORE);
	assert_int_equal(socks5_greeting_parse(bytes, sizeof(bytes), &g), SOCKS5_DONE);
	assert_int_equal(g.used, SOCKS5_GREETING_MAX);
	assert_false(g.no_authentication);
	bytes[SOCKS5_GREETING_MAX] = 0; /* is not of the greeting any more */
	assert_int_equal(socks5_greeting_parse(bytes, sizeof(bytes), &g), SOCKS5_DONE);
	assert_false(g.no_authentication);
}

static void test_greetings_of_other_protocols(void **state)
{
	struct socks5_greeting g;

	(void)state;
	for (unsigned version = 0; version < 256; version++) {
		const uint8_t bytes[] = {(uint8_t)version, 1, 0};

		if (version == SOCKS5_VERSION)
			continue;
		assert_int_equal(socks5_greeting_parse(bytes, 1, &g), SOCKS5_BAD);
		assert_int_equal(socks5_greeting_parse(bytes, sizeof(bytes), &g), SOCKS5_BAD);
		assert_true(*g.why);
		assert_int_equal(g.used, 0);
	}
}

static void check_cut(const uint8_t *p, size_t whole, struct socks5_request *out)
{
	for (size_t n = 0; n < whole; n++) {
		assert_int_equal(socks5_request_parse(p, n, out), SOCKS5_MORE);
		assert_int_equal(out->name.n, 0);
		assert_int_equal(out->address.family, 0);
	}
	assert_int_equal(socks5_request_parse(p, whole, out), SOCKS5_DONE);
	assert_int_equal(out->used, whole);
}

static void test_requests(void **state)
{
	static const char name[] = "\5\1\0\3\6a.test\1\xbb", v4[] = "\5\1\0\1\xc0\0\2\7\0\x50more",
	                  v6[] = "\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\7\xff\xff";
	struct socks5_request r;

	(void)state;
	check_cut(BYTES(name), &r);
	assert_true(slice_equals(r.name, SLICE("a.test")));
	assert_int_equal(r.port, 443);
	assert_int_equal(r.address.family, 0);
	check_cut((const uint8_t *)v4, 10, &r);
	assert_int_equal(r.address.family, 4);
	assert_memory_equal(r.address.bytes, "\xc0\0\2\7", 4);
	assert_int_equal(r.port, 80);
	assert_int_equal(socks5_request_parse(BYTES(v4), &r), SOCKS5_DONE);
	assert_int_equal(r.used, 10);
	check_cut(BYTES(v6), &r);
	assert_int_equal(r.address.family, 6);
	assert_int_equal(r.port, 65535);
}

static void test_the_longest_name(void **state)
{
	uint8_t bytes[SOCKS5_REQUEST_MAX + 1] = {5, 1, 0, 3, 255};
	struct socks5_request r;

	(void)state;
	memset(bytes + 5, 'n', SOCKS5_NAME_MAX);
	bytes[SOCKS5_REQUEST_MAX - 1] = 1;
	bytes[SOCKS5_REQUEST_MAX] = 'x';
	check_cut(bytes, SOCKS5_REQUEST_MAX, &r);
	assert_int_equal(r.name.n, SOCKS5_NAME_MAX);
	assert_int_equal(r.port, 1);
	assert_int_equal(socks5_request_parse(bytes, sizeof(bytes), &r), SOCKS5_DONE);
	assert_int_equal(r.used, SOCKS5_REQUEST_MAX);
}

/* A name may hold anything here: its user checks it. */
static void test_a_name_of_any_bytes(void **state)
{
	struct socks5_request r;

	(void)state;
	assert_int_equal(socks5_request_parse(BYTES("\5\1\0\3\3\0\n\xff\0\1"), &r), SOCKS5_DONE);
	assert_int_equal(r.name.n, 3);
	assert_memory_equal(r.name.p, "\0\n\xff", 3);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum socks5_reply reply;
	} cases[] = {
	        {"\4", 1, SOCKS5_FAILURE},
	        {"\0", 1, SOCKS5_FAILURE},
	        {"GET / HTTP/1.1", 14, SOCKS5_FAILURE},
	        {"\5\2", 2, SOCKS5_NO_COMMAND}, /* BIND */
	        {"\5\2\0\1\0\0\0\0\0\x50", 10, SOCKS5_NO_COMMAND},
	        {"\5\3\1", 3, SOCKS5_FAILURE},
	        {"\5\3\0\2", 4, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\3\0\3\0", 5, SOCKS5_FAILURE},
	        {"\5\0", 2, SOCKS5_NO_COMMAND},
	        {"\5\4", 2, SOCKS5_NO_COMMAND},
	        {"\5\xf0", 2, SOCKS5_NO_COMMAND}, /* Tor's RESOLVE */
	        {"\5\xf1", 2, SOCKS5_NO_COMMAND},
	        {"\5\xff", 2, SOCKS5_NO_COMMAND},
	        {"\5\1\1", 3, SOCKS5_FAILURE},
	        {"\5\1\xff\1", 4, SOCKS5_FAILURE},
	        {"\5\1\0\0", 4, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\1\0\2", 4, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\1\0\5", 4, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\1\0\xff", 4, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\1\0\3\0", 5, SOCKS5_FAILURE}, /* no name */
	        {"\5\1\0\3\0\0\x50", 7, SOCKS5_FAILURE},
	        {"\5\1\0\3\1a\0\0", 8, SOCKS5_FAILURE}, /* port 0 */
	        {"\5\1\0\1\1\2\3\4\0\0", 10, SOCKS5_FAILURE},
	};
	struct socks5_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;

		assert_int_equal(socks5_request_parse(p, cases[i].n, &r), SOCKS5_BAD);
		assert_int_equal(r.reply, cases[i].reply);
		assert_true(*r.why);
		assert_int_equal(r.used, 0);
		assert_int_equal(r.name.n, 0);
		assert_int_equal(r.address.family, 0);
	}
}

static void test_logins(void **state)
{
	static const uint8_t whole[] = "\1\4user\6pa\0\xff:w\5\1";
	struct socks5_login l;

	(void)state;
	for (size_t cut = 0; cut < 13; cut++)
		assert_int_equal(socks5_login_parse(whole, cut, &l), SOCKS5_MORE);
	for (size_t n = 13; n < sizeof(whole); n++) {
		assert_int_equal(socks5_login_parse(whole, n, &l), SOCKS5_DONE);
		assert_int_equal(l.used, 13);
		assert_true(slice_equals(l.user, SLICE("user")));
		assert_true(slice_equals(l.password, SLICE("pa\0\xff:w")));
	}
	assert_int_equal(socks5_login_parse((const uint8_t *)"\1\0\0", 3, &l), SOCKS5_DONE);
	assert_int_equal(l.user.n + l.password.n, 0);
	for (unsigned version = 0; version < 256; version++) {
		const uint8_t first = (uint8_t)version;

		assert_int_equal(
		        socks5_login_parse(&first, 1, &l), version == 1 ? SOCKS5_MORE : SOCKS5_BAD);
		assert_int_equal(!*l.why, version == 1);
	}
}

static void test_the_longest_login(void **state)
{
	uint8_t bytes[SOCKS5_LOGIN_MAX] = {1, 255, [257] = 255};
	struct socks5_login l;

	(void)state;
	assert_int_equal(socks5_login_parse(bytes, sizeof(bytes) - 1, &l), SOCKS5_MORE);
	assert_int_equal(l.user.n + l.password.n + l.used, 0);
	assert_int_equal(socks5_login_parse(bytes, sizeof(bytes), &l), SOCKS5_DONE);
	assert_int_equal(l.used, SOCKS5_LOGIN_MAX);
	assert_int_equal(l.user.n, 255);
	assert_int_equal(l.password.n, 255);
}

static void test_offers_of_a_password(void **state)
{
	struct socks5_greeting g;

	(void)state;
	assert_int_equal(socks5_greeting_parse((const uint8_t *)"\5\1\2", 3, &g), SOCKS5_DONE);
	assert_true(g.password && !g.no_authentication);
	assert_int_equal(socks5_greeting_parse((const uint8_t *)"\5\2\0\2", 4, &g), SOCKS5_DONE);
	assert_true(g.password && g.no_authentication);
	assert_int_equal(socks5_greeting_parse((const uint8_t *)"\5\2\0\3", 4, &g), SOCKS5_DONE);
	assert_false(g.password);
}

static void test_associations(void **state)
{
	static const char v4[] = "\5\3\0\1\0\0\0\0\0\0more";
	struct socks5_request r;

	(void)state;
	check_cut((const uint8_t *)v4, 10, &r);
	assert_int_equal(r.command, SOCKS5_UDP_ASSOCIATE);
	assert_int_equal(r.address.family, 4);
	assert_int_equal(r.port, 0);
	assert_int_equal(socks5_request_parse(BYTES("\5\3\0\3\1a\1\2"), &r), SOCKS5_DONE);
	assert_int_equal(r.port, 258);
	assert_int_equal(socks5_request_parse(BYTES("\5\1\0\3\1a\1\2"), &r), SOCKS5_DONE);
	assert_int_equal(r.command, SOCKS5_CONNECT);
}

static void check_header(const uint8_t *p, size_t header, size_t n, struct socks5_header *out)
{
	uint8_t again[SOCKS5_HEADER_MAX];

	for (size_t cut = 0; cut < header; cut++) {
		assert_false(socks5_header_parse(p, cut, out));
		assert_int_equal(out->used + out->port + out->name.n + out->address.family, 0);
	}
	assert_true(socks5_header_parse(p, n, out));
	assert_int_equal(out->used, header);
	assert_int_equal(socks5_header_write(out->name, &out->address, out->port, again), header);
	assert_memory_equal(again, p, header);
}

static void test_headers(void **state)
{
	static const char name[] = "\0\0\0\3\6a.test\0\x35more", v4[] = "\0\0\0\1\xc0\0\2\7\0\x50",
	                  v6[] = "\0\0\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\7\xff\xff";
	uint8_t longest[SOCKS5_HEADER_MAX] = {0, 0, 0, 3, SOCKS5_NAME_MAX};
	struct socks5_header h;

	(void)state;
	check_header((const uint8_t *)name, 13, sizeof(name) - 1, &h);
	assert_true(slice_equals(h.name, SLICE("a.test")));
	assert_int_equal(h.port, 53);
	assert_int_equal(h.address.family, 0);
	check_header((const uint8_t *)v4, 10, 10, &h);
	assert_int_equal(h.address.family, 4);
	check_header((const uint8_t *)v6, 22, 22, &h);
	assert_int_equal(h.address.family, 6);
	assert_int_equal(h.port, 65535);
	memset(longest + 5, 'n', SOCKS5_NAME_MAX);
	longest[SOCKS5_HEADER_MAX - 1] = 1;
	check_header(longest, sizeof(longest), sizeof(longest), &h);
	assert_int_equal(h.name.n, SOCKS5_NAME_MAX);
}

static void test_headers_that_are_refused(void **state)
{
	static const char *const cases[] = {"\1\0\0\1\1\2\3\4\0\x50", "\0\1\0\1\1\2\3\4\0\x50",
	        "\0\0\1\1\1\2\3\4\0\x50", "\0\0\x80\1\1\2\3\4\0\x50", "\0\0\xff\1\1\2\3\4\0\x50",
	        "\0\0\0\0\1\2\3\4\0\x50", "\0\0\0\2\1\2\3\4\0\x50", "\0\0\0\5\1\2\3\4\0\x50",
	        "\0\0\0\xff\1\2\3\4\0\x50", "\0\0\0\1\1\2\3\4\0\0", "\0\0\0\3\0\0\x50\0\0\0",
	        "\0\0\0\3\4aaaa\0", "\0\0\0\4\1\2\3\4\0\x50"};
	struct socks5_header h;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_false(socks5_header_parse((const uint8_t *)cases[i], 10, &h));
		assert_int_equal(h.used + h.port + h.name.n + h.address.family, 0);
	}
}

static void test_answers(void **state)
{
	const struct ip v4 = {4, {192, 0, 2, 7}}, v6 = {6, {0x20, 1}};
	uint8_t out[SOCKS5_ANSWER_BYTES], whole[SOCKS5_ANSWER_MAX];

	(void)state;
	socks5_answer(SOCKS5_SUCCEEDED, out);
	assert_memory_equal(out, "\5\0\0\1\0\0\0\0\0\0", sizeof(out));
	socks5_answer(SOCKS5_NO_ADDRESS_TYPE, out);
	assert_memory_equal(out, "\5\x8\0\1\0\0\0\0\0\0", sizeof(out));
	assert_int_equal(socks5_answer_association(&v4, 258, whole), SOCKS5_ANSWER_BYTES);
	assert_memory_equal(whole, "\5\0\0\1\xc0\0\2\7\1\2", SOCKS5_ANSWER_BYTES);
	assert_int_equal(socks5_answer_association(&v6, 1, whole), SOCKS5_ANSWER_MAX);
	assert_memory_equal(whole, "\5\0\0\4\x20\1\0", 7);
}

static void test_what_a_client_asks(void **state)
{
	char token[SOCKS5_TOKEN_MAX + 1];
	uint8_t out[SOCKS5_ASK_MAX];
	struct socks5_greeting g;
	struct socks5_request r;
	struct socks5_login l;

	(void)state;
	memset(token, 't', sizeof(token));
	assert_int_equal(socks5_ask_association(SLICE(""), out), 0);
	assert_int_equal(socks5_ask_association(slice_of(token, sizeof(token)), out), 0);
	for (size_t n = 1; n <= SOCKS5_TOKEN_MAX; n++) {
		const size_t size = socks5_ask_association(slice_of(token, n), out);
		size_t at;

		assert_int_equal(socks5_greeting_parse(out, size, &g), SOCKS5_DONE);
		assert_true(g.password && !g.no_authentication);
		at = g.used;
		assert_int_equal(socks5_login_parse(out + at, size - at, &l), SOCKS5_DONE);
		assert_int_equal(l.password.n, n > 255 ? n - 255 : n);
		assert_true(n > 255 ? l.user.n == 255 : slice_equals(l.user, SLICE("session")));
		at += l.used;
		assert_int_equal(socks5_request_parse(out + at, size - at, &r), SOCKS5_DONE);
		assert_int_equal(r.command, SOCKS5_UDP_ASSOCIATE);
		assert_int_equal(r.port, 0);
		assert_int_equal(at + r.used, size);
	}
}

static void test_what_a_server_answers(void **state)
{
	static const char v4[] = "\5\2\1\0\5\0\0\1\xc0\0\2\7\xa0\x28more",
	                  v6[] = "\5\2\1\0\5\0\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\7\0\1";
	struct socks5_association a;

	(void)state;
	for (size_t n = 0; n < 14; n++) {
		assert_int_equal(socks5_association_parse((const uint8_t *)v4, n, &a), SOCKS5_MORE);
		assert_int_equal(a.address.family + a.port + a.used, 0);
	}
	assert_int_equal(socks5_association_parse(BYTES(v4), &a), SOCKS5_DONE);
	assert_int_equal(a.used, 14);
	assert_int_equal(a.port, 0xa028);
	assert_memory_equal(a.address.bytes, "\xc0\0\2\7", 4);
	for (size_t n = 0; n < SOCKS5_ANSWERS_MAX; n++)
		assert_int_equal(socks5_association_parse((const uint8_t *)v6, n, &a), SOCKS5_MORE);
	assert_int_equal(socks5_association_parse(BYTES(v6), &a), SOCKS5_DONE);
	assert_int_equal(a.used, SOCKS5_ANSWERS_MAX);
	assert_int_equal(a.address.family, 6);
}

static void test_answers_that_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool login_wrong;
		uint8_t reply;
	} cases[] = {
	        {"\4", 1, false, 0},
	        {"HTTP/1.1 400", 12, false, 0},
	        {"\5\0", 2, false, 0},
	        {"\5\xff", 2, false, 0},
	        {"\5\2\0", 3, false, 0},
	        {"\5\2\5\0", 4, false, 0},
	        {"\5\2\1\1", 4, true, 0},
	        {"\5\2\1\xff\5\0\0\1\1\2\3\4\0\1", 14, true, 0},
	        {"\5\2\1\0\4", 5, false, 0},
	        {"\5\2\1\0\5\1", 6, false, 1},
	        {"\5\2\1\0\5\2\0\1\0\0\0\0\0\0", 14, false, 2},
	        {"\5\2\1\0\5\7", 6, false, 7},
	        {"\5\2\1\0\5\xff", 6, false, 255},
	        {"\5\2\1\0\5\0\1", 7, false, 0},
	        {"\5\2\1\0\5\0\0\0", 8, false, 0},
	        {"\5\2\1\0\5\0\0\3\1a\0\1", 12, false, 0}, /* by a name */
	        {"\5\2\1\0\5\0\0\1\1\2\3\4\0\0", 14, false, 0},
	};
	struct socks5_association a;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *p = (const uint8_t *)cases[i].bytes;

		assert_int_equal(socks5_association_parse(p, cases[i].n, &a), SOCKS5_BAD);
		assert_int_equal(a.login_wrong, cases[i].login_wrong);
		assert_int_equal(a.reply, cases[i].reply);
		assert_true(*a.why);
		assert_int_equal(a.address.family + a.port + a.used, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_greetings),
	        cmocka_unit_test(test_a_greeting_of_all_methods),
	        cmocka_unit_test(test_greetings_of_other_protocols),
	        cmocka_unit_test(test_requests),
	        cmocka_unit_test(test_the_longest_name),
	        cmocka_unit_test(test_a_name_of_any_bytes),
	        cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_logins),
	        cmocka_unit_test(test_the_longest_login),
	        cmocka_unit_test(test_offers_of_a_password),
	        cmocka_unit_test(test_associations),
	        cmocka_unit_test(test_headers),
	        cmocka_unit_test(test_headers_that_are_refused),
	        cmocka_unit_test(test_answers),
	        cmocka_unit_test(test_what_a_client_asks),
	        cmocka_unit_test(test_what_a_server_answers),
	        cmocka_unit_test(test_answers_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
