/* SPDX-License-Identifier: Apache-2.0 */
/* The linker wraps: calloc */
/* A server's connection with which another tls_server goes on: every suite, new keys on both sides,
 * ends; and the connections that cannot be given away, or whose state is not one. */
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
static struct tls_server *other;
static bool no_calloc; /* the next call fails */

void *__real_calloc(size_t count, size_t n);
void *__wrap_calloc(size_t count, size_t n);

void *__wrap_calloc(size_t count, size_t n)
{
	bool fails = no_calloc;

	no_calloc = false;
	return fails ? NULL : __real_calloc(count, n);
}

static int begin(void **state)
{
	(void)state;
	pair_init(&pair);
	other = tls_server_new(pair_identity_for, &pair);
	assert_non_null(other);
	pair_dial(&pair, "a.example", none, none);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pair_fini(&pair);
	tls_server_free(other);
	return 0;
}

static void meet(void)
{
	assert_true(pair_shake(&pair));
	pair_both_ways(&pair, 1);
}

/* The other server goes on. */
static void hand_over(void)
{
	struct tls_state state;

	assert_true(tls_state_read(pair.s, &state));
	tls_free(pair.s);
	pair.s = tls_state_go_on(other, &state, &pair.to_client);
	assert_non_null(pair.s);
}

static void anew(void)
{
	pair_hang_up(&pair);
	pair_dial(&pair, "a.example", none, none);
}

static void test_each_suite(void **state)
{
	static const char *const suites[] = {
	        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"};
	static const char *const names[] = {"a.example", "b.example", "c.example"};
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		pair_hang_up(&pair);
		pair_dial(&pair, names[i], none, none);
		SSL_set_ciphersuites(pair.c->ssl, suites[i]);
		meet();
		hand_over();
		pair_both_ways(&pair, 3);
		pair_both_ways(&pair, BIG);
		hand_over(); /* and once more */
		pair_both_ways(&pair, BIG);
		assert_int_equal(tls_version(pair.s), TLS1_3_VERSION);
		assert_int_equal(tls_alpn(pair.s).n, 0);
	}
}

/* Right after the handshake, before any byte has passed. */
static void test_before_the_first_data(void **state)
{
	(void)state;
	assert_true(pair_shake(&pair));
	hand_over();
	pair_both_ways(&pair, BIG);
}

static void test_new_keys(void **state)
{
	(void)state;
	assert_true(pair_shake(&pair));
	pair.c->layer->unfit = true; /* OpenSSL keeps it, and changes its keys on request */
	pair_both_ways(&pair, 1);
	hand_over();
	for (int i = 0; i < 4; i++) {
		SSL_key_update(pair.c->ssl,
		        i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
		pair_both_ways(&pair, 100);
		hand_over();
		pair_both_ways(&pair, 100);
		pair.s->layer->key_life = pair.s->layer->writing.sequence;
		pair_both_ways(&pair, 100);
		hand_over();
	}
}

static void test_ends(void **state)
{
	uint8_t got[8];
	size_t n;
	(void)state;

	meet();
	hand_over();
	tls_close(pair.s);
	assert_int_equal(
	        pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n), TLS_CLOSED);
	anew();
	meet();
	hand_over();
	tls_close(pair.c);
	assert_int_equal(
	        pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n), TLS_CLOSED);
}

static void refuses(struct tls *tls)
{
	static const struct tls_state nothing;
	struct tls_state state;

	memset(&state, 1, sizeof(state));
	assert_false(tls_state_read(tls, &state));
	assert_memory_equal(&state, &nothing, sizeof(state));
}

static void test_what_stays(void **state)
{
	uint8_t got[4];
	size_t n;
	(void)state;

	refuses(pair.s); /* no handshake yet */
	refuses(pair.c);
	meet();
	refuses(pair.c); /* a client */
	/* A part of a record. */
	tls_write(pair.c, (const uint8_t *)"data", 4);
	tls_feed(pair.s, buf_bytes(&pair.to_server), 7);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_WANT_READ);
	refuses(pair.s);
	/* A whole one that was not read. */
	tls_feed(pair.s, buf_bytes(&pair.to_server) + 7, pair.to_server.len - 7);
	refuses(pair.s);
	/* Half of its content. */
	assert_int_equal(tls_read(pair.s, got, 2, &n), TLS_OK);
	refuses(pair.s);
	assert_int_equal(tls_read(pair.s, got, 2, &n), TLS_OK);
	buf_consume(&pair.to_server, pair.to_server.len);
	hand_over();
	tls_close(pair.s);
	refuses(pair.s); /* it has ended */
	anew();
	SSL_set_max_proto_version(pair.c->ssl, TLS1_2_VERSION);
	meet();
	refuses(pair.s);
	anew();
	assert_true(pair_shake(&pair));
	pair.s->layer->unfit = true; /* OpenSSL keeps it */
	pair_both_ways(&pair, 1);
	refuses(pair.s);
	anew();
	meet();
	tls_feed(pair.s, (const uint8_t *)"\x17\x03\x03\x00\x01x", 6);
	assert_int_equal(tls_read(pair.s, got, sizeof(got), &n), TLS_ERROR);
	refuses(pair.s);
}

static void test_what_is_no_state(void **state)
{
	struct tls_state good, bad;
	(void)state;

	meet();
	assert_true(tls_state_read(pair.s, &good));
	bad = good;
	bad.suite = TLS_STATE_SUITES;
	assert_null(tls_state_go_on(other, &bad, &pair.to_client));
	bad.suite = UINT8_MAX;
	assert_null(tls_state_go_on(other, &bad, &pair.to_client));
	for (unsigned n = 0; n <= UINT8_MAX; n++) {
		bad = good;
		bad.secret_n = (uint8_t)n;
		if (n != good.secret_n)
			assert_null(tls_state_go_on(other, &bad, &pair.to_client));
	}
	bad = good;
	bad.suite = good.suite == 1 ? 0 : 1; /* its secrets have another length */
	assert_null(tls_state_go_on(other, &bad, &pair.to_client));
	no_calloc = true;
	assert_null(tls_state_go_on(other, &good, &pair.to_client));
	assert_false(no_calloc);
}

/* Other secrets, or numbers of records, open nothing. */
static void test_another_state(void **state)
{
	uint8_t got[8];
	size_t n;
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct tls_state bad;

		anew();
		meet();
		assert_true(tls_state_read(pair.s, &bad));
		bad.reading[0] ^= (uint8_t)(i == 0);
		bad.reading_next += i == 1;
		tls_free(pair.s);
		pair.s = tls_state_go_on(other, &bad, &pair.to_client);
		tls_write(pair.c, (const uint8_t *)"data", 4);
		assert_int_equal(
		        pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n), TLS_ERROR);
		assert_int_equal(n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_each_suite, begin, end),
	        cmocka_unit_test_setup_teardown(test_before_the_first_data, begin, end),
	        cmocka_unit_test_setup_teardown(test_new_keys, begin, end),
	        cmocka_unit_test_setup_teardown(test_ends, begin, end),
	        cmocka_unit_test_setup_teardown(test_what_stays, begin, end),
	        cmocka_unit_test_setup_teardown(test_what_is_no_state, begin, end),
	        cmocka_unit_test_setup_teardown(test_another_state, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
