/* SPDX-License-Identifier: Apache-2.0 */
/* Jars of sealed tokens: what goes in, the placeholders, what makes room, and bytes that are
 * not a jar. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vethguard/credential/jar.h"

#define HOLDER "vethguard-login-0123456789abcdef0123456789abcdef"
#define HEAD "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0."
#define SIGNED HEAD "c2lnbmF0dXJlLW9mLXRoaXM"

static char text_memory[2 * JAR_TOKEN_MAX];

static struct slice text_of(const struct jar_token *token)
{
	struct buf out = {.mem = (uint8_t *)text_memory,
	        .cap = sizeof(text_memory),
	        .max = sizeof(text_memory)};

	assert_int_equal(jar_write_text(&out, token), 0);
	return buf_slice(&out);
}

static void put(struct secret *jar, struct slice value)
{
	char end[JAR_END_MAX];
	struct jar_token token;

	jar_seal(&token, value, SLICE(HOLDER), end);
	assert_int_equal(jar_add(jar, &token), 0);
	assert_true(jar_is_sound(secret_slice(jar)));
}

static size_t count(const struct secret *jar)
{
	struct slice rest = secret_slice(jar);
	struct jar_token token;
	size_t n = 0;

	while (jar_next(&rest, &token))
		n++;
	assert_int_equal(rest.n, 0);
	return n;
}

static void test_texts(void **state)
{
	char end[JAR_END_MAX], other[JAR_END_MAX];
	struct jar_token token, again;
	struct slice text;

	(void)state;
	jar_seal(&token, SLICE("gho_0123456789"), SLICE(HOLDER), end);
	assert_false(token.jwt);
	text = text_of(&token);
	assert_true(slice_starts_with(text, SLICE(HOLDER "-")));
	assert_true(text.n >= sizeof(HOLDER) + 16 && text.n % 3 == 0);
	jar_seal(&again, SLICE("gho_0123456789"), SLICE(HOLDER), other);
	assert_false(slice_equals(token.end, again.end));
	jar_seal(&token, SLICE(SIGNED), SLICE(HOLDER), end);
	assert_true(token.jwt);
	text = text_of(&token);
	assert_true(slice_starts_with(text, SLICE(HEAD)));
	/* base64 of "vethguard-login-" */
	assert_true(slice_starts_with(
	        slice_of(text.p + sizeof(HEAD) - 1, 21), SLICE("dmV0aGd1YXJkLWxvZ2lu")));
	assert_null(memchr(text.p, '=', text.n));
}

static void test_what_is_no_jwt(void **state)
{
	static const struct slice values[] = {{"a.b.c0123456", 12},
	        {"eyJhbGciOiJub25lIn0.eyJ9.", 25}, {"eyJhbGciOiJub25lIn0.eyJ9.short", 30},
	        {"eyJhbGciOiJub25lIn0.eyJ9", 24}, {"eyJh.eyJ9.c2lnbmF0dXJl.x", 24},
	        {"eyJh.eyJ9.c2lnb=F0dXJl", 22}, {"eyJh..c2lnbmF0dXJl", 18},
	        {"eyJh.e+J9.c2lnbmF0dXJl", 22}};
	char end[JAR_END_MAX];
	struct jar_token token;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		jar_seal(&token, values[i], SLICE(HOLDER), end);
		assert_false(token.jwt);
		assert_true(slice_starts_with(text_of(&token), SLICE(HOLDER)));
	}
}

static void test_bounds(void **state)
{
	static char longest[JAR_TOKEN_MAX + 1];
	static const struct slice never[] = {{"", 0}, {"short", 5}, {"with blank", 10},
	        {"with\nline", 9}, {"with\0nul", 8}, {"with\x7f\x7f", 6}, {"caf\xc3\xa9-0", 7}};
	struct jar_token token = {.end = SLICE("x")};
	struct secret jar = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		token.value = never[i];
		assert_false(jar_can_hold(never[i]));
		assert_int_equal(jar_add(&jar, &token), -EINVAL);
	}
	memset(longest, 'x', sizeof(longest));
	assert_true(jar_can_hold(slice_of(longest, JAR_TOKEN_MAX)));
	assert_false(jar_can_hold(slice_of(longest, JAR_TOKEN_MAX + 1)));
	token.value = SLICE("a-good-value");
	token.end = SLICE("");
	assert_int_equal(jar_add(&jar, &token), -EINVAL);
	token.end = slice_of(longest, JAR_END_MAX + 1);
	assert_int_equal(jar_add(&jar, &token), -EINVAL);
	assert_null(jar.p);
	put(&jar, slice_of(longest, JAR_TOKEN_MAX));
	secret_free(&jar);
}

/* The newest stay, also of tokens that are as long as they may be. */
static void test_room(void **state)
{
	static char value[JAR_TOKEN_MAX];
	struct secret jar = {0};
	struct jar_token token;

	(void)state;
	for (int i = 0; i < 100; i++) {
		char small[16];

		put(&jar, slice_of(small, (size_t)snprintf(small, sizeof(small), "token-%04d", i)));
	}
	assert_int_equal(count(&jar), JAR_TOKENS_MAX);
	assert_false(jar_has(secret_slice(&jar), SLICE("token-0075"), &token));
	assert_true(jar_has(secret_slice(&jar), SLICE("token-0076"), &token));
	assert_true(jar_has(secret_slice(&jar), SLICE("token-0099"), &token));
	for (int i = 0; i < 10; i++) {
		memset(value, 'a' + i, sizeof(value));
		put(&jar, slice_of(value, sizeof(value)));
		assert_true(jar.n <= JAR_MAX);
	}
	assert_int_equal(count(&jar), 3);
	assert_true(jar_has(secret_slice(&jar), slice_of(value, sizeof(value)), &token));
	secret_free(&jar);
}

/* A token that is there already moves behind the others. */
static void test_again(void **state)
{
	struct slice rest;
	struct secret jar = {0};
	struct jar_token token, last;

	(void)state;
	put(&jar, SLICE("first-token"));
	put(&jar, SLICE("other-token"));
	assert_true(jar_has(secret_slice(&jar), SLICE("first-token"), &token));
	assert_int_equal(jar_add(&jar, &token), 0);
	assert_int_equal(count(&jar), 2);
	rest = secret_slice(&jar);
	assert_true(jar_next(&rest, &last) && slice_equals(last.value, SLICE("other-token")));
	assert_true(jar_next(&rest, &last) && slice_equals(last.value, SLICE("first-token")));
	secret_free(&jar);
}

static void test_find(void **state)
{
	static char page[1024];
	struct secret jar = {0};
	struct jar_token token, found;
	size_t at, n;
	struct slice text;

	(void)state;
	put(&jar, SLICE("first-token"));
	put(&jar, SLICE(SIGNED));
	assert_false(jar_find(secret_slice(&jar), SLICE(""), &at, &n, &found));
	assert_false(jar_find(secret_slice(&jar), SLICE(HOLDER), &at, &n, &found));
	assert_false(jar_find(secret_slice(&jar), SLICE(SIGNED), &at, &n, &found));
	for (int i = 0; i < 2; i++) {
		assert_true(jar_has(
		        secret_slice(&jar), i ? SLICE(SIGNED) : SLICE("first-token"), &token));
		text = text_of(&token);
		for (size_t cut = 0; cut < text.n; cut++)
			assert_false(jar_find(
			        secret_slice(&jar), slice_of(text.p, cut), &at, &n, &found));
		memcpy(page, "Bearer ", 7);
		memcpy(page + 7, text.p, text.n);
		assert_true(
		        jar_find(secret_slice(&jar), slice_of(page, 7 + text.n), &at, &n, &found));
		assert_int_equal(at, 7);
		assert_int_equal(n, text.n);
		assert_true(slice_equals(found.value, token.value));
	}
	/* Claims that were changed. */
	page[8] ^= 1;
	assert_false(jar_find(secret_slice(&jar), slice_of(page, 7 + text.n), &at, &n, &found));
	secret_free(&jar);
}

static void test_damaged(void **state)
{
	struct secret jar = {0};
	static uint8_t bytes[256];

	(void)state;
	put(&jar, SLICE("first-token"));
	put(&jar, SLICE("other-token"));
	assert_true(jar_is_sound(SLICE("")));
	for (size_t n = 1; n < jar.n; n++)
		if (n != jar.n / 2)
			assert_false(jar_is_sound(slice_of(jar.p, n)));
	memcpy(bytes, jar.p, jar.n);
	bytes[0] = 2;
	assert_false(jar_is_sound(slice_of(bytes, jar.n)));
	bytes[0] = 0;
	bytes[1] = 0;
	assert_false(jar_is_sound(slice_of(bytes, jar.n)));
	bytes[1] = 255;
	assert_false(jar_is_sound(slice_of(bytes, jar.n)));
	secret_free(&jar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_texts),
	        cmocka_unit_test(test_what_is_no_jwt),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_room),
	        cmocka_unit_test(test_again),
	        cmocka_unit_test(test_find),
	        cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
