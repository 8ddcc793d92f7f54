/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "vethguard/wire/seal.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define START                                                                                      \
	"{\"time\":1732120000123,\"type_uid\":400203,\"metadata\":{\"uid\":\"00000000000000aa\"}," \
	"\"x\":1"

static struct seal_link link_of(bool has_previous)
{
	struct seal_link link = {.has_previous = has_previous, .type_uid = 600203};

	strcpy(link.chain_uid, "00112233445566778899aabbccddeeff");
	strcpy(link.uid, "00000000000000bb");
	strcpy(link.hash, HASH);
	return link;
}

static struct slice make(struct buf *out, const char *start, bool has_previous)
{
	struct seal_link link = link_of(has_previous);

	buf_init(out, 4096);
	assert_int_equal(buf_append(out, start, strlen(start)), 0);
	assert_int_equal(seal_append_link(out, &link), 0);
	assert_int_equal(seal_append_hash(out, HASH), 0);
	assert_int_equal(buf_bytes(out)[out->len - 1], '\n');
	return slice_of(buf_bytes(out), out->len - 1);
}

static void test_what_is_appended_is_parsed(void **state)
{
	(void)state;
	for (int previous = 0; previous < 2; previous++) {
		struct buf out;
		struct seal seal;

		assert_int_equal(seal_parse(make(&out, START, previous), &seal), 0);
		assert_int_equal(seal.own.type_uid, 400203);
		assert_string_equal(seal.own.uid, "00000000000000aa");
		assert_string_equal(seal.own.hash, HASH);
		assert_string_equal(seal.own.chain_uid, "00112233445566778899aabbccddeeff");
		assert_int_equal(seal.previous.has_previous, previous);
		if (previous) {
			assert_string_equal(seal.previous.hash, HASH);
			assert_string_equal(seal.previous.uid, "00000000000000bb");
			assert_int_equal(seal.previous.type_uid, 600203);
		}
		buf_fini(&out);
	}
}

/* Every byte outside of the free middle is fixed or of a narrow alphabet. */
static void test_any_changed_byte_of_the_form_is_refused(void **state)
{
	struct buf out;
	struct seal seal;
	struct slice line = make(&out, START, true);
	size_t middle = strlen(START) - strlen("},\"x\":1");

	(void)state;
	for (size_t i = 0; i < line.n; i++) {
		char *byte = (char *)buf_bytes(&out) + i, saved = *byte;

		if (i >= middle && i < strlen(START))
			continue;
		*byte = '!';
		assert_int_equal(seal_parse(line, &seal), -EBADMSG);
		*byte = saved;
	}
	assert_int_equal(seal_parse(line, &seal), 0);
	buf_fini(&out);
}

static void test_every_cut_is_refused(void **state)
{
	struct buf out;
	struct seal seal;
	struct slice line = make(&out, START, true);

	(void)state;
	for (size_t n = 0; n < line.n; n++)
		assert_int_equal(seal_parse(slice_of(line.p, n), &seal), -EBADMSG);
	for (size_t skip = 1; skip <= line.n; skip++)
		assert_int_equal(
		        seal_parse(slice_of(line.p + skip, line.n - skip), &seal), -EBADMSG);
	buf_fini(&out);
}

static void test_other_starts_are_refused(void **state)
{
	static const char *const starts[] = {
	        "",
	        "{",
	        "{\"type_uid\":400203,\"time\":1,\"metadata\":{\"uid\":\"00000000000000aa\"}",
	        "{\"time\":,\"type_uid\":400203,\"metadata\":{\"uid\":\"00000000000000aa\"}",
	        "{\"time\":1,\"type_uid\":-1,\"metadata\":{\"uid\":\"00000000000000aa\"}",
	        "{\"time\":1,\"type_uid\":99999999999999999999,\"metadata\":{\"uid\":"
	        "\"00000000000000aa\"}",
	        "{\"time\":1,\"type_uid\":1,\"metadata\":{\"uid\":\"0000000000000AA\"}",
	        "{\"time\":1,\"type_uid\":1,\"metadata\":{\"uid\":\"00000000000000aa0\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct buf out;
		struct seal seal;

		assert_int_equal(seal_parse(make(&out, starts[i], true), &seal), -EBADMSG);
		buf_fini(&out);
	}
}

static void test_no_room(void **state)
{
	struct seal_link link = link_of(true);
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	assert_true(seal_append_link(&out, &link) < 0);
	assert_true(seal_append_hash(&out, HASH) < 0);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_is_appended_is_parsed),
	        cmocka_unit_test(test_any_changed_byte_of_the_form_is_refused),
	        cmocka_unit_test(test_every_cut_is_refused),
	        cmocka_unit_test(test_other_starts_are_refused),
	        cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
