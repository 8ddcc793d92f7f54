/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that another proxy asks about: what is allowed and with which fields, everything that is
 * refused, and that no refusal has a status that would allow the request. */
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
        "  alone: {source: \"env:A\", inject: bearer, require: true}\n"
        "  head: {source: \"env:H\", inject: header, header: x-key}\n"
        "  pair: {source: \"env:P\", inject: basic, username: u}\n"
        "  jar: {source: \"env:C\", inject: cookie, cookie: sid}\n"
        "  par: {source: \"env:Q\", inject: query, query: api_key}\n"
        "  put: {source: \"env:R\", inject: placeholder, in: header, env: PUT}\n"
        "allow:\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/key/**], credential: key}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/alone], credential: alone}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/head], credential: head}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/pair], credential: pair}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/jar], credential: jar}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/par], credential: par}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/put], credential: put}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/open/**]}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/json], methods: [POST], json: {m: x}}\n"
        "  - {name: few, to: \"https://a.test:%1$u\", paths: [/few], limits: {requests: 2/1h}}\n"
        "  - {name: down, to: \"https://a.test:%1$u\", paths: [/down], limits: {download: "
        "1MB/1h}}\n"
        "  - {name: up, to: \"https://a.test:%1$u\", paths: [/up], limits: {body: 4}}\n"
        "  - {to: \"http://p.test:%1$u\"}\n"
        "deny:\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/open/shut], reason: never}\n"
        "  - {to: \"https://a.test:%1$u\", paths: [/open/body], json: {m: x}}\n";

static int begin(void **state)
{
	const struct world_options o = {
	        .policy = policy, .timeouts = patient_timeouts, .limits = usual_limits};

	(void)state;
	world_open(&w, &o);
	return 0;
}

/* A connection of this form, as the gateway makes it. */
static struct peer *enter(enum message_form form)
{
	const struct message_worker_enter m = {
	        .source = {4, {192, 0, 2, 9}}, .source_port = 7, .form = form};
	int pair[2];

	w.proxy->config.limits.connections_per_s = 1000;
	rate_init(&w.proxy->local_connections, 1000, 2, clock_monotonic_ms());
	assert_int_equal(
	        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(proxy_enter(w.proxy, pair[1], &m), 0);
	return peer_new(&w, pair[0]);
}

/* Asks about "METHOD /path" at https://a.test; more: fields, and then a body. */
static const char *ask_about(struct peer *c, const char *line, const char *fields, const char *body)
{
	const char *path = strchr(line, ' ') + 1;
	char text[4096];

	snprintf(text, sizeof(text),
	        "%.*shttps://a.test:%u%s HTTP/1.1\r\nHost: a.test:%u\r\n%s\r\n%s",
	        (int)(path - line), line, w.port, path, w.port, fields, body);
	say(c, text);
	take_head(c);
	return c->head;
}

static void answers(enum message_form form, const char *line, const char *fields, const char *body,
        const char *status, const char *words)
{
	struct peer *c = enter(form);
	const char *head = ask_about(c, line, fields, body);
	const size_t events = w.event_total;

	if (strncmp(head + strlen("HTTP/1.1 "), status, strlen(status)) != 0)
		fail_msg("%s: %s", line, head);
	if (words && !strcasestr(head, words)) {
		UNTIL(&w, memmem(buf_bytes(&c->in) ? buf_bytes(&c->in) : (uint8_t *)"", c->in.len,
		                  words, strlen(words)) ||
		                  c->eof);
		if (!memmem(buf_bytes(&c->in), c->in.len, words, strlen(words)))
			fail_msg("%s: no %s in %.*s", line, words, SLICE_ARG(buf_slice(&c->in)));
	}
	assert_true(events > 0);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

#define FIELDS(line, status, words) answers(MESSAGE_FORM_CHECK_HEAD, line, "", "", status, words)

static void test_allowed(void **state)
{
	struct peer *c = enter(MESSAGE_FORM_CHECK);
	const struct event *e;

	(void)state;
	assert_non_null(strstr(ask_about(c, "GET /key/x?y", "", ""),
	        "authorization: Bearer " SECRET_VALUE "\r\n"));
	assert_non_null(strstr(c->head, "content-length: 0\r\n"));
	e = only(EVENT_HTTP);
	assert_true(e->callback);
	assert_int_equal(e->decision, EVENT_ALLOWED);
	assert_int_equal(e->status, 0);
	assert_true(slice_equals(e->credential, SLICE("key")));
	assert_true(slice_equals(e->target, SLICE("/key/x?y")));
	assert_int_equal(e->src.bytes[0], 192);
	/* The connection goes on. */
	assert_null(strstr(ask_about(c, "GET /open/x", "", ""), "authorization"));
	assert_non_null(strstr(c->head, "HTTP/1.1 200 "));
	hang_up(c, false);
	FIELDS("GET /head", "200 ", "x-key: " SECRET_VALUE);
	FIELDS("GET /pair", "200 ", "authorization: Basic ");
	FIELDS("GET /alone", "200 ", "authorization: Bearer ");
	FIELDS("HEAD /key/x", "200 ", "authorization: Bearer ");
	FIELDS("GET /jar", "200 ", "cookie: sid=" SECRET_VALUE "\r\n");
	answers(MESSAGE_FORM_CHECK, "GET /jar", "Cookie: a=b; sid=own\r\n", "", "200 ",
	        "cookie: sid=" SECRET_VALUE "; a=b\r\n");
	/* The sandbox's placeholder, which the field replaces. */
	answers(MESSAGE_FORM_CHECK, "GET /key/x", "Authorization: Bearer " PLACEHOLDER "\r\n", "",
	        "200 ", "Bearer " SECRET_VALUE);
}

static void test_as_json(void **state)
{
	(void)state;
	answers(MESSAGE_FORM_CALLBACK, "GET /key/x", "", "", "200 ",
	        "{\"headers\":{\"authorization\":\"Bearer " SECRET_VALUE "\"}}");
	answers(MESSAGE_FORM_CALLBACK_HEAD, "GET /open/x", "", "", "200 ", "{\"headers\":{}}");
	answers(MESSAGE_FORM_CALLBACK, "GET /other", "", "", "403 ", "\"advice\"");
	w.value = "s3cr3t-TOKEN-\xff-bytes";
	answers(MESSAGE_FORM_CALLBACK, "GET /head", "", "", "502 ", NULL);
	answers(MESSAGE_FORM_CHECK, "GET /head", "", "", "200 ", NULL);
}

static void test_refused(void **state)
{
	static const char *const lines[] = {
	        "GET /other", "DELETE /json", "GET /open/shut", "GET /keys/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		for (int form = MESSAGE_FORM_CHECK; form < MESSAGE_FORM_COUNT; form++)
			answers((enum message_form)form, lines[i], "", "", "403 ",
			        "X-Vethguard: denied");
	FIELDS("TRACE /open/x", "405 ", NULL);
	FIELDS("GET /par", "403 ", "another proxy can add nothing else");
	FIELDS("GET /put", "403 ", "another proxy can add nothing else");
	answers(MESSAGE_FORM_CHECK, "GET /alone", "Cookie: a=b\r\n", "", "403 ", "cookies");
	answers(MESSAGE_FORM_CHECK, "GET /alone", "X-Api-Key: own\r\n", "", "403 ",
	        "credential of its own");
	answers(MESSAGE_FORM_CHECK, "GET /open/x",
	        "X-Http-Method-Override: PATCH\r\n"
	        "X-Original-URL: /other\r\n",
	        "", "403 ", NULL);
	answers(MESSAGE_FORM_CHECK, "GET /open/x", SWITCH_ASKED, "", "403 ", "upgrade");
	answers(MESSAGE_FORM_CHECK, "GET /open/x", "Connection: Upgrade\r\nUpgrade: x\r\n", "",
	        "403 ", "upgrade");
	w.keeper_error = "it is not there";
	FIELDS("GET /key/x", "502 ", NULL);
}

/* No refusal may have the status of an answer that allows. */
static void test_words_of_other_protocols(void **state)
{
	(void)state;
	answers(MESSAGE_FORM_CHECK, "POST /other/git-upload-pack",
	        "Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 4\r\n",
	        "0000", "403 ", NULL);
	answers(MESSAGE_FORM_CHECK, "POST /other", "Content-Type: application/grpc-web\r\n", "",
	        "403 ", NULL);
	answers(MESSAGE_FORM_CHECK_HEAD, "POST /other/git-receive-pack",
	        "Content-Type: application/x-git-receive-pack-request\r\n", "", "403 ", NULL);
}

#define JSON(n) "Content-Type: application/json\r\nContent-Length: " n "\r\n"

static void test_bodies(void **state)
{
	(void)state;
	answers(MESSAGE_FORM_CHECK, "POST /json", JSON("9"), "{\"m\":\"x\"}", "200 ", NULL);
	answers(MESSAGE_FORM_CHECK, "POST /json", JSON("9"), "{\"m\":\"y\"}", "403 ", NULL);
	answers(MESSAGE_FORM_CALLBACK, "POST /json", JSON("9"), "{\"m\":\"x\"}", "200 ", NULL);
	/* A body that is not sent may be anything. */
	answers(MESSAGE_FORM_CHECK_HEAD, "POST /json", "", "", "403 ", "does not send");
	answers(MESSAGE_FORM_CHECK_HEAD, "POST /json", JSON("9"), "{\"m\":\"x\"}", "403 ",
	        "does not send");
	answers(MESSAGE_FORM_CALLBACK_HEAD, "POST /json", "", "", "403 ", "does not send");
	answers(MESSAGE_FORM_CHECK_HEAD, "GET /open/body", "", "", "403 ", "does not send");
	answers(MESSAGE_FORM_CHECK, "GET /open/body", "", "", "200 ", NULL);
	answers(MESSAGE_FORM_CHECK, "POST /open/body", JSON("9"), "{\"m\":\"x\"}", "403 ", NULL);
	/* Every body that is sent is searched. */
	answers(MESSAGE_FORM_CHECK, "POST /open/x", "Content-Length: 46\r\n", PLACEHOLDER, "403 ",
	        "placeholder");
	answers(MESSAGE_FORM_CHECK, "POST /open/x", "Transfer-Encoding: chunked\r\n",
	        "2e\r\n" PLACEHOLDER "\r\n0\r\n\r\n", "403 ", "placeholder");
}

static void test_limits(void **state)
{
	(void)state;
	answers(MESSAGE_FORM_CHECK, "GET /down", "", "", "403 ", "counts answers");
	answers(MESSAGE_FORM_CHECK_HEAD, "GET /up", "", "", "403 ", "counts bodies");
	answers(MESSAGE_FORM_CHECK, "PUT /up", "Content-Length: 5\r\n", "hello", "413 ", NULL);
}

static void test_paused(void **state)
{
	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "paused");
	FIELDS("GET /key/x", "503 ", NULL);
	FIELDS("GET /open/x", "503 ", NULL);
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, NULL);
	FIELDS("GET /open/x", "200 ", NULL);
}

/* No request of another form becomes such a question. */
static void test_other_forms(void **state)
{
	struct peer *c = enter(MESSAGE_FORM_BASE_PATH), *o;
	char text[512];

	(void)state;
	snprintf(text, sizeof(text),
	        "GET http://p.test:%u/x HTTP/1.1\r\nHost: p.test:%u\r\nX-Vethguard-Token: "
	        "x\r\n\r\n",
	        w.port, w.port);
	say(c, text);
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
}

int main(void)
{
#define WITH(f) cmocka_unit_test_setup_teardown(f, begin, tear_down)
	const struct CMUnitTest tests[] = {WITH(test_allowed), WITH(test_as_json),
	        WITH(test_refused), WITH(test_words_of_other_protocols), WITH(test_bodies),
	        WITH(test_limits), WITH(test_paused), WITH(test_other_forms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
