/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes that must succeed, in every segmentation, and those that must not, with the reason
 * that is reported. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pair.h"

static struct slice none = {"", 0};

/* A message each way, each read back whole. */
static void exchange(struct pair *pair)
{
	uint8_t got[64];
	size_t n;

	assert_int_equal(tls_write(pair->c, (const uint8_t *)"ping", 4), TLS_OK);
	assert_int_equal(
	        pair_read(pair, pair->s, &pair->to_server, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(n, 4);
	assert_memory_equal(got, "ping", 4);
	assert_int_equal(tls_write(pair->s, (const uint8_t *)"pong!", 5), TLS_OK);
	assert_int_equal(
	        pair_read(pair, pair->c, &pair->to_client, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(n, 5);
	assert_memory_equal(got, "pong!", 5);
}

static void test_every_segmentation(void **state)
{
	static const size_t segments[] = {1, 2, 3, 4, 5, 6, 7, 16, 100, 517, 1000, 0};
	(void)state;

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		for (size_t i = 0; i < sizeof(segments) / sizeof(*segments); i++) {
			struct pair pair;
			pair_init(&pair);
			pair.segment = segments[i];
			pair_dial(&pair, "api.example.com", PAIR_ALPN_BOTH, PAIR_ALPN_BOTH);
			SSL_set_max_proto_version(pair.c->ssl, version);
			assert_true(pair_shake(&pair));
			assert_int_equal(tls_version(pair.c), version);
			assert_int_equal(tls_version(pair.s), version);
			assert_true(slice_equals(tls_alpn(pair.c), SLICE("h2")));
			assert_true(slice_equals(tls_alpn(pair.s), SLICE("h2")));
			assert_string_equal(pair.asked, "api.example.com");
			assert_int_equal(pair.asked_count, 1);
			assert_false(pair_resumed(pair.s));
			exchange(&pair);
			pair_fini(&pair);
		}
	}
}

static void test_versions_below_1_2_are_refused(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_set_security_level(pair.c->ssl, 0);
	SSL_set_cipher_list(pair.c->ssl, "ALL:@SECLEVEL=0");
	SSL_set_min_proto_version(pair.c->ssl, TLS1_VERSION);
	SSL_set_max_proto_version(pair.c->ssl, TLS1_1_VERSION);
	assert_false(pair_shake(&pair));
	assert_int_equal(pair.s_status, TLS_ERROR);
	assert_string_equal(tls_error_text(pair.s), "unsupported protocol");
	assert_true(tls_error_text(pair.c)[0] !=
	            0); /* the alert reached it, or its own list was empty */
	pair_fini(&pair);
}

static void test_sni_is_lowered(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair.identity = ca_leaf_new(pair.issuer, pair.leaf_key, SLICE("mixed.example"), NULL);
	pair_dial(&pair, "MiXeD.Example", none, none);
	assert_true(pair_shake(&pair));
	assert_string_equal(pair.asked, "mixed.example");
	pair_fini(&pair);
}

static void test_address_sends_no_sni(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	strcpy(pair.asked, "unset");
	pair_dial(&pair, "", none, none); /* 192.0.2.1, for which the pair mints an iPAddress */
	assert_true(pair_shake(&pair));
	assert_string_equal(pair.asked, "");
	pair_fini(&pair);
}

static void test_wrong_address(void **state)
{
	struct pair pair;
	struct ip other = {.family = 4, .bytes = {192, 0, 2, 2}};
	(void)state;

	pair_init(&pair);
	pair.identity = ca_leaf_new(pair.issuer, pair.leaf_key, none, &other);
	pair_dial(&pair, "", none, none);
	assert_false(pair_shake(&pair));
	assert_string_equal(tls_error_text(pair.c), "IP address mismatch");
	pair_fini(&pair);
}

static void refuse(struct pair *pair, const char *host, const char *text)
{
	pair_dial(pair, host, none, none);
	assert_false(pair_shake(pair));
	assert_int_equal(pair->c_status, TLS_ERROR);
	assert_string_equal(tls_error_text(pair->c), text);
	/* Final: later calls repeat it. */
	uint8_t byte;
	size_t n;
	assert_int_equal(tls_handshake(pair->c), TLS_ERROR);
	assert_int_equal(tls_read(pair->c, &byte, 1, &n), TLS_ERROR);
	assert_int_equal(tls_write(pair->c, (const uint8_t *)"x", 1), TLS_ERROR);
	assert_int_equal(n, 0);
	/* In TLS 1.3 the server hears of it by the alert. */
	if (pair->s_status == TLS_OK) {
		tls_feed(pair->s, buf_bytes(&pair->to_server), pair->to_server.len);
		assert_int_equal(tls_read(pair->s, &byte, 1, &n), TLS_ERROR);
	}
	pair_hang_up(pair);
}

static void test_refused_certificates(void **state)
{
	struct pair pair;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	(void)state;

	pair_init(&pair);
	X509 *issuer = pair.issuer->certificate;
	EVP_PKEY *issuer_key = pair.issuer->key;

	pair.identity = ca_leaf_new(pair.issuer, pair.leaf_key, SLICE("other.example"), NULL);
	refuse(&pair, "right.example", "hostname mismatch");

	/* one name inside another, either way round */
	pair.identity = ca_leaf_new(pair.issuer, pair.leaf_key, SLICE("example"), NULL);
	refuse(&pair, "right.example", "hostname mismatch");

	pair.identity =
	        pair_custom_leaf("DNS:right.example", -7200, -3600, key, issuer, issuer_key);
	sk_X509_push(pair.identity->chain, X509_dup(issuer));
	refuse(&pair, "right.example", "certificate has expired");

	pair.identity = pair_custom_leaf("DNS:right.example", 3600, 7200, key, issuer, issuer_key);
	sk_X509_push(pair.identity->chain, X509_dup(issuer));
	refuse(&pair, "right.example", "certificate is not yet valid");

	pair.identity = pair_custom_leaf("DNS:right.example", -60, 3600, key, NULL, key);
	refuse(&pair, "right.example", "self-signed certificate");

	/* the name stands in the subject only */
	pair.identity = pair_custom_leaf(NULL, -60, 3600, key, issuer, issuer_key);
	sk_X509_push(pair.identity->chain, X509_dup(issuer));
	refuse(&pair, "custom.test", "hostname mismatch");

	/* a wildcard inside a label */
	pair.identity = pair_custom_leaf("DNS:ri*.example.com", -60, 3600, key, issuer, issuer_key);
	sk_X509_push(pair.identity->chain, X509_dup(issuer));
	refuse(&pair, "right.example.com", "hostname mismatch");

	/* the intermediate is missing */
	pair.identity = pair_custom_leaf("DNS:right.example", -60, 3600, key, issuer, issuer_key);
	refuse(&pair, "right.example", "unable to get local issuer certificate");

	/* signed with a key that is not the issuer's */
	pair.identity = pair_custom_leaf("DNS:right.example", -60, 3600, key, issuer, key);
	sk_X509_push(pair.identity->chain, X509_dup(issuer));
	refuse(&pair, "right.example", "certificate signature failure");

	EVP_PKEY_free(key);
	pair_fini(&pair);
}

/* Certificates as upstreams of the public web have them, through the narrowed library context. */
static void test_kinds_of_upstream_keys(void **state)
{
	EVP_PKEY *keys[] = {EVP_RSA_gen(2048), EVP_RSA_gen(3072), EVP_EC_gen("P-384"),
	        EVP_EC_gen("P-521"), EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"),
	        EVP_PKEY_Q_keygen(NULL, NULL, "ED448"), EVP_RSA_gen(1024)};
	const size_t count = sizeof(keys) / sizeof(*keys);
	struct pair pair;
	(void)state;

	assert_non_null(tls_library());
	pair_init(&pair);
	for (size_t i = 0; i < count; i++) {
		pair.identity = pair_custom_leaf("DNS:a.example", -60, 3600, keys[i],
		        pair.issuer->certificate, pair.issuer->key);
		sk_X509_push(pair.identity->chain, X509_dup(pair.issuer->certificate));
		pair_dial(&pair, "a.example", none, none);
		if (i == count - 1) { /* too short a key: neither would the server show it */
			SSL_set_security_level(pair.s->ssl, 0);
			assert_false(pair_shake(&pair));
			assert_string_equal(tls_error_text(pair.c), "EE certificate key too weak");
		} else {
			assert_true(pair_shake(&pair));
		}
		pair_hang_up(&pair);
		EVP_PKEY_free(keys[i]);
	}
	pair_fini(&pair);
}

static void test_foreign_authority(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	struct ca *root = ca_new_root(SLICE("test root"), 30); /* the same name, another key */
	struct ca *issuer = ca_new_intermediate(root, SLICE("test intermediate"), 30);
	pair.identity = ca_leaf_new(issuer, pair.leaf_key, SLICE("right.example"), NULL);
	pair_dial(&pair, "right.example", none, none);
	assert_false(pair_shake(&pair));
	assert_string_equal(tls_error_text(pair.c), "unable to get local issuer certificate");
	pair_fini(&pair);
	ca_free(issuer);
	ca_free(root);
}

static void test_wildcard_certificate_is_good_for_one_label(void **state)
{
	struct pair pair;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	(void)state;

	pair_init(&pair);
	for (int i = 0; i < 2; i++) {
		pair.identity = pair_custom_leaf("DNS:*.example.com", -60, 3600, key,
		        pair.issuer->certificate, pair.issuer->key);
		sk_X509_push(pair.identity->chain, X509_dup(pair.issuer->certificate));
		pair_dial(&pair, i == 0 ? "a.example.com" : "a.b.example.com", none, none);
		assert_int_equal(pair_shake(&pair), i == 0);
		pair_hang_up(&pair);
	}
	EVP_PKEY_free(key);
	pair_fini(&pair);
}

static void test_refused_name(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair.refuse = true;
	pair_dial(&pair, "nobody.example", none, none);
	assert_false(pair_shake(&pair));
	assert_string_equal(tls_error_text(pair.s), "no certificate for this name");
	assert_string_equal(tls_error_text(pair.c), "tlsv1 unrecognized name");
	pair_fini(&pair);
}

static void test_alpn(void **state)
{
	static const struct {
		struct slice client, server, agreed;
		bool ok;
	} cases[] = {
	        {{"\x02h2\x08http/1.1", 12}, {"\x08http/1.1", 9}, {"http/1.1", 8}, true},
	        {{"\x08http/1.1\x02h2", 12}, {"\x02h2\x08http/1.1", 12}, {"h2", 2},
	                true}, /* the server's order */
	        {{"", 0}, {"\x02h2", 3}, {"", 0}, true}, {{"\x02h2", 3}, {"", 0}, {"", 0}, true},
	        {{"\x02h2", 3}, {"\x08http/1.1", 9}, {"", 0}, false},
	        {{"\x02h3", 3}, {"\x02h2\x08http/1.1", 12}, {"", 0}, false},
	        {{"\x03h2c", 4}, {"\x02h2", 3}, {"", 0}, false}, /* a prefix is another protocol */
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pair pair;
		pair_init(&pair);
		pair_dial(&pair, "a.example", cases[i].client, cases[i].server);
		assert_int_equal(pair_shake(&pair), cases[i].ok);
		if (cases[i].ok) {
			assert_true(slice_equals(tls_alpn(pair.c), cases[i].agreed));
			assert_true(slice_equals(tls_alpn(pair.s), cases[i].agreed));
		} else {
			assert_string_equal(tls_error_text(pair.s), "no application protocol");
			assert_string_equal(
			        tls_error_text(pair.c), "tlsv1 alert no application protocol");
		}
		pair_fini(&pair);
	}
}

/* A hostile upstream may name a protocol that nobody offered. */
static int select_unoffered(SSL *ssl, const unsigned char **out, unsigned char *n,
        const unsigned char *in, unsigned in_n, void *arg)
{
	(void)ssl, (void)in, (void)in_n, (void)arg;
	*out = (const unsigned char *)"h2";
	*n = 2;
	return SSL_TLSEXT_ERR_OK;
}

static void test_protocol_nobody_offered(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair_dial(&pair, "a.example", PAIR_ALPN, PAIR_ALPN);
	SSL_CTX_set_alpn_select_cb(SSL_get_SSL_CTX(pair.s->ssl), select_unoffered, NULL);
	assert_false(pair_shake(&pair));
	assert_int_equal(pair.c_status, TLS_ERROR);
	pair_fini(&pair);
}

/* The client's share is for a group that the server does not take, the next one is. */
static void test_hello_retry_request(void **state)
{
	struct pair pair;
	(void)state;

	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_set1_groups_list(pair.c->ssl, "P-521:P-256");
	SSL_set1_groups_list(pair.s->ssl, "P-256");
	assert_true(pair_shake(&pair));
	assert_int_equal(pair.asked_count, 1);
	exchange(&pair);
	pair_fini(&pair);
}

static void test_constructor_bounds(void **state)
{
	struct pair pair;
	char name[400];
	struct ip nothing = {0};
	(void)state;

	memset(name, 'a', sizeof(name));
	pair_init(&pair);
	assert_null(tls_connect_new(pair.client, none, NULL, none, none, &pair.to_server));
	assert_null(tls_connect_new(pair.client, none, &nothing, none, none, &pair.to_server));
	assert_null(tls_connect_new(
	        pair.client, slice_of(name, 256), NULL, none, none, &pair.to_server));
	assert_null(tls_connect_new(
	        pair.client, slice_of("a\0b", 3), NULL, none, none, &pair.to_server));
	assert_null(tls_connect_new(
	        pair.client, SLICE("a"), NULL, none, slice_of(name, 321), &pair.to_server));
	pair.c = tls_connect_new(
	        pair.client, SLICE("a"), NULL, none, slice_of(name, 320), &pair.to_server);
	assert_non_null(pair.c);
	pair_fini(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_segmentation),
	        cmocka_unit_test(test_versions_below_1_2_are_refused),
	        cmocka_unit_test(test_sni_is_lowered),
	        cmocka_unit_test(test_address_sends_no_sni),
	        cmocka_unit_test(test_wrong_address),
	        cmocka_unit_test(test_refused_certificates),
	        cmocka_unit_test(test_kinds_of_upstream_keys),
	        cmocka_unit_test(test_foreign_authority),
	        cmocka_unit_test(test_wildcard_certificate_is_good_for_one_label),
	        cmocka_unit_test(test_refused_name),
	        cmocka_unit_test(test_alpn),
	        cmocka_unit_test(test_protocol_nobody_offered),
	        cmocka_unit_test(test_hello_retry_request),
	        cmocka_unit_test(test_constructor_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
