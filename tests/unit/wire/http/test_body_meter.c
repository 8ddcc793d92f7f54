/* SPDX-License-Identifier: Apache-2.0 */
/* Where the body of a request ends, however it is cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vethguard/wire/body_meter.h"

/* Takes text in pieces of step bytes. Returns how many bytes belong to the body. */
static size_t measure(const struct proxy_head *head, const char *text, size_t n, size_t step,
        enum body_meter_state *end)
{
	struct body_meter m;
	size_t used = 0;

	body_meter_begin(&m, head);
	while (used < n && m.state != BODY_METER_DONE && m.state != BODY_METER_BAD) {
		const size_t piece = n - used < step ? n - used : step;
		const size_t took = body_meter_take(&m, (const uint8_t *)text + used, piece);

		assert_true(
		        took == piece || m.state == BODY_METER_DONE || m.state == BODY_METER_BAD);
		used += took;
	}
	*end = m.state;
	return used;
}

/* body: what belongs to it; behind it another request comes. */
static void ends(const struct proxy_head *head, const char *body)
{
	char text[512];
	enum body_meter_state state;
	int n = snprintf(text, sizeof(text), "%sGET / HTTP/1.1\r\n", body);

	for (size_t step = 1; step <= (size_t)n; step++) {
		assert_int_equal(measure(head, text, (size_t)n, step, &state), strlen(body));
		assert_int_equal(state, BODY_METER_DONE);
	}
	for (size_t cut = 0; cut < strlen(body); cut++) {
		assert_int_equal(measure(head, text, cut, 3, &state), cut);
		assert_int_not_equal(state, BODY_METER_DONE);
		assert_int_not_equal(state, BODY_METER_BAD);
	}
}

static const struct proxy_head chunked = {.body = PROXY_BODY_CHUNKED};

static void test_ends(void **state)
{
	const struct proxy_head none = {.body = PROXY_BODY_NONE},
	                        length = {.body = PROXY_BODY_LENGTH, .length = 5};

	(void)state;
	ends(&none, "");
	ends(&length, "a\r\n0\r");
	ends(&chunked, "0\r\n\r\n");
	ends(&chunked, "000\r\n\r\n");
	ends(&chunked, "3\r\nabc\r\n0\r\n\r\n");
	ends(&chunked, "1\r\n0\r\n00b\r\n0\r\n\r\n0\r\n\r\n\r\r\n0\r\n\r\n");
	ends(&chunked, "0\r\nA: b\r\nC:d\r\n\r\n");
}

static void test_malformed(void **state)
{
	static const char *const cases[] = {"\r\n", "x", " 1\r\n", "1 \r\n", "1;a\r\n", "1\n",
	        "-1\r\n", "0x1\r\n", "1\r\r\n", "1\rx", "1\r\nab", "1\r\na\n", "1\r\na\rx",
	        "1\r\na\r\n\r\n", "0\r\n\n", "0\r\nA: b\n\r\n", "0\r\nA: b\r\r\n", "0\r\n\r\r",
	        "0\r\n\rx", "1000000000000000\r\n", "fffffffffffffffff\r\n"};
	enum body_meter_state end;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t step = 1; step < 4; step++) {
			measure(&chunked, cases[i], strlen(cases[i]), step, &end);
			if (end != BODY_METER_BAD)
				fail_msg("%s is taken", cases[i]);
		}
}

static void test_bounds(void **state)
{
	static char text[BODY_METER_TRAILERS_MAX + 16] = "0\r\nA: ";
	enum body_meter_state end;
	size_t n = strlen(text);

	(void)state;
	memset(text + n, 'x', 3 + BODY_METER_TRAILERS_MAX - n - 4);
	memcpy(text + 3 + BODY_METER_TRAILERS_MAX - 4, "\r\n\r\n", 4);
	assert_int_equal(measure(&chunked, text, 3 + BODY_METER_TRAILERS_MAX, 999, &end),
	        3 + BODY_METER_TRAILERS_MAX);
	assert_int_equal(end, BODY_METER_DONE);
	memcpy(text + 3 + BODY_METER_TRAILERS_MAX - 4, "x\r\n\r\n", 5);
	measure(&chunked, text, 4 + BODY_METER_TRAILERS_MAX, 999, &end);
	assert_int_equal(end, BODY_METER_BAD);
	measure(&chunked, "fffffffffffffff\r\nx", 18, 18, &end);
	assert_int_equal(end, BODY_METER_CHUNK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ends),
	        cmocka_unit_test(test_malformed),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
