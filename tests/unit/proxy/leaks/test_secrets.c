/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials through a real proxy: where they go, where they never go, what comes back,
 * placeholders. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "../fixture.h"

#define COVERED "*****************************"
_Static_assert(sizeof(COVERED) == sizeof(SECRET_VALUE), "as long as the value");

/* A request with the credential has reached the origin. */
static struct peer *bound(struct peer *c, const char *line, const char *fields)
{
	struct peer *o;

	ask(c, line, "c.test", fields);
	o = origin(&w, true);
	take_head(o);
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
	return o;
}

static void leave(struct peer *c, struct peer *o)
{
	assert_false(has(c, SECRET_VALUE, sizeof(SECRET_VALUE) - 1));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_injected_once_whatever_the_sandbox_sends(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");
	struct peer *o = bound(c, "GET /x",
	        "Authorization: Bearer " PLACEHOLDER
	        "\r\nauthorization: other\r\nAccept-Encoding: br, gzip\r\n"
	        "Accept-Encoding: zstd\r\nAccept_Encoding: br\r\nCookie: a=b\r\n");

	(void)state;
	assert_null(strcasestr(strcasestr(o->head, "authorization:") + 1, "authorization:"));
	assert_true(head_has(o, "accept-encoding: gzip, br, zstd\r\n"));
	assert_false(head_has(o, "accept_encoding"));
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	assert_null(find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK));
	assert_true(slice_equals(find_event(&w, EVENT_HTTP)->credential, SLICE("key")));
	assert_int_equal(w.asked, 1);
	leave(c, o);
}

static void test_in_the_query(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "GET /x?a=1&api_key=mine&b=2", "q.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x?a=1&b=2&api_key=s3cr3t-TOKEN-value%2F0123456789 HTTP/1.1\r\n");
	say(o, "HTTP/1.1 302 Go\r\nLocation: "
	       "https://evil.test/?k=s3cr3t-TOKEN-value%2F0123456789\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 302 ");
	assert_null(strstr(c->head, "TOKEN"));
	assert_true(
	        slice_equals(find_event(&w, EVENT_HTTP)->target, SLICE("/x?a=1&api_key=mine&b=2")));
	leave(c, o);
}

static void test_covered_everywhere_in_a_response(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x", "");

	(void)state;
	say(o, "HTTP/1.1 103 " SECRET_VALUE "\r\nX-A: " SECRET_VALUE "\r\n\r\n");
	expect_head(c, "HTTP/1.1 103 Early Hints\r\n");
	assert_null(strstr(c->head, "TOKEN"));
	say(o, "HTTP/1.1 200 " SECRET_VALUE "\r\nX-A: b " SECRET_VALUE
	       " c\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "a\r\nxs3cr3t-TO\r\n5\r\nKEN-v\r\n10\r\nalue/0123456789y\r\n0\r\nX-T: " SECRET_VALUE
	       "\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 " COVERED "\r\n");
	assert_true(head_has(c, "x-a: b " COVERED " c\r\n"));
	UNTIL(&w, has(c, "X-T: " COVERED "\r\n\r\n", sizeof("X-T: " COVERED "\r\n\r\n") - 1));
	assert_false(has(c, "TOKEN", 5));
	assert_false(has(c, "KEN-v", 5));
	assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
	leave(c, o);
}

static size_t gzip(const void *p, size_t n, uint8_t *out, size_t cap)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)cap};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

static void test_gzip_is_read(void **state)
{
	static const char body[] = "before " SECRET_VALUE " after";
	struct peer *c = client(&w, NAME_C, "c.test"),
	            *o = bound(c, "GET /x", "Accept-Encoding: gzip\r\n");
	uint8_t packed[500];
	size_t n = gzip(body, sizeof(body) - 1, packed, sizeof(packed));
	char head[100];

	(void)state;
	snprintf(head, sizeof(head),
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", n);
	say(o, head);
	for (size_t i = 0; i < n; i++) {
		say_n(o, packed + i, 1);
		pump(&w, 0);
	}
	expect_head(c, "HTTP/1.1 200 ");
	assert_false(head_has(c, "content-encoding") || head_has(c, "content-length"));
	UNTIL(&w, c->in.len > 5 && memcmp(buf_bytes(&c->in) + c->in.len - 5, "0\r\n\r\n", 5) == 0);
	assert_false(has(c, "TOKEN", 5));
	leave(c, o);
}

/* 20 MB of zeros in 20 kB: the client takes nothing, and the proxy keeps next to nothing. */
static void test_a_gzip_bomb_costs_no_memory(void **state)
{
	const size_t n = 20u << 20;
	struct peer *c = client(&w, NAME_C, "c.test"),
	            *o = bound(c, "GET /x", "Accept-Encoding: gzip\r\n");
	uint8_t *zeros = calloc(1, n), *packed = malloc(100000);
	size_t packed_n = gzip(zeros, n, packed, 100000);
	struct client *pc = container_of(w.proxy->clients.next, struct client, list);
	char head[100];

	(void)state;
	c->deaf = true;
	snprintf(head, sizeof(head),
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
	        packed_n);
	say(o, head);
	say_n(o, packed, packed_n);
	pump(&w, 100);
	assert_true(pc->socket.out.cap <= SOCKET_OUT_MAX);
	assert_true(pc->exchange->redacting.compressed.cap <= 4 * SOCKET_CHUNK);
	assert_int_equal(w.event_count, 0);
	c->deaf = false;
	peer_read(c);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, c->in.len > n);
	UNTIL(&w, memcmp(buf_bytes(&c->in) + c->in.len - 5, "0\r\n\r\n", 5) == 0);
	free(zeros);
	free(packed);
	leave(c, o);
}

static void test_what_cannot_be_read_is_refused(void **state)
{
	static const char *const codings[] = {"Content-Encoding: compress\r\n",
	        "Content-Encoding: gzip, gzip\r\n",
	        "Content-Encoding: identity\r\nContent-Encoding: unknown\r\n",
	        "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
	        "Content-Encoding: br, zstd\r\nConnection: content-encoding\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(codings) / sizeof(*codings); i++) {
		struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x", "");
		char text[300];

		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%sContent-Length: 3\r\n\r\nabc",
		        codings[i]);
		say(o, text);
		expect_head(c, "HTTP/1.1 502 ");
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
		leave(c, o);
	}
}

static void test_damaged_gzip_is_cut(void **state)
{
	(void)state;
	for (int together = 0; together < 2; together++) {
		struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x", "");

		if (together) {
			say(o, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
			       "Content-Length: 9\r\n\r\nno gzip!!");
			expect_head(c, "HTTP/1.1 502 ");
		} else {
			say(o, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
			       "Content-Length: 9\r\n\r\n");
			expect_head(c, "HTTP/1.1 200 ");
			say(o, "no gzip!!");
			expect_reset(c);
		}
		assert_int_equal(count_events(&w, EVENT_HTTP), 1 + together);
		leave(c, o);
	}
}

/* No body, and yet a content coding. */
static void test_gzip_without_a_body(void **state)
{
	static const char *const heads[] = {
	        "HTTP/1.1 304 Same\r\nContent-Encoding: gzip\r\nContent-Length: 30\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: "
	        "chunked\r\n\r\n0\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		struct peer *c = client(&w, NAME_C, "c.test"),
		            *o = bound(c, "GET /x", "Accept-Encoding: gzip\r\n");

		say(o, heads[i]);
		take_head(c);
		pump(&w, 20);
		assert_false(c->failed || c->eof);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
		leave(c, o);
	}
}

static void test_websocket_frames(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	o = bound(c, "GET /ws", SWITCH_ASKED "Sec-WebSocket-Extensions: permessage-deflate\r\n");
	assert_false(head_has(o, "permessage"));
	say(o, SWITCHED);
	expect_head(c, "HTTP/1.1 101 ");
	say(o, "\x81\x04xs3c"); /* might be the beginning of the value; the frame ends here all the
	                           same */
	expect(c, "\x81\x04xs3c");
	say(o, "\x81\x1d" SECRET_VALUE);
	expect(c, "\x81\x1d" COVERED);
	socket_end(&o->socket);
	UNTIL(&w, c->eof || c->failed);
	assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
	leave(c, o);
}

static void test_never_to_another_host_of_the_same_connection(void **state)
{
	static const char *const hosts[] = {
	        "a.test", "c.test.evil.test", "evil.test", "127.0.0.1", "[::1]"};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct peer *c = client(&w, NAME_C, "c.test");

		ask(c, "GET /x", hosts[i], "");
		expect_head(c, "HTTP/1.1 403 ");
		assert_false(origin_is_asked(&w));
		assert_non_null(find_finding(&w, EVENT_FINDING_BINDING_MISMATCH));
		hang_up(c, false);
	}
	assert_int_equal(w.asked, 0);
}

/* The name that was dialed is another than the one in the ClientHello. */
static void test_never_with_another_server_name(void **state)
{
	struct peer *c = client(&w, NAME_A, "c.test");

	(void)state;
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	assert_false(origin_is_asked(&w));
	assert_int_equal(w.asked, 0);
	hang_up(c, false);
}

static void test_never_to_an_unverified_upstream(void **state)
{
	struct ca *evil = ca_new_root(SLICE("evil"), 3), *good = w.origin_root;
	struct peer *c = client(&w, NAME_C, "c.test"), *o;
	static const char alpn[] = "\x08http/1.1";
	int fd = -1;

	(void)state;
	w.origin_root = evil;
	ask(c, "GET /x", "c.test", "");
	UNTIL(&w, (fd = accept4(w.origin_fd, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	o = peer_new(&w, fd);
	socket_start_tls(
	        &o->socket, tls_accept_new(w.origin_tls, SLICE(alpn), &w.sockets.tx), SLICE(""));
	o->shaking = true;
	expect_head(c, "HTTP/1.1 502 ");
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM_TLS);
	assert_int_equal(o->in.len, 0);
	w.origin_root = good;
	ca_free(evil);
	leave(c, o);
}

static void test_pool_is_not_shared_between_credentials(void **state)
{
	static const char policy[] =
	        "vethguard: 1\nname: test\ncredentials:\n  key: {source: \"env:KEY\", inject: "
	        "bearer}\n"
	        "allow:\n  - {to: \"https://c.test:%1$u\", paths: [/with/**], credential: key}\n"
	        "  - {to: \"https://c.test:%1$u\", paths: [/without/**]}\n";
	const struct world_options o = {
	        .policy = policy, .timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *c, *one, *two;

	(void)state;
	world_close(&w);
	world_open(&w, &o);
	c = client(&w, NAME_C, "c.test");
	one = bound(c, "GET /with/x", "");
	say(one, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	ask(c, "GET /without/x", "c.test", "");
	two = origin(&w, true);
	take_head(two);
	assert_false(head_has(two, "authorization"));
	hang_up(one, false);
	leave(c, two);
}

static void test_without_a_value_nothing_is_sent(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	w.keeper_error = "cannot be read from /etc/the-operators-secret-place";
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 502 ");
	UNTIL(&w, has(c, "}\n", 2));
	assert_false(has(c, "secret-place", 12));
	assert_false(origin_is_asked(&w));
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_CREDENTIAL);
	hang_up(c, false);
}

static void test_a_client_that_goes_while_the_keeper_is_asked(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	w.keeper_silent = true;
	ask(c, "GET /x", "c.test", "");
	UNTIL(&w, w.asked == 1);
	hang_up(c, true);
	UNTIL(&w, count_events(&w, EVENT_HTTP) == 1);
	credential_store_answer(w.store, 0, SLICE(SECRET_VALUE), 0, 0, NULL);
	assert_false(origin_is_asked(&w));
}

static void test_trailers_never_replace_the_credential(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	o = bound(c, "POST /x", "Transfer-Encoding: chunked\r\n");
	say(c, "1\r\na\r\n0\r\nAuthorization: mine\r\nTransfer_Encoding: mine\r\n"
	       "X-HTTP-Method-Override: mine\r\nX-Ok: 1\r\nCookie: x\r\n\r\n");
	UNTIL(&w, has(o, "X-Ok: 1\r\n\r\n", 11));
	assert_false(has(o, "mine", 4));
	leave(c, o);
}

/* --- placeholders --- */

static size_t leaks(void)
{
	size_t n = 0;

	for (size_t i = 0; i < w.event_count; i++)
		n += w.events[i].kind == EVENT_FINDING &&
		     w.events[i].finding == EVENT_FINDING_PLACEHOLDER_LEAK;
	return n;
}

static void test_placeholders_in_the_wrong_place(void **state)
{
	static const char *const fields[] = {
	        "X-Note: " PLACEHOLDER "\r\n", "Authorization: Bearer " PLACEHOLDER "\r\n"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct peer *c = client(&w, NAME_A, "a.test"), *o;

		ask(c, "GET /x?k=" PLACEHOLDER, "a.test", fields[i]);
		o = origin(&w, true);
		take_head(o);
		assert_int_equal(leaks(), i + 1);
		/* The request went on. */
		assert_int_equal(
		        find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK)->decision, EVENT_OBSERVED);
		hang_up(c, false);
		hang_up(o, false);
	}
	struct peer *c = client(&w, NAME_A, "a.test");

	ask(c, "DELETE /x", "a.test", fields[0]);
	expect_head(c, "HTTP/1.1 403 ");
	assert_int_equal(leaks(), 3);
	assert_int_equal(find_finding(&w, EVENT_FINDING_PLACEHOLDER_LEAK)->decision, EVENT_DENIED);
	hang_up(c, false);
}

/* A request that carries a credential: its own placeholder is welcome where that goes, in base64 as
 * well, and nowhere else. */
static void test_placeholders_of_bound_requests(void **state)
{
	static const char basic[] =
	        "dXNlcjp2ZXRoZ3VhcmQta2V5LTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm";
	static const struct {
		int name;
		const char *host, *line, *field, *value;
		size_t leaks;
	} rows[] = {
	        {NAME_C, "c.test", "GET /x", "Authorization: Basic ", basic, 0},
	        {NAME_C, "c.test", "GET /x", "X-Api-Key: ", basic, 0},
	        {NAME_C, "c.test", "GET /x", "Cookie: k=", basic, 1},
	        {NAME_C, "c.test", "GET /x?k=" PLACEHOLDER, "X: ", "", 1},
	        {NAME_Q, "q.test", "GET /x?api_key=" PLACEHOLDER, "X: ", "", 1},
	        {NAME_Q, "q.test", "GET /x", "Authorization: Basic ", basic, 1},
	        {NAME_A, "a.test", "GET /x", "Authorization: Basic ", basic, 1},
	        {NAME_C, "c.test", "GET /x", "Cookie: k=", "dmV0aGd1YXJk", 0},
	        /* bytes of it escaped, others not */
	        {NAME_A, "a.test", "GET /x?k=%76ethguard-%6Bey-0123456789abcdef%30123456789abcdef",
	                "X: ", "", 1},
	        {NAME_A, "a.test", "GET /x%2Fvethguard%2dkey-0123456789abcdef0123456789abcdef/y",
	                "X: ", "", 1},
	        {NAME_Q, "q.test",
	                "GET /x?api_key=vethguard%2Dkey%2D0123456789abcdef0123456789abcdef",
	                "X: ", "", 1},
	        {NAME_A, "a.test", "GET /x",
	                "X: ", "\\u0076ethguard-key\\u002d0123456789abcdef0123456789abcdef", 1},
	        {NAME_C, "c.test", "GET /x", "Cookie: k=",
	                "dmV0aGd1YXJkLWtleS0wMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2Rl%5A%67%3D%3D",
	                1},
	        {NAME_A, "a.test", "GET /x", PLACEHOLDER ": ", "x", 1},
	        /* one byte is another, or escaped twice */
	        {NAME_A, "a.test", "GET /x?k=%77ethguard-key-0123456789abcdef0123456789abcdef",
	                "X: ", "", 0},
	        {NAME_A, "a.test", "GET /x?k=%2576ethguard-key-0123456789abcdef0123456789abcdef",
	                "X: ", "", 0},
	};
	size_t expected = 0;
	char field[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct peer *c = client(&w, rows[i].name, rows[i].host), *o;

		snprintf(field, sizeof(field), "%s%s\r\n", rows[i].field, rows[i].value);
		ask(c, rows[i].line, rows[i].host, field);
		o = origin(&w, true);
		take_head(o);
		if (!rows[i].leaks && rows[i].value == basic)
			assert_false(head_has(o, basic)); /* the real one took its place */
		expected += rows[i].leaks;
		assert_int_equal(leaks(), expected);
		hang_up(c, false);
		hang_up(o, false);
	}
}

static void test_placeholders_in_bodies_across_pieces(void **state)
{
	static const char *const bodies[] = {
	        "{\"key\": \"" PLACEHOLDER "\", \"more\": \"" PLACEHOLDER "\"}",
	        "%% %76%65%74%68%67%75%61%72%64-key-0123456789abcdef01234%35%36789abcdef \\",
	        "\"\\\\\\u0076\\u0065\\u0074hguard-key-0123456789abcdef0123456789abcde\\u0066\"",
	        "eDp2ZXRoZ3VhcmQta2V5LTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVm",
	};
	const size_t steps[] = {1, 7, 46, 1000};

	(void)state;
	for (size_t k = 0; k < 16; k++) {
		const char *body = bodies[k / 4];
		size_t body_n = strlen(body), step = steps[k % 4];
		struct peer *c = client(&w, NAME_A, "a.test"), *o;
		char head[60];

		snprintf(head, sizeof(head), "Content-Length: %zu\r\n", body_n);
		ask(c, "POST /x", "a.test", head);
		o = origin(&w, true);
		take_head(o);
		for (size_t i = 0; i < body_n; i += step) {
			say_n(c, body + i, body_n - i < step ? body_n - i : step);
			pump(&w, 0);
		}
		expect(o, body);
		assert_int_equal(leaks(), k + 1);
		hang_up(c, false);
		hang_up(o, false);
	}
}

static void test_placeholders_in_frames(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	uint8_t frame[8 + sizeof(PLACEHOLDER)] = {
	        0x81, 0x80 | (sizeof(PLACEHOLDER) - 1), 0xde, 0xad, 0xbe, 0xef};
	size_t n = 6 + sizeof(PLACEHOLDER) - 1;

	(void)state;
	for (size_t i = 0; i < sizeof(PLACEHOLDER) - 1; i++)
		frame[6 + i] = (uint8_t)PLACEHOLDER[i] ^ frame[2 + i % 4];
	ask(c, "GET /ws", "a.test", SWITCH_ASKED);
	o = origin(&w, true);
	take_head(o);
	say(o, SWITCHED);
	expect_head(c, "HTTP/1.1 101 ");
	for (size_t i = 0; i < n; i += 5) {
		say_n(c, frame + i, n - i < 5 ? n - i : 5);
		pump(&w, 0);
	}
	UNTIL(&w, o->in.len == n);
	assert_memory_equal(buf_bytes(&o->in), frame, n);
	assert_int_equal(leaks(), 1);
	hang_up(c, false);
	hang_up(o, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_injected_once_whatever_the_sandbox_sends),
	        TEST(test_in_the_query),
	        TEST(test_covered_everywhere_in_a_response),
	        TEST(test_gzip_is_read),
	        TEST(test_a_gzip_bomb_costs_no_memory),
	        TEST(test_what_cannot_be_read_is_refused),
	        TEST(test_damaged_gzip_is_cut),
	        TEST(test_gzip_without_a_body),
	        TEST(test_websocket_frames),
	        TEST(test_never_to_another_host_of_the_same_connection),
	        TEST(test_never_with_another_server_name),
	        TEST(test_never_to_an_unverified_upstream),
	        TEST(test_pool_is_not_shared_between_credentials),
	        TEST(test_without_a_value_nothing_is_sent),
	        TEST(test_a_client_that_goes_while_the_keeper_is_asked),
	        TEST(test_trailers_never_replace_the_credential),
	        TEST(test_placeholders_in_the_wrong_place),
	        TEST(test_placeholders_of_bound_requests),
	        TEST(test_placeholders_in_bodies_across_pieces),
	        TEST(test_placeholders_in_frames),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
