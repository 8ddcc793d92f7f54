/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of the largest size over HTTP/2, a frame and many CONTINUATION frames each: to an
 * upstream that reads them, and to one that reads nothing for a while. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"
#include "proxy/http/http2.h"

#define FIELDS 100
#define SPARE 500 /* for pseudo-header fields, and what is added on the way */
#define VALUE ((HTTP_HEAD_MAX - SPARE) / FIELDS - 5 - HTTP2_FIELD_COST)

static char value[VALUE + 1];
static nghttp2_nv large[FIELDS];

static int set_up_large(void **state)
{
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	static const char *const digits = "abcdefghij";
	static char names[FIELDS][6];

	(void)state;
	o.limits.header_bytes = HTTP_HEAD_MAX;
	o.limits.upstream_connections = 2;
	world_open(&w, &o);
	for (size_t i = 0; i < VALUE; i++) /* bytes of which no shorter form is known */
		value[i] = "<>{}|^~`\\#"[i % 10];
	for (size_t i = 0; i < FIELDS; i++) {
		snprintf(names[i], sizeof(names[i]), "x-%c%cx", digits[i / 10], digits[i % 10]);
		large[i] = nv(names[i], value);
		large[i].flags |= NGHTTP2_NV_FLAG_NO_INDEX;
	}
	return 0;
}
#define LARGE(name) cmocka_unit_test_setup_teardown(name, set_up_large, tear_down)

static bool is_large(const struct answer *a)
{
	return a->head_bytes >= FIELDS * (5 + (size_t)VALUE);
}

static int32_t ask_with(struct h2 *c, size_t fields)
{
	return h2_ask_with(c, "GET", "a.test", "/large", large, fields, NULL);
}

static struct h2 *large_client(void)
{
	struct h2 *c = h2_client();

	nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 1 << 20);
	return enliven(c);
}

static void test_a_large_request(void **state)
{
	struct h2 *c = large_client(), *o;
	int32_t beside = h2_ask(c, "GET", "/beside"), id;

	(void)state;
	o = h2_origin();
	request_of(o, 0);
	id = ask_with(c, FIELDS);
	ALL_UNTIL((o->count > 1 && o->answers[1]->ended) || answer(c, id)->closed);
	assert_true(o->count > 1 && is_large(o->answers[1]));
	respond(o, o->answers[1]->id);
	respond(o, o->answers[0]->id);
	ALL_UNTIL(answer(c, id)->closed && answer(c, beside)->closed);
	assert_int_equal(answer(c, id)->status, 200);
	assert_int_equal(answer(c, beside)->status, 200);
	leave(c, false);
	leave(o, false);
}

static void test_a_large_response(void **state)
{
	struct h2 *c = large_client(), *o;
	int32_t id = h2_ask(c, "GET", "/x");
	nghttp2_nv fields[1 + FIELDS] = {nv(":status", "200")};

	(void)state;
	memcpy(fields + 1, large, sizeof(large));
	o = h2_origin();
	respond_with(o, request_of(o, 0)->id, fields, 1 + FIELDS, NULL);
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 200);
	assert_true(is_large(answer(c, id)));
	leave(c, false);
	leave(o, false);
}

/* --- to an upstream that reads nothing --- */

/* How much the kernel takes. */
static void kernel_takes(int fd, int option, int bytes)
{
	assert_int_equal(setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes)), 0);
}

static struct upstream_conn *conn(void)
{
	return container_of(w.proxy->upstreams.next, struct upstream_conn, all);
}

static void hear_again(struct h2 *h)
{
	h->peer->deaf = false;
	peer_read(h->peer);
}

/* Waiting heads are sent one behind the other when there is room again, and the connection
 * becomes full within one of them: all of it comes, and nothing else is lost. */
static void test_requests_to_one_that_takes_nothing(void **state)
{
	struct h2 *c = large_client(), *o;
	int32_t ids[8] = {h2_ask(c, "GET", "/first")};
	const size_t fields = 64; /* in the third head of 41 KiB the socket's buffer is full */

	(void)state;
	kernel_takes(w.origin_fd, SO_RCVBUF, 16384);
	o = h2_origin();
	request_of(o, 0);
	run_for(5);
	kernel_takes(conn()->socket.fd, SO_SNDBUF, 16384);
	o->peer->deaf = true;
	for (size_t i = 1; i < 8; i++) {
		ids[i] = ask_with(c, fields);
		ALL_UNTIL(w.proxy->exchanges == 1 + i);
	}
	assert_true(socket_is_congested(&conn()->socket));
	hear_again(o);
	ALL_UNTIL(o->count >= 4 || answer(c, ids[7])->closed);
	kernel_takes(o->peer->socket.fd, SO_RCVBUF, 1 << 20);
	ALL_UNTIL((o->count == 8 && o->answers[7]->ended) || answer(c, ids[7])->closed);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(o->answers[i]->head_bytes > fields * VALUE, i > 0);
		respond(o, o->answers[i]->id);
	}
	for (size_t i = 0; i < 8; i++) {
		ALL_UNTIL(answer(c, ids[i])->closed);
		assert_int_equal(answer(c, ids[i])->status, 200);
	}
	assert_false(origin_is_asked(&w));
	leave(c, false);
	leave(o, false);
}

static void test_responses_to_one_that_takes_nothing(void **state)
{
	struct h2 *c = large_client(), *o;
	nghttp2_nv fields[1 + FIELDS] = {nv(":status", "200")};
	int32_t ids[8];

	(void)state;
	memcpy(fields + 1, large, sizeof(large));
	for (size_t i = 0; i < 8; i++)
		ids[i] = h2_ask(c, "GET", "/x");
	o = h2_origin();
	request_of(o, 7);
	kernel_takes(c->peer->socket.fd, SO_RCVBUF, 16384);
	c->peer->deaf = true;
	for (size_t i = 0; i < 8; i++)
		respond_with(o, request_of(o, i)->id, fields, 1 + FIELDS, NULL);
	run_for(50);
	kernel_takes(c->peer->socket.fd, SO_RCVBUF, 1 << 20);
	hear_again(c);
	for (size_t i = 0; i < 8; i++) {
		ALL_UNTIL(answer(c, ids[i])->closed);
		assert_int_equal(answer(c, ids[i])->status, 200);
		assert_true(is_large(answer(c, ids[i])));
	}
	leave(c, false);
	leave(o, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        LARGE(test_a_large_request),
	        LARGE(test_a_large_response),
	        LARGE(test_requests_to_one_that_takes_nothing),
	        LARGE(test_responses_to_one_that_takes_nothing),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
