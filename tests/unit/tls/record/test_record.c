/* SPDX-License-Identifier: Apache-2.0 */
/* The record layer that was taken over from OpenSSL: what a peer may send after the handshake, and
 * what it may not, with the alert and the error text. The peer has the keys here, so it can seal
 * anything. "Section" means RFC 8446. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../pair.h"
#include "tls/record/record.h"

#define FLOOD "a flood of TLS messages that carry nothing"
#define UPDATE "\x18\0\0\1"

static struct slice none = {"", 0};
static struct pair pair;

static void pass(struct tls *from, struct tls *to, struct buf *way)
{
	uint8_t got[16];
	size_t n;

	assert_int_equal(tls_write(from, (const uint8_t *)"hello", 5), TLS_OK);
	assert_int_equal(pair_read(&pair, to, way, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(n, 5);
	assert_memory_equal(got, "hello", 5);
}

static void meet(void)
{
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
	assert_true(pair_shake(&pair));
	for (int i = 0; i < 2; i++) {
		pass(pair.c, pair.s, &pair.to_server);
		pass(pair.s, pair.c, &pair.to_client);
	}
	assert_null(pair.s->ssl);
	assert_null(pair.c->ssl);
}

static int begin(void **state)
{
	(void)state;
	pair_init(&pair);
	meet();
	return 0;
}

static int end(void **state)
{
	(void)state;
	pair_fini(&pair);
	return 0;
}

static void seal(uint8_t type, const void *p, size_t n)
{
	assert_int_equal(record_seal(pair.c->layer, type, p, n, &pair.to_server), 0);
}

/* arrive() lets the server read all that was sent; the content is then in got[]. */
static uint8_t got[40000];
static size_t got_n;

static enum tls_status arrive(void)
{
	return pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &got_n);
}

/* The server ends the connection with this alert (0: none), sent once, and with this error text.
 * Then the next connection begins. */
static void refused(uint8_t alert, const char *text)
{
	uint8_t opened[64], type;
	size_t n;

	assert_int_equal(arrive(), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), text);
	assert_int_equal(tls_read(pair.s, opened, sizeof(opened), &n), TLS_ERROR);
	assert_int_equal(tls_write(pair.s, opened, 1), TLS_ERROR);
	tls_close(pair.s);
	if (alert) {
		assert_int_equal(pair.to_client.len, RECORD_SEALED + 2);
		assert_int_equal(record_open(pair.c->layer, buf_bytes(&pair.to_client),
		                         pair.to_client.len, opened, &type, &n),
		        0);
		assert_int_equal(type, RECORD_ALERT);
		assert_int_equal(n, 2);
		assert_int_equal(opened[0], 2);
		assert_int_equal(opened[1], alert);
	} else {
		assert_int_equal(pair.to_client.len, 0);
	}
	meet();
}

static void test_headers(void **state)
{
	uint8_t record[RECORD_HEADER + 20] = {23, 3, 3, 0, 20};
	(void)state;

	for (int type = 0; type < 256; type++) {
		if (type == RECORD_DATA)
			continue;
		record[0] = (uint8_t)type;
		buf_append(&pair.to_server, record, sizeof(record));
		refused(SSL_AD_UNEXPECTED_MESSAGE, "bad record type");
	}
	record[0] = RECORD_DATA;
	for (size_t i = 1; i < 3; i++) {
		for (int version = 0; version < 5; version++) {
			if (version == 3)
				continue;
			record[i] = (uint8_t)version;
			buf_append(&pair.to_server, record, sizeof(record));
			refused(SSL_AD_DECODE_ERROR, "wrong version number");
		}
		record[i] = 3;
	}
	/* Too long: refused at once, by the header alone. */
	for (size_t n = RECORD_CIPHER_MAX + 1; n < 65536; n += 9000) {
		buf_append(&pair.to_server, (uint8_t[]){23, 3, 3, (uint8_t)(n >> 8), (uint8_t)n},
		        RECORD_HEADER);
		refused(SSL_AD_RECORD_OVERFLOW, "encrypted length too long");
	}
	/* Too short for a tag and a type. */
	for (uint8_t n = 0; n < 17; n++) {
		record[4] = n;
		buf_append(&pair.to_server, record, RECORD_HEADER + n);
		refused(SSL_AD_BAD_RECORD_MAC, "decryption failed or bad record mac");
	}
}

/* A flipped bit anywhere behind the header is found. */
static void test_damage(void **state)
{
	size_t whole = RECORD_SEALED + 4;
	(void)state;

	for (size_t bit = 8 * RECORD_HEADER; bit < 8 * whole; bit++) {
		seal(RECORD_DATA, "data", 4);
		buf_bytes(&pair.to_server)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		memset(got, 0, 64);
		refused(SSL_AD_BAD_RECORD_MAC, "decryption failed or bad record mac");
		assert_int_equal(got_n, 0);
		assert_memory_equal(got, (uint8_t[4]){0}, 4);
	}
	/* A record is left out; a record comes twice. */
	seal(RECORD_DATA, "one", 3);
	buf_consume(&pair.to_server, pair.to_server.len);
	seal(RECORD_DATA, "two", 3);
	refused(SSL_AD_BAD_RECORD_MAC, "decryption failed or bad record mac");
	seal(RECORD_DATA, "one", 3);
	buf_append(&pair.to_server, (uint8_t[RECORD_SEALED + 3]){0}, RECORD_SEALED + 3);
	memcpy(buf_bytes(&pair.to_server) + RECORD_SEALED + 3, buf_bytes(&pair.to_server),
	        RECORD_SEALED + 3);
	refused(SSL_AD_BAD_RECORD_MAC, "decryption failed or bad record mac");
	assert_int_equal(got_n, 3); /* the first record passes */
	/* The server's own record is sent back to it. */
	tls_write(pair.s, (const uint8_t *)"back", 4);
	buf_append(&pair.to_server, buf_bytes(&pair.to_client), pair.to_client.len);
	buf_consume(&pair.to_client, pair.to_client.len);
	pair.c->layer->reading.sequence++;
	refused(SSL_AD_BAD_RECORD_MAC, "decryption failed or bad record mac");
}

/* Padding passes. A record that is only padding, or too long with its padding, does not. */
static void test_padding(void **state)
{
	static uint8_t padded[RECORD_PLAIN_MAX + 10];
	(void)state;

	for (size_t padding = 0; padding < 300; padding++) {
		memset(padded, 0, sizeof(padded));
		memcpy(padded, "data\x17", 5);
		seal(0, padded, 5 + padding);
		assert_int_equal(arrive(), TLS_WANT_READ);
		assert_int_equal(got_n, 4);
		assert_memory_equal(got, "data", 4);
	}
	seal(0, padded, RECORD_PLAIN_MAX);
	assert_int_equal(arrive(), TLS_WANT_READ);
	seal(0, padded, RECORD_PLAIN_MAX + 1);
	refused(SSL_AD_RECORD_OVERFLOW, "data length too long");
	memset(padded, 1, sizeof(padded));
	seal(RECORD_DATA, padded, RECORD_PLAIN_MAX);
	assert_int_equal(arrive(), TLS_WANT_READ);
	assert_int_equal(got_n, RECORD_PLAIN_MAX);
	seal(RECORD_DATA, padded, RECORD_PLAIN_MAX + 1);
	refused(SSL_AD_RECORD_OVERFLOW, "data length too long");
	memset(padded, 0, sizeof(padded));
	for (size_t n = 0; n < 40; n++) {
		seal(0, padded, n);
		refused(SSL_AD_UNEXPECTED_MESSAGE, "bad record type");
	}
}

static void test_types_inside(void **state)
{
	(void)state;
	for (int type = 1; type < 256; type++) {
		if (type == RECORD_ALERT || type == RECORD_HANDSHAKE || type == RECORD_DATA)
			continue;
		seal((uint8_t)type, "\1", 1);
		refused(SSL_AD_UNEXPECTED_MESSAGE, "unexpected record");
	}
}

static void test_alerts(void **state)
{
	(void)state;
	seal(RECORD_ALERT, "", 0);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "invalid alert");
	seal(RECORD_ALERT, "\2", 1);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "invalid alert");
	seal(RECORD_ALERT, "\1\0\0", 3);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "invalid alert");
	seal(RECORD_ALERT, "\2\x30", 2);
	refused(0, "tlsv1 alert unknown ca");
	seal(RECORD_ALERT, "\1\x30", 2); /* the level says nothing (section 6) */
	refused(0, "tlsv1 alert unknown ca");
	seal(RECORD_ALERT, "\2\xee", 2);
	refused(0, "TLS failure");
	/* The client warns (user_canceled), and goes on. */
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++)
			seal(RECORD_ALERT, "\1\x5a", 2);
		seal(RECORD_DATA, "on", 2);
		assert_int_equal(arrive(), TLS_WANT_READ);
		assert_int_equal(got_n, 2);
	}
	for (int i = 0; i < 5; i++)
		seal(RECORD_ALERT, "\1\x5a", 2);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "too many warn alerts");
	seal(RECORD_ALERT, "\1\0", 2);
	seal(RECORD_DATA, "ignored", 7);
	assert_int_equal(arrive(), TLS_CLOSED);
	assert_int_equal(got_n, 0);
}

static void test_empty_records(void **state)
{
	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 32; i++)
			seal(RECORD_DATA, "", 0);
		seal(RECORD_DATA, "x", 1);
		assert_int_equal(arrive(), TLS_WANT_READ);
		assert_int_equal(got_n, 1);
	}
	for (int i = 0; i < 33; i++)
		seal(RECORD_DATA, "", 0);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "record too small");
}

/* The client sends a KeyUpdate and changes its keys. */
static void update(const char *message)
{
	seal(RECORD_HANDSHAKE, message, 5);
	assert_true(record_keys_update(pair.c->layer, &pair.c->layer->writing));
}

static void test_key_updates(void **state)
{
	(void)state;
	update(UPDATE "\0");
	pass(pair.c, pair.s, &pair.to_server);
	assert_int_equal(pair.to_client.len, 0);
	update(UPDATE "\1");
	pass(pair.c, pair.s, &pair.to_server);
	assert_int_equal(pair.to_client.len, RECORD_SEALED + 5);
	pass(pair.s, pair.c, &pair.to_client);
	/* A message in two parts, one record each. */
	for (size_t cut = 1; cut < 5; cut++) {
		seal(RECORD_HANDSHAKE, UPDATE "\0", cut);
		update(UPDATE "\0"); /* a whole message behind a part */
		assert_int_equal(arrive(), TLS_ERROR);
		meet();
		seal(RECORD_HANDSHAKE, UPDATE "\0", cut);
		seal(RECORD_HANDSHAKE, &(UPDATE "\0")[cut], 5 - cut);
		assert_true(record_keys_update(pair.c->layer, &pair.c->layer->writing));
		pass(pair.c, pair.s, &pair.to_server);
		/* No other record may come between the parts (section 5.1). */
		for (uint8_t type = RECORD_ALERT; type <= RECORD_DATA;
		        type += RECORD_DATA - RECORD_ALERT) {
			seal(RECORD_HANDSHAKE, UPDATE "\0", cut);
			seal(type, "\1\0", 2);
			refused(SSL_AD_UNEXPECTED_MESSAGE, "unexpected record");
		}
	}
}

static void test_bad_messages(void **state)
{
	(void)state;
	seal(RECORD_HANDSHAKE, "", 0);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "bad length");
	for (int request = 2; request < 256; request++) {
		char message[] = UPDATE "\2";

		message[4] = (char)request;
		seal(RECORD_HANDSHAKE, message, 5);
		refused(SSL_AD_ILLEGAL_PARAMETER, "bad key update");
	}
	seal(RECORD_HANDSHAKE, "\x18\0\0\0", 4);
	refused(SSL_AD_DECODE_ERROR, "bad key update");
	seal(RECORD_HANDSHAKE, "\x18\0\0\2\0\0", 6);
	refused(SSL_AD_DECODE_ERROR, "bad key update");
	seal(RECORD_HANDSHAKE, "\x18\1\0\1\0", 5);
	refused(SSL_AD_DECODE_ERROR, "bad key update");
	seal(RECORD_HANDSHAKE, UPDATE "\0\x18", 6);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "not on record boundary");
	seal(RECORD_HANDSHAKE, UPDATE "\1" UPDATE "\1", 10);
	refused(SSL_AD_UNEXPECTED_MESSAGE, "not on record boundary");
	for (int type = 0; type < 256; type++) {
		uint8_t message[] = {(uint8_t)type, 0, 0, 1, 0};

		if (type == 24)
			continue;
		seal(RECORD_HANDSHAKE, message, sizeof(message)); /* also a ticket of a client */
		refused(SSL_AD_UNEXPECTED_MESSAGE, "unexpected message");
	}
}

static void test_floods(void **state)
{
	(void)state;
	for (int i = 0; i < 33; i++)
		update(UPDATE "\1");
	assert_int_equal(arrive(), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), FLOOD);
	assert_int_equal(pair.to_client.len, 32 * (RECORD_SEALED + 5));
}

/* The server sends a handshake message; here the client is tested. */
static enum tls_status client_takes(const void *p, size_t n)
{
	record_seal(pair.s->layer, RECORD_HANDSHAKE, p, n, &pair.to_client);
	return pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &got_n);
}

static void test_tickets(void **state)
{
	static uint8_t ticket[RECORD_PLAIN_MAX] = {4, 0, 1, 0};
	(void)state;

	/* Tickets: whole, in two parts, and two in one record; then data. */
	assert_int_equal(client_takes(ticket, 4 + 256), TLS_WANT_READ);
	for (size_t cut = 1; cut < 260; cut += 37) {
		assert_int_equal(client_takes(ticket, cut), TLS_WANT_READ);
		assert_int_equal(client_takes(ticket + cut, 260 - cut), TLS_WANT_READ);
	}
	memcpy(ticket + 260, ticket, 4);
	assert_int_equal(client_takes(ticket, 520), TLS_WANT_READ);
	pass(pair.s, pair.c, &pair.to_client);
	pass(pair.c, pair.s, &pair.to_server);
	/* Refused: data inside of a ticket, an empty ticket, one that is too long, too many. */
	assert_int_equal(client_takes(ticket, 100), TLS_WANT_READ);
	tls_write(pair.s, (const uint8_t *)"data", 4);
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &got_n), TLS_ERROR);
	assert_string_equal(tls_error_text(pair.c), "unexpected record");
	meet();
	assert_int_equal(client_takes("\4\0\0\0", 4), TLS_ERROR);
	meet();
	assert_int_equal(client_takes((uint8_t[]){4, (RECORD_TICKET_MAX + 1) >> 16,
	                                      (uint8_t)((RECORD_TICKET_MAX + 1) >> 8),
	                                      (uint8_t)(RECORD_TICKET_MAX + 1)},
	                         4),
	        TLS_ERROR);
	meet();
	for (int i = 0; i < 40 && client_takes(ticket, 260) == TLS_WANT_READ; i++)
		;
	assert_string_equal(tls_error_text(pair.c), FLOOD);
	meet();
	assert_int_equal(client_takes("\x0d\0\0\1\0", 5), TLS_ERROR); /* CertificateRequest */
	assert_string_equal(tls_error_text(pair.c), "unexpected message");
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        PAIR(test_headers),
	        PAIR(test_damage),
	        PAIR(test_padding),
	        PAIR(test_types_inside),
	        PAIR(test_alerts),
	        PAIR(test_empty_records),
	        PAIR(test_key_updates),
	        PAIR(test_bad_messages),
	        PAIR(test_floods),
	        PAIR(test_tickets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
