/* SPDX-License-Identifier: Apache-2.0 */
/* Resumption on both sides: that it works, that a ticket serves once, and that no session ever
 * serves another name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pair.h"
#include "tls/session.h"
#include "tls/ticket.h"

static struct slice none = {"", 0};

static int max_version = TLS1_3_VERSION;

/* A connection up to its end; the client has read the server's tickets. Returns whether it was
 * resumed. */
static bool visit(struct pair *pair, const char *host, const char *key)
{
	struct slice name = slice_from_string(host);
	struct ip address = {.family = 4, .bytes = {192, 0, 2, 1}};
	uint8_t got[8];
	size_t n;

	pair->s = tls_accept_new(pair->server, none, &pair->to_client);
	pair->c = tls_connect_new(
	        pair->client, name, &address, none, slice_from_string(key), &pair->to_server);
	assert_non_null(pair->c);
	SSL_set_max_proto_version(pair->c->ssl, max_version);
	bool shaken = pair_shake(pair);
	if (!shaken)
		print_message("client: %s; server: %s\n", tls_error_text(pair->c),
		        tls_error_text(pair->s));
	assert_true(shaken);
	pair_read(pair, pair->c, &pair->to_client, got, sizeof(got), &n);
	bool resumed = pair_resumed(pair->c);
	assert_int_equal(resumed, pair_resumed(pair->s));
	pair_hang_up(pair);
	return resumed;
}

static void test_resumed(void **state)
{
	struct pair pair;
	(void)state;

	for (max_version = TLS1_2_VERSION; max_version <= TLS1_3_VERSION; max_version++) {
		pair_init(&pair);
		assert_false(visit(&pair, "a.example", "k"));
		for (int i = 0; i < 20; i++)
			assert_true(visit(&pair, "a.example", "k"));
		assert_int_equal(
		        pair.asked_count, 1); /* a resumed handshake needs no certificate */
		/* another key, another peer under the same key */
		assert_false(visit(&pair, "a.example", "other"));
		assert_false(visit(&pair, "b.example", "k"));
		assert_false(visit(&pair, "", "k"));
		assert_true(visit(&pair, "", "k"));
		assert_true(visit(&pair, "b.example", "k"));
		pair_fini(&pair);
	}
	max_version = TLS1_3_VERSION;
}

/* The session that the client takes from its store when it connects under another name than
 * the session's. */
static void steal(struct pair *pair, const char *made_for, const char *used_for)
{
	uint8_t got[8];
	size_t n;

	pair_dial(pair, made_for, none, none);
	SSL_set_max_proto_version(pair->c->ssl, max_version);
	assert_true(pair_shake(pair));
	pair_read(pair, pair->c, &pair->to_client, got, sizeof(got), &n);
	SSL_SESSION *session = SSL_get1_session(pair->c->ssl);
	assert_true(SSL_SESSION_is_resumable(session));
	pair_hang_up(pair);

	pair_dial(pair, made_for, none, none);
	SSL_set_session(pair->c->ssl, session);
	SSL_set_max_proto_version(pair->c->ssl, max_version);
	assert_true(pair_shake(pair));
	assert_true(pair_resumed(pair->s)); /* so the session is good for its own name */
	pair_hang_up(pair);

	unsigned asked = pair->asked_count;
	pair_dial(pair, used_for, none, none);
	SSL_set_session(pair->c->ssl, session);
	SSL_set_max_proto_version(pair->c->ssl, max_version);
	pair_shake(pair);
	assert_false(pair_resumed(pair->s));
	assert_int_equal(pair->asked_count, asked + 1);
	assert_string_equal(pair->asked, used_for);
	pair_hang_up(pair);
	SSL_SESSION_free(session);
}

static void test_server_never_resumes_another_name(void **state)
{
	struct pair pair;
	(void)state;

	for (max_version = TLS1_2_VERSION; max_version <= TLS1_3_VERSION; max_version++) {
		pair_init(&pair);
		steal(&pair, "a.example", "b.example");
		steal(&pair, "a.example", "");
		steal(&pair, "", "a.example");
		steal(&pair, "a.example", "a.example.b");
		pair_fini(&pair);
	}
	max_version = TLS1_3_VERSION;
}

static void test_tickets_die_with_the_server(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	assert_false(visit(&pair, "a.example", "k"));
	tls_server_free(pair.server);
	pair.server = tls_server_new(pair_identity_for, &pair);
	assert_false(visit(&pair, "a.example", "k"));
	assert_true(visit(&pair, "a.example", "k"));
	pair_fini(&pair);
}

/* The verdict belongs to the session: a failed verification leaves none. */
static void test_failed_verification_leaves_no_session(void **state)
{
	struct pair pair;
	(void)state;

	for (int i = TLS1_2_VERSION; i <= TLS1_3_VERSION; i++) {
		pair_init(&pair);
		for (int round = 0; round < 2; round++) {
			pair.identity = ca_leaf_new(
			        pair.issuer, pair.leaf_key, SLICE("other.example"), NULL);
			pair_dial(&pair, "a.example", none, none);
			SSL_set_max_proto_version(pair.c->ssl, i);
			assert_false(pair_shake(&pair));
			assert_string_equal(tls_error_text(pair.c), "hostname mismatch");
			assert_false(pair_resumed(pair.c));
			pair_hang_up(&pair);
		}
		pair_fini(&pair);
	}
}

static SSL_SESSION *session_made(int version, long made_s, long lasts_s)
{
	SSL_SESSION *session = SSL_SESSION_new();
	static unsigned char id[32] = {1};

	SSL_SESSION_set_protocol_version(session, version);
#if OPENSSL_VERSION_NUMBER >= 0x30300000L
	SSL_SESSION_set_time_ex(session, made_s);
#else
	SSL_SESSION_set_time(session, made_s);
#endif
	SSL_SESSION_set_timeout(session, lasts_s);
	SSL_SESSION_set1_id(session, id, sizeof(id));
	id[0]++;
	return session;
}

static void test_slot_order_and_bound(void **state)
{
	struct session_cache *cache = session_cache_new(4);
	struct session_slot *slot = session_slot_get(cache, SLICE("key"));
	SSL_SESSION *made[SESSIONS_PER_KEY + 3];
	(void)state;

	for (int i = 0; i < SESSIONS_PER_KEY + 3; i++) {
		made[i] = session_made(TLS1_3_VERSION, 1000, 100);
		session_slot_put(slot, made[i]);
	}
	for (int i = 0; i < SESSIONS_PER_KEY; i++) {
		SSL_SESSION *got = session_slot_take(slot, 1050);
		assert_ptr_equal(got, made[SESSIONS_PER_KEY + 2 - i]); /* newest first, each once */
		SSL_SESSION_free(got);
	}
	assert_null(session_slot_take(slot, 1050));
	for (int i = 0; i < SESSIONS_PER_KEY + 3; i++)
		SSL_SESSION_free(made[i]);
	session_slot_release(slot);
	session_cache_free(cache);
}

static void test_slot_expiry(void **state)
{
	static const struct {
		long made, lasts, now;
		bool good;
	} cases[] = {
	        {1000, 100, 1000, true}, {1000, 100, 1099, true}, {1000, 100, 1100, false},
	        {1000, 100, 5000, false},
	        {1000, 100, 999, false}, /* from the future: the clock was set back */
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct session_cache *cache = session_cache_new(4);
		struct session_slot *slot = session_slot_get(cache, SLICE("key"));
		SSL_SESSION *made = session_made(TLS1_3_VERSION, cases[i].made, cases[i].lasts);
		session_slot_put(slot, made);
		SSL_SESSION_free(made);
		SSL_SESSION *got = session_slot_take(slot, cases[i].now);
		assert_int_equal(got != NULL, cases[i].good);
		SSL_SESSION_free(got);
		session_slot_release(slot);
		session_cache_free(cache);
	}
}

static void test_tls_1_2_session_serves_again(void **state)
{
	struct session_cache *cache = session_cache_new(4);
	struct session_slot *slot = session_slot_get(cache, SLICE("key"));
	SSL_SESSION *made = session_made(TLS1_2_VERSION, 1000, 100);
	(void)state;

	session_slot_put(slot, made);
	for (int i = 0; i < 3; i++) {
		SSL_SESSION *got = session_slot_take(slot, 1001);
		assert_ptr_equal(got, made);
		SSL_SESSION_free(got);
	}
	SSL_SESSION_free(made);
	session_slot_release(slot);
	session_cache_free(cache);
}

static bool has_session(struct session_cache *cache, const char *key)
{
	struct session_slot *slot = session_slot_get(cache, slice_from_string(key));
	SSL_SESSION *got = session_slot_take(slot, 1001);

	SSL_SESSION_free(got);
	session_slot_release(slot);
	return got != NULL;
}

static void put_session(struct session_cache *cache, const char *key)
{
	struct session_slot *slot = session_slot_get(cache, slice_from_string(key));
	SSL_SESSION *made = session_made(TLS1_2_VERSION, 1000, 100);

	session_slot_put(slot, made);
	SSL_SESSION_free(made);
	session_slot_release(slot);
}

static void test_least_recently_used_key_goes(void **state)
{
	struct session_cache *cache = session_cache_new(3);
	(void)state;

	put_session(cache, "a");
	put_session(cache, "b");
	put_session(cache, "c");
	assert_true(has_session(cache, "a")); /* now b is the oldest */
	put_session(cache, "d");
	assert_true(has_session(cache, "a"));
	assert_true(has_session(cache, "c"));
	assert_true(has_session(cache, "d"));
	assert_false(has_session(cache, "b"));
	session_cache_free(cache);
}

static void test_slot_outlives_eviction_and_cache(void **state)
{
	struct session_cache *cache = session_cache_new(1);
	struct session_slot *held = session_slot_get(cache, SLICE("held"));
	SSL_SESSION *made = session_made(TLS1_3_VERSION, 1000, 100);
	(void)state;

	put_session(cache, "other"); /* evicts "held" */
	session_slot_put(held, made);
	session_cache_free(cache);
	SSL_SESSION *got = session_slot_take(held, 1001);
	assert_ptr_equal(got, made);
	SSL_SESSION_free(got);
	SSL_SESSION_free(made);
	session_slot_release(held);
}

static int use(struct ticket_keys *keys, int64_t now_ms, uint8_t name[16], bool encrypt)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
	uint8_t iv[16] = {0};
	int rc = ticket_keys_use(keys, now_ms, name, iv, cipher, mac, encrypt);

	EVP_MAC_CTX_free(mac);
	EVP_MAC_free(hmac);
	EVP_CIPHER_CTX_free(cipher);
	return rc;
}

static void test_ticket_keys_turn_hourly(void **state)
{
	struct ticket_keys keys;
	uint8_t first[16], second[16], unknown[16] = {0};
	const int64_t hour = TICKET_KEY_LIFE_MS;
	(void)state;

	assert_true(ticket_keys_init(&keys, 0));
	assert_int_equal(use(&keys, 0, first, true), 1);
	assert_int_equal(use(&keys, hour - 1, first, false), 1);
	assert_int_equal(use(&keys, hour - 1, unknown, false), 0);
	assert_int_equal(use(&keys, hour, second, true), 1);
	assert_memory_not_equal(first, second, 16);
	assert_int_equal(use(&keys, hour, first, false), 2); /* opens still, and is to be renewed */
	assert_int_equal(use(&keys, 2 * hour, second, false), 2);
	assert_int_equal(use(&keys, 2 * hour, first, false), 0);
	/* after a long sleep nothing old opens anything */
	assert_int_equal(use(&keys, 9 * hour, first, true), 1);
	assert_int_equal(use(&keys, 11 * hour, first, false), 0);
	ticket_keys_fini(&keys);
	for (size_t i = 0; i < sizeof(keys); i++)
		assert_int_equal(((uint8_t *)&keys)[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_resumed),
	        cmocka_unit_test(test_server_never_resumes_another_name),
	        cmocka_unit_test(test_tickets_die_with_the_server),
	        cmocka_unit_test(test_failed_verification_leaves_no_session),
	        cmocka_unit_test(test_slot_order_and_bound),
	        cmocka_unit_test(test_slot_expiry),
	        cmocka_unit_test(test_tls_1_2_session_serves_again),
	        cmocka_unit_test(test_least_recently_used_key_goes),
	        cmocka_unit_test(test_slot_outlives_eviction_and_cache),
	        cmocka_unit_test(test_ticket_keys_turn_hourly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
