/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of other programs become policies that load, that allow what is expected and never more
 * than the source does, and whose comments say what is missing. Faults are named with their place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"
#include "vethguard/policy/import.h"

struct made {
	struct buf text;
	struct test_policy policy;
};

static void import(struct made *m, const char *format, const char *source)
{
	struct diag_list diags = {.count = 0};
	enum policy_import_format f;
	int rc;

	assert_true(policy_import_find(format, &f));
	assert_string_equal(policy_import_name(f), format);
	buf_init(&m->text, POLICY_IMPORT_TEXT_MAX);
	rc = policy_import(f, "source", slice_from_string(source), &m->text, &diags);
	if (rc != 0) {
		diag_print(&diags, stderr);
		fail_msg("%s is not imported:\n%s", format, source);
	}
	assert_int_equal(buf_append(&m->text, "", 1), 0);
	test_load(&m->policy, (const char *)buf_bytes(&m->text), false);
}

static void drop(struct made *m)
{
	test_unload(&m->policy);
	buf_fini(&m->text);
}

#define SRT                                                                                \
	"{\n\t\"network\": {\n\t\t\"allowedDomains\": [\"github.com\", \"*.npmjs.org\",\n" \
	"\t\t\t\"api.example.com:443\", \"db.example.com:5432\", \"[2001:db8::1]:443\",\n" \
	"\t\t\t\"*\", \"localhost\", \"Evil.example.com\"],\n"                             \
	"\t\t\"deniedDomains\": [\"bad.npmjs.org\", \"evil.example.com\", \"*:22\",\n"     \
	"\t\t\t\"api.example.com:8443\"],\n\t\t\"allowLocalBinding\": true\n\t},\n"        \
	"\t\"filesystem\": {}\n}\n"
#define E2B                                                                               \
	"{\"allowInternetAccess\": true, \"network\": {\n"                                \
	" \"allowOut\": [\"*.github.com\", \"pypi.org\", \"1.1.1.1\", \"8.8.8.0/24\"],\n" \
	" \"denyOut\": [\"0.0.0.0/0\"], \"rules\": {\"pypi.org\": []}}}\n"
#define VERCEL                                                                                   \
	"{\"networkPolicy\": {\"allow\": {\"api.example.com\": [{\"transform\": [{\"headers\": " \
	"{\"authorization\": \"Bearer s3cret\"}}]}],\n"                                          \
	" \"proxied.example.com\": [{\"forward\": \"x\"}], \"*.vercel.com\": [], \"*\": []},\n"  \
	" \"subnets\": {\"allow\": [\"10.0.0.0/8\"], \"deny\": [\"10.1.0.0/16\"]}}}\n"
#define OPENSHELL                                                                            \
	"version: 1\n"                                                                       \
	"filesystem_policy: {read_only: [/usr]}\n"                                           \
	"network_policies:\n"                                                                \
	"  api:\n"                                                                           \
	"    endpoints:\n"                                                                   \
	"      - {host: api.github.com, port: 443, protocol: rest, enforcement: enforce,\n"  \
	"         rules: [{allow: {method: GET, path: /repos/**}}, {allow: {method: '*', "   \
	"path: '/u/*/x'}}],\n"                                                               \
	"         deny_rules: [{method: GET, path: '/repos/private/**'}]}\n"                 \
	"      - {host: ro.example.com, port: 443, protocol: rest, access: read-only}\n"     \
	"      - {host: db.example.com, port: 5432, protocol: tcp}\n"                        \
	"      - {host: pinned.example.com, port: 443, tls: skip}\n"                         \
	"      - {host: '*.one.example.com', port: 443}\n"                                   \
	"      - {host: '**.deep.example.com', port: 443}\n"                                 \
	"      - {host: m.example.com, port: 443, protocol: mcp}\n"                          \
	"      - {host: ips.example.com, port: 443, allowed_ips: [10.0.0.0/8]}\n"            \
	"      - {host: bad.example.com, port: 443, protocol: rest, enforcement: enforce,\n" \
	"         rules: [{allow: {method: GET, path: /a}}], deny_rules: [{method: GET, "    \
	"path: '/[0-9]'}]}\n"                                                                \
	"    binaries: [{path: /usr/bin/curl}]\n"                                            \
	"  none:\n"                                                                          \
	"    endpoints: [{host: none.example.com, port: 443}]\n"
#define SBX                                                                              \
	"# a policy\n"                                                                   \
	"$ sbx policy init deny-all\n"                                                   \
	"sbx policy allow network \"api.example.com,**.deep.example.com:443\"\n"         \
	"sbx policy allow network *.one.example.com\n"                                   \
	"sbx policy allow network api.github.com --method get,HEAD --path '/repos/**'\n" \
	"sbx policy allow network api.github.com\n"                                      \
	"sbx policy allow network --protocol udp time.example.com:123\n"                 \
	"sbx policy allow network db.example.com:5432\n"                                 \
	"sbx policy deny network api.example.com --method POST --path '/admin/**'\n"     \
	"sbx policy deny network \\\n  ads.deep.example.com\n"                           \
	"sbx policy allow network --sandbox one s1.example.com\n"                        \
	"sbx policy allow network --sandbox two s2.example.com\n"
#define SQUID                                                                                     \
	"acl localnet src 10.0.0.0/8\nacl Safe_ports port 80 443 1025-65535\n"                    \
	"acl SSL_ports port 443\nacl white dstdomain .example.com pypi.org\n"                     \
	"acl black dstdomain .ads.example.com\nacl reads method GET HEAD\n"                       \
	"acl ro dstdomain ro.example.org\nacl odd port 8080\nacl web dstdomain web.example.net\n" \
	"acl rx dstdom_regex -i evil\nacl late dstdomain late.example.com\n"                      \
	"http_access deny !Safe_ports\nhttp_access deny CONNECT !SSL_ports\n"                     \
	"http_access allow localhost manager\nhttp_access deny manager\n"                         \
	"http_access deny to_localhost\nhttp_access deny black\n"                                 \
	"http_access allow localnet white\nhttp_access allow ro reads\n"                          \
	"http_access allow web odd\nhttp_access deny rx\n"                                        \
	"http_access allow late\nhttp_access deny all\nhttp_access allow all\n"

/* YES: both allow. NARROW: the source allows, the policy does not, as a comment says. NO: neither.
 */
enum expected { YES, NARROW, NO };

static const struct {
	const char *format, *source, *method, *url;
	enum expected expected;
} rows[] = {
        {"srt", SRT, "GET", "https://github.com/x", YES},
        {"srt", SRT, "POST", "http://github.com/x", YES},
        {"srt", SRT, "GET", "https://github.com:8443/", NARROW},
        {"srt", SRT, "CONNECT", "tcp://github.com:22", NO},
        {"srt", SRT, "GET", "https://a.github.com/", NO},
        {"srt", SRT, "GET", "https://a.b.npmjs.org/", YES},
        {"srt", SRT, "GET", "https://npmjs.org/", NO},
        {"srt", SRT, "GET", "https://bad.npmjs.org/", NO},
        {"srt", SRT, "GET", "http://bad.npmjs.org/", NO},
        {"srt", SRT, "GET", "https://api.example.com/", YES},
        {"srt", SRT, "GET", "http://api.example.com/", NO},
        {"srt", SRT, "GET", "https://evil.example.com/", NO},
        {"srt", SRT, "CONNECT", "tcp://db.example.com:5432", YES},
        {"srt", SRT, "CONNECT", "tcp://db.example.com:5433", NO},
        {"srt", SRT, "GET", "https://[2001:db8::1]/", YES},
        {"srt", SRT, "GET", "https://other.example/", NARROW},
        {"e2b", E2B, "GET", "https://a.github.com/", YES},
        {"e2b", E2B, "GET", "https://github.com/", NO},
        {"e2b", E2B, "GET", "http://pypi.org/", YES},
        {"e2b", E2B, "GET", "https://1.1.1.1/", YES},
        {"e2b", E2B, "CONNECT", "tcp://1.1.1.1:22", NARROW},
        {"e2b", E2B, "GET", "https://8.8.8.8/", YES},
        {"e2b", E2B, "GET", "https://8.8.9.8/", NO},
        {"e2b", E2B, "GET", "https://other.example/", NO},
        {"vercel", VERCEL, "GET", "https://api.example.com/", YES},
        {"vercel", VERCEL, "GET", "http://api.example.com/", NO},
        {"vercel", VERCEL, "GET", "https://proxied.example.com/", NARROW},
        {"vercel", VERCEL, "GET", "https://a.vercel.com/", NARROW},
        {"vercel", VERCEL, "GET", "https://10.2.3.4/", YES},
        {"vercel", VERCEL, "GET", "https://10.1.3.4/", NO},
        {"vercel", VERCEL, "CONNECT", "tcp://10.1.3.4:22", NO},
        {"vercel", "\"deny-all\"", "GET", "https://a.example/", NO},
        {"vercel", "{\"networkPolicy\": \"allow-all\"}", "GET", "https://a.example/", NARROW},
        {"vercel", "{\"mode\": \"custom\", \"allowedDomains\": [\"a.example\"]}", "GET",
                "https://a.example/", YES},
        {"openshell", OPENSHELL, "GET", "https://api.github.com/repos/acme", YES},
        {"openshell", OPENSHELL, "GET", "https://api.github.com/repos", NO},
        {"openshell", OPENSHELL, "POST", "https://api.github.com/repos/acme", NO},
        {"openshell", OPENSHELL, "POST", "https://api.github.com/u/a/x", YES},
        {"openshell", OPENSHELL, "POST", "https://api.github.com/u/a/b/x", NO},
        {"openshell", OPENSHELL, "GET", "https://api.github.com/repos/private/x", NO},
        {"openshell", OPENSHELL, "GET", "http://api.github.com/repos/acme", NO},
        {"openshell", OPENSHELL, "GET", "https://ro.example.com/x", YES},
        {"openshell", OPENSHELL, "POST", "https://ro.example.com/x", NARROW},
        {"openshell", OPENSHELL, "CONNECT", "tcp://db.example.com:5432", YES},
        {"openshell", OPENSHELL, "CONNECT", "https://pinned.example.com/", YES},
        {"openshell", OPENSHELL, "GET", "https://x.one.example.com/", NARROW},
        {"openshell", OPENSHELL, "GET", "https://x.y.one.example.com/", NO},
        {"openshell", OPENSHELL, "GET", "https://x.y.deep.example.com/", YES},
        {"openshell", OPENSHELL, "GET", "https://m.example.com/", NARROW},
        {"openshell", OPENSHELL, "GET", "https://ips.example.com/", NARROW},
        {"openshell", OPENSHELL, "GET", "https://bad.example.com/a", NARROW},
        {"openshell", OPENSHELL, "GET", "https://none.example.com/", NO},
        {"docker-sbx", SBX, "GET", "https://api.example.com/", YES},
        {"docker-sbx", SBX, "POST", "https://api.example.com/x", YES},
        {"docker-sbx", SBX, "POST", "https://api.example.com/admin/x", NO},
        {"docker-sbx", SBX, "POST", "https://api.example.com/Admin//x", NARROW},
        {"docker-sbx", SBX, "GET", "https://a.b.deep.example.com/", YES},
        {"docker-sbx", SBX, "GET", "http://a.b.deep.example.com/", NO},
        {"docker-sbx", SBX, "GET", "https://ads.deep.example.com/", NO},
        {"docker-sbx", SBX, "GET", "https://x.one.example.com/", NARROW},
        {"docker-sbx", SBX, "GET", "https://api.github.com/repos/x", YES},
        {"docker-sbx", SBX, "HEAD", "https://api.github.com/repos/x/y", YES},
        {"docker-sbx", SBX, "DELETE", "https://api.github.com/repos/x", NARROW},
        {"docker-sbx", SBX, "CONNECT", "tcp://db.example.com:5432", YES},
        {"docker-sbx", SBX, "CONNECT", "udp://time.example.com:123", NARROW},
        {"docker-sbx", SBX, "GET", "https://s1.example.com/", YES},
        {"docker-sbx", SBX, "GET", "https://s2.example.com/", NO},
        {"docker-sbx", "sbx policy allow network a.example\nsbx policy deny network '**'\n", "GET",
                "https://a.example/", NO},
        {"squid", SQUID, "GET", "http://a.example.com/x", YES},
        {"squid", SQUID, "GET", "http://example.com/x", YES},
        {"squid", SQUID, "GET", "https://example.com/x", YES},
        {"squid", SQUID, "GET", "https://pypi.org/", YES},
        {"squid", SQUID, "GET", "https://x.pypi.org/", NO},
        {"squid", SQUID, "GET", "https://ads.example.com/", NO},
        {"squid", SQUID, "GET", "http://x.ads.example.com/", NO},
        {"squid", SQUID, "GET", "http://example.com:8080/", NARROW},
        {"squid", SQUID, "GET", "https://example.com:8443/", NO},
        {"squid", SQUID, "GET", "http://ro.example.org/", YES},
        {"squid", SQUID, "POST", "http://ro.example.org/", NO},
        {"squid", SQUID, "GET", "https://ro.example.org/", NO},
        {"squid", SQUID, "GET", "http://web.example.net:8080/", YES},
        {"squid", SQUID, "GET", "http://web.example.net/", NO},
        {"squid", SQUID, "GET", "https://web.example.net:8080/", NO},
        {"squid", SQUID, "GET", "http://late.example.com/", YES},
        {"squid", SQUID, "GET", "http://127.0.0.1/", NO},
        {"squid", SQUID, "GET", "http://other.example.net/", NO},
        {"squid",
                "acl w dstdomain .a.example\nacl l src all\nhttp_access deny !w\n"
                "http_access allow l\nhttp_access deny all\n",
                "GET", "http://x.a.example/", YES},
        {"squid",
                "acl w dstdomain .a.example\nacl l src all\nhttp_access deny !w\n"
                "http_access allow l\nhttp_access deny all\n",
                "GET", "http://b.example/", NO},
        {"squid",
                "acl w dstdomain .a.example\nacl t time 10:00-12:00\nhttp_access deny t\n"
                "http_access allow w\n",
                "GET", "http://x.a.example/", NARROW},
        {"squid",
                "acl w dstdomain a.example\nacl n dst 8.8.8.0/24\nhttp_access deny n\n"
                "http_access allow w\n",
                "GET", "http://a.example/", NARROW},
        {"squid",
                "acl w dstdomain a.example\nacl n dst 10.0.0.0/8\nhttp_access deny n\n"
                "http_access allow w\n",
                "GET", "http://a.example/", YES},
        {"squid", "acl w dstdomain \"/etc/white\"\nhttp_access allow w\n", "GET",
                "http://a.example/", NARROW},
        {"squid", "acl w dstdomain a.example\ninclude /etc/x\nhttp_access allow w\n", "GET",
                "http://a.example/", NARROW},
        {"docker-sbx",
                "sbx policy allow network aaaaaaaaaaa.c.com\nsbx policy allow network 'a.example , "
                "b.co'\n",
                "GET", "https://b.com/", NO},
        {"docker-sbx",
                "sbx policy allow network aaaaaaaaaaa.c.com\nsbx policy allow network 'a.example , "
                "b.co'\n",
                "GET", "https://b.co/", YES},
        {"docker-sbx",
                "sbx policy allow network aaaaaaaaaaa.c.com\nsbx policy allow network 'a.example , "
                "b.co'\n",
                "GET", "https://a.example/", YES},
        {"docker-sbx",
                "sbx policy allow network aaaaaaaaaaa.c.com\nsbx policy allow network 'a.example , "
                "b.co'\n",
                "GET", "https://aaaaaaaaaaa.c.com/", YES},
        {"squid", "acl w dstdomain a.example\nacl m method\nhttp_access allow m w\n", "GET",
                "http://a.example/", NO},
        {"squid", "acl w dstdomain a.example\nacl m method\nhttp_access allow m w\n", "GET",
                "https://a.example/", NO},
        {"squid", "acl w dstdomain a.example\nacl e port\nhttp_access allow w e\n", "GET",
                "http://a.example/", NO},
        {"squid", "acl w dstdomain a.example\nacl e src\nhttp_access allow w e\n", "GET",
                "http://a.example/", NO},
        {"squid", "acl w dstdomain a.example\nacl e dst\nhttp_access allow w e\n", "GET",
                "http://a.example/", NO},
        {"squid",
                "acl w dstdomain a.example\nacl e src\nhttp_access deny !e\nhttp_access allow w\n",
                "GET", "http://a.example/", NO},
        {"squid",
                "acl w dstdomain a.example\nacl CONNECT method\nhttp_access deny "
                "CONNECT\nhttp_access allow w\n",
                "GET", "https://a.example/", NO},
        {"squid",
                "acl w dstdomain a.example\nacl e dst\nhttp_access deny e\nhttp_access allow w "
                "!e\n",
                "GET", "http://a.example/", YES},
        {"squid",
                "acl w dstdomain a.example\nacl m method\nacl m method GET\nhttp_access allow m "
                "w\n",
                "GET", "http://a.example/", YES},
        {"squid",
                "acl w dstdomain a.example\nacl m method\nacl m method GET\nhttp_access allow m "
                "w\n",
                "POST", "http://a.example/", NO},
        {"squid",
                "acl w dstdomain .a.example\nacl b dstdomain x.a.example\nhttp_access deny "
                "b\nhttp_access allow w\nacl b dstdomain y.a.example\n",
                "GET", "http://y.a.example/", NO},
        {"squid",
                "acl w dstdomain .a.example\nacl b dstdomain x.a.example\nhttp_access deny "
                "b\nhttp_access allow w\nacl b dstdomain y.a.example\n",
                "GET", "http://x.a.example/", NO},
        {"squid",
                "acl w dstdomain .a.example\nacl b dstdomain x.a.example\nhttp_access deny "
                "b\nhttp_access allow w\nacl b dstdomain y.a.example\n",
                "GET", "http://z.a.example/", YES},
        {"squid",
                "acl w dstdomain a.example\nacl p port 80\nhttp_access deny p\nhttp_access allow "
                "w\nacl p port 443\n",
                "GET", "https://a.example/", NO},
        {"squid",
                "acl w dstdomain a.example\nacl b dstdomain b.example\nhttp_access deny "
                "b\nhttp_access allow w\nacl b dstdomain -n\n",
                "GET", "http://a.example/", NARROW},
        {"squid",
                "acl w dstdomain a.example\nacl b dstdomain b.example\nhttp_access deny "
                "b\nhttp_access allow w\ninclude /etc/x\n",
                "GET", "http://a.example/", NARROW},
        {"e2b", "{\"allowOut\": [\"::/0\"]}", "GET", "https://[2001:db8::1]/", NARROW},
        {"e2b", "{\"allowOut\": [\"a.example\"], \"denyOut\": [\"::/0\"]}", "GET",
                "https://a.example/", YES},
};

static void test_verdicts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_decision d;
		struct made m;

		import(&m, rows[i].format, rows[i].source);
		d = test_ask(&m.policy.policy, rows[i].method, rows[i].url);
		if ((d.verdict == POLICY_ALLOW) != (rows[i].expected == YES))
			fail_msg("%s: %s %s: verdict %d under\n%s", rows[i].format, rows[i].method,
			        rows[i].url, d.verdict, (const char *)buf_bytes(&m.text));
		if (rows[i].expected == NARROW &&
		        !strstr((const char *)buf_bytes(&m.text), "# - line"))
			fail_msg("%s: %s is narrower, and no comment says so", rows[i].format,
			        rows[i].url);
		drop(&m);
	}
}

/* Comments say what was left out, and are not there without need. */
static void test_comments(void **state)
{
	static const struct {
		const char *format, *source, *comment;
		bool expected;
	} comments[] = {
	        {"squid", "acl w dstdomain a.example\nacl m method\nhttp_access allow m w\n",
	                "# - line 3, column 1: an ACL of this line has no values", true},
	        {"squid", "acl w dstdomain a.example\nacl e src\nhttp_access deny e w\n",
	                "# - line 3, column 1: an ACL of this line has no values", true},
	        {"squid", "acl w dstdomain a.example\nhttp_access allow w localhost\n",
	                "has no values", false},
	        {"e2b", "{\"allowOut\": [\"0.0.0.0/0\"]}", "a policy cannot allow every host",
	                true},
	        {"e2b", "{\"allowOut\": [\"::/0\"]}", "a policy cannot allow every host", true},
	        {"e2b", "{\"allowOut\": [\"::/1\"]}", "a policy cannot allow every host", false},
	        {"e2b", "{\"denyOut\": [\"0.0.0.0/0\"]}", "what no list names", false},
	        {"e2b", "{\"denyOut\": [\"::/0\"]}", "what no list names", false},
	        {"e2b", "{\"denyOut\": [\"::/1\"]}", "what no list names", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(comments) / sizeof(comments[0]); i++) {
		struct made m;

		import(&m, comments[i].format, comments[i].source);
		if (!strstr((const char *)buf_bytes(&m.text), comments[i].comment) ==
		        comments[i].expected)
			fail_msg("%s: \"%s\" is %s expected in\n%s", comments[i].source,
			        comments[i].comment, comments[i].expected ? "" : "not",
			        (const char *)buf_bytes(&m.text));
		drop(&m);
	}
}

/* Secrets of a source are not in the policy. */
static void test_secrets(void **state)
{
	struct made m;

	(void)state;
	import(&m, "vercel", VERCEL);
	assert_null(strstr((const char *)buf_bytes(&m.text), "s3cret"));
	drop(&m);
}

static void test_faults(void **state)
{
	static const struct {
		const char *format, *source, *message;
		unsigned line, column;
	} faults[] = {
	        {"srt", "{", "", 0, 0},
	        {"srt", "[]", "must be a mapping", 1, 1},
	        {"srt", "{\"network\": []}", "must be a mapping", 1, 13},
	        {"srt", "{\"sandbox\": {}}", "there is no \"network\"", 1, 1},
	        {"srt", "{\"network\": {\"allowedDomains\": \"a.example\"}}", "must be a list", 1,
	                32},
	        {"srt", "{\"network\": {\"allowedDomains\": [\n \"a b\"]}}", "no host", 2, 2},
	        {"srt", "{\"network\": {\"allowedDomains\": [\"a.example:0\"]}}", "a port is", 1,
	                33},
	        {"srt", "{\"network\": {\"allowedDomains\": [\"a.example:65536\"]}}", "a port is",
	                1, 33},
	        {"srt", "{\"network\": {\"allowedDomains\": [\"https://a.example\"]}}", "", 1, 33},
	        {"srt", "{\"network\": {\"allowedDomains\": [{\"a\": 1}]}}", "allowedDomains", 1,
	                33},
	        {"srt", "{\"network\": {\"allowedDomains\": [\"1.2.3\"]}}", "no host", 1, 33},
	        {"srt", "{\"network\": {\"deniedDomains\": [\"a/b\"]}}", "no host", 1, 32},
	        {"srt", "{\"network\": {}, \"network\": {}}", "appears twice", 1, 17},
	        {"e2b", "{\"template\": \"x\"}", "there is neither", 1, 1},
	        {"e2b", "\"x\"", "must be a mapping", 1, 1},
	        {"e2b", "{\"network\": {\"allowOut\": [\"a..b\"]}}", "no host", 1, 27},
	        {"e2b", "{\"network\": {\"allowOut\": [\"10.1.2.3/8\"]}}", "no host", 1, 27},
	        {"vercel", "\"open\"", "no network policy", 1, 1},
	        {"vercel", "{}", "there is neither", 1, 1},
	        {"vercel", "{\"mode\": \"x\"}", "no network policy", 1, 10},
	        {"vercel", "{\"allow\": [\"\"]}", "allow", 1, 12},
	        {"vercel", "{\"subnets\": {\"deny\": [\"*\"]}}", "a network is expected", 1, 23},
	        {"openshell", "version: 1\n", "there is no", 1, 1},
	        {"openshell", "network_policies: {}\n", "there is no", 1, 1},
	        {"openshell", "version: 2\nnetwork_policies: {}\n", "this program knows 1", 1, 10},
	        {"openshell", "version: 1\nnetwork_policies: []\n", "must be a mapping", 2, 19},
	        {"openshell",
	                "version: 1\nnetwork_policies: {a: {binaries: [{path: /x}], endpoints: "
	                "[{host: 'a b', port: 443}]}}\n",
	                "no host", 2, 67},
	        {"openshell",
	                "version: 1\nnetwork_policies: {a: {binaries: [{path: /x}], endpoints: "
	                "[{host: a.example, port: 0}]}}\n",
	                "port", 2, 84},
	        {"docker-sbx", "rm -rf /\n", "a line is", 1, 1},
	        {"docker-sbx", "\nsbx policy rm network x\n", "is not known here", 2, 12},
	        {"docker-sbx", "sbx policy allow filesystem x\n", "is not known here", 1, 12},
	        {"docker-sbx", "sbx policy init open\n", "a preset is", 1, 17},
	        {"docker-sbx", "sbx policy allow network --method GET\n", "names no host", 1, 1},
	        {"docker-sbx", "sbx policy allow network a.example --path /x\n", "--method", 1, 1},
	        {"docker-sbx", "sbx policy allow network a.example --method 'G T'\n",
	                "methods are words", 1, 45},
	        {"docker-sbx", "sbx policy allow network a.example b.example\n", "one word", 1, 36},
	        {"docker-sbx", "sbx policy allow network a.example --force\n", "no option", 1, 36},
	        {"docker-sbx", "sbx policy allow network 'a.example\n", "a quote", 1, 26},
	        {"docker-sbx", "sbx policy deny network https://a.example\n", "", 1, 1},
	        {"squid", "acl x\n", "an ACL is", 1, 1},
	        {"squid", "http_access allow\n", "a line is", 1, 1},
	        {"squid", "http_access permit all\n", "a line is", 1, 1},
	        {"squid", "http_access allow nowhere\n", "there is no ACL \"nowhere\"", 1, 19},
	        {"squid", "http_access allow w\nacl w dstdomain a.example\n",
	                "there is no ACL \"w\"", 1, 19},
	        {"squid", "acl w dstdomain a..b\nhttp_access allow w\n", "no host", 1, 17},
	        {"squid", "acl w dstdomain \"x\nhttp_access allow w\n", "a quote", 1, 17},
	};

	int faulty = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct diag_list diags = {.count = 0};
		enum policy_import_format format;
		const struct diag *first = &diags.items[0];
		struct buf out;

		assert_true(policy_import_find(faults[i].format, &format));
		buf_init(&out, POLICY_IMPORT_TEXT_MAX);
		if (policy_import(format, "source", slice_from_string(faults[i].source), &out,
		            &diags) != -EINVAL ||
		        diags.count == 0 || out.len > 0)
			fail_msg("%s: %s is imported", faults[i].format, faults[i].source);
		if (!strstr(first->message, faults[i].message) ||
		        (faults[i].line && (first->line != faults[i].line ||
		                                   first->column != faults[i].column)))
			faulty++, fprintf(stderr, "%s: %s: %u:%u: %s\n", faults[i].format,
			                  faults[i].source, first->line, first->column,
			                  first->message);
		buf_fini(&out);
	}
	assert_int_equal(faulty, 0);
	assert_false(policy_import_find("iptables", &(enum policy_import_format){0}));
}

/* Beyond each bound a source is refused, and at it is not. */
static void refuse(enum policy_import_format format, struct slice source, const char *message)
{
	struct diag_list diags = {.count = 0};
	struct buf out;

	buf_init(&out, POLICY_IMPORT_TEXT_MAX);
	assert_int_equal(policy_import(format, "source", source, &out, &diags), -EINVAL);
	if (!strstr(diags.items[0].message, message))
		fail_msg("%s", diags.items[0].message);
	buf_fini(&out);
}

static void test_bounds(void **state)
{
	size_t n = POLICY_IMPORT_FILE_MAX + 1;
	char *text = malloc(n + 1);
	size_t at = 0;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', n);
	text[n] = 0;
	refuse(POLICY_IMPORT_SQUID, slice_of(text, n), "more than 1048576 bytes");
	refuse(POLICY_IMPORT_SQUID, slice_of("acl\0x", 5), "a NUL");
	memset(text, 'a', 5000);
	refuse(POLICY_IMPORT_SBX, slice_of(text, 5000), "more than 4095 bytes");
	for (at = 0; at < 4 * 257; at += 2)
		memcpy(text + at, "a ", 2);
	refuse(POLICY_IMPORT_SBX, slice_of(text, at), "more than 256 words");
	at = (size_t)sprintf(text, "{\"network\": {\"allowedDomains\": [");
	for (int i = 0; i < POLICY_IMPORT_LINES_MAX / 2 + 1; i++)
		at += (size_t)sprintf(text + at, "%s\"h%d.example\"", i ? "," : "", i);
	at += (size_t)sprintf(text + at, "]}}");
	refuse(POLICY_IMPORT_SRT, slice_of(text, at), "more than 20000 destinations");
	for (at = 0; at + 32 < n && at < 1024 * 32 + 32;)
		at += (size_t)sprintf(text + at, "acl a%zu dstdomain x.example\n", at);
	refuse(POLICY_IMPORT_SQUID, slice_of(text, at), "more than 1024 ACLs");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_verdicts),
	        cmocka_unit_test(test_comments),
	        cmocka_unit_test(test_secrets),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
