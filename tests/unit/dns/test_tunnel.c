/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: encoded names and floods of names are reported once a minute; names of real services
 * are not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "vethguard/dns/tunnel.h"

static void parents(void **state)
{
	static const char *const rows[][2] = {{"example.com", "example.com"},
	        {"a.b.example.com", "example.com"}, {"com", "com"}, {"", ""},
	        {"a.b.example.co.uk", "example.co.uk"}, {"x.example.de", "example.de"},
	        {"co.uk", "co.uk"}, {"a.com.au", "a.com.au"}, {"a.b.github.io", "github.io"},
	        {"a.example.io", "example.io"}, {".", "."}, {"..", "."}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice parent = dns_tunnel_parent(slice_from_string(rows[i][0]));

		if (!slice_equals(parent, slice_from_string(rows[i][1])))
			fail_msg("%s: %.*s", rows[i][0], SLICE_ARG(parent));
	}
}

static const char *const encoded[] = {
        "mzxw6ytboi2xg43fnzthe2ldnbsw4ylomqqho33s.evil.example",       /* base32 */
        "68656c6c6f20776f726c64207365637265742074.evil.example",       /* hex */
        "aGVsbG8gd29ybGQgdGhpcyBpcyBhIHNlY3JldCB2YWx1ZQ.evil.example", /* base64 */
        "MZXW6YTBOI2XG43FNZTHE2LDNBSW4YLOMQQHO33S.evil.example",
        "mzxw6ytboi2xg43f.nzthe2ldnbsw4ylo.mqqho33sgeztcmzu.gq2dinbvgu2tmnzx.ha4dsojqgaydamrt."
        "gm2dimzu.gezdgnbv.evil.example",
};

static const char *const ordinary[] = {
        "api.github.com",
        "files.pythonhosted.org",
        "registry-1.docker.io",
        "raw.githubusercontent.com",
        "pipelinesghubeus22.actions.githubusercontent.com",
        "us-east-1.console.aws.amazon.com",
        "ec2-203-0-113-25.compute-1.amazonaws.com",
        "d111111abcdef8.cloudfront.net",
        "my-very-long-internal-load-balancer-name.us-west-2.elb.amazonaws.com",
        "some-quite-long-and-wordy-subdomain-of-a-blog.example.com",
        "0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example.com",
        "localhost",
        "com",
        "",
};

static void encoded_names_are_noticed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(encoded) / sizeof(encoded[0]); i++) {
		struct dns_tunnel *t = dns_tunnel_new();
		struct slice parent;

		if (dns_tunnel_observe(t, slice_from_string(encoded[i]), 5, &parent) !=
		        DNS_TUNNEL_ENCODED_LABEL)
			fail_msg("%s", encoded[i]);
		assert_true(slice_equals(parent, SLICE("evil.example")));
		dns_tunnel_free(t);
	}
}

static void ordinary_names_are_not(void **state)
{
	struct dns_tunnel *t = dns_tunnel_new();
	struct slice parent;

	(void)state;
	for (int turn = 0; turn < 50; turn++)
		for (size_t i = 0; i < sizeof(ordinary) / sizeof(ordinary[0]); i++)
			if (dns_tunnel_observe(t, slice_from_string(ordinary[i]), turn, &parent) !=
			        DNS_TUNNEL_NONE)
				fail_msg("%s", ordinary[i]);
	dns_tunnel_free(t);
}

static void once_a_minute_per_parent(void **state)
{
	struct dns_tunnel *t = dns_tunnel_new();
	struct slice parent;
	struct slice name = slice_from_string(encoded[0]);

	(void)state;
	assert_int_equal(dns_tunnel_observe(t, name, 1000, &parent), DNS_TUNNEL_ENCODED_LABEL);
	assert_int_equal(dns_tunnel_observe(t, name, 1001, &parent), DNS_TUNNEL_NONE);
	assert_int_equal(dns_tunnel_observe(t, slice_from_string(encoded[1]), 60999, &parent),
	        DNS_TUNNEL_NONE);
	assert_int_equal(dns_tunnel_observe(t,
	                         SLICE("mzxw6ytboi2xg43fnzthe2ldnbsw4ylomqqho33s.other.example"),
	                         1002, &parent),
	        DNS_TUNNEL_ENCODED_LABEL);
	assert_int_equal(dns_tunnel_observe(t, name, 61000, &parent), DNS_TUNNEL_ENCODED_LABEL);
	assert_int_equal(dns_tunnel_observe(t, name, 61001, &parent), DNS_TUNNEL_NONE);
	dns_tunnel_free(t);
}

static size_t flood(struct dns_tunnel *t, const char *parent, int count, int64_t now, int64_t step)
{
	size_t findings = 0;

	for (int i = 0; i < count; i++) {
		char name[64];
		struct slice about;

		snprintf(name, sizeof(name), "n%d.%s", i, parent);
		if (dns_tunnel_observe(t, slice_from_string(name), now + i * step, &about) ==
		        DNS_TUNNEL_MANY_NAMES)
			findings++;
	}
	return findings;
}

static void many_names_are_noticed(void **state)
{
	(void)state;
	for (int turn = 0; turn < 20; turn++) { /* the key differs each time */
		struct dns_tunnel *t = dns_tunnel_new();

		assert_int_equal(flood(t, "evil.example", 40, 0, 10), 0);
		assert_int_equal(flood(t, "other.example", 300, 0, 10), 1);
		dns_tunnel_free(t);
	}
}

static void few_names_or_slow_ones_are_not(void **state)
{
	struct dns_tunnel *t = dns_tunnel_new();

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(flood(t, "same.example", 20, i, 1), 0);
	assert_int_equal(flood(t, "slow.example", 300, 1000, DNS_TUNNEL_WINDOW_MS / 20), 0);
	dns_tunnel_free(t);
}

static void parents_are_bounded(void **state)
{
	struct dns_tunnel *t = dns_tunnel_new();
	struct slice parent;
	char name[700];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "a.parent%d.example", i);
		assert_int_equal(dns_tunnel_observe(t, slice_from_string(name), i, &parent),
		        DNS_TUNNEL_NONE);
	}
	/* The first one was forgotten: a finding about it is due again. */
	assert_int_equal(dns_tunnel_observe(t, slice_from_string(encoded[0]), 20000, &parent),
	        DNS_TUNNEL_ENCODED_LABEL);
	for (int i = 0; i < DNS_TUNNEL_PARENTS_MAX; i++) {
		snprintf(name, sizeof(name), "a.fresh%d.example", i);
		dns_tunnel_observe(t, slice_from_string(name), 20001, &parent);
	}
	assert_int_equal(dns_tunnel_observe(t, slice_from_string(encoded[0]), 20002, &parent),
	        DNS_TUNNEL_ENCODED_LABEL);
	memset(name, 'a', sizeof(name)); /* no name of the wire, but no harm either */
	name[1] = '.';
	assert_int_equal(
	        dns_tunnel_observe(t, slice_of(name, sizeof(name)), 1, &parent), DNS_TUNNEL_NONE);
	dns_tunnel_free(t);
	dns_tunnel_free(NULL);
}

static void texts(void **state)
{
	(void)state;
	assert_true(strlen(dns_tunnel_sign_text(DNS_TUNNEL_ENCODED_LABEL)) > 10);
	assert_true(strlen(dns_tunnel_sign_text(DNS_TUNNEL_MANY_NAMES)) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(parents),
	        cmocka_unit_test(encoded_names_are_noticed),
	        cmocka_unit_test(ordinary_names_are_not),
	        cmocka_unit_test(once_a_minute_per_parent),
	        cmocka_unit_test(many_names_are_noticed),
	        cmocka_unit_test(few_names_or_slow_ones_are_not),
	        cmocka_unit_test(parents_are_bounded),
	        cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests_name("tunnel", tests, NULL, NULL);
}
