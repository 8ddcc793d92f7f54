/* SPDX-License-Identifier: Apache-2.0 */
/* A client's certificate whose key is elsewhere: the handshake waits for the signature, with every
 * kind of key and both versions; and what happens when it is wrong, or never comes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>

#include "pair.h"

#define PEM_MAX 16384
#define DAY_S 86400

enum fault { NO_FAULT, FLIPPED, SHORT, NOTHING, TOO_LONG, ANOTHER_KEY, FAULTS };

static struct pair pair;
static EVP_PKEY *key, *other;
static char pem[PEM_MAX];
static struct tls_identity *identity;
static unsigned asked;
static char why[TLS_IDENTITY_WHY_MAX];

static EVP_PKEY *make_key(const char *kind)
{
	if (strcmp(kind, "RSA") == 0)
		return EVP_RSA_gen(2048);
	if (strcmp(kind, "weak") == 0)
		return EVP_RSA_gen(1024);
	return strcmp(kind, "ED25519") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
	                                    : EVP_EC_gen(kind);
}

static void write_pem(EVP_PKEY *of, long until_s)
{
	X509 *x = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());
	int n;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
	X509_gmtime_adj(X509_getm_notBefore(x), -DAY_S);
	X509_gmtime_adj(X509_getm_notAfter(x), until_s);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
	        (const unsigned char *)"agent", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, of);
	assert_true(X509_sign(x, of, EVP_PKEY_is_a(of, "ED25519") ? NULL : EVP_sha256()) > 0);
	assert_int_equal(PEM_write_bio_X509(bio, x), 1);
	n = BIO_read(bio, pem, PEM_MAX - 1);
	assert_true(n > 0);
	pem[n] = 0;
	BIO_free(bio);
	X509_free(x);
}

static struct tls_identity *read_pem(void)
{
	return tls_identity_read_elsewhere(slice_from_string(pem), why);
}

static void use(const char *kind)
{
	key = make_key(kind);
	other = make_key(kind);
	assert_non_null(key);
	write_pem(key, DAY_S);
	identity = read_pem();
	assert_non_null(identity);
	assert_true(tls_identity_is_elsewhere(identity));
}

/* Signs as a token does: r and s of equal length. */
static size_t token_sign(EVP_PKEY *by, uint16_t scheme, struct slice digest, uint8_t *out)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(by, NULL);
	const EVP_MD *md = digest.n == 32   ? EVP_sha256()
	                   : digest.n == 48 ? EVP_sha384()
	                                    : EVP_sha512();
	size_t n = TLS_SIGNATURE_MAX, half = (size_t)(EVP_PKEY_get_bits(by) + 7) / 8;
	uint8_t der[TLS_SIGNATURE_MAX];
	const uint8_t *p = der;
	ECDSA_SIG *pairing;

	assert_int_equal(EVP_PKEY_sign_init(ctx), 1);
	if (scheme >= 0x0804)
		assert_true(EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
		            EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) == 1);
	assert_int_equal(EVP_PKEY_CTX_set_signature_md(ctx, md), 1);
	assert_int_equal(EVP_PKEY_sign(ctx, EVP_PKEY_is_a(by, "EC") ? der : out, &n,
	                         (const uint8_t *)digest.p, digest.n),
	        1);
	EVP_PKEY_CTX_free(ctx);
	if (!EVP_PKEY_is_a(by, "EC"))
		return n;
	pairing = d2i_ECDSA_SIG(NULL, &p, (long)n);
	BN_bn2binpad(ECDSA_SIG_get0_r(pairing), out, (int)half);
	BN_bn2binpad(ECDSA_SIG_get0_s(pairing), out + half, (int)half);
	ECDSA_SIG_free(pairing);
	return 2 * half;
}

static void answer(enum fault fault)
{
	static uint8_t signature[2 * TLS_SIGNATURE_MAX];
	struct tls_to_sign wanted;
	size_t n;

	assert_true(tls_wants_signature(pair.c, &wanted));
	assert_int_equal(tls_handshake(pair.c), TLS_WANT_SIGNATURE); /* until it comes */
	asked++;
	n = token_sign(fault == ANOTHER_KEY ? other : key, wanted.scheme, wanted.digest, signature);
	if (fault == FLIPPED)
		signature[n / 3] ^= 1;
	if (fault == SHORT)
		n -= 2;
	if (fault == NOTHING)
		n = 0;
	if (fault == TOO_LONG)
		n = sizeof(signature);
	tls_take_signature(pair.c, slice_of((const char *)signature, n));
}

static void dial(uint16_t version)
{
	static unsigned count;
	char name[16];

	snprintf(name, sizeof(name), "a%u.test", count++); /* so that no session is resumed */
	pair_dial(&pair, name, PAIR_ALPN, PAIR_ALPN);
	assert_int_equal(SSL_set_max_proto_version(pair.c->ssl, version), 1);
	assert_true(tls_present(pair.c, identity));
}

/* Runs both sides; true where both are done. stop: when the signature is asked for. */
static bool shake(enum fault fault, bool stop)
{
	pair.c_status = tls_handshake(pair.c);
	pair.s_status = TLS_WANT_READ;
	for (int i = 0; i < 12; i++) {
		if (pair.c_status == TLS_WANT_SIGNATURE && stop)
			return false;
		if (pair.c_status == TLS_WANT_SIGNATURE) {
			answer(fault);
			pair.c_status = tls_handshake(pair.c);
		}
		if (pair.to_server.len > 0 && pair.s_status == TLS_WANT_READ)
			pair.s_status = pair_step(&pair, pair.s, &pair.to_server);
		if (pair.to_client.len > 0 && pair.c_status == TLS_WANT_READ)
			pair.c_status = pair_step(&pair, pair.c, &pair.to_client);
	}
	return pair.c_status == TLS_OK && pair.s_status == TLS_OK;
}

static int set_up(void **state)
{
	(void)state;
	pair_init(&pair);
	tls_server_ask_certificates(pair.server);
	asked = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_fini(&pair);
	tls_identity_release(identity);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	identity = NULL;
	key = other = NULL;
	return 0;
}

static void changed_key(const char *kind)
{
	tls_identity_release(identity);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	use(kind);
}

static const char *const kinds[] = {"P-256", "P-384", "P-521", "RSA"};
static const uint16_t versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};

static void test_it_is_shown(void **state)
{
	uint8_t seen[TLS_CERTIFICATE_HASH_BYTES], got[32];
	size_t n;

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		changed_key(kinds[k]);
		for (size_t v = 0; v < 2; v++)
			for (pair.segment = 0; pair.segment < 2; pair.segment++) {
				asked = 0;
				dial(versions[v]);
				if (!shake(NO_FAULT, false))
					fail_msg("%s %x %zu: %d %d %s %s", kinds[k], versions[v],
					        pair.segment, pair.c_status, pair.s_status,
					        tls_error_text(pair.c), tls_error_text(pair.s));
				assert_int_equal(asked, 1);
				assert_int_equal(tls_version(pair.c), versions[v]);
				assert_true(tls_client_certificate_hash(pair.s, seen));
				assert_int_equal(
				        tls_write(pair.c, (const uint8_t *)"hello", 5), TLS_OK);
				assert_int_equal(pair_read(&pair, pair.s, &pair.to_server, got,
				                         sizeof(got), &n),
				        TLS_WANT_READ);
				assert_int_equal(n, 5);
				pair_hang_up(&pair);
				buf_init(&pair.to_server, 1 << 20);
				buf_init(&pair.to_client, 1 << 20);
			}
	}
}

static void test_wrong_signatures(void **state)
{
	(void)state;
	for (size_t k = 0; k < 4; k++) {
		changed_key(kinds[k]);
		for (size_t v = 0; v < 2; v++)
			for (enum fault fault = NO_FAULT + 1; fault < FAULTS; fault++) {
				dial(versions[v]);
				assert_false(shake(fault, false));
				assert_int_equal(pair.c_status, TLS_ERROR);
				assert_non_null(
				        strstr(tls_error_text(pair.c), "not by the key of"));
				assert_int_equal(tls_handshake(pair.c), TLS_ERROR);
				pair_hang_up(&pair);
				buf_init(&pair.to_server, 1 << 20);
				buf_init(&pair.to_client, 1 << 20);
			}
	}
}

static void test_it_never_comes(void **state)
{
	struct tls_to_sign wanted;

	(void)state;
	use("P-256");
	for (size_t v = 0; v < 2; v++) {
		size_t before;

		dial(versions[v]);
		assert_false(tls_wants_signature(pair.c, &wanted));
		tls_take_signature(pair.c, SLICE("nobody has asked"));
		assert_false(shake(NO_FAULT, true));
		before = pair.to_server.len;
		tls_feed(pair.c, (const uint8_t *)"more", 4);
		assert_int_equal(tls_handshake(pair.c), TLS_WANT_SIGNATURE);
		assert_int_equal(tls_input_left(pair.c), 4);
		tls_free(pair.c);
		pair.c = NULL;
		assert_int_equal(pair.to_server.len, before);
		pair_hang_up(&pair);
		buf_init(&pair.to_server, 1 << 20);
		buf_init(&pair.to_client, 1 << 20);
	}
}

static void test_many_wait_at_once(void **state)
{
	enum { COUNT = 20 };
	struct tls *waiting[COUNT], *servers[COUNT];

	(void)state;
	use("P-256");
	for (size_t i = 0; i < COUNT; i++) {
		dial(versions[i % 2]);
		assert_false(shake(NO_FAULT, true));
		tls_identity_release(pair.identity); /* of that name */
		pair.identity = NULL;
		waiting[i] = pair.c;
		servers[i] = pair.s;
		buf_consume(&pair.to_server, pair.to_server.len);
		buf_consume(&pair.to_client, pair.to_client.len);
	}
	for (size_t n = 0; n < COUNT; n++) {
		const size_t i = n * 7 % COUNT;

		pair.c = waiting[i];
		pair.s = servers[i];
		assert_true(shake(NO_FAULT, false));
		tls_free(pair.s);
		tls_free(pair.c);
		pair.c = pair.s = NULL;
		buf_consume(&pair.to_client, pair.to_client.len);
	}
	assert_int_equal(asked, COUNT);
}

static void test_nobody_asks(void **state)
{
	(void)state;
	use("RSA");
	tls_server_free(pair.server);
	pair.server = tls_server_new(pair_identity_for, &pair);
	for (size_t v = 0; v < 2; v++) {
		dial(versions[v]);
		assert_true(shake(NO_FAULT, false));
		assert_int_equal(asked, 0);
		pair_hang_up(&pair);
		buf_init(&pair.to_server, 1 << 20);
		buf_init(&pair.to_client, 1 << 20);
	}
}

static void expect_no_identity(const char *words)
{
	assert_null(read_pem());
	assert_non_null(strstr(why, words));
}

static void test_certificates(void **state)
{
	EVP_PKEY *keys[] = {make_key("ED25519"), make_key("weak"), make_key("P-256")};
	struct tls_identity *weak;

	(void)state;
	use("P-256");
	write_pem(keys[0], DAY_S);
	expect_no_identity("RSA or EC");
	write_pem(keys[2], -3600);
	expect_no_identity("has expired");
	write_pem(keys[2], DAY_S);
	pem[60] ^= 2;
	expect_no_identity("does not begin with a certificate");
	snprintf(pem, sizeof(pem), "no certificate");
	expect_no_identity("does not begin with a certificate");
	write_pem(keys[2], DAY_S);
	strcat(pem, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
	expect_no_identity("holds a private key");
	write_pem(keys[1], DAY_S);
	weak = read_pem();
	assert_non_null(weak);
	pair_dial(&pair, "a.test", PAIR_ALPN, PAIR_ALPN);
	assert_false(tls_present(pair.c, weak));
	tls_identity_release(weak);
	for (size_t i = 0; i < 3; i++)
		EVP_PKEY_free(keys[i]);
}

static void test_trials(void **state)
{
	const struct slice digest = SLICE("0123456789abcdef0123456789abcdef");
	uint8_t signature[TLS_SIGNATURE_MAX];

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		size_t n;
		struct slice s;

		changed_key(kinds[k]);
		n = token_sign(key, 0x0401, digest, signature);
		s = slice_of((const char *)signature, n);
		assert_true(tls_identity_verifies(identity, digest, s));
		assert_false(tls_identity_verifies(
		        identity, SLICE("0123456789abcdef0123456789abcdeX"), s));
		assert_false(tls_identity_verifies(identity, digest, slice_of(s.p, n - 2)));
		assert_false(tls_identity_verifies(identity, digest, SLICE("")));
		n = token_sign(other, 0x0401, digest, signature);
		assert_false(tls_identity_verifies(identity, digest, slice_of(s.p, n)));
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_it_is_shown), CASE(test_wrong_signatures),
	        CASE(test_it_never_comes), CASE(test_many_wait_at_once), CASE(test_nobody_asks),
	        CASE(test_certificates), CASE(test_trials)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
