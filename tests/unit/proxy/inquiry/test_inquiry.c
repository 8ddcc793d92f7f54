/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to vethguard itself: what is answered, what is refused, and that nothing leaves, by
 * requests over TLS, in HTTP/1 and HTTP/2, and to the proxy port.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "../http2_peer.h"
#include "proxy/inquiry/inquiry.h"

#define HOST "vethguard.internal"
#define PROPOSAL                                                                               \
	"{\"to\": \"https://x.example.com\", \"methods\": [\"GET\"], \"paths\": [\"/v1/*\"], " \
	"\"reason\": \"r\"}"

static struct policy_proposal proposed;
static uint64_t proposed_id;
static int propose_rc;

static int on_propose(void *context, uint64_t id, const struct policy_proposal *proposal)
{
	(void)context;
	proposed = *proposal;
	proposed_id = id;
	return propose_rc;
}

static int open_world(void **state)
{
	set_up(state);
	w.proxy->config.propose = on_propose;
	proposed_id = 0;
	propose_rc = 0;
	return 0;
}

#define OWN(name) cmocka_unit_test_setup_teardown(name, open_world, tear_down)

/* Sends a request with these fields (each with its CRLF) and this body to the proxy port. */
static void send_to(
        struct peer *c, const char *method, const char *path, const char *fields, const char *body)
{
	char text[16384];

	snprintf(text, sizeof(text),
	        "%s http://" HOST "%s HTTP/1.1\r\nHost: " HOST "\r\n%s%s%zu%s\r\n%s", method, path,
	        fields, *body ? "Content-Length: " : "X-None: ", strlen(body), "\r\n", body);
	say(c, text);
}

/* Takes a whole response with this status, and its body as JSON; the peer is gone afterwards. */
static json_t *answer_of(struct peer *c, const char *status)
{
	json_t *root;

	expect_head(c, status);
	assert_true(head_has(c, "Cache-Control: no-store"));
	UNTIL(&w, has(c, "}\n", 2));
	root = json_loadb((const char *)buf_bytes(&c->in), c->in.len, 0, NULL);
	if (!root)
		fail_msg("no JSON: %.*s", (int)c->in.len, (const char *)buf_bytes(&c->in));
	hang_up(c, false);
	return root;
}

static json_t *get(const char *path, const char *status)
{
	struct peer *c = proxy_client(&w);

	send_to(c, "GET", path, "", "");
	return answer_of(c, status);
}

static const char *text(const json_t *root, const char *name)
{
	const char *value = json_string_value(json_object_get(root, name));

	if (!value)
		fail_msg("no %s", name);
	return value;
}

static void test_help_and_event(void **state)
{
	const struct event *e;

	(void)state;
	json_decref(get("/", "HTTP/1.1 200 "));
	e = only(EVENT_HTTP);
	assert_int_equal(e->decision, EVENT_ALLOWED);
	assert_int_equal(e->status, 200);
	assert_true(slice_equals(e->host, SLICE(HOST)));
	assert_int_equal(e->upstream.family, 0);
	assert_int_equal(w.proxy->upstream_count, 0);
}

static void test_plain_text(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	send_to(c, "GET", "/policy", "Accept: text/plain\r\n", "");
	expect_head(c, "HTTP/1.1 200 ");
	assert_true(head_has(c, "Content-Type: text/plain"));
	UNTIL(&w, has(c, "reason: never\n", 14));
	assert_true(has(c, "policy: test\n", 13) && has(c, "    - DELETE\n", 13));
	assert_false(has(c, "env:KEY", 7) || has(c, "api_key", 7) || has(c, "bearer", 6));
	hang_up(c, false);
	c = proxy_client(&w);
	send_to(c, "HEAD", "/policy", "Accept: text/plain\r\n", "");
	expect_head(c, "HTTP/1.1 200 ");
	pump(&w, 20);
	assert_int_equal(c->in.len, 0);
	hang_up(c, false);
}

static void test_over_tls(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	say(c, "CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST ":443\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	start_tls(c, HOST);
	say(c, "GET /policy HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, has(c, "}\n", 2));
	buf_consume(&c->in, c->in.len);
	say(c, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); /* it names another host */
	expect_head(c, "HTTP/1.1 403 ");
	hang_up(c, false);
}

static void test_a_denial(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	char path[64], help[128];
	json_t *root;

	(void)state;
	ask(c, "DELETE /x?a=b", "a.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, has(c, "}}\n", 3));
	root = json_loadb((const char *)buf_bytes(&c->in), c->in.len, 0, NULL);
	snprintf(path, sizeof(path), "/denials/%s", text(root, "event"));
	snprintf(help, sizeof(help), "https://" HOST "%s", path);
	assert_string_equal(text(root, "help"), help);
	json_decref(root);
	hang_up(c, false);
	root = get(path, "HTTP/1.1 200 ");
	assert_string_equal(text(root, "rule"), "no");
	assert_string_equal(text(root, "reason"), "never");
	assert_string_equal(text(root, "code"), "rule");
	assert_non_null(strstr(text(root, "detail"), "DELETE https://a.test"));
	assert_non_null(strstr(text(root, "advice"), "on purpose"));
	assert_int_equal(json_integer_value(json_object_get(root, "status")), 403);
	json_decref(root);
	root = get("/denials", "HTTP/1.1 200 ");
	assert_int_equal(json_array_size(json_object_get(root, "denials")), 1);
	json_decref(root);
}

static void test_only_the_last_denials(void **state)
{
	struct exchange ex = {.proxy = w.proxy, .cause = EVENT_CAUSE_POLICY};
	struct client c = {.proxy = w.proxy};
	json_t *root;

	(void)state;
	ex.client = &c;
	ex.verdict.decision.rule = POLICY_NONE;
	for (ex.id = 1; ex.id <= INQUIRY_DENIALS_MAX + 5; ex.id++)
		inquiry_note_denial(&ex);
	root = get("/denials", "HTTP/1.1 200 ");
	assert_int_equal(json_array_size(json_object_get(root, "denials")), INQUIRY_DENIALS_MAX);
	json_decref(root);
	json_decref(get("/denials/0000000000000005", "HTTP/1.1 404 "));
	json_decref(get("/denials/0000000000000006", "HTTP/1.1 200 "));
}

static void test_what_is_not_there(void **state)
{
	static const struct {
		const char *method, *path, *fields, *status;
	} rows[] = {
	        {"GET", "/x", "", "HTTP/1.1 404 "},
	        {"GET", "/policy/", "", "HTTP/1.1 404 "},
	        {"GET", "//policy", "", "HTTP/1.1 404 "},
	        {"GET", "/Policy", "", "HTTP/1.1 404 "},
	        {"GET", "/policy?x", "", "HTTP/1.1 404 "},
	        {"GET", "/?", "", "HTTP/1.1 404 "},
	        {"GET", "/denials/0123456789abcde", "", "HTTP/1.1 404 "},
	        {"GET", "/denials/0123456789abcdef", "", "HTTP/1.1 404 "},
	        {"GET", "/denials/0123456789ABCDEF", "", "HTTP/1.1 404 "},
	        {"GET", "/denials/0000000000000000", "", "HTTP/1.1 404 "},
	        {"GET", "/denials/0123456789abcdef0", "", "HTTP/1.1 404 "},
	        {"GET", "/asks/0123456789abcdef", "", "HTTP/1.1 404 "},
	        {"GET", "/proposals/0123456789abcdef", "", "HTTP/1.1 404 "},
	        {"PUT", "/policy", "", "HTTP/1.1 405 "},
	        {"get", "/policy", "", "HTTP/1.1 405 "},
	        {"DELETE", "/proposals", "", "HTTP/1.1 405 "},
	        {"OPTIONS", "/proposals", "", "HTTP/1.1 405 "},
	        {"GET", "/", "Origin: https://evil.example\r\n", "HTTP/1.1 403 "},
	        {"GET", "/", "Origin: null\r\n", "HTTP/1.1 403 "},
	        {"GET", "/", "Sec-Fetch-Site: cross-site\r\n", "HTTP/1.1 403 "},
	        {"OPTIONS", "/proposals",
	                "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n",
	                "HTTP/1.1 403 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *c = proxy_client(&w);

		send_to(c, rows[i].method, rows[i].path, rows[i].fields, "");
		expect_head(c, rows[i].status);
		assert_false(head_has(c, "Access-Control-"));
		hang_up(c, false);
	}
	assert_int_equal(proposed_id, 0);
	assert_int_equal(w.proxy->upstream_count, 0);
}

static json_t *post(const char *fields, const char *body, const char *status)
{
	struct peer *c = proxy_client(&w);

	send_to(c, "POST", "/proposals", fields, body);
	return answer_of(c, status);
}

#define JSON_TYPE "Content-Type: application/json\r\n"

static void test_a_proposal(void **state)
{
	struct message_worker_proposed m = {MESSAGE_PROPOSAL_REFUSED,
	        SLICE("https://x.example.com"), SLICE("refused by uid 0: no")};
	char path[64];
	json_t *root = post(JSON_TYPE, PROPOSAL, "HTTP/1.1 202 ");

	(void)state;
	assert_string_equal(proposed.to, "https://x.example.com");
	snprintf(path, sizeof(path), "/proposals/%016llx", (unsigned long long)proposed_id);
	assert_string_equal(text(root, "poll") + strlen("https://" HOST), path);
	json_decref(root);
	root = get(path, "HTTP/1.1 200 ");
	assert_string_equal(text(root, "state"), "waiting");
	json_decref(root);
	json_decref(post(JSON_TYPE, PROPOSAL, "HTTP/1.1 429 ")); /* too soon */
	proxy_proposed(w.proxy, proposed_id, &m);
	root = get(path, "HTTP/1.1 200 ");
	assert_string_equal(text(root, "state"), "refused");
	assert_string_equal(text(root, "text"), "refused by uid 0: no");
	json_decref(root);
}

static void test_wrong_proposals(void **state)
{
	static char large[5000];
	static const struct {
		const char *fields, *body, *status;
	} rows[] = {
	        {"", PROPOSAL, "HTTP/1.1 415 "},
	        {"Content-Type: text/plain\r\n", PROPOSAL, "HTTP/1.1 415 "},
	        {"Content-Type: application/x-www-form-urlencoded\r\n", PROPOSAL, "HTTP/1.1 415 "},
	        {JSON_TYPE JSON_TYPE, PROPOSAL, "HTTP/1.1 415 "},
	        {JSON_TYPE "Content-Encoding: gzip\r\n", PROPOSAL, "HTTP/1.1 415 "},
	        {JSON_TYPE, "", "HTTP/1.1 422 "},
	        {JSON_TYPE, "{}", "HTTP/1.1 422 "},
	        {JSON_TYPE, "\xef\xbb\xbf" PROPOSAL, "HTTP/1.1 422 "},
	        {JSON_TYPE, PROPOSAL PROPOSAL, "HTTP/1.1 422 "},
	        {JSON_TYPE "Origin: http://" HOST "\r\n", PROPOSAL, "HTTP/1.1 403 "},
	        {JSON_TYPE "Sec-Fetch-Site: none\r\n", PROPOSAL, "HTTP/1.1 403 "},
	        {JSON_TYPE "Sec-Fetch-Site: same-origin\r\n", PROPOSAL, "HTTP/1.1 403 "},
	        {JSON_TYPE, large, "HTTP/1.1 413 "},
	};

	(void)state;
	memset(large, ' ', sizeof(large) - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *c = proxy_client(&w);

		send_to(c, "POST", "/proposals", rows[i].fields, rows[i].body);
		expect_head(c, rows[i].status);
		hang_up(c, false);
	}
	assert_int_equal(proposed_id, 0);
	propose_rc = -EPIPE;
	json_decref(post(JSON_TYPE, PROPOSAL, "HTTP/1.1 429 "));
	w.proxy->config.propose = NULL;
	json_decref(post(JSON_TYPE, PROPOSAL, "HTTP/1.1 429 "));
	json_decref(get("/proposals/0000000000000001", "HTTP/1.1 404 "));
}

/* A body in chunks is held to the same bound. */
static void test_chunks(void **state)
{
	struct peer *c = proxy_client(&w);
	char head[] = "POST http://" HOST "/proposals HTTP/1.1\r\nHost: " HOST "\r\n" JSON_TYPE
	              "Transfer-Encoding: chunked\r\n\r\n";
	static char chunk[4200];

	(void)state;
	say(c, head);
	say(c, "1000\r\n");
	memset(chunk, ' ', 4096);
	say(c, chunk);
	say(c, "\r\n1\r\n \r\n0\r\n\r\n");
	expect_head(c, "HTTP/1.1 413 ");
	hang_up(c, false);
}

static void test_a_flood(void **state)
{
	bool refused = false;

	(void)state;
	for (unsigned i = 0; i < 200 && !refused; i++) {
		struct peer *c = proxy_client(&w);

		send_to(c, "GET", "/", "", "");
		take_head(c);
		refused = strncmp(c->head, "HTTP/1.1 429 ", 13) == 0;
		assert_true(refused || strncmp(c->head, "HTTP/1.1 200 ", 13) == 0);
		hang_up(c, false);
	}
	assert_true(refused);
}

/* A request whose body could be read as a second request gets one answer, its body gets none. */
static void test_smuggling(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	say(c, "GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST
	       "\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
	c = proxy_client(&w);
	send_to(c, "GET", "/policy", "", "{}");
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
}

static void test_switched_off_and_paused(void **state)
{
	const struct world_options off = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .policy = "vethguard: 1\ninternal: off\nallow:\n  - {to: \"*.internal\", ports: "
	                  "[80, %1$u]}\n",
	        .send_bytes = 8192};
	struct peer *c;

	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "by hand");
	c = proxy_client(&w);
	send_to(c, "GET", "/", "", "");
	expect_head(c, "HTTP/1.1 503 ");
	hang_up(c, false);
	again(off);
	c = proxy_client(&w);
	send_to(c, "GET", "/", "", "");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, has(c, "}}\n", 3));
	assert_false(has(c, "\"help\"", 6));
	hang_up(c, false);
}

static void test_http2(void **state)
{
	struct peer *c = proxy_client(&w);
	const struct answer *a;
	struct h2 *h;
	int32_t id;

	(void)state;
	say(c, "CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST ":443\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	start_tls_for(c, HOST, "\x02h2");
	h = h2_over(c, false);
	id = h2_ask_with(h, "GET", HOST ":443", "/policy", NULL, 0, NULL);
	H2_UNTIL(h, (a = answer(h, id)) && a->ended);
	assert_int_equal(a->status, 200);
	id = h2_ask_with(h, "GET", "a.test:443", "/policy", NULL, 0, NULL);
	H2_UNTIL(h, (a = answer(h, id)) && a->ended);
	assert_int_equal(a->status, 421);
	h2_hang_up(h, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        OWN(test_help_and_event),
	        OWN(test_plain_text),
	        OWN(test_over_tls),
	        OWN(test_a_denial),
	        OWN(test_only_the_last_denials),
	        OWN(test_what_is_not_there),
	        OWN(test_a_proposal),
	        OWN(test_wrong_proposals),
	        OWN(test_chunks),
	        OWN(test_a_flood),
	        OWN(test_smuggling),
	        OWN(test_switched_off_and_paused),
	        OWN(test_http2),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
