/* SPDX-License-Identifier: Apache-2.0 */
/* After the handshake: data in every piece size, ends clean and unclean, bounds, and bytes that are
 * no TLS at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <string.h>

#include "../pair.h"
#include "tls/record/record.h"

#define BIG 100000
#define FLOOD "a flood of TLS messages that carry nothing"

static struct slice none = {"", 0};
static struct pair pair;

/* Handshake, and the server's tickets read. */
static int shake(void)
{
	uint8_t byte;
	size_t n;

	if (!pair_shake(&pair))
		return -1;
	return pair_read(&pair, pair.c, &pair.to_client, &byte, 1, &n) == TLS_WANT_READ ? 0 : -1;
}

static int connect_pair(void **state)
{
	(void)state;
	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	return shake();
}

static int connect_pair_1_2(void **state)
{
	(void)state;
	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_set_max_proto_version(pair.c->ssl, TLS1_2_VERSION);
	return shake();
}

static int fresh_pair(void **state)
{
	(void)state;
	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	return 0;
}

static int drop_pair(void **state)
{
	(void)state;
	pair_fini(&pair);
	return 0;
}

/* Many records, fed in pieces that never agree with their borders. */
static void test_bulk_in_pieces(void **state)
{
	static const size_t segments[] = {1, 7, 1000, 16383, 16384, 16385, 65536, 0};
	static uint8_t sent[BIG], got[BIG + 1];
	size_t n;
	(void)state;

	pair_fill(sent, sizeof(sent));
	for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++) {
		pair.segment = segments[i];
		assert_int_equal(tls_write(pair.c, sent, sizeof(sent)), TLS_OK);
		assert_int_equal(pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n),
		        TLS_WANT_READ);
		assert_int_equal(n, sizeof(sent));
		assert_memory_equal(sent, got, n);
	}
}

/* One read takes what fits, across records; the rest stays, partly in the owner's bytes. */
static void test_reads_smaller_than_a_record(void **state)
{
	static uint8_t sent[40000], got[40000];
	size_t n, total = 0;
	(void)state;

	pair_fill(sent, sizeof(sent));
	tls_write(pair.s, sent, sizeof(sent));
	tls_feed(pair.c, buf_bytes(&pair.to_client), pair.to_client.len);
	assert_int_equal(tls_read(pair.c, got, 30000, &n), TLS_OK);
	assert_int_equal(n, 30000); /* over a record's border */
	assert_true(tls_input_left(pair.c) > 0);
	total = n;
	while (tls_read(pair.c, got + total, 999 < 40000 - total ? 999 : 40000 - total, &n) ==
	                TLS_OK &&
	        n > 0)
		total += n;
	assert_int_equal(total, sizeof(sent));
	assert_memory_equal(sent, got, total);
	assert_int_equal(tls_read(pair.c, got, 1, &n), TLS_WANT_READ);
}

/* Records whose content exactly fits what the owner reads are opened there, without memory of the
 * connection's own; one byte less does not fit. */
static void test_content_that_exactly_fits(void **state)
{
	static uint8_t sent[65536], got[65536];
	uint8_t byte;
	size_t n;
	(void)state;

	pair_fill(sent, sizeof(sent));
	tls_write(pair.c, sent, 1);
	assert_int_equal(pair_read(&pair, pair.s, &pair.to_server, got, 16, &n), TLS_WANT_READ);
	assert_null(pair.s->ssl);
	for (size_t short_by = 0; short_by < 3; short_by++) {
		tls_write(pair.c, sent, sizeof(sent));
		tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
		memset(got, 0, sizeof(got));
		assert_int_equal(tls_read(pair.s, got, sizeof(got) - short_by, &n), TLS_OK);
		assert_int_equal(n, sizeof(got) - short_by);
		assert_memory_equal(got, sent, n);
		assert_int_equal(tls_input_left(pair.s), 0);
		assert_true((pair.s->layer->held != NULL) == (short_by > 0));
		for (size_t i = 0; i < short_by; i++) {
			assert_int_equal(tls_read(pair.s, &byte, 1, &n), TLS_OK);
			assert_int_equal(byte, sent[sizeof(sent) - short_by + i]);
		}
		assert_int_equal(tls_read(pair.s, &byte, 1, &n), TLS_WANT_READ);
		assert_null(pair.s->layer->held);
		buf_consume(&pair.to_server, pair.to_server.len);
	}
}

static void test_close_notify_then_nothing(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	tls_write(pair.c, (const uint8_t *)"last", 4);
	tls_close(pair.c);
	size_t len = pair.to_server.len;
	tls_close(pair.c); /* once is enough */
	assert_int_equal(pair.to_server.len, len);
	tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_CLOSED);
		assert_int_equal(n, 0);
	}
	/* The other direction stays open (RFC 8446 section 6.1). */
	assert_int_equal(tls_write(pair.s, (const uint8_t *)"more", 4), TLS_OK);
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(n, 4);
	tls_close(pair.s);
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_CLOSED);
}

static void test_bytes_after_close_notify_are_ignored(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	tls_close(pair.c);
	buf_append(&pair.to_server, "garbage", 7);
	tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_CLOSED);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_CLOSED);
}

/* A stream cut off is not an end: nothing but "more, please" comes of it. */
static void test_truncation_is_no_close(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	tls_write(pair.c, (const uint8_t *)"half", 4);
	tls_close(pair.c);
	for (size_t cut = 1; cut < 24; cut++) {
		tls_feed(pair.s, buf_bytes(&pair.to_server), 1);
		buf_consume(&pair.to_server, 1);
		assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_WANT_READ);
	}
}

static void test_flipped_bit_is_an_error(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	tls_write(pair.c, (const uint8_t *)"data", 4);
	buf_bytes(&pair.to_server)[10] ^= 1;
	assert_int_equal(pair.to_client.len, 0);
	tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), "decryption failed or bad record mac");
	assert_int_equal(tls_write(pair.s, (const uint8_t *)"x", 1), TLS_ERROR);
	assert_true(pair.to_client.len > 0); /* the alert */
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_ERROR);
	tls_close(pair.s); /* harmless */
}

static void test_replayed_record_is_an_error(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	tls_write(pair.c, (const uint8_t *)"once", 4);
	size_t len = pair.to_server.len;
	uint8_t *copy = malloc(len);
	memcpy(copy, buf_bytes(&pair.to_server), len);
	buf_append(&pair.to_server, copy, len);
	free(copy);
	tls_feed(pair.s, buf_bytes(&pair.to_server), pair.to_server.len);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_OK);
	assert_int_equal(n, 4);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_ERROR);
}

static void test_oversized_records(void **state)
{
	static uint8_t record[70000];
	uint8_t got[16];
	size_t n;
	(void)state;

	for (size_t len = 16384 + 257; len <= 65535; len += 16000) {
		pair_hang_up(&pair);
		pair_dial(&pair, "a.example", none, none);
		assert_true(pair_shake(&pair));
		memcpy(record, (uint8_t[]){0x17, 3, 3, (uint8_t)(len >> 8), (uint8_t)len}, 5);
		tls_feed(pair.s, record, 5 + len);
		assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_ERROR);
		assert_true(tls_error_text(pair.s)[0] != 0);
	}
}

static void feed_and_fail(const void *p, size_t n, const char *text)
{
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
	tls_feed(pair.s, p, n);
	assert_int_equal(tls_handshake(pair.s), TLS_ERROR);
	if (text)
		assert_string_equal(tls_error_text(pair.s), text);
	assert_true(tls_error_text(pair.s)[0] != 0);
	assert_string_equal(tls_error_text(pair.c), ""); /* nothing leaks to another connection */
}

static void test_no_tls_at_all(void **state)
{
	uint8_t zeros[64] = {0};
	uint8_t ssh[] = "SSH-2.0-OpenSSH_9.2\r\n";
	(void)state;

	feed_and_fail("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 28, "plain HTTP where TLS was expected");
	feed_and_fail(
	        "POST / HTTP/1.1\r\nHost: a\r\n\r\n", 29, "plain HTTP where TLS was expected");
	feed_and_fail("CONNECT a:443 HTTP/1.1\r\n\r\n", 26, "plain HTTP where TLS was expected");
	feed_and_fail(zeros, sizeof(zeros), NULL);
	feed_and_fail(ssh, sizeof(ssh), NULL);
	/* a record of application data, and an alert, before any ClientHello */
	feed_and_fail("\x17\x03\x03\x00\x05hello", 10, NULL);
	feed_and_fail("\x15\x03\x03\x00\x02\x02\x28", 7, NULL);
	/* SSL 2.0's own hello, and a ClientHello that claims 16 MiB */
	static uint8_t hello[5 + 16384] = {
	        0x80, 0x2e, 0x01, 0x00, 0x02, 0x00, 0x15, 0x00, 0x00, 0x00, 0x10};
	feed_and_fail(hello, 64, NULL);
	memcpy(hello, "\x16\x03\x01\x40\x00\x01\xff\xff\xff\x03\x03", 11);
	feed_and_fail(hello, sizeof(hello), "excessive message size");
}

static void test_answer_is_no_tls(void **state)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	(void)state;

	tls_handshake(pair.c);
	tls_feed(pair.c, (const uint8_t *)http, sizeof(http) - 1);
	assert_int_equal(tls_handshake(pair.c), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.c), "the peer does not speak TLS");
}

/* Every prefix of a ClientHello waits; every single flipped byte ends somehow, never in memory
 * trouble. */
static void test_damaged_hellos(void **state)
{
	uint8_t hello[2048];
	(void)state;

	tls_handshake(pair.c);
	size_t n = pair.to_server.len;
	assert_in_range(n, 100, sizeof(hello));
	memcpy(hello, buf_bytes(&pair.to_server), n);
	tls_feed(pair.s, hello, n - 1);
	assert_int_equal(tls_handshake(pair.s), TLS_WANT_READ);
	assert_int_equal(pair.to_client.len, 0);
	for (size_t i = 0; i < n; i++) {
		struct buf out;
		buf_init(&out, 65536);
		struct tls *tls = tls_accept_new(pair.server, PAIR_ALPN, &out);
		hello[i] ^= 0xff;
		tls_feed(tls, hello, n);
		tls_handshake(tls);
		hello[i] ^= 0xff;
		tls_free(tls);
		buf_fini(&out);
	}
}

/* Empty, with room for max bytes. */
static void bound(struct buf *out, size_t max)
{
	buf_fini(out);
	buf_init(out, max);
}

static void test_output_bound(void **state)
{
	static uint8_t data[20000];
	(void)state;

	bound(&pair.to_client, 100);
	assert_int_equal(tls_write(pair.s, data, 50), TLS_OK);
	size_t len = pair.to_client.len;
	assert_int_equal(tls_write(pair.s, data, 90), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), "output buffer is full");
	assert_int_equal(pair.to_client.len, len); /* no half record */
	assert_int_equal(tls_write(pair.s, data, 1), TLS_ERROR);

	bound(&pair.to_server, 20000);
	assert_int_equal(
	        tls_write(pair.c, data, sizeof(data)), TLS_ERROR); /* more than one record */
	assert_string_equal(tls_error_text(pair.c), "output buffer is full");
}

static void test_output_bound_in_the_handshake(void **state)
{
	(void)state;

	bound(&pair.to_server, 100);
	assert_int_equal(tls_handshake(pair.c), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.c), "output buffer is full");
}

static void test_write_before_the_handshake(void **state)
{
	(void)state;
	assert_int_equal(tls_write(pair.s, (const uint8_t *)"x", 1), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), "write before the handshake was done");
	tls_close(pair.c);
	assert_int_equal(pair.to_server.len, 0);
}

static void test_empty_write_writes_nothing(void **state)
{
	(void)state;
	assert_int_equal(pair.to_server.len, 0);
	assert_int_equal(tls_write(pair.c, (const uint8_t *)"", 0), TLS_OK);
	assert_int_equal(pair.to_server.len, 0);
}

/* TLS 1.2: a client that asks for a new handshake is told no, and the connection goes on. */
static void test_renegotiation_is_refused(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	SSL_clear_options(pair.c->ssl, SSL_OP_NO_RENEGOTIATION);
	assert_int_equal(SSL_renegotiate(pair.c->ssl), 1);
	pair.asked_count = 0;
	SSL_do_handshake(pair.c->ssl);
	assert_true(pair.to_server.len > 0);
	assert_int_equal(
	        pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.c), "no renegotiation");
	assert_int_equal(pair.asked_count, 0);
}

/* The client changes its keys so often, and wants the server to. */
static void update_keys(int times)
{
	for (int i = 0; i < times; i++) {
		assert_int_equal(SSL_key_update(pair.c->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(pair.c->ssl), 1);
	}
}

static void test_key_update(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	pair.c->layer->unfit = true; /* OpenSSL keeps the client's side */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(SSL_key_update(pair.c->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(tls_write(pair.c, (const uint8_t *)"a", 1), TLS_OK);
		assert_int_equal(pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n),
		        TLS_WANT_READ);
		assert_int_equal(n, 1);
		assert_int_equal(tls_write(pair.s, (const uint8_t *)"b", 1), TLS_OK);
		assert_int_equal(pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n),
		        TLS_WANT_READ);
		assert_int_equal(n, 1);
	}
}

/* Messages of TLS itself as they are needed: tickets, and new keys now and then. */
static void test_messages_without_content_are_few(void **state)
{
	static uint8_t data[4096], got[4096];
	size_t n;
	(void)state;

	for (int i = 0; i < 3; i++) {
		update_keys(20);
		assert_int_equal(pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n),
		        TLS_WANT_READ);
		assert_int_equal(n, 0);
		assert_int_equal(tls_write(pair.c, data, sizeof(data)), TLS_OK);
		pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
		assert_int_equal(n, sizeof(data));
	}
}

/* A byte of data now and then does not lift the bound. */
static void test_flood_of_key_updates_and_bytes(void **state)
{
	uint8_t got[64];
	size_t n;
	(void)state;

	for (int i = 0; i < 40; i++) {
		update_keys(1);
		assert_int_equal(tls_write(pair.c, (const uint8_t *)"a", 1), TLS_OK);
	}
	assert_int_equal(
	        pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n), TLS_ERROR);
	assert_int_equal(n, 32);
	assert_string_equal(tls_error_text(pair.s), FLOOD);
}

/* Each costs its reader more than its sender, who can have made them all before. Nothing is
 * answered or looked at after the bound. */
static void test_flood_of_key_updates(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	update_keys(1000);
	assert_int_equal(
	        pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), FLOOD);
	assert_in_range(pair.to_client.len, 0, 64 * 32);
}

/* The other way: an upstream whose tickets do not end. */
static void test_flood_of_tickets(void **state)
{
	uint8_t got[16];
	size_t n;
	(void)state;

	for (int i = 0; i < 200; i++) {
		assert_int_equal(SSL_new_session_ticket(pair.s->ssl), 1);
		SSL_do_handshake(pair.s->ssl);
	}
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.c), FLOOD);
}

/* An idle connection holds no record buffer (16 KiB each): far more of them idle than work. */
static void test_idle_connection_is_small(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	(void)state;
	skip(); /* its allocator does not count for mallinfo */
#else
	static uint8_t data[16384], got[16384];
	size_t n;
	(void)state;

	tls_write(pair.c, data, sizeof(data));
	pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
	tls_write(pair.s, data, sizeof(data));
	pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n);
	assert_int_equal(n, sizeof(data));
	tls_write(pair.c, data, 1);
	pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
	bool kept = pair.c->ssl != NULL;
	assert_true(kept == (pair.s->ssl != NULL));
	size_t before = mallinfo2().uordblks;
	tls_free(pair.s);
	pair.s = NULL;
	size_t between = mallinfo2().uordblks;
	tls_free(pair.c);
	pair.c = NULL;
	if (!kept) { /* taken over: only keys and cipher contexts are left */
		assert_in_range(before - between, 0, 4096);
		assert_in_range(between - mallinfo2().uordblks, 0, 4096);
		return;
	}
	/* Of OpenSSL 3.2 and later the connection itself is larger by 12 KiB. */
	size_t own = OPENSSL_version_major() > 3 || OPENSSL_version_minor() >= 2 ? 12288 : 0;
	assert_in_range(before - between, 4096, 16384 + own);
	assert_in_range(between - mallinfo2().uordblks, 4096, 20000 + own);
#endif
}

/* A record's buffers wait for the next record, a bounded number of them. */
static void test_buffers_of_records_are_kept(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	(void)state;
	skip(); /* there all goes through its own allocator */
#else
	static uint8_t data[1024], got[1024];
	size_t n, asked;
	(void)state;

	tls_write(pair.c, data, sizeof(data));
	pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
	assert_int_equal(n, sizeof(data));
	size_t waiting = tls_buffers_kept();
	assert_in_range(waiting, 1, 8);
	asked = mallinfo2().uordblks;
	for (int i = 0; i < 100; i++) {
		tls_write(pair.c, data, sizeof(data));
		pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
		assert_int_equal(n, sizeof(data));
		assert_int_equal(tls_buffers_kept(), waiting);
	}
	assert_int_equal(mallinfo2().uordblks, asked);
	tls_buffers_release();
	assert_int_equal(tls_buffers_kept(), 0);
	assert_in_range(asked - mallinfo2().uordblks, waiting * 16384, waiting * 17408);

	/* More at a time than are ever kept. */
	void *many[20];
	for (size_t i = 0; i < 20; i++)
		assert_non_null(many[i] = OPENSSL_malloc(16500));
	for (size_t i = 0; i < 20; i++)
		OPENSSL_free(many[i]);
	assert_int_equal(tls_buffers_kept(), 8);
	/* Larger and smaller buffers are not kept; a kept one holds the largest record. */
	void *small = OPENSSL_malloc(16383), *large = OPENSSL_malloc(17000);
	assert_int_equal(tls_buffers_kept(), 8);
	OPENSSL_free(small);
	OPENSSL_free(large);
	assert_int_equal(tls_buffers_kept(), 8);
	void *p = OPENSSL_malloc(16896);
	assert_int_equal(tls_buffers_kept(), 7);
	memset(p, 1, 16896);
	p = OPENSSL_realloc(p, 40000);
	assert_non_null(p);
	assert_int_equal(tls_buffers_kept(), 7);
	OPENSSL_free(p);
	tls_buffers_release();
#endif
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, connect_pair, drop_pair)
#define FRESH(test) cmocka_unit_test_setup_teardown(test, fresh_pair, drop_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CONNECTED(test_bulk_in_pieces),
	        cmocka_unit_test_setup_teardown(test_bulk_in_pieces, connect_pair_1_2, drop_pair),
	        CONNECTED(test_reads_smaller_than_a_record),
	        CONNECTED(test_content_that_exactly_fits),
	        CONNECTED(test_close_notify_then_nothing),
	        cmocka_unit_test_setup_teardown(
	                test_close_notify_then_nothing, connect_pair_1_2, drop_pair),
	        CONNECTED(test_bytes_after_close_notify_are_ignored),
	        CONNECTED(test_truncation_is_no_close),
	        CONNECTED(test_flipped_bit_is_an_error),
	        cmocka_unit_test_setup_teardown(
	                test_flipped_bit_is_an_error, connect_pair_1_2, drop_pair),
	        CONNECTED(test_replayed_record_is_an_error),
	        CONNECTED(test_oversized_records),
	        FRESH(test_no_tls_at_all),
	        FRESH(test_answer_is_no_tls),
	        FRESH(test_damaged_hellos),
	        CONNECTED(test_output_bound),
	        FRESH(test_output_bound_in_the_handshake),
	        FRESH(test_write_before_the_handshake),
	        CONNECTED(test_empty_write_writes_nothing),
	        cmocka_unit_test_setup_teardown(
	                test_renegotiation_is_refused, connect_pair_1_2, drop_pair),
	        CONNECTED(test_key_update),
	        CONNECTED(test_messages_without_content_are_few),
	        CONNECTED(test_flood_of_key_updates),
	        CONNECTED(test_flood_of_key_updates_and_bytes),
	        CONNECTED(test_flood_of_tickets),
	        CONNECTED(test_buffers_of_records_are_kept),
	        CONNECTED(test_idle_connection_is_small),
	        cmocka_unit_test_setup_teardown(
	                test_idle_connection_is_small, connect_pair_1_2, drop_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
