/* SPDX-License-Identifier: Apache-2.0 */
/* TLS around everything that a socket carries, over a real socket whose other end is a TLS client:
 * every cut and every room, new keys, ends, and bytes that are no TLS of this connection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../tls/pair.h"
#include "proxy/transport/outer.h"
#include "tls/record/record.h"

#define BIG 40000

static struct slice none = {"", 0};
static struct pair pair;
static struct tls_server *worker;
static struct outer_shared shared;
static struct outer *o;
static int ends[2]; /* the outer's, the client's */
static uint8_t sent[BIG], got[BIG + 1];

static void open_outer(void)
{
	struct tls_state state;

	pair_dial(&pair, "a.example", none, none);
	assert_true(pair_shake(&pair));
	assert_true(tls_state_read(pair.s, &state));
	o = outer_new(&shared, worker, &state);
	assert_non_null(o);
	assert_int_equal(
	        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_outer(void)
{
	outer_free(o);
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	pair_hang_up(&pair);
}

static int begin(void **state)
{
	(void)state;
	pair_init(&pair);
	worker = tls_server_new(pair_identity_for, &pair);
	outer_shared_init(&shared);
	pair_fill(sent, sizeof(sent));
	open_outer();
	return 0;
}

static int end(void **state)
{
	(void)state;
	close_outer();
	outer_shared_fini(&shared);
	tls_server_free(worker);
	pair_fini(&pair);
	return 0;
}

/* The client's next records. */
static void client_writes(const void *p, size_t n)
{
	assert_int_equal(tls_write(pair.c, p, n), TLS_OK);
}

/* Sends n bytes of what the client has written. */
static void client_sends(size_t n)
{
	assert_int_equal(send(ends[1], buf_bytes(&pair.to_server), n, 0), n);
	buf_consume(&pair.to_server, n);
}

/* Receives into `room` bytes at a time until nothing more is there. Returns what the last call has
 * returned. */
static ssize_t receive_all(size_t room, size_t *n)
{
	ssize_t r;

	*n = 0;
	while ((r = outer_receive(o, ends[0], got + *n, room)) > 0) {
		assert_true((size_t)r <= room);
		*n += (size_t)r;
	}
	return r;
}

static void expect_again(ssize_t r)
{
	assert_int_equal(r, -1);
	assert_int_equal(errno, EAGAIN);
}

static void test_every_cut_and_room(void **state)
{
	static const size_t rooms[] = {1, 2, 100, 16383, 16384, BIG};
	size_t n;
	(void)state;

	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		const size_t room = rooms[i], bytes = room < 100 ? 3000 : BIG;

		client_writes(sent, bytes);
		client_sends(pair.to_server.len);
		expect_again(receive_all(room, &n));
		assert_int_equal(n, bytes);
		assert_memory_equal(got, sent, n);
	}
	for (size_t cut = 1; cut < 60; cut++) {
		client_writes(sent, 30);
		client_writes(sent + 30, 10);
		client_sends(cut < pair.to_server.len ? cut : pair.to_server.len);
		(void)receive_all(BIG, &n);
		assert_true(n <= 40);
		if (pair.to_server.len) {
			const size_t before = n;

			memmove(got + BIG - before, got, before);
			client_sends(pair.to_server.len);
			expect_again(receive_all(BIG - before, &n));
			assert_int_equal(before + n, 40);
		}
	}
}

/* It is emptied only if neither the kernel nor TLS has more. */
static void test_emptied(void **state)
{
	(void)state;
	client_writes(sent, 10);
	client_writes(sent, 10);
	client_sends(pair.to_server.len);
	assert_int_equal(outer_receive(o, ends[0], got, 5), 5);
	assert_false(outer_is_emptied(o));
	assert_int_equal(outer_receive(o, ends[0], got, 5), 5);
	assert_false(outer_is_emptied(o));
	assert_int_equal(outer_receive(o, ends[0], got, 100), 10);
	assert_true(outer_take_received(o) > 20);
	assert_int_equal(outer_take_received(o), 0);
	client_writes(sent, 10);
	client_sends(pair.to_server.len);
	assert_int_equal(outer_receive(o, ends[0], got, 100), 10);
	assert_true(outer_is_emptied(o));
}

static void take_wire(struct slice wire)
{
	assert_int_equal(buf_append_slice(&pair.to_client, wire), 0);
}

static void expect_at_client(size_t bytes, enum tls_status status)
{
	size_t n;

	assert_int_equal(pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), status);
	assert_int_equal(n, bytes);
	assert_memory_equal(got, sent, n);
}

static void test_seals(void **state)
{
	struct slice wire;
	(void)state;

	assert_true(outer_seal(o, sent, BIG, false, &wire));
	take_wire(wire);
	expect_at_client(BIG, TLS_WANT_READ);
	assert_true(outer_seal(o, sent, 0, false, &wire));
	assert_int_equal(wire.n, 0);
	assert_true(outer_seal(o, sent, 7, true, &wire));
	take_wire(wire);
	expect_at_client(7, TLS_CLOSED);
	assert_true(outer_seal(o, "", 0, true, &wire)); /* once */
	assert_int_equal(wire.n, 0);
	assert_false(outer_seal(o, sent, 1, false, &wire));
}

/* The client asks for new keys: they come before the next data. */
static void test_new_keys(void **state)
{
	struct slice wire;
	size_t n;
	(void)state;

	pair.c->layer->unfit = true;
	for (int i = 0; i < 3; i++) {
		SSL_key_update(pair.c->ssl, SSL_KEY_UPDATE_REQUESTED);
		client_writes(sent, 5);
		client_sends(pair.to_server.len);
		expect_again(receive_all(BIG, &n));
		assert_int_equal(n, 5);
		assert_true(outer_seal(o, sent, 9, false, &wire));
		take_wire(wire);
		expect_at_client(9, TLS_WANT_READ);
	}
}

static void test_ends(void **state)
{
	size_t n;
	(void)state;

	client_writes(sent, 5);
	tls_close(pair.c);
	client_sends(pair.to_server.len);
	assert_int_equal(receive_all(BIG, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(receive_all(BIG, &n), 0); /* and stays so */
	close_outer();
	open_outer();
	client_writes(sent, 5);
	client_sends(pair.to_server.len);
	close(ends[1]); /* without a word */
	ends[1] = -1;
	assert_int_equal(receive_all(BIG, &n), 0);
	assert_int_equal(n, 5);
}

static void expect_refused(void)
{
	size_t n;

	assert_int_equal(receive_all(BIG, &n), -1);
	assert_int_equal(errno, EPROTO);
	assert_int_equal(n, 0);
	assert_int_equal(receive_all(BIG, &n), -1);
	assert_int_equal(errno, EPROTO);
	close_outer();
	open_outer();
}

static void test_garbage(void **state)
{
	(void)state;
	assert_int_equal(send(ends[1], "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	expect_refused();
	assert_int_equal(send(ends[1], "\x17\x03\x03\xff\xff", 5, 0), 5); /* too long */
	expect_refused();
	client_writes(sent, 30);
	buf_bytes(&pair.to_server)[10] ^= 1;
	client_sends(pair.to_server.len);
	expect_refused();
	client_writes(sent, 30); /* the first record is lost */
	buf_consume(&pair.to_server, pair.to_server.len);
	client_writes(sent, 30);
	client_sends(pair.to_server.len);
	expect_refused();
}

/* A peer that only asks for new keys is cut off, and fills no memory before. */
static void test_flood(void **state)
{
	size_t n;
	(void)state;

	pair.c->layer->unfit = true;
	for (int i = 0; i < 40; i++) {
		SSL_key_update(pair.c->ssl, SSL_KEY_UPDATE_REQUESTED);
		SSL_do_handshake(pair.c->ssl);
	}
	client_sends(pair.to_server.len);
	assert_int_equal(receive_all(BIG, &n), -1);
	assert_int_equal(errno, EPROTO);
}

static void test_no_state(void **state)
{
	struct tls_state bad = {.suite = TLS_STATE_SUITES};
	(void)state;

	assert_null(outer_new(&shared, worker, &bad));
	bad = (struct tls_state){.suite = 0, .secret_n = 31};
	assert_null(outer_new(&shared, worker, &bad));
	outer_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_every_cut_and_room, begin, end),
	        cmocka_unit_test_setup_teardown(test_emptied, begin, end),
	        cmocka_unit_test_setup_teardown(test_seals, begin, end),
	        cmocka_unit_test_setup_teardown(test_new_keys, begin, end),
	        cmocka_unit_test_setup_teardown(test_ends, begin, end),
	        cmocka_unit_test_setup_teardown(test_garbage, begin, end),
	        cmocka_unit_test_setup_teardown(test_flood, begin, end),
	        cmocka_unit_test_setup_teardown(test_no_state, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
