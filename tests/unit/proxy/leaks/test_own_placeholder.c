/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placeholder at a place of its own credential, in a request that the policy denies: a
 * refusal, not a finding, and the event names the credential. Everywhere else, and of every other
 * credential, it stays a finding.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_peer.h"

#define PAR "sk-vethguard-par-0123456789abcdef"
#define KEY_BASE64 "dXNlcjp2ZXRoZ3VhcmQta2V5LTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm"

static const char own_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  key: {source: \"env:KEY\", inject: bearer, env: KEY}\n"
        "  par: {source: \"env:PAR\", inject: query, query: api_key}\n"
        "allow:\n"
        "  - {name: a, to: \"https://a.test:%1$u\", methods: [GET], paths: [/v1/**], credential: "
        "key}\n"
        "  - {name: q, to: \"https://q.test:%1$u\", methods: [GET], paths: [/v1/**], credential: "
        "par}\n"
        "  - {name: s, to: \"https://s.test:%1$u\", methods: [GET], paths: [/v1/**]}\n"
        "  - {name: t, to: \"https://t.test:1\", credential: key}\n"
        "  - {name: p, to: \"http://p.test:%1$u\", methods: [GET], paths: [/v1/**]}\n"
        "  - {name: p-tls, to: \"https://p.test:%1$u\", credential: key}\n"
        "deny:\n"
        "  - {name: no, to: \"https://a.test:%1$u\", paths: [/v1/keep/**], reason: never}\n";

static int open_world(bool observe)
{
	const struct world_options options = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .send_bytes = 8192,
	        .policy = own_policy,
	        .observe = observe};

	world_open(&w, &options);
	return credential_store_set_placeholder(w.store, 1, SLICE(PAR));
}

static int set_up_own(void **state)
{
	(void)state;
	return open_world(false);
}

static int set_up_observing(void **state)
{
	(void)state;
	return open_world(true);
}

static size_t leaks(void)
{
	const struct event *e = find_event(&w, EVENT_FINDING);

	if (e)
		assert_int_equal(e->finding, EVENT_FINDING_PLACEHOLDER_LEAK);
	return count_events(&w, EVENT_FINDING);
}

/* The last request's event says that it had the placeholder of this one (NULL: of none). */
static void assert_shown(const char *credential)
{
	const struct event *e = find_event(&w, EVENT_HTTP);

	assert_non_null(e);
	assert_true(slice_equals(e->credential, slice_from_string(credential ? credential : "")));
}

struct row {
	int name;
	const char *host, *line, *fields;
	const char *shown; /* in its event */
	bool finding;
};

static const struct row rows[] = {
        /* another path, another method, a deny rule */
        {NAME_A, "a.test", "GET /v2/x", "Authorization: Bearer " PLACEHOLDER "\r\n", "key", false},
        {NAME_A, "a.test", "DELETE /v1/x", "x-api-key: " PLACEHOLDER "\r\n", "key", false},
        {NAME_A, "a.test", "GET /v1/keep/x", "Authorization: Bearer " PLACEHOLDER "\r\n", "key",
                false},
        {NAME_A, "a.test", "POST /v1/x", "Authorization: Basic " KEY_BASE64 "\r\n", "key", false},
        {NAME_A, "a.test", "POST /v1/x", "Cookie: k=" PLACEHOLDER "\r\n", "key", false},
        {NAME_A, "a.test", "POST /v1/x?key=" PLACEHOLDER, "", "key", false},
        {NAME_A, "a.test", "POST /v1/x?key=%76ethguard-key-0123456789abcdef0123456789abcdef", "",
                NULL, false},
        {NAME_Q, "q.test", "POST /v1/x?api_key=" PAR, "", "par", false},
        {NAME_Q, "q.test", "POST /v1/x", "Authorization: Bearer " PAR "\r\n", "par", false},
        {NAME_A, "a.test", "POST /v1/x", "X: y\r\n", NULL, false},
        /* a WebSocket there, and an upgrade that is not allowed */
        {NAME_A, "a.test", "GET /ws", SWITCH_ASKED "Authorization: Bearer " PLACEHOLDER "\r\n",
                "key", false},
        {NAME_A, "a.test", "GET /v1/x",
                "Connection: Upgrade\r\nUpgrade: foo\r\nAuthorization: Bearer " PLACEHOLDER "\r\n",
                "key", false},
        /* of another credential, beside its own too, however it is written */
        {NAME_Q, "q.test", "POST /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n", NULL, true},
        {NAME_A, "a.test", "POST /v1/x?k=" PAR, "", NULL, true},
        {NAME_A, "a.test", "POST /v1/x?k=" PAR, "Authorization: Bearer " PLACEHOLDER "\r\n", "key",
                true},
        {NAME_A, "a.test", "POST /v1/x", "Authorization: Bearer " PLACEHOLDER "," PAR "\r\n", NULL,
                true},
        {NAME_A, "a.test", "POST /v1/x",
                "Authorization: Bearer " PLACEHOLDER
                "\r\nX: %73k-vethguard-par-0123456789abcdef\r\n",
                "key", true},
        {NAME_A, "a.test", "POST /v1/x", PAR ": x\r\n", NULL, true},
        /* at a host of no credential, named by a rule or by none; at another port; over http */
        {NAME_S, "s.test", "POST /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n", NULL, true},
        {NAME_D, "d.test", "GET /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n", NULL, true},
        {NAME_T, "t.test", "GET /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n", NULL, true},
        {NAME_P, "p.test", "POST /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n", NULL, true},
};

static void test_denied(void **state)
{
	size_t expected = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct peer *c = rows[i].name == NAME_P ? client(&w, NAME_P, NULL)
		                                        : client(&w, rows[i].name, rows[i].host);

		ask(c, rows[i].line, rows[i].host, rows[i].fields);
		expect_head(c, "HTTP/1.1 403 ");
		UNTIL(&w, count_events(&w, EVENT_HTTP) == i + 1);
		expected += rows[i].finding;
		if (leaks() != expected)
			fail_msg("row %zu: %s %s", i, rows[i].line, rows[i].fields);
		assert_shown(rows[i].shown);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
		hang_up(c, false);
	}
}

/* A request that disagrees with itself, or asks for another path in a field, is an attempt. */
static void test_other_refusals_stay_findings(void **state)
{
	static const struct row refused[] = {
	        {NAME_A, "q.test", "POST /v1/x", "Authorization: Bearer " PLACEHOLDER "\r\n"},
	        {NAME_A, "a.test", "GET /v1/x", "X-Rewrite-Url: /v2/x\r\nX: " PLACEHOLDER "\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct peer *c = client(&w, refused[i].name, world_names[refused[i].name]);

		ask(c, refused[i].line, refused[i].host, refused[i].fields);
		expect_head(c, "HTTP/1.1 403 ");
		assert_non_null(find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK));
		assert_int_equal(count_events(&w, EVENT_FINDING), 2 * (i + 1));
		hang_up(c, false);
	}
}

/* A request that is allowed takes its placeholder along, in a place where nothing replaces it. */
static void test_allowed_requests_are_as_before(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /v1/x", "a.test", "Authorization: Bearer " PLACEHOLDER "\r\n");
	o = origin(&w, true);
	expect_head(o, "GET /v1/x ");
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
	assert_int_equal(leaks(), 0);
	hang_up(c, false);
	hang_up(o, false);
	c = client(&w, NAME_A, "a.test");
	ask(c, "GET /v1/x?k=" PLACEHOLDER, "a.test", "Cookie: " PLACEHOLDER "\r\n");
	o = origin(&w, true);
	take_head(o);
	assert_int_equal(leaks(), 1);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_over_http2(void **state)
{
	static const struct {
		const char *path, *value;
		bool finding;
	} asked[] = {
	        {"/v2/x", "Bearer " PLACEHOLDER, false},
	        {"/v2/x?k=" PLACEHOLDER, "", false},
	        {"/v2/x?k=" PAR, "", true},
	        {"/v2/x", "Bearer " PAR, true},
	};
	struct h2 *h = h2_client();
	size_t expected = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		nghttp2_nv more[] = {nv("authorization", asked[i].value)};
		int32_t id = h2_ask_with(h, "POST", "a.test", asked[i].path, more, 1, NULL);

		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->status, 403);
		expected += asked[i].finding;
		assert_int_equal(leaks(), expected);
		assert_shown(asked[i].finding ? NULL : "key");
	}
	h2_hang_up(h, false);
}

/* Mode observe sends it on, without the credential; bodies and WebSocket messages go by the same.
 */
static void test_observed_bodies(void **state)
{
	static const struct {
		int name;
		const char *host, *line, *body;
		bool finding;
	} asked[] = {
	        {NAME_A, "a.test", "POST /v2/x", "{\"k\": \"" PLACEHOLDER "\"}", false},
	        {NAME_A, "a.test", "POST /v2/x", "{\"k\": \"" PLACEHOLDER "\", \"l\": \"" PAR "\"}",
	                true},
	        {NAME_A, "a.test", "POST /v2/x", "{\"k\": \"" PAR "\"}", true},
	        {NAME_S, "s.test", "POST /v2/x", "{\"k\": \"" PLACEHOLDER "\"}", true},
	};
	const size_t steps[] = {1, 7, 1000};
	size_t expected = 0;

	(void)state;
	for (size_t k = 0; k < 3 * sizeof(asked) / sizeof(*asked); k++) {
		size_t i = k / 3, step = steps[k % 3], n = strlen(asked[i].body);
		struct peer *c = client(&w, asked[i].name, asked[i].host), *o;
		char length[64];

		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", n);
		ask(c, asked[i].line, asked[i].host, length);
		o = origin(&w, true);
		take_head(o);
		for (size_t at = 0; at < n; at += step) {
			say_n(c, asked[i].body + at, n - at < step ? n - at : step);
			pump(&w, 0);
		}
		expect(o, asked[i].body);
		expected += asked[i].finding;
		assert_int_equal(leaks(), expected);
		hang_up(c, false);
		hang_up(o, false);
	}
}

static void test_observed_fields(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "DELETE /v2/x", "a.test", "Authorization: Bearer " PLACEHOLDER "\r\n");
	o = origin(&w, true);
	expect_head(o, "DELETE /v2/x ");
	assert_true(head_has(o, PLACEHOLDER)); /* worth nothing */
	say(o, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 401 ");
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_OBSERVED);
	assert_shown("key");
	assert_int_equal(leaks(), 0);
	hang_up(c, false);
	hang_up(o, false);
}

/* A request that goes on under another policy is no hint any more: its indices are those of the
 * former policy. */
static void change(void *context)
{
	(void)context;
}

static void test_observed_and_reauthorized(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "DELETE /v2/x", "a.test", "Authorization: Bearer " PLACEHOLDER "\r\n");
	o = origin(&w, true);
	expect_head(o, "DELETE /v2/x ");
	proxy_reauthorize(w.proxy, &w.policy, change, NULL);
	say(o, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 401 ");
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_OBSERVED);
	assert_shown(NULL);
	hang_up(c, false);
	hang_up(o, false);
}

/* Heads that are never judged have no credential at hand. */
static void test_unreadable(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	say(c, "GET /v2/x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\nX: " PLACEHOLDER "\r\n\r\n");
	expect_head(c, "HTTP/1.1 400 ");
	assert_shown(NULL);
	hang_up(c, false);
}

#define OWN(name) cmocka_unit_test_setup_teardown(name, set_up_own, tear_down)
#define OBSERVING(name) cmocka_unit_test_setup_teardown(name, set_up_observing, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        OWN(test_denied),
	        OWN(test_other_refusals_stay_findings),
	        OWN(test_allowed_requests_are_as_before),
	        OWN(test_over_http2),
	        OWN(test_unreadable),
	        OBSERVING(test_observed_bodies),
	        OBSERVING(test_observed_fields),
	        OBSERVING(test_observed_and_reauthorized),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
