/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: what a floor allows at most, what it denies, and what infrastructure passes whatever a
 * policy says. The upgrade of a connection and the tools of MCP are bounded as requests are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../layer_test.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/limits.h"

#define POLICY                                                                   \
	"vethguard: 1\nname: wide\n"                                             \
	"credentials: {k: {source: env:K, inject: bearer}}\n"                    \
	"allow:\n"                                                               \
	"  - {name: api, to: [api.example, '*.wide.example'], credential: k}\n"  \
	"  - {name: plain, to: 'http://api.example'}\n"                          \
	"  - {name: through, to: through.example, tls: passthrough}\n"           \
	"  - {name: opened, to: opened.example, tls: passthrough}\n"             \
	"  - {name: raw, to: ['tcp://db.example:5432', 'tcp://api.example:22', " \
	"'udp://time.example:123', '10.1.0.0/16']}\n"                            \
	"  - {name: up, to: up.example, upgrade: [spdy/3.1, tcp]}\n"             \
	"deny:\n"                                                                \
	"  - {name: no-logs, to: [logs.example, 'tcp://logs.example:514']}\n"    \
	"  - {name: no-crl, to: 'http://crl.example', methods: [GET]}\n"         \
	"ask:\n"                                                                 \
	"  - {name: person, to: [ask.example, out.example, ca.example]}\n"

#define FLOOR                                                                                  \
	"vethguard: 1\n"                                                                       \
	"allow:\n"                                                                             \
	"  - {name: reads, to: [api.example, ask.example], methods: [GET], paths: [/v1/**]}\n" \
	"  - {name: posts, to: api.example, methods: [POST], paths: [/rpc], json: {method: "   \
	"'get*'}}\n"                                                                           \
	"  - {name: below, to: '*.a.wide.example'}\n"                                          \
	"  - {name: through, to: through.example, tls: passthrough}\n"                         \
	"  - {name: opened, to: opened.example}\n"                                             \
	"  - {name: raw, to: ['tcp://db.example:5432', 10.1.2.0/24]}\n"                        \
	"  - {name: up, to: up.example, upgrade: tcp}\n"                                       \
	"deny:\n"                                                                              \
	"  - {name: secret, to: api.example, paths: [/v1/secret/**], reason: 'Never.'}\n"      \
	"  - {name: no-admin, to: crl.example, paths: [/admin]}\n"                             \
	"infrastructure:\n"                                                                    \
	"  - {name: logs, to: 'tcp://logs.example:514'}\n"                                     \
	"  - {name: crl, to: ['http://crl.example', ca.example, crl.example], methods: [GET]}\n"

enum outcome { DENIES, ALLOWS, ASKS };

static const struct {
	const char *method, *url;
	enum outcome outcome;
	enum policy_layer layer;
	const char *rule; /* or NULL: none */
} rows[] = {
        /* allowed by both */
        {"GET", "https://api.example/v1/x", ALLOWS, POLICY_LAYER_POLICY, "api"},
        {"GET", "https://x.a.wide.example/", ALLOWS, POLICY_LAYER_POLICY, "api"},
        {"CONNECT", "tcp://db.example:5432", ALLOWS, POLICY_LAYER_POLICY, "raw"},
        {"CONNECT", "https://10.1.2.3/", ALLOWS, POLICY_LAYER_POLICY, "raw"},
        {"GET", "https://ask.example/v1/x", ASKS, POLICY_LAYER_POLICY, "person"},
        /* allowed by the policy alone */
        {"POST", "https://api.example/v1/x", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "https://api.example/v2/x", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "https://api.example/v1/..%2fx", DENIES, POLICY_LAYER_POLICY, NULL},
        {"get", "https://api.example/v1/x", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "http://api.example/v1/x", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "https://b.wide.example/", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "https://a.wide.example/", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"POST", "https://ask.example/v1/x", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"GET", "https://out.example/", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"CONNECT", "https://out.example/", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"CONNECT", "tcp://api.example:22", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"CONNECT", "udp://time.example:123", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"CONNECT", "https://10.1.3.3/", DENIES, POLICY_LAYER_FLOOR, NULL},
        /* allowed by the floor alone */
        {"GET", "https://x.b.a.other.example/", DENIES, POLICY_LAYER_POLICY, NULL},
        {"CONNECT", "tcp://db.example:5433", DENIES, POLICY_LAYER_POLICY, NULL},
        /* denied by the floor, in each reading */
        {"GET", "https://api.example/v1/secret/x", DENIES, POLICY_LAYER_FLOOR, "floor:secret"},
        {"GET", "https://api.example/V1/Secret/x", DENIES, POLICY_LAYER_FLOOR, "floor:secret"},
        {"GET", "https://api.example/v1//secret%2Fx", DENIES, POLICY_LAYER_FLOOR, "floor:secret"},
        {"GET", "https://crl.example/admin", DENIES, POLICY_LAYER_FLOOR, "floor:no-admin"},
        /* infrastructure, which the policy denies, asks about, or does not name */
        {"CONNECT", "tcp://logs.example:514", ALLOWS, POLICY_LAYER_INFRASTRUCTURE,
                "infrastructure:logs"},
        {"GET", "http://crl.example/root.crl", ALLOWS, POLICY_LAYER_INFRASTRUCTURE,
                "infrastructure:crl"},
        {"GET", "https://ca.example/", ALLOWS, POLICY_LAYER_INFRASTRUCTURE, "infrastructure:crl"},
        {"GET", "https://crl.example/x", ALLOWS, POLICY_LAYER_INFRASTRUCTURE, "infrastructure:crl"},
        {"POST", "https://crl.example/x", DENIES, POLICY_LAYER_POLICY, NULL},
        {"POST", "https://ca.example/", DENIES, POLICY_LAYER_FLOOR, NULL},
        {"CONNECT", "tcp://logs.example:515", DENIES, POLICY_LAYER_POLICY, NULL},
        {"GET", "https://logs.example/", DENIES, POLICY_LAYER_POLICY, "no-logs"},
};

static void decide_on(const struct policy *policy, size_t i, bool observe)
{
	struct policy_decision d = test_ask(policy, rows[i].method, rows[i].url);
	bool asks = rows[i].outcome == ASKS;
	bool of_policy = rows[i].layer == POLICY_LAYER_POLICY && rows[i].outcome == DENIES;

	/* mode observe passes what the policy refuses, and nothing that the floor does */
	if (observe && of_policy)
		return;
	if ((d.verdict == POLICY_ALLOW) != (rows[i].outcome != DENIES) || d.asks != asks)
		fail_msg("%s %s: verdict %d, asks %d", rows[i].method, rows[i].url, d.verdict,
		        d.asks);
	if (policy_decision_layer(policy, &d) != rows[i].layer)
		fail_msg("%s %s: layer %s", rows[i].method, rows[i].url,
		        policy_layer_name(policy_decision_layer(policy, &d)));
	if (rows[i].rule ? !slice_equals(policy_rule_name(policy, d.rule),
	                           slice_from_string(rows[i].rule))
	                 : rows[i].layer == POLICY_LAYER_FLOOR && d.rule != POLICY_NONE)
		fail_msg("%s %s: rule \"%.*s\"", rows[i].method, rows[i].url,
		        SLICE_ARG(policy_rule_name(policy, d.rule)));
	if (d.credential != POLICY_NONE && rows[i].layer == POLICY_LAYER_INFRASTRUCTURE)
		fail_msg("%s %s: a credential", rows[i].method, rows[i].url);
}

static void test_decisions(void **state)
{
	struct test_policy t;

	(void)state;
	for (int observe = 0; observe <= 1; observe++) {
		layer_load(&t, POLICY, FLOOR, observe != 0);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			decide_on(&t.policy, i, observe != 0);
		test_unload(&t);
	}
}

/* Mode observe lets pass what neither the policy nor the floor names only if the floor has no allow
 * rules. */
static void test_observing(void **state)
{
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	layer_load(&t, POLICY, FLOOR, true);
	d = test_ask(&t.policy, "GET", "https://unknown.example/");
	assert_int_equal(d.verdict, POLICY_DENY);
	assert_int_equal(d.reason, POLICY_REASON_FLOOR);
	assert_false(d.observed);
	test_unload(&t);
	layer_load(&t, POLICY, "vethguard: 1\ndeny: [{to: bad.example}]\n", true);
	assert_true(test_ask(&t.policy, "GET", "https://unknown.example/").observed);
	d = test_ask(&t.policy, "GET", "https://bad.example/");
	assert_int_equal(d.verdict, POLICY_DENY);
	assert_false(d.observed);
	test_unload(&t);
}

/* No layer decides about requests for vethguard itself: the floor does not refuse them, and the
 * infrastructure does not let them pass where internal is off. */
static void test_own_host(void **state)
{
	static const char url[] = "https://" POLICY_OWN_HOST "/";
	static const char floor[] = "vethguard: 1\nallow: [{to: api.example}]\n"
	                            "infrastructure: [{to: \"*.internal\"}]\n"
	                            "deny: [{to: vethguard.internal}]\n";
	struct test_policy t;

	(void)state;
	layer_load(&t, "vethguard: 1\nallow: [{to: api.example}]\n", floor, false);
	assert_true(test_ask(&t.policy, "GET", url).inquires);
	assert_int_equal(test_ask(&t.policy, "GET", url).verdict, POLICY_ALLOW);
	assert_int_equal(test_ask_tls(&t.policy, POLICY_OWN_HOST, 443), POLICY_TLS_INTERCEPT);
	test_unload(&t);
	layer_load(&t, "vethguard: 1\ninternal: off\nallow: [{to: api.example}]\n", floor, true);
	assert_false(test_ask(&t.policy, "GET", url).inquires);
	assert_int_equal(test_ask(&t.policy, "GET", url).verdict, POLICY_DENY);
	test_unload(&t);
}

static void test_tls(void **state)
{
	static const struct {
		const char *host;
		enum policy_tls tls;
	} hosts[] = {
	        {"through.example", POLICY_TLS_PASSTHROUGH},
	        {"opened.example", POLICY_TLS_INTERCEPT},
	        {"api.example", POLICY_TLS_INTERCEPT},
	        {"out.example", POLICY_TLS_REFUSE},
	        {"b.wide.example", POLICY_TLS_REFUSE},
	        {"unknown.example", POLICY_TLS_REFUSE},
	        {"ca.example", POLICY_TLS_INTERCEPT},
	};
	struct test_policy t;

	(void)state;
	layer_load(&t, POLICY, FLOOR, false);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (test_ask_tls(&t.policy, hosts[i].host, 443) != hosts[i].tls)
			fail_msg("%s", hosts[i].host);
	/* requests on an opened connection are judged, and not refused for passthrough */
	assert_false(test_ask(&t.policy, "GET", "https://opened.example/").passthrough);
	assert_int_equal(
	        test_ask(&t.policy, "GET", "https://opened.example/").verdict, POLICY_ALLOW);
	test_unload(&t);
}

static void test_upgrades(void **state)
{
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	layer_load(&t, POLICY, FLOOR, false);
	d = test_ask(&t.policy, "POST", "https://up.example/");
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_true(policy_allows_upgrade(&t.policy, &d, SLICE("tcp")));
	assert_false(policy_allows_upgrade(&t.policy, &d, SLICE("spdy/3.1")));
	assert_false(policy_allows_upgrade(&t.policy, &d, SLICE("other")));
	test_unload(&t);
	layer_load(&t, POLICY, NULL, false);
	d = test_ask(&t.policy, "POST", "https://up.example/");
	assert_true(policy_allows_upgrade(&t.policy, &d, SLICE("spdy/3.1")));
	test_unload(&t);
}

static bool next_field(const void *context, size_t *at, struct policy_field *out)
{
	(void)context;
	*out = (struct policy_field){SLICE("content-type"), SLICE("application/json")};
	return (*at)++ == 0;
}

/* Decides about a request without its body, and again with it. */
static struct policy_decision ask_body(
        const struct policy *policy, const char *url, const char *json)
{
	static const struct policy_body unread = {.state = POLICY_BODY_UNREAD};
	const struct policy_fields fields = {NULL, next_field};
	struct test_question q;
	struct policy_body body;
	struct policy_decision d;

	test_question(&q, "POST", url);
	q.request.fields = &fields;
	q.request.body = &unread;
	policy_decide(policy, &q.request, &d);
	assert_int_equal(d.verdict, POLICY_DENY);
	assert_true(d.needs_body);
	policy_body_read(&body, &fields, slice_from_string(json));
	q.request.body = &body;
	policy_decide(policy, &q.request, &d);
	policy_body_fini(&body);
	return d;
}

/* Conditions of the floor read bodies that no rule of the policy reads. */
static void test_bodies(void **state)
{
	static const char url[] = "https://api.example/rpc";
	struct test_policy t;

	(void)state;
	layer_load(&t, POLICY, FLOOR, false);
	assert_int_equal(ask_body(&t.policy, url, "{\"method\":\"getX\"}").verdict, POLICY_ALLOW);
	assert_int_equal(
	        ask_body(&t.policy, url, "{\"method\":\"setX\"}").reason, POLICY_REASON_FLOOR);
	assert_int_equal(
	        ask_body(&t.policy, url, "{\"method\":\"getX\",\"method\":\"getY\"}").reason,
	        POLICY_REASON_FLOOR);
	assert_int_equal(ask_body(&t.policy, url, "{").reason, POLICY_REASON_FLOOR);
	test_unload(&t);
}

static void test_tools(void **state)
{
	static const char policy[] = "vethguard: 1\nallow: [{to: m.example, mcp: {tools: '*'}}]\n";
	static const char floor[] =
	        "vethguard: 1\nallow: [{to: m.example, mcp: {tools: [search, 'docs_*']}}]\n"
	        "deny: [{to: m.example, mcp: {tools: docs_drop}}]\n";
	struct test_question q;
	struct test_policy t;

	(void)state;
	layer_load(&t, policy, floor, false);
	test_question(&q, "POST", "https://m.example/");
	assert_true(policy_may_call(&t.policy, &q.request, SLICE("search")));
	assert_true(policy_may_call(&t.policy, &q.request, SLICE("docs_read")));
	assert_false(policy_may_call(&t.policy, &q.request, SLICE("docs_drop")));
	assert_false(policy_may_call(&t.policy, &q.request, SLICE("delete")));
	test_unload(&t);
}

/* Without allow rules a floor bounds nothing; with an empty list it allows nothing. */
static void test_bounds(void **state)
{
	static const struct {
		const char *floor;
		bool allows;
	} floors[] = {
	        {NULL, true},
	        {"vethguard: 1\n", true},
	        {"vethguard: 1\ndeny: [{to: other.example}]\n", true},
	        {"vethguard: 1\nallow: []\n", false},
	        {"vethguard: 1\nallow: []\ninfrastructure: [{to: api.example}]\n", true},
	        {"vethguard: 1\nallow: []\ndeny: [{to: api.example}]\n"
	         "infrastructure: [{to: api.example}]\n",
	                false},
	        {"vethguard: 1\nallow: [{to: api.example}]\n", true},
	        {"vethguard: 1\nallow: [{to: other.example}]\n", false},
	        {"vethguard: 1\nallow: [{to: api.example}]\ndeny: [{to: "
	         "'tcp://api.example:443'}]\n",
	                false},
	        {"vethguard: 1\nallow: [{to: api.example}]\ndeny: [{to: '*.example', except: "
	         "[api.example]}]\n",
	                true},
	};
	struct test_policy t;

	(void)state;
	for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
		layer_load(&t, POLICY, floors[i].floor, false);
		if ((test_ask(&t.policy, "GET", "https://api.example/").verdict == POLICY_ALLOW) !=
		        floors[i].allows)
			fail_msg("floor %zu", i);
		test_unload(&t);
	}
}

static void test_limits(void **state)
{
	static const char policy[] =
	        "vethguard: 1\nallow: [{to: api.example}]\nlimits: {requests: 10/1m}\n";
	static const char floor[] =
	        "vethguard: 1\nlimits: {requests: 5/1m}\nbudget: {upload: 1MB/1d, shared: team}\n"
	        "infrastructure: [{to: logs.example}]\n";
	struct policy_limit limit;
	uint8_t keys[2][POLICY_LIMIT_KEY];
	struct test_policy t;
	size_t of_floor = 0;

	(void)state;
	layer_load(&t, policy, floor, false);
	assert_int_equal(policy_limit_count(&t.policy), 3);
	for (uint32_t i = 0; i < 3; i++) {
		policy_limit(&t.policy, i, &limit);
		of_floor += limit.floor;
		if (limit.kind == POLICY_LIMIT_REQUESTS)
			policy_limit_key(&t.policy, &limit, keys[limit.floor]);
	}
	assert_int_equal(of_floor, 2);
	assert_memory_not_equal(keys[0], keys[1], POLICY_LIMIT_KEY);
	test_unload(&t);
}

/* A rule of the infrastructure, which no policy can bound, may have limits of its own. */
static void test_limits_of_the_infrastructure(void **state)
{
	static const char policy[] =
	        "vethguard: 1\nallow: [{name: logs, to: api.example, limits: {requests: 10/1m}}]\n";
	static const char floor[] =
	        "vethguard: 1\nallow: [{to: api.example}]\n"
	        "infrastructure: [{to: crl.example}, {name: logs, to: logs.example, limits: "
	        "{requests: 5/1m}, budget: {upload: 1MB/1d}}]\n";
	struct policy_limit limit;
	uint8_t keys[2][POLICY_LIMIT_KEY];
	struct test_policy t;
	uint32_t first, count, at = 0;

	(void)state;
	layer_load(&t, policy, floor, false);
	assert_int_equal(policy_limit_count(&t.policy), 3);
	for (uint32_t rule = 0; rule < policy_rule_count(&t.policy); rule++) {
		struct slice name = policy_rule_name(&t.policy, rule);

		policy_limits_of(&t.policy, rule, &first, &count);
		if (slice_equals(name, SLICE("infrastructure:logs")))
			assert_int_equal(count, 2);
		else
			assert_int_equal(count, slice_equals(name, SLICE("logs")));
		if (count == 0)
			continue;
		policy_limit(&t.policy, first, &limit);
		assert_int_equal(limit.rule, rule);
		assert_int_equal(limit.amount, count == 2 ? 5 : 10);
		policy_limit_key(&t.policy, &limit, keys[at++]);
	}
	assert_int_equal(at, 2);
	assert_memory_not_equal(keys[0], keys[1], POLICY_LIMIT_KEY);
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_decisions),
	        cmocka_unit_test(test_observing),
	        cmocka_unit_test(test_own_host),
	        cmocka_unit_test(test_tls),
	        cmocka_unit_test(test_upgrades),
	        cmocka_unit_test(test_bodies),
	        cmocka_unit_test(test_tools),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_limits),
	        cmocka_unit_test(test_limits_of_the_infrastructure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
