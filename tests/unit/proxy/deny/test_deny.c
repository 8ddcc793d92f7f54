/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a refused client is told, member by member, as programs read it: the problem document, what
 * SDKs take out of it, the kind of JSON that was asked for, a pause, a refused address.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "../http2_peer.h"

/* The problem document in answer to the request that was sent. */
static json_t *document(struct peer *c, const char *status)
{
	json_t *root;

	expect_head(c, status);
	UNTIL(&w, has(c, "}}\n", 3));
	root = json_loadb((const char *)buf_bytes(&c->in), c->in.len, 0, NULL);
	assert_non_null(root);
	buf_consume(&c->in, c->in.len);
	return root;
}

static const char *text(const json_t *root, const char *name)
{
	const char *value = json_string_value(json_object_get(root, name));

	assert_non_null(value);
	return value;
}

/* It has these members, and error.message is message: the detail between the name vethguard and
 * the event's id. */
static void assert_told(const json_t *root, const char *kind, const char *code, const char *reason)
{
	const json_t *error = json_object_get(root, "error");
	char expected[2048], type[64];

	snprintf(expected, sizeof(expected), "vethguard: %s%s%s (event %s)", text(root, "detail"),
	        reason ? ": " : "", reason ? reason : "", text(root, "event"));
	assert_string_equal(text(root, "message"), expected);
	assert_string_equal(text(error, "message"), expected);
	snprintf(type, sizeof(type), "vethguard_%s", kind);
	assert_string_equal(text(error, "type"), type);
	assert_string_equal(text(error, "code"), code);
	snprintf(type, sizeof(type), "urn:vethguard:problem:%s", kind);
	assert_string_equal(text(root, "type"), type);
	assert_true(json_is_integer(json_object_get(root, "status")));
	assert_non_null(text(root, "advice"));
}

static void test_by_the_policy(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	json_t *root;

	(void)state;
	ask(c, "DELETE /x", "a.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "denied", "rule", "never");
	assert_string_equal(text(root, "rule"), "no");
	assert_string_equal(text(root, "reason"), "never");
	json_decref(root);
	ask(c, "PATCH /x", "a.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "denied", "method", NULL);
	assert_string_equal(text(root, "rule"), "default");
	assert_null(json_object_get(root, "reason"));
	json_decref(root);
	hang_up(c, false);
	c = client(&w, NAME_D, "d.test");
	ask(c, "GET /x", "d.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "denied", "default", NULL);
	json_decref(root);
	hang_up(c, false);
}

static void test_for_other_reasons(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	json_t *root;

	(void)state;
	ask(c, "GET /x", "c.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "failed", "binding", NULL);
	assert_non_null(strstr(text(root, "advice"), "the same host"));
	json_decref(root);
	hang_up(c, false);
	c = client(&w, NAME_C, "c.test");
	w.keeper_error = "no such file";
	ask(c, "GET /x", "c.test", "");
	root = document(c, "HTTP/1.1 502 ");
	assert_told(root, "failed", "credential", NULL);
	assert_null(strstr(text(root, "message"), "no such file"));
	assert_non_null(strstr(text(root, "advice"), "has repaired the credential"));
	json_decref(root);
	hang_up(c, false);
}

/* A path of which every byte is escaped does not make the document too long for its buffer. */
static void test_a_long_path(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	char line[8000] = "PATCH /";
	json_t *root;

	(void)state;
	for (size_t n = strlen(line); n + 4 < 1500; n += 3)
		strcpy(line + n, "%22");
	ask(c, line, "a.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "denied", "method", NULL);
	json_decref(root);
	hang_up(c, false);
}

static void test_what_accept_names(void **state)
{
	static const struct {
		const char *fields;
		bool plain;
	} rows[] = {
	        {"", false},
	        {"Accept: */*\r\n", false},
	        {"Accept: text/html\r\n", false},
	        {"Accept: application/problem+json\r\n", false},
	        {"Accept: application/json, application/problem+json\r\n", false},
	        {"Accept: application/json\r\nAccept: application/problem+json\r\n", false},
	        {"X-Accept: application/json\r\n", false},
	        {"Accept: application/json\r\n", true},
	        {"Accept: application/json, text/plain, */*\r\n", true},
	        {"Accept: application/vnd.github.v3+json\r\n", true},
	        {"accept: text/html\r\nACCEPT: application/json\r\n", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct peer *c = client(&w, NAME_A, "a.test");

		ask(c, "PATCH /x", "a.test", rows[i].fields);
		expect_head(c, "HTTP/1.1 403 ");
		assert_true(
		        head_has(c, rows[i].plain ? "content-type: application/json\r\n"
		                                  : "content-type: application/problem+json\r\n"));
		hang_up(c, false);
	}
}

/* --- a paused sandbox --- */

#define WHY "the sandbox is paused: a look"

static void assert_paused(const json_t *root)
{
	assert_told(root, "failed", "paused", NULL);
	assert_string_equal(text(root, "title"), "The sandbox is paused");
	assert_string_equal(text(root, "reason"), WHY);
	assert_non_null(strstr(text(root, "detail"), WHY));
	assert_int_equal(json_integer_value(json_object_get(root, "status")), 503);
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_PAUSED);
}

static void test_paused(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *t;
	struct h2 *h = h2_client();
	struct answer *a;
	json_t *root;

	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, WHY);
	ask(c, "GET /x", "a.test", "");
	root = document(c, "HTTP/1.1 503 Service Unavailable: The sandbox is paused\r\n");
	assert_paused(root);
	json_decref(root);
	a = answer(h, h2_ask(h, "GET", "/x"));
	H2_UNTIL(h, a->closed);
	assert_int_equal(a->status, 503);
	root = json_loadb((const char *)buf_bytes(&a->body), a->body.len, 0, NULL);
	assert_paused(root);
	json_decref(root);
	t = client(&w, NAME_T, NULL);
	expect_reset(t);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_PAUSED);
	/* what the policy denies is denied as ever */
	ask(c, "PATCH /x", "a.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "denied", "method", NULL);
	json_decref(root);
	/* a log that cannot be written is not a pause */
	proxy_pause(w.proxy, EVENT_CAUSE_CLOSING, "the disk is full");
	ask(c, "GET /x", "a.test", "");
	root = document(c, "HTTP/1.1 503 ");
	assert_told(root, "failed", "closing", NULL);
	assert_null(json_object_get(root, "reason"));
	json_decref(root);
	proxy_pause(w.proxy, EVENT_CAUSE_CLOSING, NULL);
	h2_hang_up(h, false);
	hang_up(c, false);
	hang_up(t, false);
}

static void test_grpc(void **state)
{
	const nghttp2_nv more[] = {nv("content-type", "application/grpc"), nv("te", "trailers")};
	struct h2 *h = h2_client();
	struct answer *a = answer(h, h2_ask_with(h, "DELETE", "a.test", "/S/Call", more, 2, NULL));

	(void)state;
	H2_UNTIL(h, a->closed);
	assert_non_null(
	        strstr(a->fields, "/S/Call: a deny rule of the policy names it: never (event 0"));
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, WHY);
	a = answer(h, h2_ask_with(h, "POST", "a.test", "/S/Call", more, 2, NULL));
	H2_UNTIL(h, a->closed);
	assert_non_null(strstr(a->fields, "grpc-status: 14\n"));
	assert_non_null(strstr(a->fields, "/S/Call: " WHY " (event 0"));
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, NULL);
	h2_hang_up(h, false);
}

/* --- an address that is refused --- */

static const char wide_policy[] = "vethguard: 1\n"
                                  "name: test\n"
                                  "allow:\n"
                                  "  - {name: a, to: \"https://a.test:%1$u\"}\n"
                                  "  - {name: t, to: \"tcp://t.test:%1$u\"}\n";

/* World where the names resolve to 127.0.0.1, which nothing permits. */
static void refuse_loopback(void)
{
	const struct world_options options = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .send_bytes = 8192,
	        .policy = wide_policy};

	again(options);
	w.proxy->config.permit_count = 0;
}

static void assert_address(const struct event *e)
{
	const struct ip loopback4 = {4, {127, 0, 0, 1}};

	assert_non_null(e);
	assert_true(ip_equals(&e->upstream, &loopback4));
}

static void test_a_refused_address(void **state)
{
	struct peer *c, *t;
	json_t *root;

	(void)state;
	refuse_loopback();
	c = client(&w, NAME_A, "a.test");
	ask(c, "GET /x", "a.test", "");
	root = document(c, "HTTP/1.1 403 ");
	assert_told(root, "failed", "address", NULL);
	/* the sandbox is not told which one */
	assert_null(strstr(text(root, "message"), "127."));
	json_decref(root);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_ADDRESS);
	assert_address(only(EVENT_HTTP));
	assert_address(find_finding(&w, EVENT_FINDING_PRIVATE_ADDRESS));
	hang_up(c, false);
	t = client(&w, NAME_T, NULL);
	expect_reset(t);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_ADDRESS);
	assert_address(only(EVENT_CONNECTION));
	assert_address(find_finding(&w, EVENT_FINDING_PRIVATE_ADDRESS));
	assert_int_equal(count_events(&w, EVENT_FINDING), 2);
	hang_up(t, false);
}

/* A request that was never dialed, for another reason, has no address. */
static void test_no_address_of_other_refusals(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	ask(c, "PATCH /x", "a.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	assert_int_equal(only(EVENT_HTTP)->upstream.family, 0);
	hang_up(c, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_by_the_policy),
	        TEST(test_for_other_reasons),
	        TEST(test_a_long_path),
	        TEST(test_what_accept_names),
	        TEST(test_paused),
	        TEST(test_grpc),
	        TEST(test_a_refused_address),
	        TEST(test_no_address_of_other_refusals),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
