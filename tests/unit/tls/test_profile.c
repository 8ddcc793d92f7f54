/* SPDX-License-Identifier: Apache-2.0 */
/* Which TLS is spoken (profile.c): which clients are served, with which kind of key, which
 * upstreams are accepted, and the error if there is nothing in common. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <openssl/err.h>

#include "pair.h"

static struct slice none = {"", 0};

/* One side of a handshake. NULL and 0: what our own client offers. */
struct offer {
	const char *what;
	int version; /* the highest */
	const char *suites, *groups, *sigalgs;
};

struct server_row {
	struct offer client;
	enum tls_key_kind kind; /* asked for */
	int group;              /* agreed on; 0: not looked at */
};

#define GCM_ECDSA "ECDHE-ECDSA-AES128-GCM-SHA256"
#define GCM_RSA "ECDHE-RSA-AES128-GCM-SHA256"

/* A connection that no session of one before shortens. */
static void dial_anew(struct pair *pair)
{
	pair_dial(pair, "a.example", none, none);
	SSL_set_session(pair->c->ssl, NULL);
}

static void apply(SSL *ssl, const struct offer *offer)
{
	if (offer->version)
		assert_true(SSL_set_max_proto_version(ssl, offer->version));
	if (offer->suites)
		assert_true(SSL_set_cipher_list(ssl, offer->suites));
	if (offer->groups)
		assert_true(SSL_set1_groups_list(ssl, offer->groups));
	if (offer->sigalgs)
		assert_true(SSL_set1_sigalgs_list(ssl, offer->sigalgs));
}

static EVP_PKEY *shown_key(struct pair *pair)
{
	X509 *x = SSL_get0_peer_certificate(pair->c->ssl);

	assert_non_null(x);
	return X509_get0_pubkey(x);
}

/* The RSA key is made once for all of a test's connections. */
static void hang_up(struct pair *pair)
{
	pair_hang_up(pair);
	pair->asked_count = 0;
}

static void test_served_clients(void **state)
{
	static const struct server_row rows[] = {
	        {{"the usual one", .version = TLS1_3_VERSION}, TLS_KEY_ECDSA, 0},
	        {{"P-256 alone", .groups = "P-256"}, TLS_KEY_ECDSA, NID_X9_62_prime256v1},
	        {{"P-384 alone", .groups = "P-384"}, TLS_KEY_ECDSA, NID_secp384r1},
	        {{"P-521 alone", .groups = "P-521"}, TLS_KEY_ECDSA, NID_secp521r1},
	        {{"P-521 first", .groups = "P-521:X25519"}, TLS_KEY_ECDSA, 0},
	        {{"ECDSA with P-256 alone", .sigalgs = "ecdsa_secp256r1_sha256"}, TLS_KEY_ECDSA, 0},
	        {{"RSA-PSS and ECDSA with P-384",
	                 .sigalgs = "rsa_pss_rsae_sha256:ecdsa_secp384r1_sha384"},
	                TLS_KEY_RSA, 0},
	        {{"no ECDSA", .sigalgs = "rsa_pss_rsae_sha384:rsa_pkcs1_sha256"}, TLS_KEY_RSA, 0},
	        {{"a list of RSA for TLS 1.2, in TLS 1.3", .suites = GCM_RSA}, TLS_KEY_ECDSA, 0},
	        {{"1.2", TLS1_2_VERSION}, TLS_KEY_ECDSA, NID_X25519},
	        {{"1.2, ECDSA alone", TLS1_2_VERSION, GCM_ECDSA}, TLS_KEY_ECDSA, 0},
	        {{"1.2, ECDSA AES-256", TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384"},
	                TLS_KEY_ECDSA, 0},
	        {{"1.2, ECDSA ChaCha20", TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305"},
	                TLS_KEY_ECDSA, 0},
	        {{"1.2, RSA alone", TLS1_2_VERSION, GCM_RSA}, TLS_KEY_RSA, NID_X25519},
	        {{"1.2, RSA AES-256", TLS1_2_VERSION, "ECDHE-RSA-AES256-GCM-SHA384"}, TLS_KEY_RSA,
	                0},
	        {{"1.2, RSA ChaCha20", TLS1_2_VERSION, "ECDHE-RSA-CHACHA20-POLY1305"}, TLS_KEY_RSA,
	                0},
	        {{"1.2, RSA, P-521 alone", TLS1_2_VERSION, GCM_RSA, "P-521"}, TLS_KEY_RSA,
	                NID_secp521r1},
	        {{"1.2, P-384 alone", TLS1_2_VERSION, NULL, "P-384"}, TLS_KEY_RSA, NID_secp384r1},
	        {{"1.2, P-384 and P-256", TLS1_2_VERSION, NULL, "P-384:P-256"}, TLS_KEY_ECDSA, 0},
	        {{"1.2, ECDSA with any hash", TLS1_2_VERSION, GCM_ECDSA, NULL, "ECDSA+SHA384"},
	                TLS_KEY_ECDSA, 0},
	        {{"1.2, no ECDSA in the algorithms", TLS1_2_VERSION, NULL, NULL, "RSA+SHA256"},
	                TLS_KEY_RSA, 0},
	        {{"1.2, RSA-PSS", TLS1_2_VERSION, GCM_RSA, NULL, "RSA-PSS+SHA512"}, TLS_KEY_RSA, 0},
	};
	struct pair pair;
	(void)state;

	pair_init(&pair);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct server_row *row = &rows[i];

		dial_anew(&pair);
		apply(pair.c->ssl, &row->client);
		/* Its signature algorithms for certificates stay as wide as clients'. */
		if (!pair_shake(&pair) && strcmp(tls_error_text(pair.c), "wrong signature type"))
			fail_msg("%s: %s, %s", row->client.what, tls_error_text(pair.s),
			        tls_error_text(pair.c));
		assert_int_equal(pair.asked_count, 1);
		if (pair.asked_kind != row->kind)
			fail_msg("%s: kind %d", row->client.what, pair.asked_kind);
		assert_string_equal(EVP_PKEY_get0_type_name(shown_key(&pair)),
		        row->kind == TLS_KEY_RSA ? "RSA" : "EC");
		if (row->group)
			assert_int_equal(SSL_get_shared_group(pair.s->ssl, 0), row->group);
		hang_up(&pair);
	}
	pair_fini(&pair);
}

/* If a client has the hybrid group it is used, without a further round trip. */
static void test_usual_group(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	dial_anew(&pair);
	bool hybrid = SSL_set1_groups_list(pair.c->ssl, "X25519MLKEM768:X25519") == 1;
	assert_int_equal(hybrid, OPENSSL_version_major() > 3 || OPENSSL_version_minor() >= 5);
	ERR_clear_error();
	assert_true(pair_shake(&pair));
	if (hybrid)
		assert_int_equal(SSL_get_shared_group(pair.s->ssl, 0) & 0xffff, 0x11ec);
	else
		assert_int_equal(SSL_get_shared_group(pair.s->ssl, 0), NID_X25519);
	pair_hang_up(&pair);
	/* A client without it is served with a share that it sent. */
	dial_anew(&pair);
	SSL_set1_groups_list(pair.c->ssl, "X25519:P-256");
	assert_true(pair_shake(&pair));
	assert_int_equal(SSL_get_shared_group(pair.s->ssl, 0), NID_X25519);
	pair_fini(&pair);
}

static void test_refused_clients(void **state)
{
	static const struct {
		struct offer client;
		const char *text;
	} rows[] = {
	        {{"RSA key exchange", TLS1_2_VERSION, "AES128-GCM-SHA256"}, "no shared cipher"},
	        {{"RSA key exchange, CBC", TLS1_2_VERSION, "AES256-SHA"}, "no shared cipher"},
	        {{"DHE", TLS1_2_VERSION, "DHE-RSA-AES128-GCM-SHA256"}, "no shared cipher"},
	        {{"CBC", TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA"}, "no shared cipher"},
	        {{"CBC, SHA-2", TLS1_2_VERSION, "ECDHE-RSA-AES256-SHA384"}, "no shared cipher"},
	        {{"ECDSA, but not P-256", TLS1_2_VERSION, GCM_ECDSA, "P-384"}, "no shared cipher"},
	        {{"Ed25519 alone", .sigalgs = "ed25519"}, "no suitable signature algorithm"},
	        {{"P-384 in algorithms alone", .sigalgs = "ecdsa_secp384r1_sha384"},
	                "no suitable signature algorithm"},
	};
	struct pair pair;
	(void)state;

	pair_init(&pair);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		dial_anew(&pair);
		apply(pair.c->ssl, &rows[i].client);
		assert_false(pair_shake(&pair));
		if (strcmp(tls_error_text(pair.s), rows[i].text) != 0)
			fail_msg("%s: %s, %s", rows[i].client.what, tls_error_text(pair.s),
			        tls_error_text(pair.c));
		/* It hears of it by an alert, and makes nobody make an RSA key. */
		assert_int_equal(pair.c_status, TLS_ERROR);
		assert_null(pair.rsa_key);
		hang_up(&pair);
	}
	pair_fini(&pair);
}

/* A session made with an RSA leaf is resumed without a certificate, in either version. */
static void test_rsa_is_resumed(void **state)
{
	static const struct offer offers[] = {{"1.2", TLS1_2_VERSION, GCM_RSA},
	        {"1.3", TLS1_3_VERSION, .sigalgs = "rsa_pss_rsae_sha256:ecdsa_secp384r1_sha384"}};
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct pair pair;
		uint8_t byte;
		size_t n;

		pair_init(&pair);
		for (int turn = 0; turn < 2; turn++) {
			pair_dial(&pair, "a.example", none, none);
			apply(pair.c->ssl, &offers[i]);
			/* In TLS 1.3 the list is for certificates as well; what this client thinks
			 * of the chain is not what is looked at here. */
			SSL_set_verify(pair.c->ssl, SSL_VERIFY_NONE, NULL);
			if (!pair_shake(&pair))
				fail_msg("%s: %s %s", offers[i].what, tls_error_text(pair.s),
				        tls_error_text(pair.c));
			assert_int_equal(pair_resumed(pair.s), turn);
			pair_read(&pair, pair.c, &pair.to_client, &byte, 1, &n);
			pair_hang_up(&pair);
		}
		assert_int_equal(pair.asked_count, 1);
		assert_int_equal(pair.asked_kind, TLS_KEY_RSA);
		pair_fini(&pair);
	}
}

/* Early data that our tickets never allow, of a client that sends it all the same: passed over. */
static void test_early_data_is_not_read(void **state)
{
	struct pair pair;
	uint8_t got[64];
	size_t n;
	(void)state;

	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	assert_true(pair_shake(&pair));
	pair_read(&pair, pair.c, &pair.to_client, got, sizeof(got), &n);
	SSL_SESSION *session = SSL_get1_session(pair.c->ssl);
	assert_int_equal(SSL_SESSION_get_max_early_data(session), 0);
	pair_hang_up(&pair);

	SSL_SESSION_set_max_early_data(session, 1000);
	pair_dial(&pair, "a.example", none, none);
	assert_true(SSL_set_session(pair.c->ssl, session));
	assert_int_equal(SSL_write_early_data(pair.c->ssl, "early", 5, &n), 1);
	assert_true(pair_shake(&pair));
	assert_true(pair_resumed(pair.s));
	assert_int_equal(SSL_get_early_data_status(pair.c->ssl), SSL_EARLY_DATA_REJECTED);
	assert_int_equal(tls_write(pair.c, (const uint8_t *)"late", 4), TLS_OK);
	pair_read(&pair, pair.s, &pair.to_server, got, sizeof(got), &n);
	assert_int_equal(n, 4);
	assert_memory_equal(got, "late", 4);
	SSL_SESSION_free(session);
	pair_fini(&pair);
}

/* Upstreams. What is set on the server's side is what it has. */
static void test_upstreams(void **state)
{
	static const struct {
		struct offer server;
		bool rsa;
		bool spoken;
	} rows[] = {
	        {{"TLS 1.3", TLS1_3_VERSION}, false, true},
	        {{"ECDHE, GCM", TLS1_2_VERSION, GCM_ECDSA}, false, true},
	        {{"ECDHE, GCM, RSA", TLS1_2_VERSION, GCM_RSA}, true, true},
	        {{"ECDHE, ChaCha20, RSA", TLS1_2_VERSION, "ECDHE-RSA-CHACHA20-POLY1305"}, true,
	                true},
	        {{"P-521", TLS1_2_VERSION, GCM_RSA, "P-521"}, true, true},
	        {{"ECDHE, CBC, SHA-384", TLS1_2_VERSION, "ECDHE-RSA-AES256-SHA384"}, true, true},
	        {{"ECDHE, CBC, SHA-256", TLS1_2_VERSION, "ECDHE-RSA-AES128-SHA256"}, true, true},
	        {{"ECDHE, CBC, SHA-1", TLS1_2_VERSION, "ECDHE-RSA-AES128-SHA"}, true, true},
	        {{"ECDHE, CBC, SHA-1, 256", TLS1_2_VERSION, "ECDHE-RSA-AES256-SHA"}, true, true},
	        {{"ECDHE, CBC, ECDSA", TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA384"}, false, true},
	        {{"ECDHE, CBC, ECDSA, SHA-1", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA"}, false,
	                true},
	        {{"RSA key exchange", TLS1_2_VERSION, "AES128-GCM-SHA256"}, true, false},
	        {{"RSA key exchange, CBC", TLS1_2_VERSION, "AES256-SHA"}, true, false},
	};
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair.rsa_key = ca_leaf_key_new(TLS_KEY_RSA);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pair.identity = ca_leaf_new(pair.issuer, rows[i].rsa ? pair.rsa_key : pair.leaf_key,
		        SLICE("a.example"), NULL);
		dial_anew(&pair);
		apply(pair.s->ssl, &rows[i].server);
		if (pair_shake(&pair) != rows[i].spoken)
			fail_msg("%s: %s, %s", rows[i].server.what, tls_error_text(pair.s),
			        tls_error_text(pair.c));
		if (!rows[i].spoken)
			assert_non_null(strstr(tls_error_text(pair.c), "offered were TLS 1.3"));
		hang_up(&pair);
	}
	pair_fini(&pair);
}

/* AEAD before CBC, whatever comes first for the server. */
static void test_best_is_preferred(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_clear_options(pair.s->ssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
	apply(pair.s->ssl, &(struct offer){"", TLS1_2_VERSION,
	                           "ECDHE-ECDSA-AES256-SHA:ECDHE-ECDSA-AES128-GCM-SHA256"});
	assert_true(pair_shake(&pair));
	assert_string_equal(SSL_get_cipher_name(pair.c->ssl), GCM_ECDSA);
	pair_fini(&pair);
}

static void test_old_upstream(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	dial_anew(&pair);
	assert_true(SSL_set_cipher_list(pair.s->ssl, "ALL:@SECLEVEL=0"));
	assert_true(SSL_set_min_proto_version(pair.s->ssl, TLS1_VERSION));
	assert_true(SSL_set_max_proto_version(pair.s->ssl, TLS1_1_VERSION));
	assert_false(pair_shake(&pair));
	assert_string_equal(
	        tls_error_text(pair.c), "the server speaks neither TLS 1.2 nor TLS 1.3");
	pair_fini(&pair);
}

/* What docs/threat-model.md says is not looked at: a certificate that demands a stapled answer of
 * its authority is taken without one, and none is asked for. */
static void test_must_staple_is_not_looked_at(void **state)
{
	struct pair pair;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	(void)state;

	pair_init(&pair);
	pair.identity = pair_custom_leaf(
	        "DNS:a.example", -60, 3600, key, pair.issuer->certificate, pair.issuer->key);
	X509_EXTENSION *feature = X509V3_EXT_conf_nid(NULL, NULL, NID_tlsfeature, "status_request");
	assert_true(X509_add_ext(pair.identity->leaf, feature, -1));
	assert_true(X509_sign(pair.identity->leaf, pair.issuer->key, EVP_sha256()));
	X509_EXTENSION_free(feature);
	sk_X509_push(pair.identity->chain, X509_dup(pair.issuer->certificate));
	dial_anew(&pair);
	assert_true(pair_shake(&pair));
	assert_int_equal(SSL_get_tlsext_status_type(pair.s->ssl), -1);
	EVP_PKEY_free(key);
	pair_fini(&pair);
}

/* One record of the largest kind fits into what is reserved for it, of each kind of cipher. */
static void test_large_writes(void **state)
{
	static const char *const suites[] = {GCM_RSA, "ECDHE-RSA-AES256-SHA384",
	        "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-SHA"};
	enum { BYTES = 100000 };
	uint8_t *plain = calloc(1, BYTES), *got = calloc(1, BYTES + 1);
	struct pair pair;
	size_t n;
	(void)state;

	pair_init(&pair);
	pair.rsa_key = ca_leaf_key_new(TLS_KEY_RSA);
	for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
		pair.identity = ca_leaf_new(pair.issuer, pair.rsa_key, SLICE("a.example"), NULL);
		dial_anew(&pair);
		apply(pair.s->ssl, &(struct offer){"", TLS1_2_VERSION, suites[i]});
		assert_true(pair_shake(&pair));
		assert_string_equal(SSL_get_cipher_name(pair.c->ssl), suites[i]);
		memset(plain, (int)('a' + i), BYTES);
		assert_int_equal(tls_write(pair.c, plain, BYTES), TLS_OK);
		pair_read(&pair, pair.s, &pair.to_server, got, BYTES + 1, &n);
		assert_int_equal(n, BYTES);
		assert_memory_equal(got, plain, BYTES);
		hang_up(&pair);
	}
	pair_fini(&pair);
	free(plain);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_served_clients),
	        cmocka_unit_test(test_usual_group),
	        cmocka_unit_test(test_refused_clients),
	        cmocka_unit_test(test_rsa_is_resumed),
	        cmocka_unit_test(test_early_data_is_not_read),
	        cmocka_unit_test(test_upstreams),
	        cmocka_unit_test(test_best_is_preferred),
	        cmocka_unit_test(test_old_upstream),
	        cmocka_unit_test(test_must_staple_is_not_looked_at),
	        cmocka_unit_test(test_large_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
