/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions, as tables: (method, URL) to verdict, reason, rule and credential. explain agrees with
 * every verdict. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"
#include "vethguard/policy/explain.h"

static const char main_policy[] =
        "vethguard: 1\n"
        "name: main\n"
        "credentials:\n"
        "  wide: {source: \"env:A\", inject: bearer}\n"
        "  narrow: {source: \"env:B\", inject: bearer}\n"
        "groups:\n"
        "  mirrors: [http://m1.example, https://m1.example, https://m2.example:8443]\n"
        "allow:\n"
        "  - {name: any, to: api.example, credential: wide}\n"
        "  - {name: acme, to: api.example, paths: [/repos/acme/**], credential: narrow}\n"
        "  - {name: public, to: api.example, paths: [/repos/acme/public/**]}\n"
        "  - {name: read, to: read.example, methods: [GET, HEAD], paths: [/a/*, /b/**, /v*]}\n"
        "  - {name: glob, to: \"*.glob.example\", credential: wide}\n"
        "  - {name: deep, to: \"*.deep.glob.example\", credential: narrow}\n"
        "  - {name: exact, to: x.deep.glob.example}\n"
        "  - {name: mirrors, to: group:mirrors, methods: [GET]}\n"
        "  - {name: ports, to: ports.example, ports: [443, 8000-8100]}\n"
        "  - {name: ssh, to: tcp://git.example:22}\n"
        "  - {name: ntp, to: udp://time.example:123}\n"
        "  - {name: net, to: \"tcp://10.0.0.0/8:5432\"}\n"
        "  - {name: net6, to: \"https://[fd00::/8]:443\"}\n"
        "  - {name: pass, to: \"*.pass.example\", tls: passthrough}\n"
        "  - {name: opened, to: some.pass.example, methods: [GET]}\n"
        "  - {name: raw, to: tcp://raw.example:443}\n"
        "  - {name: everything, to: open.example}\n"
        "  - {name: send, to: two.example, methods: [POST], paths: [/v1/send]}\n"
        "  - {name: list, to: two.example, methods: [GET], paths: [/v1/list/*]}\n"
        "deny:\n"
        "  - {name: no-delete, to: [api.example, \"*.glob.example\"], methods: [DELETE], reason: "
        "Never.}\n"
        "  - {name: no-admin, to: open.example, paths: [/admin/**]}\n"
        "  - {name: no-host, to: bad.glob.example}\n"
        "  - {name: no-net, to: \"tcp://10.9.0.0/16\", ports: [1-65535]}\n"
        "  - {name: no-upload, to: \"*.watched.pass.example\", methods: [POST]}\n";

struct row {
	const char *method, *url;
	enum policy_verdict verdict;
	enum policy_reason reason;
	const char *rule, *credential; /* NULL: none */
};

#define YES POLICY_ALLOW, POLICY_REASON_RULE
#define NO POLICY_DENY, POLICY_REASON_RULE
#define NO_DEFAULT POLICY_DENY, POLICY_REASON_DEFAULT, NULL, NULL
#define NO_PORT POLICY_DENY, POLICY_REASON_PORT, NULL, NULL
#define NO_METHOD POLICY_DENY, POLICY_REASON_METHOD, NULL, NULL
#define NO_PATH POLICY_DENY, POLICY_REASON_PATH, NULL, NULL
#define BAD POLICY_DENY, POLICY_REASON_BAD_REQUEST, NULL, NULL

static const struct row rows[] = {
        /* the most specific allow names the credential */
        {"GET", "https://api.example/", YES, "any", "wide"},
        {"GET", "https://api.example/repos/other", YES, "any", "wide"},
        {"GET", "https://api.example/repos/acme", YES, "acme", "narrow"},
        {"PUT", "https://api.example/repos/acme/x/y", YES, "acme", "narrow"},
        {"GET", "https://api.example/repos/acme/public/x", YES, "public", NULL},
        {"GET", "https://api.example/repos/acmex", YES, "any", "wide"},
        {"GET", "https://api.example/repos/acme%2Fx", YES, "any", "wide"},
        {"GET", "https://api.example/x/../repos/acme/z", YES, "acme", "narrow"},
        {"GET", "https://a.glob.example/", YES, "glob", "wide"},
        {"GET", "https://a.b.glob.example/", YES, "glob", "wide"},
        {"GET", "https://y.deep.glob.example/", YES, "deep", "narrow"},
        {"GET", "https://x.deep.glob.example/", YES, "exact", NULL},
        {"GET", "https://deep.glob.example/", YES, "glob", "wide"},
        /* a glob is never the bare domain, and no suffix of a label */
        {"GET", "https://glob.example/", NO_DEFAULT},
        {"GET", "https://xglob.example/", NO_DEFAULT},
        {"GET", "https://glob.example.evil/", NO_DEFAULT},
        {"GET", "https://api.example.evil/", NO_DEFAULT},
        {"GET", "https://evil.api.example/", NO_DEFAULT},
        {"GET", "https://example/", NO_DEFAULT},
        /* denies win, whatever else matches */
        {"DELETE", "https://api.example/repos/acme", NO, "no-delete", NULL},
        {"DELETE", "https://x.deep.glob.example/", NO, "no-delete", NULL},
        {"GET", "https://bad.glob.example/", NO, "no-host", NULL},
        {"CONNECT", "https://bad.glob.example", NO, "no-host", NULL},
        {"CONNECT", "https://api.example", YES, "any", NULL},
        {"delete", "https://api.example/", NO, "no-delete", NULL},
        /* methods and paths */
        {"GET", "https://read.example/a/x", YES, "read", NULL},
        {"HEAD", "https://read.example/b", YES, "read", NULL},
        {"GET", "https://read.example/v1", YES, "read", NULL},
        {"POST", "https://read.example/a/x", NO_METHOD},
        {"get", "https://read.example/a/x", NO_METHOD},
        /* one rule lacks the method, another one the path: what differs is the method if the path
           is right */
        {"GET", "https://two.example/v1/send", NO_METHOD},
        {"PUT", "https://two.example/v1/send", NO_METHOD},
        {"POST", "https://two.example/v1/list/7", NO_METHOD},
        {"HEAD", "https://two.example/v1/list/7", NO_METHOD},
        {"GET", "https://two.example/v1/other", NO_PATH},
        {"POST", "https://two.example/v1/other", NO_PATH},
        {"POST", "https://two.example/v1/list/a%2Fb", NO_PATH},
        {"GET", "https://read.example/a/x/y", NO_PATH},
        {"GET", "https://read.example/a/", NO_PATH},
        {"GET", "https://read.example/A/x", NO_PATH},
        {"GET", "https://read.example//b/x", NO_PATH},
        {"GET", "https://read.example/b/x%2Fy", NO_PATH},
        {"GET", "https://read.example/b/..%2f..%2fetc", BAD},
        {"GET", "https://read.example/b/../../x", BAD},
        {"GET", "https://read.example/%00", BAD},
        {"CONNECT", "https://read.example", YES, "read", NULL},
        /* ports and schemes */
        {"GET", "https://read.example:8443/a/x", NO_PORT},
        {"GET", "http://read.example/a/x", NO_PORT},
        {"CONNECT", "tcp://read.example:443", NO_PORT},
        {"GET", "https://ports.example:8000/", YES, "ports", NULL},
        {"GET", "https://ports.example:8100/", YES, "ports", NULL},
        {"GET", "https://ports.example/", YES, "ports", NULL},
        {"GET", "https://ports.example:8101/", NO_PORT},
        {"GET", "https://ports.example:7999/", NO_PORT},
        {"GET", "http://m1.example/", YES, "mirrors", NULL},
        {"GET", "https://m2.example:8443/", YES, "mirrors", NULL},
        {"GET", "https://m2.example/", NO_PORT},
        {"POST", "http://m1.example/", NO_METHOD},
        {"CONNECT", "tcp://git.example:22", YES, "ssh", NULL},
        {"CONNECT", "udp://git.example:22", NO_PORT},
        {"CONNECT", "https://git.example:22", NO_PORT},
        {"CONNECT", "udp://time.example:123", YES, "ntp", NULL},
        {"CONNECT", "tcp://time.example:123", NO_PORT},
        /* addresses */
        {"CONNECT", "tcp://10.1.2.3:5432", YES, "net", NULL},
        {"CONNECT", "tcp://[::ffff:10.1.2.3]:5432", YES, "net", NULL},
        {"CONNECT", "tcp://10.9.2.3:5432", NO, "no-net", NULL},
        {"CONNECT", "tcp://[::ffff:10.9.2.3]:5432", NO, "no-net", NULL},
        {"GET", "https://10.9.2.3/", NO, "no-net", NULL},
        {"CONNECT", "udp://10.9.2.3:5432", NO_PORT},
        {"CONNECT", "tcp://11.1.2.3:5432", NO_DEFAULT},
        {"CONNECT", "tcp://10.1.2.3:5433", NO_PORT},
        {"GET", "https://[fd12::1]/", YES, "net6", NULL},
        {"GET", "https://[fe12::1]/", NO_DEFAULT},
        /* a deny of paths holds against servers that merge or unescape slashes */
        {"GET", "https://open.example/x", YES, "everything", NULL},
        {"GET", "https://open.example/admin", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin/x", NO, "no-admin", NULL},
        {"GET", "https://open.example//admin/x", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin%2Fx", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin;a/x", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin;a=b;c/x", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin;/x", NO, "no-admin", NULL},
        {"GET", "https://open.example/admin%3Ba/x", NO, "no-admin", NULL},
        {"GET", "https://open.example//;a/admin;a%2Fx", NO, "no-admin", NULL},
        {"GET", "https://open.example/%61dmin", NO, "no-admin", NULL},
        {"GET", "https://open.example/x/../admin", NO, "no-admin", NULL},
        {"GET", "https://open.example/administrators", YES, "everything", NULL},
        {"CONNECT", "https://open.example", YES, "everything", NULL},
        /* passthrough */
        {"POST", "https://a.pass.example/", YES, "pass", NULL},
        {"POST", "https://some.pass.example/", YES, "pass", NULL},
        {"GET", "https://some.pass.example/", YES, "opened", NULL},
        {"POST", "https://a.watched.pass.example/", NO, "no-upload", NULL},
};

static void check_row(const struct policy *policy, const struct row *row)
{
	struct policy_decision d = test_ask(policy, row->method, row->url);
	struct policy_credential credential;

	if (d.verdict != row->verdict || d.reason != row->reason)
		fail_msg(
		        "%s %s: verdict %d, reason %d", row->method, row->url, d.verdict, d.reason);
	if (!slice_equals(policy_rule_name(policy, d.rule), slice_from_string(row->rule)))
		fail_msg("%s %s: rule %.*s", row->method, row->url,
		        SLICE_ARG(policy_rule_name(policy, d.rule)));
	policy_credential(policy, d.credential, &credential);
	if (!slice_equals(credential.name, slice_from_string(row->credential)))
		fail_msg("%s %s: credential %.*s", row->method, row->url,
		        SLICE_ARG(credential.name));
}

static void test_table(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&t.policy, &rows[i]);
	test_unload(&t);
}

/* In mode observe every denial passes, marked, without credential; what cannot be judged does not.
 */
static void test_observe(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, true);
	assert_int_equal(policy_mode(&t.policy), POLICY_OBSERVE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_decision d = test_ask(&t.policy, rows[i].method, rows[i].url);
		bool denied = rows[i].verdict == POLICY_DENY;
		bool judged = rows[i].reason != POLICY_REASON_BAD_REQUEST;

		assert_int_equal(d.reason, rows[i].reason);
		assert_int_equal(d.verdict, denied && !judged ? POLICY_DENY : POLICY_ALLOW);
		assert_int_equal(d.observed, denied && judged);
		if (d.observed) {
			assert_int_equal(d.credential, POLICY_NONE);
			assert_int_equal(
			        d.rule == POLICY_NONE, rows[i].reason != POLICY_REASON_RULE);
			assert_false(d.passthrough);
		}
	}
	assert_int_equal(test_ask_tls(&t.policy, "unknown.example", 443), POLICY_TLS_INTERCEPT);
	assert_int_equal(test_ask_tls(&t.policy, "bad.glob.example", 443), POLICY_TLS_INTERCEPT);
	assert_int_equal(policy_tcp_ports(&t.policy, NULL, 0), SIZE_MAX);
	test_unload(&t);
}

static void test_tls(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		enum policy_tls tls;
	} table[] = {
	        {"api.example", 443, POLICY_TLS_INTERCEPT},
	        {"a.pass.example", 443, POLICY_TLS_PASSTHROUGH},
	        {"some.pass.example", 443, POLICY_TLS_INTERCEPT},
	        {"a.watched.pass.example", 443, POLICY_TLS_INTERCEPT},
	        {"raw.example", 443, POLICY_TLS_OPAQUE},
	        {"git.example", 22, POLICY_TLS_OPAQUE},
	        {"api.example", 444, POLICY_TLS_REFUSE},
	        {"pass.example", 443, POLICY_TLS_REFUSE},
	        {"bad.glob.example", 443, POLICY_TLS_REFUSE},
	        {"time.example", 123, POLICY_TLS_REFUSE},
	        {"API.example", 443, POLICY_TLS_REFUSE},
	        {"api.example.", 443, POLICY_TLS_REFUSE},
	        {"", 443, POLICY_TLS_REFUSE},
	};
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, false);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (test_ask_tls(&t.policy, table[i].host, table[i].port) != table[i].tls)
			fail_msg("%s:%u", table[i].host, table[i].port);
	assert_true(test_ask(&t.policy, "GET", "https://a.pass.example/").passthrough);
	assert_true(test_ask(&t.policy, "CONNECT", "https://a.pass.example").passthrough);
	assert_false(test_ask(&t.policy, "POST", "https://some.pass.example/").passthrough);
	assert_false(test_ask(&t.policy, "GET", "https://a.watched.pass.example/").passthrough);
	test_unload(&t);
}

/* A rule for a wide network opens public addresses only. */
static void test_networks(void **state)
{
	static const char *const policies[] = {"vethguard: 1\nallow: [{to: ['https://0.0.0.0/0', "
	                                       "'https://[::/0]', 'tcp://0.0.0.0/0:22', "
	                                       "'udp://[::/0]:53', 'udp://0.0.0.0/0:99']}]\n",
	        "vethguard: 1\ngroups: {g: ['https://[public]', 'udp://[public]:99']}\nallow: "
	        "[{to: "
	        "['group:g', 'tcp://[public]:22']}]\n"};
	static const struct {
		const char *method, *url;
		bool named;
	} cases[] = {{"GET", "https://8.8.8.8/", true}, {"GET", "https://[2606::1]/", true},
	        {"CONNECT", "tcp://8.8.8.8:22", true}, {"CONNECT", "udp://8.8.8.8:99", true},
	        {"GET", "https://10.0.0.1/", false}, {"GET", "https://127.0.0.1/", false},
	        {"GET", "https://169.254.169.254/", false}, {"GET", "https://[::1]/", false},
	        {"GET", "https://[::ffff:127.0.0.1]/", false}, {"GET", "https://[fd00::1]/", false},
	        {"GET", "https://[::ffff:8.8.8.8]/", true}, {"GET", "https://[64:ff9b::1]/", false},
	        {"CONNECT", "tcp://127.0.0.1:22", false}, {"CONNECT", "udp://10.0.0.1:99", false}};
	static const char exact[] =
	        "vethguard: 1\nallow: [{to: ['https://127.0.0.1', 'https://10.0.0.0/8', "
	        "'https://0.0.0.0/0', 'https://[::/0]']}]\n";
	static const struct {
		const char *url;
		bool named, exactly;
	} names[] = {{"https://127.0.0.1/", true, true}, {"https://127.0.0.2/", false, false},
	        {"https://10.0.0.1/", true, false}, {"https://8.8.8.8/", true, false},
	        {"https://[::ffff:127.0.0.1]/", true, true},
	        {"https://[::ffff:10.0.0.1]/", true, false},
	        {"https://[::ffff:127.0.0.2]/", false, false}, {"https://[::1]/", false, false}};
	struct test_policy t;

	(void)state;
	for (size_t p = 0; p < sizeof(policies) / sizeof(*policies); p++) {
		test_load(&t, policies[p], false);
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			struct policy_decision d =
			        test_ask(&t.policy, cases[i].method, cases[i].url);

			if (d.verdict != POLICY_ALLOW || d.names_address != cases[i].named ||
			        d.names_exactly)
				fail_msg("%s", cases[i].url);
		}
		test_unload(&t);
	}
	test_load(&t, exact, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct policy_decision d = test_ask(&t.policy, "GET", names[i].url);

		if (d.names_address != names[i].named || d.names_exactly != names[i].exactly)
			fail_msg("%s", names[i].url);
	}
	test_unload(&t);
	/* in mode observe no rule names it */
	test_load(&t, "vethguard: 1\nallow: [{to: 'https://0.0.0.0/0', methods: [GET]}]\n", true);
	assert_false(test_ask(&t.policy, "POST", "https://8.8.8.8/").names_address);
	test_unload(&t);
	/* a deny means all of a network */
	test_load(&t,
	        "vethguard: 1\nallow: [{to: 'https://10.0.0.1'}]\ndeny: [{to: "
	        "'https://0.0.0.0/0'}]\n",
	        false);
	assert_int_equal(test_ask(&t.policy, "GET", "https://10.0.0.1/").verdict, POLICY_DENY);
	test_unload(&t);
}

/* Rules that are equally specific and say different upgrades, but where nothing is lost, or that do
 * not meet. (Those that conflict are in bad/upgrade-tie.yaml.) */
static void test_upgrades(void **state)
{
	static const char *const policies[] = {
	        "[{to: a.example, upgrade: [tcp, foo]}, {to: a.example, upgrade: [FOO, tcp]}]",
	        "[{to: a.example, upgrade: [tcp, foo]}, {to: a.example, upgrade: foo}]",
	        "[{to: a.example, upgrade: tcp}, {to: a.example}]",
	        "[{to: a.example}, {to: b.example, upgrade: tcp}]",
	        "[{to: '*.example'}, {to: b.example, upgrade: tcp}]",
	        "[{to: 'a.example:1'}, {to: a.example, upgrade: tcp}]",
	        "[{to: 'http://a.example'}, {to: a.example, upgrade: tcp}]",
	        "[{to: 'tcp://a.example:443'}, {to: a.example, upgrade: tcp}]",
	        "[{to: a.example, methods: GET}, {to: a.example, methods: POST, upgrade: tcp}]",
	        "[{to: a.example}, {to: a.example, paths: [/x], upgrade: tcp}]",
	        "[{to: a.example, paths: [/y]}, {to: a.example, paths: [/x], upgrade: tcp}]",
	};
	struct test_policy t;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		snprintf(text, sizeof(text), "vethguard: 1\nallow: %s\n", policies[i]);
		test_load(&t, text, false);
		test_unload(&t);
	}
}

static void test_addresses(void **state)
{
	struct policy_request request = {
	        .scheme = POLICY_TCP, .host = SLICE("git.example"), .port = 5432};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, false);
	assert_true(test_ask(&t.policy, "CONNECT", "tcp://10.1.2.3:5432").names_address);
	assert_false(test_ask(&t.policy, "CONNECT", "tcp://git.example:22").names_address);
	/* a name and an address together: either may allow, either may deny */
	assert_true(ip_parse(SLICE("10.1.2.3"), &request.address));
	policy_decide(&t.policy, &request, &d);
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_true(d.names_address);
	assert_true(ip_parse(SLICE("10.9.2.3"), &request.address));
	request.port = 22;
	policy_decide(&t.policy, &request, &d);
	assert_int_equal(d.verdict, POLICY_DENY);
	test_unload(&t);
}

/* Requests that the proxy should never build are refused, not judged. */
static const struct policy_request bad[] = {
        {.scheme = POLICY_HTTPS, .port = 443},
        {.scheme = POLICY_HTTPS, .host = {"open.example", 12}},
        {.scheme = POLICY_SCHEME_COUNT, .host = {"open.example", 12}, .port = 443},
        {.scheme = POLICY_HTTPS, .host = {"Open.example", 12}, .port = 443},
        {.scheme = POLICY_HTTPS, .host = {"open.example.", 13}, .port = 443},
        {.scheme = POLICY_HTTPS, .host = {"open.exa\0ple", 12}, .port = 443},
        {.scheme = POLICY_HTTPS, .address = {.family = 5}, .port = 443},
        {.scheme = POLICY_HTTPS, .host = {"open.example", 12}, .port = 443, .method = {"GET", 3}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"GET", 3},
                .path = {"x", 1}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"GET", 3},
                .path = {"/x/../admin", 11}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"GET", 3},
                .path = {"/%61dmin", 8}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"GET", 3},
                .path = {"/a%2fb", 6}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"GET", 3},
                .path = {"/a?b", 4}},
        {.scheme = POLICY_HTTPS,
                .host = {"open.example", 12},
                .port = 443,
                .method = {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 33},
                .path = {"/", 1}},
};

static void test_bad_requests(void **state)
{
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, true);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		policy_decide(&t.policy, &bad[i], &d);
		if (d.verdict != POLICY_DENY || d.reason != POLICY_REASON_BAD_REQUEST)
			fail_msg("request %zu: verdict %d, reason %d", i, d.verdict, d.reason);
	}
	test_unload(&t);
}

struct explained {
	unsigned denies, allows, rules;
	enum policy_match last;
};

static void count_rule(void *context, const struct policy_rule_report *r)
{
	struct explained *e = context;

	e->rules++;
	e->last = r->match;
	if (r->match == POLICY_MATCHES)
		*(r->deny ? &e->denies : &e->allows) += 1;
}

static struct explained explain(const struct policy *policy, const char *method, const char *url)
{
	struct explained e = {0};
	struct test_question q;

	policy_explain(policy, test_question(&q, method, url), count_rule, &e);
	return e;
}

static void test_explain(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct explained e = explain(&t.policy, rows[i].method, rows[i].url);
		bool allowed = e.denies == 0 && e.allows > 0;

		assert_int_equal(e.rules, policy_rule_count(&t.policy));
		if (allowed != (rows[i].verdict == POLICY_ALLOW))
			fail_msg("%s %s: %u allows, %u denies", rows[i].method, rows[i].url,
			        e.allows, e.denies);
	}
	test_unload(&t);
}

static void test_misses(void **state)
{
	static const char one[] =
	        "vethguard: 1\nallow:\n  - {to: a.example, methods: [GET], paths: [/x]}\n";
	struct test_policy t;

	(void)state;
	test_load(&t, one, false);
	assert_int_equal(explain(&t.policy, "GET", "https://a.example/x").last, POLICY_MATCHES);
	assert_int_equal(explain(&t.policy, "GET", "https://b.example/x").last, POLICY_MISS_HOST);
	assert_int_equal(explain(&t.policy, "GET", "http://a.example/x").last, POLICY_MISS_SCHEME);
	assert_int_equal(explain(&t.policy, "GET", "https://a.example:1/x").last, POLICY_MISS_PORT);
	assert_int_equal(explain(&t.policy, "PUT", "https://a.example/x").last, POLICY_MISS_METHOD);
	assert_int_equal(explain(&t.policy, "GET", "https://a.example/y").last, POLICY_MISS_PATH);
	test_unload(&t);
}

/* A thousand rules with paths on one host, looked up through the index: each finds its own. */
static void test_many_paths(void **state)
{
	struct test_policy t;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	fputs("vethguard: 1\nallow:\n", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "  - {name: r%d, to: a.example, paths: [/o/%d/**, \"/p/*/%d\"]}\n", i, i,
		        i);
	fclose(f);
	test_load(&t, text, false);
	for (int i = 0; i < 1000; i++) {
		char url[64], name[16];

		snprintf(name, sizeof(name), "r%d", i);
		snprintf(url, sizeof(url), "https://a.example/o/%d/x/y", i);
		check_row(&t.policy, &(struct row){"GET", url, YES, name, NULL});
		snprintf(url, sizeof(url), "https://a.example/p/x/%d", i);
		check_row(&t.policy, &(struct row){"GET", url, YES, name, NULL});
		snprintf(url, sizeof(url), "https://a.example/q/%d", i);
		check_row(&t.policy, &(struct row){"GET", url, NO_PATH});
	}
	test_unload(&t);
	free(text);
}

static void test_facts(void **state)
{
	uint16_t ports[8] = {0};
	struct test_policy t;

	(void)state;
	test_load(&t, main_policy, false);
	assert_true(slice_equals(policy_name(&t.policy), SLICE("main")));
	assert_int_equal(policy_fingerprint(&t.policy).n, 16);
	assert_int_equal(policy_udp_ports(&t.policy, ports, 8), 1);
	assert_int_equal(ports[0], 123);
	/* 22, 80, 443, 5432, 8000-8100, 8443 */
	assert_int_equal(policy_tcp_ports(&t.policy, ports, 8), 106);
	assert_int_equal(ports[0], 22);
	assert_int_equal(ports[3], 5432);
	assert_true(policy_mentions_host(&t.policy, SLICE("api.example")));
	assert_true(policy_mentions_host(&t.policy, SLICE("q.glob.example")));
	assert_true(policy_mentions_host(&t.policy, SLICE("git.example")));
	assert_false(policy_mentions_host(&t.policy, SLICE("glob.example")));
	assert_false(policy_mentions_host(&t.policy, SLICE("x.api.example")));
	assert_true(
	        slice_equals(policy_rule_text(&t.policy,
	                             test_ask(&t.policy, "DELETE", "https://api.example/").rule),
	                SLICE("Never.")));
	assert_int_equal(policy_rule_name(&t.policy, POLICY_NONE).n, 0);
	test_unload(&t);
}

/* Same text, same fingerprint, whatever the random key; another mode, another one. */
static void test_fingerprint(void **state)
{
	struct test_policy a, b, c;

	(void)state;
	test_load(&a, main_policy, false);
	test_load(&b, main_policy, false);
	test_load(&c, main_policy, true);
	assert_true(slice_equals(policy_fingerprint(&a.policy), policy_fingerprint(&b.policy)));
	assert_false(slice_equals(policy_fingerprint(&a.policy), policy_fingerprint(&c.policy)));
	test_unload(&a);
	test_unload(&b);
	test_unload(&c);
}

static void test_credentials(void **state)
{
	static const char text[] =
	        "vethguard: 1\ncredentials:\n"
	        "  a: {source: \"file:secrets/a\", inject: bearer, env: A_TOKEN}\n"
	        "  b: {source: \"env:B\", inject: basic, username: me}\n"
	        "  c:\n    source: exec:[gh, auth, \"to ken\"]\n    inject: header\n    header: "
	        "X-Key\n"
	        "    prefix: \"token \"\n    timeout: 500ms\n    ttl: 1h\n"
	        "  d: {source: {exec: [x]}, inject: query, query: key}\n"
	        "  e: {source: {file: /abs/../f}, inject: bearer, ttl: 0s}\n";
	struct policy_credential c;
	struct test_policy t;

	(void)state;
	test_load(&t, text, false);
	assert_int_equal(policy_credential_count(&t.policy), 5);
	policy_credential(&t.policy, 0, &c);
	assert_true(slice_equals(c.location, SLICE("/secrets/a")) &&
	            slice_equals(c.env, SLICE("A_TOKEN")));
	assert_int_equal(c.ttl_s, 60);
	policy_credential(&t.policy, 1, &c);
	assert_true(slice_equals(c.location, SLICE("B")) && slice_equals(c.username, SLICE("me")));
	assert_int_equal(c.source, POLICY_SOURCE_ENV);
	assert_int_equal(c.inject, POLICY_INJECT_BASIC);
	assert_int_equal(c.ttl_s, 0);
	policy_credential(&t.policy, 2, &c);
	assert_int_equal(c.argc, 3);
	assert_true(slice_equals(c.argv[2], SLICE("to ken")) &&
	            slice_equals(c.prefix, SLICE("token ")));
	assert_int_equal(c.timeout_ms, 500);
	assert_int_equal(c.ttl_s, 3600);
	policy_credential(&t.policy, 3, &c);
	assert_int_equal(c.argc, 1);
	assert_int_equal(c.ttl_s, 300);
	assert_int_equal(c.timeout_ms, 10000);
	assert_true(slice_equals(c.field, SLICE("key")));
	policy_credential(&t.policy, 4, &c);
	assert_true(slice_equals(c.location, SLICE("/f")));
	assert_int_equal(c.ttl_s, 0);
	policy_credential(&t.policy, 5, &c);
	assert_int_equal(c.name.n, 0);
	test_unload(&t);
}

/* A connection over tcp has a credential, and one over https has none before its requests. */
static void test_credentials_of_connections(void **state)
{
	static const char text[] =
	        "vethguard: 1\ncredentials:\n"
	        "  db: {source: \"env:A\", inject: postgres, username: agent}\n"
	        "  key: {source: \"env:B\", inject: bearer}\n"
	        "allow:\n"
	        "  - {name: plain, to: \"tcp://db.example:5432\"}\n"
	        "  - {name: login, to: \"tcp://db.example:5432\", credential: db}\n"
	        "  - {name: web, to: \"https://web.example\", credential: key}\n"
	        "  - {name: raw, to: \"tcp://raw.example:5432\"}\n";
	struct policy_request q = {.scheme = POLICY_TCP, .host = SLICE("db.example"), .port = 5432};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	test_load(&t, text, false);
	policy_decide(&t.policy, &q, &d);
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_true(slice_equals(policy_rule_name(&t.policy, d.rule), SLICE("login")));
	assert_int_equal(d.credential, 0);
	assert_int_equal(policy_credentials_at(&t.policy, &q), 1);
	assert_int_equal(policy_decide_tls(&t.policy, &q, &d), POLICY_TLS_OPAQUE);
	assert_int_equal(d.credential, 0);
	q.scheme = POLICY_HTTPS;
	assert_false(policy_relays_unread(&t.policy, &q, &d));
	q.scheme = POLICY_TCP;
	q.port = 5433;
	policy_decide(&t.policy, &q, &d);
	assert_int_equal(d.verdict, POLICY_DENY);
	assert_int_equal(d.credential, POLICY_NONE);
	q.host = SLICE("raw.example");
	q.port = 5432;
	policy_decide(&t.policy, &q, &d);
	assert_int_equal(d.credential, POLICY_NONE);
	q = (struct policy_request){
	        .scheme = POLICY_HTTPS, .host = SLICE("web.example"), .port = 443};
	policy_decide(&t.policy, &q, &d);
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_int_equal(d.credential, POLICY_NONE);
	test_unload(&t);
	test_load(&t, text, true);
	q = (struct policy_request){
	        .scheme = POLICY_TCP, .host = SLICE("other.example"), .port = 5432};
	policy_decide(&t.policy, &q, &d);
	assert_true(d.observed);
	assert_int_equal(d.credential, POLICY_NONE);
	test_unload(&t);
}

static const char except_policy[] =
        "vethguard: 1\n"
        "groups: {tools: [jira.foo.example, https://wiki.foo.example:8443]}\n"
        "allow:\n"
        "  - {to: \"*.foo.example\", ports: [443, 8443]}\n"
        "  - {to: \"http://*.foo.example\"}\n"
        "  - {to: \"tcp://10.0.0.0/8\", ports: [1-65535]}\n"
        "deny:\n"
        "  - {name: inner, to: [\"*.foo.example\", \"http://*.foo.example\"], ports: [80, 443, "
        "8443], "
        "except: group:tools}\n"
        "  - {name: jira, to: jira.foo.example, methods: [DELETE], paths: [/x/**]}\n"
        "  - {name: net, to: \"tcp://10.0.0.0/8\", ports: [1-1024], except: "
        "[\"tcp://10.1.0.0/16\", \"tcp://10.2.3.4:22\"]}\n"
        "  - {name: corner, to: \"tcp://10.1.9.0/24\", ports: [1-1024], except: "
        "\"tcp://10.1.9.9:22\"}\n";

/* Every other deny rule holds for what one of them excepts. */
static void test_exceptions(void **state)
{
	static const struct {
		const char *method, *url, *denied_by; /* NULL: allowed */
	} cases[] = {
	        {"GET", "https://jira.foo.example/", NULL},
	        {"DELETE", "https://jira.foo.example/y", NULL},
	        {"DELETE", "https://jira.foo.example/x/1", "jira"},
	        {"GET", "https://jira.foo.example:8443/", NULL},
	        {"GET", "http://jira.foo.example/", "inner"},
	        {"GET", "https://wiki.foo.example:8443/", NULL},
	        {"GET", "https://wiki.foo.example/", "inner"},
	        {"GET", "https://a.jira.foo.example/", "inner"},
	        {"GET", "https://git.foo.example/", "inner"},
	        {"CONNECT", "https://jira.foo.example", NULL},
	        {"CONNECT", "https://git.foo.example", "inner"},
	        {"CONNECT", "tcp://10.1.2.3:22", NULL},
	        {"CONNECT", "tcp://10.2.3.4:22", NULL},
	        {"CONNECT", "tcp://10.2.3.4:23", "net"},
	        {"CONNECT", "tcp://10.2.3.5:22", "net"},
	        {"CONNECT", "tcp://10.1.9.1:22", "corner"},
	        {"CONNECT", "tcp://10.1.9.9:22", NULL},
	        {"CONNECT", "tcp://10.1.9.9:23", "corner"},
	        {"CONNECT", "tcp://10.3.0.1:2000", NULL},
	};
	struct test_policy t;

	(void)state;
	test_load(&t, except_policy, false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct policy_decision d;
		struct test_question q;
		struct slice by;

		policy_decide(&t.policy, test_question(&q, cases[i].method, cases[i].url), &d);
		by = d.verdict == POLICY_DENY && d.reason == POLICY_REASON_RULE
		             ? policy_rule_name(&t.policy, d.rule)
		             : SLICE("");
		if (d.verdict != (cases[i].denied_by ? POLICY_DENY : POLICY_ALLOW) ||
		        !slice_equals(by,
		                slice_from_string(cases[i].denied_by ? cases[i].denied_by : "")))
			fail_msg("%s %s: verdict %d, by \"%.*s\"", cases[i].method, cases[i].url,
			        (int)d.verdict, SLICE_ARG(by));
	}
	assert_int_equal(explain(&t.policy, "CONNECT", "tcp://10.1.9.9:22").denies, 0);
	assert_int_equal(
	        explain(&t.policy, "CONNECT", "tcp://10.1.9.9:22").last, POLICY_MISS_EXCEPT);
	assert_int_equal(explain(&t.policy, "CONNECT", "tcp://10.1.9.9:23").last, POLICY_MATCHES);
	test_unload(&t);
}

/* A deny for some requests keeps TLS from being passed through, but not where it is excepted. */
static void test_passthrough_at_an_exception(void **state)
{
	struct test_policy t;
	struct policy_decision d;
	struct test_question q;

	(void)state;
	test_load(&t,
	        "vethguard: 1\nallow: [{to: \"*.foo.example\", tls: passthrough}]\n"
	        "deny: [{to: \"*.foo.example\", methods: [DELETE], except: a.foo.example}]\n",
	        false);
	assert_int_equal(policy_decide_tls(&t.policy,
	                         test_question(&q, "CONNECT", "https://a.foo.example"), &d),
	        POLICY_TLS_PASSTHROUGH);
	assert_int_equal(policy_decide_tls(&t.policy,
	                         test_question(&q, "CONNECT", "https://b.foo.example"), &d),
	        POLICY_TLS_INTERCEPT);
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_exceptions),
	        cmocka_unit_test(test_passthrough_at_an_exception),
	        cmocka_unit_test(test_table),
	        cmocka_unit_test(test_observe),
	        cmocka_unit_test(test_tls),
	        cmocka_unit_test(test_upgrades),
	        cmocka_unit_test(test_addresses),
	        cmocka_unit_test(test_networks),
	        cmocka_unit_test(test_bad_requests),
	        cmocka_unit_test(test_explain),
	        cmocka_unit_test(test_misses),
	        cmocka_unit_test(test_many_paths),
	        cmocka_unit_test(test_facts),
	        cmocka_unit_test(test_fingerprint),
	        cmocka_unit_test(test_credentials),
	        cmocka_unit_test(test_credentials_of_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
