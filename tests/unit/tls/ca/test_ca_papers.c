/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's certificates: right and wrong PEM, requests, chains, and why a CA is
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tls/ca/ca_private.h"
#include "vethguard/base/clock.h"
#include "vethguard/tls/ca_papers.h"

static struct ca *root;
static char why[CA_WHY_MAX], note[CA_WHY_MAX];
static struct ca_papers papers, roots, chain, found;

static int make_root(void **state)
{
	(void)state;
	root = ca_new_root(SLICE("operator"), 3650);
	memset(&papers, 0, sizeof(papers));
	memset(&roots, 0, sizeof(roots));
	ca_papers_add(&roots, ca_certificate_der(root));
	return root ? 0 : -1;
}

static int drop_root(void **state)
{
	(void)state;
	ca_free(root);
	return 0;
}

/* Certificates that an operator may sign. Times are in days from now. */
struct order {
	const char *basic, *usage, *extended;
	int from, until;
	bool without_key_id;
};
static const struct order good = {
        "critical,CA:TRUE,pathlen:1", "critical,keyCertSign", NULL, -3, 90, false};

static void add(X509 *x509, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(e);
	assert_int_equal(X509_add_ext(x509, e, -1), 1);
	X509_EXTENSION_free(e);
}

static EVP_PKEY *public_key_of(const struct ca_request *request)
{
	struct buf pem;
	BIO *bio;
	X509_REQ *req;
	EVP_PKEY *key;

	buf_init(&pem, 4096);
	assert_int_equal(ca_request_pem(request, SLICE("node"), &pem), 0);
	bio = BIO_new_mem_buf(buf_bytes(&pem), (int)pem.len);
	req = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
	assert_non_null(req);
	key = X509_REQ_get_pubkey(req);
	assert_int_equal(X509_REQ_verify(req, key), 1);
	X509_REQ_free(req);
	BIO_free(bio);
	buf_fini(&pem);
	return key;
}

/* Signs the request as told; the certificate in der. */
static size_t sign(const struct ca_request *request, const struct ca *by, const struct order *o,
        uint8_t der[CA_CERTIFICATE_MAX])
{
	X509 *x509 = X509_new();
	EVP_PKEY *key = public_key_of(request);
	unsigned char *p = der;

	X509_set_version(x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 7);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
	        (const unsigned char *)"node", -1, -1, 0);
	X509_set_issuer_name(x509, X509_get_subject_name(by->certificate));
	X509_gmtime_adj(X509_getm_notBefore(x509), 86400L * o->from);
	X509_gmtime_adj(X509_getm_notAfter(x509), 86400L * o->until);
	X509_set_pubkey(x509, key);
	add(x509, by->certificate, NID_basic_constraints, o->basic);
	add(x509, by->certificate, NID_key_usage, o->usage);
	if (o->extended)
		add(x509, by->certificate, NID_ext_key_usage, o->extended);
	if (!o->without_key_id)
		add(x509, by->certificate, NID_subject_key_identifier, "hash");
	add(x509, by->certificate, NID_authority_key_identifier, "keyid:always");
	assert_true(X509_sign(x509, by->key, EVP_sha256()) > 0);
	int n = i2d_X509(x509, &p);
	assert_true(n > 0 && n <= CA_CERTIFICATE_MAX);
	X509_free(x509);
	EVP_PKEY_free(key);
	return (size_t)n;
}

/* Accepts and checks a certificate as the keeper does. NULL: why says why not. */
static struct ca *take(const struct ca_request *request, const uint8_t *der, size_t n)
{
	struct ca *ca = ca_request_accept(request, slice_of(der, n), why);

	if (ca && ca_chain(slice_of(der, n), &papers, &roots, &chain, &found, why) == 0 &&
	        ca_check(ca, NULL, &chain, ca_paper(&found, 0), why, note) == 0)
		return ca;
	ca_free(ca);
	return NULL;
}

static void test_certificates_that_are_refused(void **state)
{
	static const struct {
		struct order order;
		const char *why; /* NULL: it is good */
	} cases[] = {
	        {{"critical,CA:TRUE,pathlen:1", "critical,keyCertSign,cRLSign", NULL, -3, 90,
	                 false},
	                NULL},
	        {{"critical,CA:TRUE", "critical,keyCertSign", NULL, -3, 90, false}, NULL},
	        {{"critical,CA:TRUE,pathlen:0", "critical,keyCertSign", NULL, -3, 90, false},
	                "pathlen 0"},
	        {{"critical,CA:FALSE", "critical,keyCertSign", NULL, -3, 90, false}, "not a CA's"},
	        {{"critical,CA:TRUE,pathlen:1", "critical,digitalSignature", NULL, -3, 90, false},
	                "may not sign certificates"},
	        {{"critical,CA:TRUE,pathlen:1", "critical,keyCertSign", NULL, -9, -1, false},
	                "has ended at"},
	        {{"critical,CA:TRUE,pathlen:1", "critical,keyCertSign", NULL, 1, 90, false},
	                "valid only from"},
	        {{"critical,CA:TRUE,pathlen:1", "critical,keyCertSign", NULL, -3, 90, true},
	                "no subject key identifier"},
	        {{"critical,CA:TRUE,pathlen:1", "critical,keyCertSign", "critical,clientAuth", -3,
	                 90, false},
	                "refuses what is signed here"},
	};
	uint8_t der[CA_CERTIFICATE_MAX];

	(void)state;
	/* A root made here has path length 1, which leaves room for no node's intermediate. */
	struct ca_request *request = ca_request_new();
	size_t n = sign(request, root, &good, der);
	assert_null(take(request, der, n));
	assert_non_null(strstr(why, "pathlen:2"));
	ca_request_free(request);

	struct ca_request *top = ca_request_new();
	X509 *own = X509_new();
	EVP_PKEY *key = public_key_of(top);
	struct secret secret;
	assert_int_equal(ca_request_key_der(top, &secret), 0);
	X509_set_version(own, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(own), 1);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(own), "CN", MBSTRING_ASC,
	        (const unsigned char *)"top", -1, -1, 0);
	X509_set_issuer_name(own, X509_get_subject_name(own));
	X509_gmtime_adj(X509_getm_notBefore(own), -86400L * 9);
	X509_gmtime_adj(X509_getm_notAfter(own), 86400L * 999);
	X509_set_pubkey(own, key);
	add(own, own, NID_basic_constraints, "critical,CA:TRUE");
	add(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
	add(own, own, NID_subject_key_identifier, "hash");
	EVP_PKEY *private_key = ca_key_from_der(secret_slice(&secret));
	assert_true(X509_sign(own, private_key, EVP_sha256()) > 0);
	unsigned char *p = der;
	n = (size_t)i2d_X509(own, &p);
	struct ca *anchor = ca_request_accept(top, slice_of(der, n), why);
	assert_non_null(anchor);
	roots.count = 0;
	ca_papers_add(&roots, ca_certificate_der(anchor));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request = ca_request_new();
		n = sign(request, anchor, &cases[i].order, der);
		struct ca *ca = take(request, der, n);
		if (!cases[i].why)
			assert_non_null(ca);
		else if (ca || !strstr(why, cases[i].why))
			fail_msg("case %zu: %s", i, ca ? "accepted" : why);
		ca_free(ca);
		/* the same certificate for another key */
		struct ca_request *other = ca_request_new();
		assert_null(take(other, der, n));
		assert_non_null(strstr(why, "another key"));
		ca_request_free(other);
		ca_request_free(request);
	}
	EVP_PKEY_free(private_key);
	EVP_PKEY_free(key);
	secret_free(&secret);
	X509_free(own);
	ca_free(anchor);
	ca_request_free(top);
}

static void test_ways_to_a_root(void **state)
{
	struct ca *middle = ca_new_intermediate(root, SLICE("middle"), 90);
	struct ca *low = ca_new_intermediate(middle, SLICE("low"), 90);
	struct ca *other = ca_new_root(SLICE("operator"), 90); /* the same name, another key */

	(void)state;
	assert_int_equal(
	        ca_chain(ca_certificate_der(low), &papers, &roots, &chain, &found, why), -EBADMSG);
	assert_non_null(strstr(why, "CN=low"));
	ca_papers_add(&papers, ca_certificate_der(middle));
	assert_int_equal(
	        ca_chain(ca_certificate_der(low), &papers, &roots, &chain, &found, why), 0);
	assert_int_equal(chain.count, 1);
	assert_true(slice_equals(ca_paper(&chain, 0), ca_certificate_der(middle)));
	assert_true(slice_equals(ca_paper(&found, 0), ca_certificate_der(root)));
	assert_int_equal(
	        ca_chain(ca_certificate_der(root), &papers, &roots, &chain, &found, why), 0);
	assert_int_equal(chain.count, 0);
	roots.count = 0;
	ca_papers_add(&roots, ca_certificate_der(other));
	assert_int_equal(
	        ca_chain(ca_certificate_der(low), &papers, &roots, &chain, &found, why), -EBADMSG);
	ca_papers_add(&papers, ca_certificate_der(root));
	assert_int_equal(
	        ca_chain(ca_certificate_der(low), &papers, &roots, &chain, &found, why), -EBADMSG);
	assert_non_null(strstr(why, "not the root given"));
	/* a certificate that is not a root */
	assert_int_equal(
	        ca_check(middle, NULL, &chain, ca_certificate_der(middle), why, note), -EBADMSG);
	assert_non_null(strstr(why, "not signed by itself"));
	ca_free(other);
	ca_free(low);
	ca_free(middle);
}

static void refuse_pem(struct slice text, const char *what)
{
	struct ca_papers out;

	assert_int_equal(ca_papers_read(text, "it", &out, why), -EBADMSG);
	if (!strstr(why, what))
		fail_msg("%s, not %s", why, what);
}

static void test_files(void **state)
{
	struct ca_papers out;
	struct buf pem;
	char *text;

	(void)state;
	buf_init(&pem, 2 * CA_PAPERS_PEM_MAX);
	assert_int_equal(ca_pem_append(ca_certificate_der(root), &pem), 0);
	assert_int_equal(ca_papers_read(buf_slice(&pem), "it", &out, why), 0);
	assert_int_equal(out.count, 1);
	assert_true(slice_equals(ca_paper(&out, 0), ca_certificate_der(root)));
	text = (char *)buf_bytes(&pem);
	refuse_pem(slice_of(text, pem.len - 4), "without its end");
	refuse_pem(slice_of(text, 100), "without its end");
	refuse_pem(slice_of("", 0), "no certificate");
	refuse_pem(SLICE("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), "damaged");
	refuse_pem(
	        SLICE("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "damaged");
	refuse_pem(
	        SLICE("-----BEGIN CERTIFICATE-----\nA=AA\n-----END CERTIFICATE-----\n"), "damaged");
	refuse_pem(SLICE("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
	        "private key");
	refuse_pem(SLICE("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE "
	                 "REQUEST-----\n"),
	        "this is the request");
	refuse_pem(SLICE("-----BEGIN X-----\nAAAA\n-----END X-----\n"), "no CERTIFICATE");
	for (size_t at = 30; at < pem.len - 30;
	        at += 37) { /* no changed byte passes for the same certificate */
		char before = text[at];

		if (before == '\n')
			continue;
		text[at] = before == 'A' ? 'B' : 'A';
		if (ca_papers_read(buf_slice(&pem), "it", &out, why) == 0)
			assert_false(slice_equals(ca_paper(&out, 0), ca_certificate_der(root)));
		text[at] = before;
	}
	while (pem.len <= CA_PAPERS_PEM_MAX)
		assert_int_equal(ca_pem_append(ca_certificate_der(root), &pem), 0);
	refuse_pem(buf_slice(&pem), "more than 32768 bytes");
	buf_fini(&pem);
}

static void test_too_many(void **state)
{
	struct buf pem;

	(void)state;
	buf_init(&pem, CA_PAPERS_PEM_MAX);
	for (int i = 0; i <= CA_PAPERS_MAX; i++) {
		struct ca *ca = ca_new_root(SLICE("many"), 9);

		assert_int_equal(ca_pem_append(ca_certificate_der(ca), &pem), 0);
		ca_free(ca);
	}
	refuse_pem(buf_slice(&pem), "more than 8 certificates");
	buf_fini(&pem);
}

#define ENCRYPTED \
	"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"

/* Writes a key as PEM, as an operator would have it. */
static size_t key_pem(EVP_PKEY *key, bool traditional, char *out, size_t cap)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p;
	long n;

	if (traditional)
		PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL);
	else
		PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	n = BIO_get_mem_data(bio, &p);
	if (n <= 0)
		ERR_print_errors_fp(stderr);
	assert_true(n > 0 && (size_t)n < cap);
	memcpy(out, p, (size_t)n);
	BIO_free(bio);
	return (size_t)n;
}

static X509 *self_signed(EVP_PKEY *key)
{
	X509 *x509 = X509_new();

	X509_set_version(x509, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
	        (const unsigned char *)"file", -1, -1, 0);
	X509_set_issuer_name(x509, X509_get_subject_name(x509));
	X509_gmtime_adj(X509_getm_notBefore(x509), -86400L * 9);
	X509_gmtime_adj(X509_getm_notAfter(x509), 86400L * 9);
	X509_set_pubkey(x509, key);
	add(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:1");
	add(x509, x509, NID_key_usage, "critical,keyCertSign");
	add(x509, x509, NID_subject_key_identifier, "hash");
	assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
	return x509;
}

static void test_keys_from_files(void **state)
{
	EVP_PKEY *keys[] = {EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"),
	        EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384"),
	        EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048),
	        EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024),
	        EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-521")};
	const size_t count = sizeof(keys) / sizeof(keys[0]), fit = 3;
	char text[8192];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		X509 *x509 = self_signed(keys[i]);
		unsigned char *der = NULL;
		int n = i2d_X509(x509, &der);
		struct slice certificate = slice_of(der, (size_t)n);

		for (int traditional = 0; traditional < 2; traditional++) {
			size_t size = key_pem(keys[i], traditional, text, sizeof(text));
			struct ca *ca = ca_from_pem(certificate, slice_of(text, size), why);

			assert_int_equal(ca != NULL, i < fit);
			if (ca) {
				roots.count = 0;
				ca_papers_add(&roots, certificate);
				chain.count = 0;
				assert_int_equal(
				        ca_check(ca, NULL, &chain, certificate, why, note), 0);
			} else {
				assert_non_null(strstr(why, "neither P-256"));
			}
			ca_free(ca);
			for (size_t cut = 0; cut < size - 30; cut += 17)
				assert_null(ca_from_pem(certificate, slice_of(text, cut), why));
		}
		assert_null(ca_from_pem(certificate, SLICE(ENCRYPTED), why));
		assert_non_null(strstr(why, "is encrypted"));
		size_t size = key_pem(keys[(i + 1) % fit], false, text, sizeof(text));
		assert_null(ca_from_pem(certificate, slice_of(text, size), why));
		OPENSSL_free(der);
		X509_free(x509);
	}
	for (size_t i = 0; i < count; i++)
		EVP_PKEY_free(keys[i]);
}

static void test_requests(void **state)
{
	struct ca_request *one = ca_request_new(), *same;
	char long_name[66];
	struct secret key;
	struct buf pem;

	(void)state;
	memset(long_name, 'n', sizeof(long_name));
	buf_init(&pem, 4096);
	assert_int_equal(ca_request_pem(one, slice_of(long_name, 64), &pem), 0);
	assert_true(ca_request_pem(one, slice_of(long_name, 65), &pem) < 0);
	assert_true(ca_request_pem(one, slice_of("", 0), &pem) < 0);
	assert_int_equal(ca_request_key_der(one, &key), 0);
	same = ca_request_from_der(secret_slice(&key));
	assert_non_null(same);
	EVP_PKEY *a = public_key_of(one), *b = public_key_of(same);
	assert_int_equal(EVP_PKEY_eq(a, b), 1);
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
	for (size_t cut = 0; cut < key.n; cut++)
		assert_null(ca_request_from_der(slice_of(key.p, cut)));
	secret_free(&key);
	buf_fini(&pem);
	ca_request_free(one);
	ca_request_free(same);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, make_root, drop_root)
	const struct CMUnitTest tests[] = {
	        ONE(test_certificates_that_are_refused),
	        ONE(test_ways_to_a_root),
	        ONE(test_files),
	        ONE(test_too_many),
	        ONE(test_keys_from_files),
	        ONE(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
