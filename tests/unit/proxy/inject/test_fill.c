/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in which placeholders are replaced: which ones, what they have to look like, and what is
 * sent of them. The integration tests have what replaces them on a connection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/inject/fill.h"

static struct http_fields fields_of(const char *type, const char *coding)
{
	struct http_fields fields = {.count = 0};

	if (type) {
		fields.items[0] = (struct http_field){.name = SLICE("content-type"),
		        .value = slice_from_string(type),
		        .known = HTTP_CONTENT_TYPE};
		fields.count = 1;
	}
	if (coding)
		fields.items[fields.count++] =
		        (struct http_field){.name = SLICE("Content-Encoding"),
		                .value = slice_from_string(coding),
		                .known = HTTP_OTHER};
	return fields;
}

static void test_kinds(void **state)
{
	static const struct {
		const char *type, *in;
		bool sealed;
		enum fill_form form;
		const char *boundary;
	} rows[] = {
	        {"application/json", "json", false, FILL_JSON, ""},
	        {"Application/JSON ; charset=utf-8", "json", false, FILL_JSON, ""},
	        {"application/vnd.api+json", "form json", false, FILL_JSON, ""},
	        {"application/json", "form multipart", false, FILL_NONE, ""},
	        {"application/json", "header", true, FILL_JSON, ""},
	        {"application/jsonx", "json", false, FILL_NONE, ""},
	        {"text/json", "json", false, FILL_NONE, ""},
	        {"+json", "json", false, FILL_NONE, ""},
	        {NULL, "form json multipart", true, FILL_NONE, ""},
	        {"", "form json multipart", true, FILL_NONE, ""},
	        {"application/x-www-form-urlencoded", "form", false, FILL_FORM, ""},
	        {"application/x-www-form-urlencoded", "header", true, FILL_FORM, ""},
	        {"application/x-www-form-urlencoded", "json", false, FILL_NONE, ""},
	        {"multipart/form-data; boundary=abc", "multipart", false, FILL_MULTIPART, "abc"},
	        {"multipart/form-data; a=b; BOUNDARY=\"a,b\"", "multipart", false, FILL_MULTIPART,
	                "a,b"},
	        {"multipart/form-data; boundary=\"a b\"", "multipart", false, FILL_MULTIPART, ""},
	        {"multipart/form-data; boundary=\"a\\\"b\"", "multipart", false, FILL_MULTIPART,
	                ""},
	        {"multipart/form-data; boundary=", "multipart", false, FILL_MULTIPART, ""},
	        {"multipart/form-data", "multipart", false, FILL_MULTIPART, ""},
	        {"multipart/mixed; boundary=abc", "multipart", false, FILL_NONE, ""},
	        {"multipart/form-data; boundary=abc", "form json", true, FILL_NONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_credential spec = {.inject = POLICY_INJECT_PLACEHOLDER,
		        .field = slice_from_string(rows[i].in)};
		struct http_fields fields = fields_of(rows[i].type, NULL);
		struct fill_kind kind = fill_kind_of(&fields, &spec, rows[i].sealed);

		assert_int_equal(kind.form, rows[i].form);
		assert_true(slice_equals(kind.boundary, slice_from_string(rows[i].boundary)));
		spec.inject = POLICY_INJECT_HEADER;
		assert_int_equal(fill_kind_of(&fields, &spec, rows[i].sealed).form, FILL_NONE);
	}
}

static void test_coded(void **state)
{
	static const struct {
		const char *coding;
		bool coded;
	} rows[] = {{NULL, false}, {"identity", false}, {"Identity", false}, {"gzip", true},
	        {"identity, gzip", true}, {"br", true}, {"x", true}, {"", true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct http_fields fields = fields_of("application/json", rows[i].coding);

		assert_int_equal(fill_is_coded(&fields), rows[i].coded);
	}
}

static void test_multipart(void **state)
{
	static const struct {
		const char *body;
		bool good;
	} rows[] = {
	        {"--b--", true},
	        {"--b--\r\nwhat follows", true},
	        {"--b\r\nA: b\r\n\r\nx\r\n--b--", true},
	        {"--b\r\n\r\n\r\nx\r\n--b--", true},
	        {"--b\r\nA: b\r\n\r\n\r\n--b \t\r\nC: d\r\n\r\ny\r\n--b--\r\n", true},
	        {"", false},
	        {"--", false},
	        {"--b", false},
	        {"b--", false},
	        {"--c--", false},
	        {"--bb\r\nA: b\r\n\r\nx\r\n--b--", false},
	        {" --b--", false},
	        {"x\r\n--b\r\nA: b\r\n\r\nx\r\n--b--", false},
	        {"--b\nA: b\n\nx\n--b--", false},
	        {"--b\r\nA: b\r\nx\r\n--b--", false},
	        {"--b\r\nx\r\n--b--", false},
	        {"--b\r\nA: b\r\n\r\nx\r\n--b", false},
	        {"--b\r\nA: b\r\n\r\nx\r\n--bx\r\n\r\ny\r\n--b--", false},
	        {"--b\r\nA: b\r\n\r\nx--b--", false},
	};
	const struct fill_kind kind = {FILL_MULTIPART, SLICE("b")},
	                       none = {FILL_MULTIPART, SLICE("")};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *why = fill_check(&kind, slice_from_string(rows[i].body));

		assert_int_equal(why == NULL, rows[i].good);
		assert_non_null(fill_check(&none, slice_from_string(rows[i].body)));
	}
}

static void test_other_bodies(void **state)
{
	static const char *const odd[] = {"", "{\"a\": [1]", "{\"a\": 1, \"\\u0061\": 2}",
	        "\xef\xbb\xbf{}", "[\"\\ud83d\"]", "[\"\\u0000\"]", "[\"\xff\"]", "{} x"};
	const struct fill_kind json = {FILL_JSON, SLICE("")}, form = {FILL_FORM, SLICE("")};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		assert_non_null(fill_check(&json, slice_from_string(odd[i])));
	assert_null(fill_check(&json, SLICE("{\"a\": [1]}")));
	assert_null(fill_check(&json, SLICE("\"a\"")));
	assert_null(fill_check(&form, SLICE("")));
	assert_null(fill_check(&form, SLICE("any%thing")));
}

/* What is sent, in pieces that begin anywhere. */
static void test_pieces(void **state)
{
	const struct slice body = SLICE("0P1QR2"), whole = SLICE("0value1x2");
	const struct fill fill = {.length = 9,
	        .count = 3,
	        .gaps = {{1, 1, SLICE("value")}, {3, 1, SLICE("")}, {4, 1, SLICE("x")}}};

	(void)state;
	for (size_t from = 0; from <= whole.n; from++) {
		size_t at = from;
		struct slice piece;

		while ((piece = fill_from(&fill, body, at)).n) {
			assert_true(piece.n <= whole.n - at);
			assert_memory_equal(piece.p, whole.p + at, piece.n);
			at += piece.n;
		}
		assert_int_equal(at, whole.n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_coded),
	        cmocka_unit_test(test_multipart),
	        cmocka_unit_test(test_other_bodies),
	        cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
