/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policy_diff() says: lines for what changes, nothing for what only reads differently, and,
 * over random policies and requests, never less than policy_decide() shows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/diff/cell.h"
#include "policy/url/pattern.h"
#include "../diff_test.h"
#include "vethguard/policy/body.h"

#define HEAD                                         \
	"vethguard: 1\n"                             \
	"credentials:\n"                             \
	"  c: {source: \"env:C\", inject: bearer}\n" \
	"  d: {source: \"env:D\", inject: bearer}\n"

/* Compares two bodies; the lines as one text. */
static void diff(const char *from, const char *to, struct policy_diff *out)
{
	char a[8192], b[8192];

	snprintf(a, sizeof(a), HEAD "%s", from);
	snprintf(b, sizeof(b), HEAD "%s", to);
	test_diff_of(a, b, out);
}

static void same(const char *from, const char *to)
{
	for (int turn = 0; turn < 2; turn++) {
		struct policy_diff d;

		diff(turn ? to : from, turn ? from : to, &d);
		if (d.differs || d.count || d.widens || d.narrows)
			fail_msg("%s\nand\n%s\ndiffer: %s", from, to, d.lines[0].text);
		policy_diff_fini(&d);
	}
}

static void says(const char *from, const char *to, const char *expected)
{
	char text[8192] = "";
	struct policy_diff d;
	bool widens = false, narrows = false;

	diff(from, to, &d);
	for (size_t i = 0; i < d.count; i++) {
		strcat(strcat(text, d.lines[i].text), "\n");
		widens |= d.lines[i].widens;
		narrows |= d.lines[i].narrows;
	}
	assert_string_equal(text, expected);
	assert_int_equal(d.widens, widens);
	assert_int_equal(d.narrows, narrows);
	assert_int_equal(d.differs, expected[0] != '\0');
	policy_diff_fini(&d);
}

#define A "allow: [{to: https://a.example}]\n"
#define BELOW "allow: [{to: \"*.example\"}]\n"

static void test_same(void **state)
{
	(void)state;
	same("", "");
	same(A, A);
	same(A, "allow: [{name: other, to: a.example}]\n");
	same(A, "allow: [{to: \"https://A.Example.:443\"}]\n");
	same(A, "allow: [{to: a.example, ports: [443]}]\n");
	same(A, "groups: {g: [a.example]}\nallow: [{to: group:g}]\n");
	same("allow: [{to: [a.example, b.example]}]\n",
	        "allow: [{to: b.example}, {to: a.example}]\n");
	same("allow: [{to: a.example, methods: [GET, HEAD]}]\n",
	        "allow: [{to: a.example, methods: GET}, {to: a.example, methods: HEAD}]\n");
	same("allow: [{to: a.example, paths: [/a, /b/**]}]\n",
	        "allow: [{to: a.example, paths: /b/**}, {to: a.example, paths: [/a, /b/c]}]\n");
	same("allow: [{to: \"*.example\"}]\n", "allow: [{to: \"*.example\"}, {to: x.a.example}]\n");
	same("allow: [{to: 10.0.0.0/8}]\n", "allow: [{to: [10.0.0.0/9, 10.128.0.0/9]}]\n");
	same("allow: [{to: a.example, ports: [1-100]}]\n",
	        "allow: [{to: a.example, ports: [1-50, 51-100]}]\n");
	same(A, A "deny: [{to: https://b.example}]\n");
	same(A, A "deny: [{to: https://a.example:8443}]\n");
	/* a rule that a deny covers */
	same(A "deny: [{to: a.example, paths: /x/**}]\n",
	        "allow: [{to: a.example}, {to: a.example, paths: /x/y}]\n"
	        "deny: [{to: a.example, paths: /x/**}]\n");
	same("deny: [{to: \"*.example\"}]\n", A "deny: [{to: \"*.example\"}]\n");
	same("deny: [{to: tcp://a.example:443}]\n", A "deny: [{to: tcp://a.example:443}]\n");
	/* exceptions in other words */
	same(BELOW "deny: [{to: \"*.example\", except: a.example}]\n",
	        BELOW "groups: {g: [a.example]}\ndeny: [{to: \"*.example\", except: [group:g, "
	              "a.example]}]\n");
	same(BELOW "deny: [{to: \"*.example\", except: a.example}, {to: a.example}]\n",
	        BELOW "deny: [{to: \"*.example\"}]\n");
	/* deny written twice, in other words */
	same(A "deny: [{to: a.example, paths: /x/**}]\n",
	        A "deny: [{to: a.example, paths: [/x/**, /x/y/*]}]\n");
	same(A "deny: [{to: a.example, methods: DELETE, reason: one}]\n",
	        A "deny: [{to: a.example, methods: DELETE, reason: two}]\n");
	/* the same credentials by another split */
	same("allow: [{to: a.example, credential: c}, {to: a.example, paths: /d/**, credential: "
	     "d}]\n",
	        "allow: [{to: a.example, paths: /d/**, credential: d}, {to: a.example, credential: "
	        "c}]\n");
	same("allow: [{to: a.example, tls: passthrough}]\n",
	        "allow: [{name: x, to: a.example, tls: passthrough}]\n");
}

static void test_says(void **state)
{
	(void)state;
	says("", A, "+ may: any method https://a.example\n");
	says(A, "", "- may no longer: any method https://a.example\n");
	says(A, "allow: [{to: a.example, methods: [GET, HEAD]}]\n",
	        "- may no longer: any method but GET, HEAD https://a.example\n");
	says("allow: [{to: a.example, methods: GET, paths: /repos/acme/**}]\n",
	        "allow: [{to: a.example, methods: [GET, POST], paths: [/repos/**]}]\n",
	        "+ may: GET, POST https://a.example/repos/**\n");
	says(A "deny: [{to: a.example, methods: DELETE}]\n", A,
	        "+ may: DELETE https://a.example\n");
	says(A "deny: [{to: a.example, paths: [/x/**, /y]}]\n",
	        A "deny: [{to: a.example, paths: [/x/**]}]\n",
	        "+ may: any method https://a.example/y\n");
	says(A, "allow: [{to: a.example, credential: c}]\n",
	        "+ may: any method https://a.example with credential c (so far without one)\n");
	says("allow: [{to: a.example, credential: c}]\n", A,
	        "- may: any method https://a.example without a credential (so far with credential "
	        "c)\n");
	says("allow: [{to: a.example, credential: c}]\n",
	        "allow: [{to: a.example, credential: c}, {to: a.example, paths: /d/*, credential: "
	        "d}]\n",
	        "+ may: any method https://a.example/d/* with credential d (so far with credential "
	        "c)\n");
	says("", "allow: [{to: tcp://a.example:22}, {to: \"udp://[fd00::/64]:53000\"}]\n",
	        "+ may: tcp://a.example:22\n+ may: udp://[fd00::/64]:53000\n");
	says(A, "allow: [{to: a.example, upgrade: [SPDY/3.1, tcp]}]\n",
	        "+ may: any method https://a.example with an upgrade to spdy/3.1, tcp (so far "
	        "without one)\n");
	says("allow: [{to: a.example, upgrade: tcp}]\n", A,
	        "- may: any method https://a.example without an upgrade (so far to tcp)\n");
	says("allow: [{to: a.example, upgrade: tcp}]\n",
	        "allow: [{to: a.example, upgrade: [spdy/3.1]}]\n",
	        "+ may: any method https://a.example with an upgrade to spdy/3.1 (so far to "
	        "tcp)\n");
	says("", "allow: [{to: a.example, methods: GET, upgrade: tcp}]\n",
	        "+ may: GET https://a.example with an upgrade to tcp\n");
	says(A, "allow: [{to: a.example, tls: passthrough}]\n",
	        "+ tls: https://a.example is passed through unopened\n");
	says("allow: [{to: a.example, tls: passthrough}]\n", A,
	        "- tls: https://a.example is opened and judged, no longer passed through\n");
	says("allow: [{to: [a.example, b.example, c.example, d.example, e.example]}]\n", "",
	        "- may no longer: any method https://a.example, https://b.example, "
	        "https://c.example and 2 more\n");
	says(BELOW "deny: [{to: \"*.example\"}]\n",
	        BELOW "deny: [{to: \"*.example\", except: a.example}]\n",
	        "+ may: any method https://a.example\n");
	says(BELOW "deny: [{to: \"*.example\", except: a.example}]\n",
	        BELOW "deny: [{to: \"*.example\", except: [a.example, \"*.b.example\"], methods: "
	              "GET}]\n",
	        "+ may: any method but GET https://*.example\n"
	        "+ may: any method https://*.b.example\n");
	says(BELOW "deny: [{to: \"*.example\", except: a.example, paths: /x/**}]\n",
	        BELOW "deny: [{to: \"*.example\", paths: /x/**}]\n",
	        "- may no longer: any method https://a.example/x/**\n");
	says(A, A "mode: observe\n",
	        "+ mode: observe: what the policy refuses is let through and logged (so far "
	        "refused)\n");
	says(A "mode: observe\n", A,
	        "- mode: enforce: what the policy refuses is refused (so far let through and "
	        "logged)\n");
	/* a deny that covers an allow, but not the connection */
	says("deny: [{to: a.example, paths: /x}]\n",
	        "allow: [{to: a.example, paths: /x}]\ndeny: [{to: a.example, paths: /x}]\n",
	        "+ may connect: https://a.example\n");
	/* a wildcard against hosts of their own rule */
	says("allow: [{to: \"*.example\", methods: GET}, {to: x.example}]\n",
	        "allow: [{to: \"*.example\"}]\n", "+ may: any method but GET https://*.example\n");
	says("allow: [{to: 10.0.0.0/8}]\n",
	        "allow: [{to: 10.0.0.0/8}]\ndeny: [{to: 10.1.0.0/16}]\n",
	        "- may no longer: any method https://10.1.0.0/16\n");
	says("allow: [{to: a.example, ports: [80-90]}]\n",
	        "allow: [{to: a.example, ports: [85-95]}]\n",
	        "+ may: any method https://a.example:91-95\n"
	        "- may no longer: any method https://a.example:80-84\n");
}

/* Addresses that a wide network does not mean are not part of it. */
static void test_networks(void **state)
{
	(void)state;
	same("allow: [{to: 'https://0.0.0.0/0'}, {to: 'https://[::/0]'}]\n",
	        "allow: [{to: 'https://[public]'}]\n");
	same("allow: [{to: 'https://0.0.0.0/0'}]\n",
	        "allow: [{to: ['https://0.0.0.0/0', 'https://127.0.0.0/8', "
	        "'https://169.254.0.0/16']}]\n");
	says("allow: [{to: 'https://0.0.0.0/0'}]\n",
	        "allow: [{to: ['https://0.0.0.0/0', 'https://10.0.0.0/8']}]\n",
	        "+ may: any method https://10.0.0.0/8\n");
	says("allow: [{to: 'tcp://0.0.0.0/0:22'}]\n",
	        "allow: [{to: ['tcp://0.0.0.0/0:22', 'tcp://127.0.0.1:22']}]\n",
	        "+ may: tcp://127.0.0.1:22\n");
	says("allow: [{to: 'https://10.0.0.0/8'}]\n", "allow: [{to: 'https://0.0.0.0/0'}]\n",
	        "+ may: any method https://0.0.0.0/0\n- may no longer: any method "
	        "https://10.0.0.0/8\n");
	says("allow: [{to: 'https://8.0.0.0/8'}]\n",
	        "allow: [{to: ['https://8.0.0.0/8', 'https://8.8.8.8']}]\n",
	        "+ may: any method https://8.8.8.8\n"); /* also where it is the host's own */
	/* readings */
	says("allow: [{to: https://a, paths: [/a/*]}]\n",
	        "allow: [{to: https://a, paths: [/a/*, '/a/;x']}]\n",
	        "+ may: any method https://a/a/;x\n");
	says("allow: [{to: https://a, paths: [/Admin/x, /b]}]\ndeny: [{to: https://a, paths: "
	     "[/admin%2Fx]}]\n",
	        "allow: [{to: https://a, paths: [/Admin/x, /b]}]\n",
	        "+ may: any method https://a/Admin/x where /admin%2Fx matches as well\n");
}

static void test_credential_definition(void **state)
{
	char from[] = HEAD "  e: {source: \"env:E\", inject: bearer}\n", to[sizeof(from)];
	struct test_policy x, y;
	struct policy_diff d;

	(void)state;
	memcpy(to, from, sizeof(from));
	strstr(to, "env:E")[4] = 'F';
	strstr(to, "  d:")[2] = 'f';
	test_load(&x, from, false);
	test_load(&y, to, false);
	assert_int_equal(policy_diff(&x.policy, &y.policy, &d), 0);
	assert_int_equal(d.count, 3);
	assert_string_equal(d.lines[0].text, "~ credential f is new");
	assert_string_equal(
	        d.lines[1].text, "~ credential e is taken from env:F (so far from env:E)");
	assert_string_equal(d.lines[2].text, "~ credential d is gone");
	assert_false(d.widens || d.narrows);
	policy_diff_fini(&d);
	test_unload(&x);
	test_unload(&y);
}

/* The longest pattern, of nothing but empty segments. */
static void test_longest_pattern(void **state)
{
	static char from[POLICY_PATH_MAX + 1024], to[POLICY_PATH_MAX + 1024],
	        path[POLICY_PATH_MAX + 1];
	struct test_policy x, y;
	struct policy_diff d;

	(void)state;
	memset(path, '/', POLICY_PATH_MAX);
	sprintf(from,
	        HEAD "allow: [{to: a.example, paths: \"%s\"}]\n"
	             "deny: [{to: a.example, paths: /x}]\n",
	        path);
	sprintf(to, HEAD "allow: [{to: a.example, paths: \"%s\"}]\n", path);
	test_load(&x, from, false);
	test_load(&y, to, false);
	assert_int_equal(policy_diff(&x.policy, &y.policy, &d), 0);
	policy_diff_fini(&d);
	test_unload(&x);
	test_unload(&y);
}

static void test_contains(void **state)
{
	static const struct {
		const char *outer, *inner;
		bool yes;
	} cases[] = {{"/a", "/a", true}, {"/**", "/a/b/", true}, {"/**", "/**", true},
	        {"/a/**", "/a", true}, {"/a/**", "/a/*/b", true}, {"/a/*", "/a/**", false},
	        {"/a*", "/ab*c", true}, {"/*", "/a*", true}, {"/*", "/", false},
	        {"/*", "/**", false}, {"/a*b", "/ab", true}, {"/a*b", "/a*", false},
	        {"/**/x", "/a/**/x", true}, {"/**", "/a%2Fb", false}, {"/*", "/a%2Fb", false},
	        {"/a*", "/a%2Fb", false}, {"/a%2F*", "/a%2Fb", true}, {"/a/**", "/ab", false},
	        {"/**/a/**", "/a", true}, {"/*/**", "/a", true}, {"/*/**", "/**", false},
	        {"/a/**/b", "/a/b", true}, {"/**/b", "/b/**", false}, {"/a", "/a/", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (pattern_contains(slice_from_string(cases[i].outer),
		            slice_from_string(cases[i].inner)) != cases[i].yes)
			fail_msg("%s in %s", cases[i].inner, cases[i].outer);
}

/* xorshift64: the same policies and requests every time. */
static uint64_t seed = 88172645463325252u;

static unsigned roll(unsigned sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % sides;
}

#define PICK(list) (list)[roll(sizeof(list) / sizeof((list)[0]))]

static const char *const hosts[] = {"a.example", "b.example", "x.a.example", "\"*.example\"",
        "\"*.a.example\"", "10.1.0.0/16", "10.0.0.0/8", "\"[fd00::/64]\"",
        "\"tcp://a.example:443\"", "http://a.example", "10.1.2.3", "\"tcp://*.example:443\"",
        "\"[::/0]\""};
static const char *const methods[] = {"GET", "DELETE", "[GET, POST]"};
static const char *const paths[] = {"/a", "/a/**", "/a/*", "/**", "/a/b", "/*/b", "/b/", "\"/a;b\"",
        "/a%2Fb", "/a//b", "/**/b", "/*b"};

static const char *const conditions[] = {", query: {p: \"1\"}", ", query: {p: [\"1*\", x]}",
        ", query: {p: ~}", ", query: {q: \"*\", \"*\": ~}", ", headers: {x-a: one}",
        ", headers: {x-a: two}", ", headers: {x-a: \"*o*\", x-b: ~}", ", query: {p: \"2\"}",
        ", json: {p: one}", ", json: {p: [one, 1]}", ", json: {p: ~}", ", json: {p: {max: 5}}",
        ", form: {p: \"1*\"}", ", mcp: {tools: \"p*\"}", ", mcp: {methods: p}",
        ", graphql: {operations: query}", ", graphql: {fields: p}", ", llm: {models: p}",
        ", grpc: {services: \"p*\"}", ", grpc: {services: p, methods: q}",
        ", git: {repositories: p/q, push: refs/heads/x}"};

static size_t add_rule(char *out, bool deny)
{
	const char *host = PICK(hosts);
	bool http = !strstr(host, "tcp:"), plain = strstr(host, "http:");
	size_t n = (size_t)sprintf(out, "  - {to: %s", host);

	if (deny && roll(3) == 0) /* many are refused, since the rule does not deny the place */
		n += (size_t)sprintf(out + n, ", except: %s", PICK(hosts));
	if (http && !deny && !plain && roll(8) == 0)
		return n + (size_t)sprintf(out + n, ", tls: passthrough}\n");
	if (http && roll(2))
		n += (size_t)sprintf(out + n, ", methods: %s", PICK(methods));
	if (http && roll(3))
		n += (size_t)sprintf(out + n, ", paths: [%s, %s]", PICK(paths), PICK(paths));
	if (http && roll(3) == 0)
		n += (size_t)sprintf(out + n, "%s", PICK(conditions));
	if (http && !deny && !plain && roll(3) == 0)
		n += (size_t)sprintf(out + n, ", credential: %s", roll(2) ? "c" : "d");
	return n + (size_t)sprintf(out + n, "}\n");
}

/* Some policy that loads: many do not, for their ties. */
static void random_policy(struct test_policy *t, char text[8192])
{
	struct policy_reader reader = {text, test_read, NULL};

	for (;;) {
		size_t n = (size_t)sprintf(text, HEAD "allow:\n");
		unsigned rules = 1 + roll(4), denies = roll(3);

		for (unsigned i = 0; i < rules; i++)
			n += add_rule(text + n, false);
		if (denies)
			n += (size_t)sprintf(text + n, "deny:\n");
		for (unsigned i = 0; i < denies; i++)
			n += add_rule(text + n, true);
		memset(t, 0, sizeof(*t));
		if (policy_load(&reader, "/test.yaml", NULL, &t->image, &t->size, &t->diags) == 0)
			break;
	}
	assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
}

/* The context is the fields' list, which ends with an empty one. */
static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	const struct policy_field *fields = context;

	if (!fields[*at].name.n)
		return false;
	*out = fields[(*at)++];
	return true;
}

static void random_request(struct policy_request *r)
{
	static const char *const queries[] = {"", "p=1", "p=2", "p=12&q=", "q=x", "P=1", "p=x;p=1",
	        "p=%31", "z=1", "q=%zz", "q=1&p=1"};
	static const struct policy_field lists[][3] = {{{{"x-a", 3}, {"one", 3}}},
	        {{{"X-A", 3}, {"two", 3}}, {{"x-b", 3}, {"", 0}}}, {{{"x_a", 3}, {"two", 3}}},
	        {{{"x-a", 3}, {"One, two", 8}}},
	        {{{"x-a", 3}, {"one", 3}}, {{"x-a", 3}, {"two", 3}}}};
	static struct policy_fields fields = {NULL, next_field};
	static const char *const forms[] = {"", "p=1", "p=12", "q=1", "p=%zz"};
	static const char *const texts[] = {"{\"p\":\"one\"}", "{\"p\":1}", "{}", "{\"P\":\"ONE\"}",
	        "{\"p\":7}", "[{\"p\":1}]", "{\"p\":\"two\",\"q\":1}", "x"};
	static const struct policy_field form_type[2] = {
	        {{"content-type", 12}, {"application/x-www-form-urlencoded", 33}}};
	static const struct policy_field json_type[2] = {
	        {{"content-type", 12}, {"application/json", 16}}};
	static struct policy_body body;
	static const char *const names[] = {"a.example", "b.example", "x.a.example", "c.example",
	        "y.x.a.example", "other.test"};
	static const char *const addresses[] = {
	        "10.1.2.3", "10.1.0.0", "10.2.0.1", "fd00::1", "::ffff:10.1.2.3", "2001:db8::1"};
	static const char *const verbs[] = {"GET", "DELETE", "POST", "delete", "PUT", ""};
	static const char *const places[] = {"/", "/a", "/a/", "/a/b", "/a/c", "/b", "/b/", "/c/b",
	        "/a;x", "/a;b", "/a%2Fb", "/a//b", "/a/b/c", "//a", "/a/;x", "/;b", "/xb", "/a;x/b",
	        "/a/x%3By", "/b%2F", "/%2Fa"};
	static const uint16_t ports[] = {443, 443, 443, 80, 8443};

	memset(r, 0, sizeof(*r));
	r->query = slice_from_string(PICK(queries));
	fields.context = PICK(lists);
	r->fields = roll(2) ? &fields : NULL;
	policy_body_fini(&body);
	if (roll(3) == 0) {
		const struct policy_fields form = {form_type, next_field};
		const struct policy_fields json = {json_type, next_field};

		if (roll(4) == 0)
			policy_body_read(&body, &form, slice_from_string(PICK(forms)));
		else
			policy_body_read(&body, &json, slice_from_string(PICK(texts)));
		r->body = &body;
	}
	r->scheme = (enum policy_scheme)roll(3);
	if (roll(2))
		r->host = slice_from_string(PICK(names));
	else
		assert_true(ip_parse(slice_from_string(PICK(addresses)), &r->address));
	r->port = PICK(ports);
	r->method = slice_from_string(PICK(verbs));
	r->path = slice_from_string(PICK(places));
}

static struct slice credential_of(const struct policy *policy, const struct policy_decision *d)
{
	struct policy_credential c;

	policy_credential(policy, d->credential, &c);
	return c.name;
}

/* An address that only a too wide network names is allowed by the rule and never dialed. */
static bool opens(const struct policy_request *r, const struct policy_decision *d)
{
	return d->verdict == POLICY_ALLOW && (r->address.family == 0 || d->names_address);
}

static void check_request(const struct test_policy *a, const struct test_policy *b,
        const struct policy_diff *d, const char *from, const char *to)
{
	struct policy_decision x, y;
	struct policy_request r;
	bool more, less, other;

	random_request(&r);
	policy_decide(&a->policy, &r, &x);
	policy_decide(&b->policy, &r, &y);
	more = opens(&r, &y) && !opens(&r, &x);
	less = opens(&r, &x) && !opens(&r, &y);
	other = opens(&r, &x) && opens(&r, &y) &&
	        (x.passthrough != y.passthrough || !slice_equals(credential_of(&a->policy, &x),
	                                                   credential_of(&b->policy, &y)));
	if ((more && !d->widens) || (less && !d->narrows) || (other && !d->differs))
		fail_msg("%.*s scheme %d host %.*s path %.*s: %s\n%s%s", SLICE_ARG(r.method),
		        (int)r.scheme, SLICE_ARG(r.host), SLICE_ARG(r.path),
		        more   ? "more"
		        : less ? "less"
		               : "other",
		        from, to);
}

static void test_random(void **state)
{
	static char from[8192], to[8192];
	unsigned rounds = getenv("VETHGUARD_LONG") ? 200000 : 3000;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct test_policy a, b;
		struct policy_diff d;

		random_policy(&a, from);
		random_policy(&b, to);
		assert_int_equal(policy_diff(&a.policy, &b.policy, &d), 0);
		for (unsigned k = 0; k < 60; k++)
			check_request(&a, &b, &d, from, to);
		policy_diff_fini(&d);
		test_unload(&a);
		test_unload(&b);
	}
}

static void ignore(void *context, const struct diff_change *change)
{
	(void)context;
	(void)change;
}

/* What is left of a budget after one pattern was compared with another, both of them full of
 * wildcards. */
static uint64_t left_after(size_t bytes, uint64_t budget)
{
	static char texts[2][POLICY_PATH_MAX];
	struct diff_side sides[2] = {0};
	struct diff_sink sink = {NULL, ignore, &budget};

	for (int i = 0; i < 2; i++) {
		struct diff_claim claim = {.pattern = slice_of(texts[i], bytes)};

		for (size_t k = 0; k < bytes; k++)
			texts[i][k] = k % 2 ? '*' : 'a';
		texts[i][0] = '/';
		texts[i][bytes - 1] = (char)('x' + i);
		vec_init(&sides[i].allows, sizeof(claim));
		vec_init(&sides[i].denies, sizeof(claim));
		assert_true(vec_append(&sides[i].allows, &claim, 1));
	}
	diff_cell(&sides[0], &sides[1], &sink);
	for (int i = 0; i < 2; i++) {
		vec_fini(&sides[i].allows);
		vec_fini(&sides[i].denies);
	}
	return budget;
}

/* The daemon compares what people write while everybody else waits: a few long patterns take as
 * long as many short ones. */
static void test_long_patterns_cost_what_they_take(void **state)
{
	(void)state;
	assert_true(left_after(20, 1000) > 900);
	assert_int_equal(left_after(POLICY_PATH_MAX, 1000), 0);
	assert_int_equal(left_after(2048, 1000), 0);
}

/* The diff says that programs inside will see another text, and nothing else changes.
 */
static void test_a_placeholder_of_another_shape(void **state)
{
	static const char head[] = "vethguard: 1\ncredentials:\n"
	                           "  a: {source: \"env:A\", inject: bearer, env: B";
	static const char rest[] = "}\nallow:\n  - {to: https://a.example, credential: a}\n";
	static const char *const shapes[] = {"", ", placeholder: x...", ", placeholder: y...",
	        ", placeholder: y..., placeholder-length: 60"};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 4; k++) {
			char from[512], to[512];
			struct test_policy x, y;
			struct policy_diff d;

			snprintf(from, sizeof(from), "%s%s%s", head, shapes[i], rest);
			snprintf(to, sizeof(to), "%s%s%s", head, shapes[k], rest);
			test_load(&x, from, false);
			test_load(&y, to, false);
			assert_int_equal(policy_diff(&x.policy, &y.policy, &d), 0);
			assert_int_equal(d.count, i != k);
			if (d.count)
				assert_string_equal(d.lines[0].text,
				        "~ credential a has a placeholder of another shape");
			assert_int_equal(
			        policy_credential_equals(&x.policy, 0, &y.policy, 0), i == k);
			policy_diff_fini(&d);
			test_unload(&x);
			test_unload(&y);
		}
}

#define E "expose: [{port: 80, from: [host, 10.0.0.0/8], at: \"10.0.0.1:80\"}]\n"

static void test_exposes(void **state)
{
	(void)state;
	same(E, "expose: [{name: x, port: 80, from: [10.0.0.0/8, host], at: \"10.0.0.1:80\"}]\n");
	says("", E, "+ exposes port 80 at 10.0.0.1:80 from host, 10.0.0.0/8\n");
	says(E, "", "- no longer exposes port 80 at 10.0.0.1:80 from host, 10.0.0.0/8\n");
	says(E, "expose: [{port: 80, from: [host], at: \"10.0.0.1:80\"}]\n",
	        "- exposes port 80 at 10.0.0.1:80 from host (so far 80 at 10.0.0.1:80 from host, "
	        "10.0.0.0/8)\n");
	says(E, "expose: [{port: 80, from: [host, 11.0.0.0/8], at: \"10.0.0.1:80\"}]\n",
	        "+ exposes port 80 at 10.0.0.1:80 from host, 11.0.0.0/8 (so far 80 at 10.0.0.1:80 "
	        "from host, 10.0.0.0/8)\n");
	says(E, "expose: [{port: 80, from: [host, 10.0.0.0/8], at: \"10.0.0.2:80\"}]\n",
	        "+ exposes port 80 at 10.0.0.2:80 from host, 10.0.0.0/8 (so far 80 at 10.0.0.1:80 "
	        "from host, 10.0.0.0/8)\n");
	says(E,
	        "expose: [{port: 80, from: [host, 10.0.0.0/8], at: \"10.0.0.1:80\", connections: "
	        "9}]\n",
	        "- exposes port 80 at 10.0.0.1:80 from host, 10.0.0.0/8, 9 connections (so far 80 "
	        "at 10.0.0.1:80 from host, 10.0.0.0/8, 128 connections)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exposes),
	        cmocka_unit_test(test_same), cmocka_unit_test(test_networks),
	        cmocka_unit_test(test_says), cmocka_unit_test(test_credential_definition),
	        cmocka_unit_test(test_a_placeholder_of_another_shape),
	        cmocka_unit_test(test_contains), cmocka_unit_test(test_longest_pattern),
	        cmocka_unit_test(test_random),
	        cmocka_unit_test(test_long_patterns_cost_what_they_take)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
