/* SPDX-License-Identifier: Apache-2.0 */
/* challenge: lists of challenges as servers write them, and lists that two clients could read in
 * two ways. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vethguard/wire/challenge.h"

struct row {
	const char *text;
	/* "SCHEME REALM COUNT" of each challenge, with a '|' between. */
	const char *found;
};

static void test_read(void **state)
{
	static const struct row rows[] = {
	        {"", ""},
	        {" , ,", ""},
	        {"Basic", "Basic  0"},
	        {"Negotiate, Basic realm=x", "Negotiate  0|Basic x 1"},
	        {"Bearer "
	         "realm=\"https://a/token\",service=\"s\",scope=\"repository:a/b:pull,push\"",
	                "Bearer https://a/token 3"},
	        {"bearer  Realm = \"a\" , service = b ,, error=\"c\"", "bearer a 3"},
	        {"Basic realm=\"a, Bearer realm=b\"", "Basic a, Bearer realm=b 1"},
	        {"Basic realm=\"a\", Bearer realm=\"b\", Digest x=y",
	                "Basic a 1|Bearer b 1|Digest  1"},
	        {"Negotiate abc+/~-._==, Bearer realm=r", "Negotiate  0|Bearer r 1"},
	        {"Bearer realm=\"a\\\"b\\\\\"", "Bearer a\"b\\ 1"},
	        {"Bearer realm=\"\"", "Bearer  1"},
	        {"Bearer realm=", "Bearer  0"}, /* a token68 */
	        {"Bearer realm==,x", "Bearer  0|x  0"},
	        {"Bearer x=1,Negotiate", "Bearer  1|Negotiate  0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct slice rest = slice_from_string(rows[i].text);
		char found[256] = "";
		struct challenge c;
		size_t n = 0;
		int rc;

		while ((rc = challenge_next(&rest, &c)) > 0)
			n += (size_t)snprintf(found + n, sizeof(found) - n, "%s%.*s %.*s %zu",
			        n ? "|" : "", SLICE_ARG(c.scheme), SLICE_ARG(c.realm),
			        c.parameters);
		assert_int_equal(rc, 0);
		assert_string_equal(found, rows[i].found);
	}
}

static int read_all(struct slice text)
{
	struct challenge c;
	int rc;

	while ((rc = challenge_next(&text, &c)) > 0)
		;
	return rc;
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
	        "Bearer realm=\"a",
	        "Bearer realm=\"a\\",
	        "Bearer realm=\"a\"b",
	        "Bearer realm=\"a\" service=b",
	        "Bearer realm=a realm=b",
	        "Bearer realm=a,realm=b",
	        "Bearer realm=a, REALM=\"a\"",
	        "Bearer x=1, X=2",
	        "Bearer realm=\"a\x01\"",
	        "Bearer realm=\"a\x7f\"",
	        "Bearer realm=\"a\\\n\"",
	        "Bearer realm=a/b",
	        "Bearer abc def",
	        "Bearer =a",
	        "Bearer \"a\"",
	        "\"Bearer\" realm=a",
	        "=",
	        "realm=a",
	        "Bearer/realm=a",
	        "Bearer\trealm=a",
	        "B\xc3\xa4r realm=a",
	        "Bearer a=b=c",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (read_all(slice_from_string(texts[i])) != -EBADMSG)
			fail_msg("%s", texts[i]);
}

static void test_bounds(void **state)
{
	static char text[CHALLENGE_FIELD_MAX + 2];
	size_t n;

	(void)state;
	/* the field */
	memset(text, ' ', sizeof(text));
	assert_int_equal(read_all(slice_of(text, CHALLENGE_FIELD_MAX)), 0);
	assert_int_equal(read_all(slice_of(text, CHALLENGE_FIELD_MAX + 1)), -EBADMSG);
	/* the realm, quoted and as a word */
	for (size_t quoted = 0; quoted < 2; quoted++)
		for (size_t more = 0; more < 2; more++) {
			n = (size_t)snprintf(
			        text, sizeof(text), "Bearer realm=%s", quoted ? "\"" : "");
			memset(text + n, 'a', CHALLENGE_REALM_MAX + more);
			n += CHALLENGE_REALM_MAX + more;
			text[n] = '"';
			assert_int_equal(read_all(slice_of(text, n + quoted)), more ? -EBADMSG : 0);
		}
	/* other values are not kept, so they may be as long as the field */
	n = (size_t)snprintf(text, sizeof(text), "Bearer scope=");
	memset(text + n, 'a', CHALLENGE_FIELD_MAX - n);
	assert_int_equal(read_all(slice_of(text, CHALLENGE_FIELD_MAX)), 0);
	/* parameters */
	for (unsigned count = CHALLENGE_PARAMETERS_MAX; count < CHALLENGE_PARAMETERS_MAX + 2;
	        count++) {
		n = (size_t)snprintf(text, sizeof(text), "Bearer ");
		for (unsigned i = 0; i < count; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "p%u=v,", i);
		assert_int_equal(read_all(slice_of(text, n)),
		        count > CHALLENGE_PARAMETERS_MAX ? -EBADMSG : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_read),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
