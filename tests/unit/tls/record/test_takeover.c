/* SPDX-License-Identifier: Apache-2.0 */
/* The linker wraps: calloc malloc */
/* Connections whose record layer is taken over from OpenSSL, with peers that are taken over or that
 * OpenSSL keeps: every suite, cuts of every size, new keys, ends, cipher contexts that change
 * hands, and the connections that OpenSSL keeps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../pair.h"
#include "tls/record/record.h"

#define BIG PAIR_DATA_MAX

static struct slice none = {"", 0};
static struct pair pair;
static bool no_calloc, no_malloc; /* the next call fails */

void *__real_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_calloc(size_t count, size_t n)
{
	bool fails = no_calloc;

	no_calloc = false;
	return fails ? NULL : __real_calloc(count, n);
}

void *__wrap_malloc(size_t n)
{
	bool fails = no_malloc;

	no_malloc = false;
	return fails ? NULL : __real_malloc(n);
}

static int begin(void **state)
{
	(void)state;
	pair_init(&pair);
	pair_dial(&pair, "a.example", PAIR_ALPN, PAIR_ALPN_BOTH);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pair_fini(&pair);
	return 0;
}

/* Does the handshake and sends the first data; then the client has the server's tickets. */
static void meet(void)
{
	assert_true(pair_shake(&pair));
	pair_both_ways(&pair, 1);
}

/* Leaves this side to OpenSSL. */
static void keep(struct tls *tls)
{
	assert_non_null(tls->layer);
	tls->layer->unfit = true;
}

static void test_both_sides_are_taken_over(void **state)
{
	(void)state;
	assert_true(pair_shake(&pair));
	assert_non_null(pair.s->ssl);
	pair_pass(&pair, pair.c, pair.s, &pair.to_server, 10);
	assert_null(pair.s->ssl);
	assert_non_null(pair.c->ssl); /* it has not read the tickets yet */
	pair_pass(&pair, pair.s, pair.c, &pair.to_client, 10);
	pair_pass(&pair, pair.c, pair.s, &pair.to_server, 10);
	assert_null(pair.c->ssl);
	assert_int_equal(tls_version(pair.s), TLS1_3_VERSION);
	assert_int_equal(tls_version(pair.c), TLS1_3_VERSION);
	assert_true(slice_equals(tls_alpn(pair.s), SLICE("http/1.1")));
	assert_true(slice_equals(tls_alpn(pair.c), SLICE("http/1.1")));
	pair_both_ways(&pair, BIG);
}

/* Each suite, in segments of each size, with OpenSSL on no side, the client's or the server's. */
static void test_suites_and_cuts(void **state)
{
	static const char *const suites[] = {
	        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"};
	static const char *const names[] = {"a.example", "b.example", "c.example"};
	static const size_t segments[] = {1, 2, 4, 5, 6, 21, 22, 23, 1000, 16384, 16406, 16407, 0};
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 3 * sizeof(segments) / sizeof(*segments); k++) {
			pair_hang_up(&pair);
			pair.segment = segments[k / 3];
			/* Each suite has its name: so no session of another suite is resumed. */
			pair_dial(&pair, names[i], none, none);
			SSL_set_ciphersuites(pair.c->ssl, suites[i]);
			assert_true(pair_shake(&pair));
			if (k % 3)
				keep(k % 3 == 1 ? pair.c : pair.s);
			pair_both_ways(&pair, 1);
			pair_both_ways(&pair, BIG);
			pair_both_ways(&pair, 16384);
			pair_both_ways(&pair, 16385);
			assert_true((k % 3 == 1) == (pair.c->ssl != NULL));
			assert_true((k % 3 == 2) == (pair.s->ssl != NULL));
		}
	}
}

static void test_a_resumed_session_is_taken_over(void **state)
{
	(void)state;
	meet();
	pair_both_ways(&pair, 1);
	assert_null(pair.c->ssl);
	for (int i = 0; i < 3; i++) {
		pair_hang_up(&pair);
		pair_dial(&pair, "a.example", PAIR_ALPN, PAIR_ALPN);
		assert_true(pair_shake(&pair));
		assert_true(pair_resumed(pair.s));
		pair_both_ways(&pair, BIG);
		pair_both_ways(&pair, BIG);
		assert_null(pair.s->ssl);
		assert_null(pair.c->ssl);
	}
}

/* Tickets, with data behind them, arrive cut in two at each byte. */
static void test_tickets_in_parts(void **state)
{
	uint8_t got[16];
	size_t n, first, whole = 2;
	(void)state;

	for (size_t cut = 1; cut < whole; cut++) {
		pair_hang_up(&pair);
		pair_dial(&pair, "a.example", PAIR_ALPN, PAIR_ALPN);
		assert_true(pair_shake(&pair));
		tls_write(pair.s, (const uint8_t *)"data", 4);
		whole = pair.to_client.len;
		first = cut;
		for (size_t part = first; pair.to_client.len > 0; part = pair.to_client.len) {
			tls_feed(pair.c, buf_bytes(&pair.to_client), part);
			while (tls_read(pair.c, got, 4, &n) == TLS_OK)
				assert_int_equal(n, 4);
			buf_consume(&pair.to_client, part - tls_input_left(pair.c));
			pair_pass(&pair, pair.c, pair.s, &pair.to_server, 3);
		}
		assert_memory_equal(got, "data", 4);
		pair_both_ways(&pair, 5);
		assert_null(pair.c->ssl);
	}
	assert_true(whole > 100);
}

static void test_what_openssl_keeps(void **state)
{
	(void)state;
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_set_max_proto_version(pair.c->ssl, TLS1_2_VERSION);
	meet();
	pair_both_ways(&pair, BIG);
	assert_non_null(pair.s->ssl);
	assert_non_null(pair.c->ssl);
	assert_null(pair.s->layer);

	/* The client changes its keys before the server is taken over, which happens all the same.
	 */
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
	assert_true(pair_shake(&pair));
	keep(pair.c);
	SSL_key_update(pair.c->ssl, SSL_KEY_UPDATE_REQUESTED);
	assert_int_equal(SSL_do_handshake(pair.c->ssl), 1);
	tls_handshake(pair.s);
	pair_both_ways(&pair, 10);
	assert_null(pair.s->ssl);

	/* Without memory for the layer OpenSSL keeps the connection. */
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
	assert_int_equal(tls_handshake(pair.c), TLS_WANT_READ);
	tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
	no_calloc = true;
	tls_handshake(pair.s);
	assert_false(no_calloc);
	assert_null(pair.s->layer);
	buf_consume(&pair.to_server, pair.to_server.len);
	assert_int_equal(pair_step(&pair, pair.c, &pair.to_client), TLS_OK);
	assert_int_equal(pair_step(&pair, pair.s, &pair.to_server), TLS_OK);
	pair_both_ways(&pair, 10);
	assert_non_null(pair.s->ssl);
}

/* OpenSSL's side changes its keys, with and without a request for the other side's; then the side
 * that was taken over changes its own. */
static void test_new_keys(void **state)
{
	(void)state;
	assert_true(pair_shake(&pair));
	keep(pair.c);
	pair_both_ways(&pair, 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(SSL_key_update(pair.c->ssl, i % 2 ? SSL_KEY_UPDATE_REQUESTED
		                                                   : SSL_KEY_UPDATE_NOT_REQUESTED),
		        1);
		pair_both_ways(&pair, BIG);
	}
	assert_null(pair.s->ssl);
	/* The keys change after as many records as one key may protect. */
	for (int i = 0; i < 3; i++) {
		uint8_t secret[RECORD_SECRET_MAX];

		memcpy(secret, pair.s->layer->writing.secret, sizeof(secret));
		pair_both_ways(&pair, 1);
		assert_memory_equal(secret, pair.s->layer->writing.secret, sizeof(secret));
		/* The test does not send 2^24 records: a shorter key_life brings the change of
		 * keys. It cannot set OpenSSL's sequence number. */
		pair.s->layer->key_life = pair.s->layer->writing.sequence + 1;
		pair_both_ways(&pair, BIG);
		assert_memory_not_equal(secret, pair.s->layer->writing.secret, sizeof(secret));
		pair.s->layer->key_life = RECORD_KEY_LIFE;
	}
}

static void test_ends(void **state)
{
	uint8_t got[8];
	size_t n, before;
	(void)state;

	for (int openssl = 0; openssl < 2; openssl++) {
		pair_hang_up(&pair);
		pair_dial(&pair, "a.example", none, none);
		assert_true(pair_shake(&pair));
		if (openssl)
			keep(pair.c);
		pair_both_ways(&pair, 1);
		tls_close(pair.s);
		before = pair.to_client.len;
		tls_close(pair.s);
		assert_int_equal(pair.to_client.len, before);
		assert_int_equal(pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n),
		        TLS_CLOSED);
		pair_pass(&pair, pair.c, pair.s, &pair.to_server,
		        7); /* the other direction stays open */
		assert_int_equal(tls_write(pair.s, got, 1), TLS_ERROR);
		assert_string_equal(tls_error_text(pair.s), "protocol is shutdown");
		assert_int_equal(pair.to_client.len, 0);
	}
}

/* More connections than cipher contexts may be open (RECORD_CIPHERS_OPEN) pass data in turn: each
 * goes on where it was. */
static void test_contexts_change_hands(void **state)
{
	enum { COUNT = 2 * RECORD_CIPHERS_OPEN + 7 };
	static struct tls *servers[COUNT], *clients[COUNT];
	struct record_suites *suites = pair.s->suites;
	(void)state;

	for (size_t i = 0; i < COUNT; i++) {
		tls_free(pair.s);
		tls_free(pair.c);
		pair_dial(&pair, "a.example", none, none);
		if (i % 3)
			SSL_set_ciphersuites(pair.c->ssl, i % 3 == 1
			                                          ? "TLS_AES_256_GCM_SHA384"
			                                          : "TLS_CHACHA20_POLY1305_SHA256");
		meet();
		pair_both_ways(&pair, 2);
		servers[i] = pair.s;
		clients[i] = pair.c;
		pair.s = pair.c = NULL;
		assert_int_equal(suites->open_count,
		        i + 1 < RECORD_CIPHERS_OPEN ? i + 1 : RECORD_CIPHERS_OPEN);
	}
	for (size_t i = 0; i < 5 * COUNT; i++) {
		size_t at = i * 101 % COUNT;

		pair.s = servers[at];
		pair.c = clients[at];
		pair_both_ways(&pair, at + 1);
	}
	pair.s = pair.c = NULL;
	for (size_t i = 0; i < COUNT; i++) {
		tls_free(servers[i]);
		tls_free(clients[i]);
	}
	assert_int_equal(suites->open_count, 0);
	assert_true(list_is_empty(&suites->open));
}

/* A part of a record has to be held, which needs memory. */
static void test_no_memory_for_a_part(void **state)
{
	uint8_t got[8];
	size_t n;
	(void)state;

	meet();
	tls_write(pair.c, (const uint8_t *)"data", 4);
	tls_feed(pair.s, buf_bytes(&pair.to_server), 10);
	tls_buffers_release();
#ifndef __SANITIZE_ADDRESS__ /* there OpenSSL does not call __wrap_malloc() */
	no_malloc = true;
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_ERROR);
	assert_false(no_malloc);
	assert_string_equal(tls_error_text(pair.s), "out of memory");
#else
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_WANT_READ);
#endif
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        PAIR(test_both_sides_are_taken_over),
	        PAIR(test_suites_and_cuts),
	        PAIR(test_a_resumed_session_is_taken_over),
	        PAIR(test_tickets_in_parts),
	        PAIR(test_what_openssl_keeps),
	        PAIR(test_new_keys),
	        PAIR(test_ends),
	        PAIR(test_contexts_change_hands),
	        PAIR(test_no_memory_for_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
