/* SPDX-License-Identifier: Apache-2.0 */
/* Upgrades other than to a WebSocket: a protocol that a rule names is relayed unread once the
 * upstream has agreed to it, any other is refused with a reason, or not passed on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"

static const char policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  key: {source: \"env:KEY\", inject: bearer, env: KEY}\n"
        "  par: {source: \"env:PAR\", inject: query, query: api_key}\n"
        "allow:\n"
        "  - {name: a, to: \"https://a.test:%1$u\", upgrade: [SPDY/3.1, tcp]}\n"
        "  - {name: c, to: \"https://c.test:%1$u\", credential: key, "
        "upgrade: tcp}\n"
        "  - {name: q, to: \"https://q.test:%1$u\", credential: par}\n"
        "  - {name: p, to: \"http://p.test:%1$u\"}\n";
static const struct world_options options = {
        .policy = policy, .timeouts = PATIENT_TIMEOUTS, .limits = USUAL_LIMITS, .send_bytes = 8192};

static struct peer *c, *o;

static int set_up_policy(void **state)
{
	(void)state;
	world_open(&w, &options);
	return 0;
}
#define UPGRADES(name) cmocka_unit_test_setup_teardown(name, set_up_policy, tear_down)
#define ASKS(protocols) "Connection: Upgrade\r\nUpgrade: " protocols "\r\n"

static void begin(int name, const char *line, const char *host, const char *fields)
{
	c = client(&w, name, host);
	ask(c, line, host, fields);
}

static void leave(void)
{
	hang_up(c, false);
	if (o)
		hang_up(o, false);
	o = NULL;
}

static void expect_refused(const char *start, const char *words)
{
	expect_head(c, start);
	UNTIL(&w, has(c, "\n", 1));
	if (!has(c, words, strlen(words)))
		fail_msg("\"%s\" is not in %.*s", words, (int)c->in.len,
		        (const char *)buf_bytes(&c->in));
}

/* --- refused, or not passed on --- */

static void test_what_no_rule_names(void **state)
{
	static const struct {
		int name;
		const char *host, *line, *fields, *protocol;
	} cases[] = {{NAME_A, "a.test", "GET /x", ASKS("foo/2"), "\\\"foo/2\\\""},
	        {NAME_A, "a.test", "GET /x", ASKS("spdy/3"), "\\\"spdy/3\\\""},
	        {NAME_A, "a.test", "GET /x", ASKS("spdy"), "\\\"spdy\\\""},
	        {NAME_A, "a.test", "POST /x", "Content-Length: 0\r\n" ASKS("h2c, bar"),
	                "\\\"bar\\\""},
	        {NAME_C, "c.test", "GET /x", ASKS("SPDY/3.1"), "\\\"SPDY/3.1\\\""},
	        {NAME_Q, "q.test", "GET /x", ASKS("tcp"), "\\\"tcp\\\""},
	        {NAME_Q, "q.test", "GET /x", ASKS("x\") and (\""), "upgrade to"},
	        {NAME_Q, "q.test", "GET /x",
	                ASKS("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	                     "aa"),
	                "aaaa"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct event *e;

		begin(cases[i].name, cases[i].line, cases[i].host, cases[i].fields);
		expect_refused("HTTP/1.1 403 ", cases[i].protocol);
		assert_true(has(c, "under \\\"upgrade\\\" of the rule", 28));
		e = find_event(&w, EVENT_HTTP);
		assert_int_equal(e->cause, EVENT_CAUSE_POLICY);
		assert_int_equal(e->policy_reason, POLICY_REASON_UPGRADE);
		assert_int_equal(e->decision, EVENT_DENIED);
		assert_true(e->rule.n == 1);
		leave();
	}
	assert_int_equal(w.asked, 0);
}

static void test_websockets_that_are_none(void **state)
{
	(void)state;
	begin(NAME_A, "POST /x", "a.test", "Content-Length: 0\r\n" ASKS("websocket"));
	expect_refused("HTTP/1.1 403 ", "with GET");
	leave();
	begin(NAME_A, "GET /x", "a.test", "Content-Length: 2\r\n" ASKS("WebSocket"));
	expect_refused("HTTP/1.1 403 ", "without a body");
	leave();
}

/* Upgrades that a client can do without, and fields that are not an upgrade. */
static void test_what_is_not_passed_on(void **state)
{
	static const struct {
		const char *fields;
		bool told;
	} cases[] = {{ASKS("h2c"), true}, {ASKS("TLS/1.2"), true}, {ASKS("HTTP/3.0, h2c"), true},
	        {"Upgrade: tcp\r\n", false}, {"Upgrade: foo\r\nConnection: close\r\n", false},
	        {"Connection: upgrade\r\n", false}, {ASKS(","), false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct event *e;

		begin(NAME_A, "GET /x", "a.test", cases[i].fields);
		o = origin(&w, true);
		take_head(o);
		assert_false(head_has(o, "upgrade"));
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		expect_head(c, "HTTP/1.1 200 ");
		e = find_event(&w, EVENT_HTTP);
		assert_int_equal(e->decision, EVENT_ALLOWED);
		assert_int_equal(e->detail.n > 0, cases[i].told);
		leave();
	}
}

/* --- relayed --- */

static void switch_over(bool bound, const char *line, const char *fields)
{
	begin(bound ? NAME_C : NAME_A, line, bound ? "c.test" : "a.test", fields);
	o = origin(&w, true);
	take_head(o);
}

static void test_relayed(void **state)
{
	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		const struct event *e;

		switch_over(bound, "POST /attach", "Content-Length: 0\r\n" ASKS("foo, Tcp"));
		assert_true(head_has(o, "\r\nConnection: upgrade\r\nUpgrade: Tcp\r\n"));
		assert_int_equal(head_has(o, SECRET_VALUE), bound);
		say(c, "early"); /* waits */
		pump(&w, 20);
		assert_int_equal(o->in.len, 0);
		say(o, "HTTP/1.1 101 UPGRADED\r\nContent-Type: "
		       "application/vnd.docker.raw-stream\r\n"
		       "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n\x81\x7f any bytes");
		expect_head(c, "HTTP/1.1 101 ");
		assert_true(head_has(c, "\r\nUpgrade: Tcp\r\n") && head_has(c, "raw-stream"));
		assert_true(head_has(c, "\r\nConnection: upgrade\r\n"));
		expect(c, "\x81\x7f any bytes");
		expect(o, "early");
		say(c, "\xff more\r\n");
		expect(o, "\xff more\r\n");
		say(o, SECRET_VALUE); /* unread: this is what the rule says */
		expect(c, SECRET_VALUE);
		socket_end(&c->socket);
		UNTIL(&w, o->eof);
		say(o, "last");
		socket_end(&o->socket);
		expect(c, "last");
		expect_end(c);
		e = find_event(&w, EVENT_HTTP);
		assert_int_equal(e->status, 101);
		assert_true(slice_equals(
		        e->detail, SLICE("upgraded to another protocol, and relayed unread")));
		assert_int_equal(e->bytes_out, 5 + 8);
		assert_int_equal(e->bytes_in, 12 + sizeof(SECRET_VALUE) - 1 + 4);
		leave();
	}
}

/* Once the credential is being guessed, nothing more passes in either direction over a connection
 * that was opened with it, and no other one is switched over. */
static void test_a_credential_that_is_guessed(void **state)
{
	static const char switched[] =
	        "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nhi";

	(void)state;
	for (int from_sandbox = 0; from_sandbox < 2; from_sandbox++) {
		const struct event *e;
		struct peer *bare_c, *bare_o, *late_c, *late_o;

		switch_over(false, "GET /x", ASKS("tcp"));
		say(o, switched);
		expect_head(c, "HTTP/1.1 101 ");
		expect(c, "hi");
		bare_c = c;
		bare_o = o;
		switch_over(true, "GET /late", ASKS("tcp"));
		late_c = c;
		late_o = o;
		switch_over(true, "GET /x", ASKS("tcp"));
		say(o, switched);
		expect_head(c, "HTTP/1.1 101 ");
		expect(c, "hi");
		assert_true(credential_store_waited(w.store, 0, 1));
		say(from_sandbox ? c : o, "no more");
		UNTIL(&w, c->failed);
		UNTIL(&w, o->eof || o->failed);
		assert_false(has(c, "no", 2) || has(o, "no", 2));
		e = find_event(&w, EVENT_HTTP);
		assert_int_equal(e->cause, EVENT_CAUSE_LIMIT);
		assert_true(
		        slice_equals(e->detail, SLICE("somebody may be guessing the credential")));
		leave();
		say(late_o, switched);
		expect_head(late_c, "HTTP/1.1 503 ");
		hang_up(late_c, false);
		hang_up(late_o, false);
		say(from_sandbox ? bare_c : bare_o, "goes on"); /* had none */
		expect(from_sandbox ? bare_o : bare_c, "goes on");
		hang_up(bare_c, false);
		hang_up(bare_o, false);
		again(options);
	}
}

/* Like `docker exec`: the body says what to do. */
static void test_with_a_body(void **state)
{
	static const char *const fields[] = {
	        "Content-Length: 7\r\n" ASKS("tcp"), "Transfer-Encoding: chunked\r\n" ASKS("tcp")};
	static const char *const bodies[] = {"{\"a\":1}", "7\r\n{\"a\":1}\r\n0\r\n\r\n"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		switch_over(false, "POST /exec", fields[i]);
		say(c, bodies[i]);
		expect(o, bodies[i]);
		say(o, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nhello");
		expect_head(c, "HTTP/1.1 101 ");
		expect(c, "hello");
		say(c, "7\r\nraw");
		expect(o, "7\r\nraw");
		leave();
	}
}

static void test_an_upstream_that_does_not_switch(void **state)
{
	(void)state;
	switch_over(false, "GET /x", ASKS("spdy/3.1"));
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "no");
	leave();
}

static void test_upstreams_that_switch_wrongly(void **state)
{
	static const struct {
		const char *asks, *answers;
	} cases[] = {{ASKS("tcp"), ""}, {ASKS("tcp"), "Upgrade: spdy/3.1\r\n"},
	        {ASKS("tcp"), "Upgrade: tcp, foo\r\n"},
	        {ASKS("tcp"), "Upgrade: tcp\r\nUpgrade: tcp\r\n"},
	        {ASKS("tcp"), "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"},
	        {ASKS("h2c"), "Upgrade: h2c\r\n"}, {"", "Upgrade: tcp\r\n"},
	        {"Content-Length: 5\r\n" ASKS("tcp"), "Upgrade: tcp\r\n"}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		char text[300];

		switch_over(i & 1, "GET /x", cases[i / 2].asks);
		snprintf(text, sizeof(text), "HTTP/1.1 101 Go\r\nConnection: upgrade\r\n%s\r\nraw",
		        cases[i / 2].answers);
		say(o, text);
		expect_head(c, "HTTP/1.1 502 ");
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		leave();
	}
}

/* The kill switch. */
static void test_ended(void **state)
{
	(void)state;
	switch_over(false, "GET /x", ASKS("tcp"));
	say(o, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nhi");
	expect_head(c, "HTTP/1.1 101 ");
	expect(c, "hi");
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "stopped by hand");
	UNTIL(&w, c->eof || c->failed);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_PAUSED);
	leave();
}

static void nothing(void *context)
{
	(void)context;
}

/* A new policy that no longer names the protocol ends the upgrade, one that does name it does not.
 */
static void test_a_new_policy(void **state)
{
	struct policy before, next;
	uint8_t *before_image, *next_image;
	static char narrowed[sizeof(policy)];
	char *list;

	(void)state;
	strcpy(narrowed, policy);
	list = strstr(narrowed, "tcp]");
	memcpy(list, "foo]", 4);
	for (int kept = 1; kept >= 0; kept--) {
		switch_over(false, "GET /x", ASKS("tcp"));
		say(o, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nhi");
		expect_head(c, "HTTP/1.1 101 ");
		expect(c, "hi");
		before = w.policy;
		before_image = w.image;
		world_load_policy(&w, kept ? policy : narrowed, false);
		next = w.policy;
		next_image = w.image;
		w.policy = before;
		w.image = before_image;
		assert_int_equal(proxy_reauthorize(w.proxy, &next, nothing, NULL), !kept);
		if (!kept) {
			UNTIL(&w, o->eof || o->failed);
			assert_int_equal(
			        find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_POLICY_CHANGED);
		} else {
			say(c, "goes on");
			expect(o, "goes on");
		}
		leave();
		free(next_image);
	}
}

static void test_observed(void **state)
{
	struct world_options observing = options;

	(void)state;
	observing.observe = true;
	again(observing);
	begin(NAME_P, "GET http://p.test/x", "p.test", ASKS("foo"));
	leave();
	switch_over(false, "GET /x", ASKS("foo"));
	assert_true(head_has(o, "\r\nUpgrade: foo\r\n"));
	say(o, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\nhi");
	expect_head(c, "HTTP/1.1 101 ");
	expect(c, "hi");
	socket_end(&o->socket);
	expect_end(c);
	assert_int_equal(find_event(&w, EVENT_HTTP)->decision, EVENT_OBSERVED);
	leave();
	begin(NAME_C, "GET /x", "c.test", ASKS("foo"));
	expect_refused("HTTP/1.1 403 ", "foo");
	leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        UPGRADES(test_what_no_rule_names),
	        UPGRADES(test_websockets_that_are_none),
	        UPGRADES(test_what_is_not_passed_on),
	        UPGRADES(test_relayed),
	        UPGRADES(test_a_credential_that_is_guessed),
	        UPGRADES(test_with_a_body),
	        UPGRADES(test_an_upstream_that_does_not_switch),
	        UPGRADES(test_upstreams_that_switch_wrongly),
	        UPGRADES(test_ended),
	        UPGRADES(test_a_new_policy),
	        UPGRADES(test_observed),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
