/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates made here, held against OpenSSL's parser and its strict verifier, as library and as
 * program. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <openssl/pem.h>

#include "../pair.h"
#include "tls/der.h"

static struct ca *root, *issuer;
static struct ca_leaf_key *key;
static struct slice none = {"", 0};

static int make_chain(void **state)
{
	(void)state;
	root = ca_new_root(SLICE("vethguard test root"), 3650);
	issuer = ca_new_intermediate(root, SLICE("vethguard test sandbox"), 90);
	key = ca_leaf_key_new(TLS_KEY_ECDSA);
	return root && issuer && key ? 0 : -1;
}

static int drop_chain(void **state)
{
	(void)state;
	ca_leaf_key_free(key);
	ca_free(issuer);
	ca_free(root);
	return 0;
}

/* X509_V_OK, or what the strict verifier says of leaf under root through chain. */
static int verify(X509 *leaf, STACK_OF(X509) * chain, X509 *anchor)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();

	X509_STORE_add_cert(store, anchor);
	X509_STORE_CTX_init(ctx, store, leaf, chain);
	X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	X509_verify_cert(ctx);
	int error = X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return error;
}

static void test_authorities(void **state)
{
	(void)state;
	X509 *r = root->certificate, *i = issuer->certificate;

	assert_int_equal(X509_check_ca(r), 1);
	assert_int_equal(X509_check_ca(i), 1);
	assert_int_equal(X509_get_pathlen(r), 1);
	assert_int_equal(X509_get_pathlen(i), 0);
	assert_int_equal(X509_get_key_usage(r), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_int_equal(X509_get_key_usage(i), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(r)), 20);
	assert_int_equal(X509_verify(r, root->key), 1);
	assert_int_equal(X509_verify(i, root->key), 1);
	assert_int_equal(X509_verify(i, issuer->key), 0);
	assert_int_equal(X509_check_issued(r, i), X509_V_OK);
	assert_int_equal(
	        X509_cmp_time(X509_get0_notBefore(r), &(time_t){time(NULL) - 47 * 3600}), -1);
	assert_true(ca_certificate_der(issuer).n <= CA_CERTIFICATE_MAX);
}

/* No certificate outlives its issuer. */
static void test_ends_with_its_parent(void **state)
{
	struct ca *short_root = ca_new_root(SLICE("short"), 5); /* three days from now on */
	struct ca *below = ca_new_intermediate(short_root, SLICE("below"), 3650);
	struct tls_identity *leaf = ca_leaf_new(below, key, SLICE("a.example"), NULL);

	(void)state;
	assert_int_equal(ca_expires_s(below), ca_expires_s(short_root));
	assert_int_equal(ASN1_TIME_compare(X509_get0_notAfter(below->certificate),
	                         X509_get0_notAfter(short_root->certificate)),
	        0);
	assert_non_null(leaf);
	assert_int_equal(tls_identity_expires_s(leaf), ca_expires_s(below));
	assert_int_equal(ASN1_TIME_compare(X509_get0_notAfter(leaf->leaf),
	                         X509_get0_notAfter(below->certificate)),
	        0);
	tls_identity_release(leaf);
	ca_free(below);
	ca_free(short_root);
	short_root = ca_new_root(SLICE("over"), 1); /* ended yesterday */
	below = ca_new_intermediate(short_root, SLICE("below"), 3650);
	assert_non_null(below);
	assert_null(ca_leaf_new(below, key, SLICE("a.example"), NULL));
	ca_free(below);
	ca_free(short_root);
}

/* Certificates above the issuer go to clients, the root does not. */
static void test_chain_above(void **state)
{
	struct ca *top = ca_new_root(SLICE("top"), 90), *low;
	struct slice der[CA_CHAIN_MAX + 1];

	(void)state;
	for (size_t i = 0; i <= CA_CHAIN_MAX; i++)
		der[i] = ca_certificate_der(top);
	low = ca_new_intermediate(top, SLICE("low"), 90);
	assert_int_equal(ca_set_chain(low, der, CA_CHAIN_MAX + 1), -EINVAL);
	assert_int_equal(ca_set_chain(low, &(struct slice){"x", 1}, 1), -EBADMSG);
	struct tls_identity *leaf = ca_leaf_new(low, key, SLICE("a.example"), NULL);
	assert_int_equal(sk_X509_num(leaf->chain), 1);
	tls_identity_release(leaf);
	assert_int_equal(ca_set_chain(low, der, 2), 0);
	assert_int_equal(ca_set_chain(low, der, 1), 0);
	leaf = ca_leaf_new(low, key, SLICE("a.example"), NULL);
	assert_int_equal(sk_X509_num(leaf->chain), 2);
	assert_int_equal(X509_cmp(sk_X509_value(leaf->chain, 1), top->certificate), 0);
	tls_identity_release(leaf);
	ca_free(low);
	ca_free(top);
}

static void test_authority_names(void **state)
{
	char text[100], cn[100];
	(void)state;

	memset(text, 'n', sizeof(text));
	struct ca *ca = ca_new_root(slice_of(text, sizeof(text)), 1);
	assert_non_null(ca);
	assert_int_equal(X509_NAME_get_text_by_NID(X509_get_subject_name(ca->certificate),
	                         NID_commonName, cn, sizeof(cn)),
	        64);
	ca_free(ca);
	/* cut before a character that would not fit whole */
	memcpy(text + 63, "\xc3\xa9", 2);
	ca = ca_new_root(slice_of(text, sizeof(text)), 1);
	assert_non_null(ca);
	ca_free(ca);
	assert_null(ca_new_root(none, 1));
	assert_null(ca_new_root(SLICE("\xff\xfe"), 1)); /* not UTF-8 */
	assert_null(ca_new_root(SLICE("x"), 0));
	assert_null(ca_new_root(SLICE("x"), 40000));
}

static void test_leaf_for_hosts(void **state)
{
	char long_host[254];
	char label[70];
	(void)state;

	memset(label, 'a', sizeof(label));
	memset(long_host, 'b', sizeof(long_host));
	for (size_t i = 63; i < 253; i += 64)
		long_host[i] = '.';
	const struct slice hosts[] = {
	        SLICE("api.github.com"),
	        SLICE("a"),
	        SLICE("_dmarc.under_score.example"),
	        SLICE("xn--bcher-kva.example"),
	        slice_of(label, 63),
	        slice_of(label, 64), /* the longest common name */
	        slice_of(label, 65), /* empty subject, critical subjectAltName */
	        slice_of(long_host, 127),
	        slice_of(long_host, 128),
	        slice_of(long_host, 200),
	        slice_of(long_host, 253),
	};
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct tls_identity *leaf = ca_leaf_new(issuer, key, hosts[i], NULL);
		assert_non_null(leaf);
		assert_int_equal(verify(leaf->leaf, leaf->chain, root->certificate), X509_V_OK);
		assert_int_equal(X509_verify(leaf->leaf, issuer->key), 1);
		assert_int_equal(X509_check_host(leaf->leaf, hosts[i].p, hosts[i].n,
		                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL),
		        1);
		assert_int_equal(X509_check_host(leaf->leaf, "other.example", 13, 0, NULL), 0);
		assert_int_equal(X509_check_private_key(leaf->leaf, leaf->key), 1);
		assert_int_equal(X509_check_ca(leaf->leaf), 0);
		assert_int_equal(X509_get_key_usage(leaf->leaf), KU_DIGITAL_SIGNATURE);
		assert_int_equal(X509_get_extended_key_usage(leaf->leaf), XKU_SSL_SERVER);
		assert_int_equal(X509_get_version(leaf->leaf), X509_VERSION_3);
		assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(leaf->leaf)), 16);
		int at = X509_get_ext_by_NID(leaf->leaf, NID_subject_alt_name, -1);
		assert_int_equal(
		        X509_EXTENSION_get_critical(X509_get_ext(leaf->leaf, at)), hosts[i].n > 64);
		assert_int_equal(
		        X509_NAME_entry_count(X509_get_subject_name(leaf->leaf)), hosts[i].n <= 64);
		tls_identity_release(leaf);
	}
}

/* The same issuer, another kind of key: OpenSSL reads in the certificate the key that it is. */
static void test_leaf_with_rsa_key(void **state)
{
	char long_host[253];
	struct ca_leaf_key *rsa = ca_leaf_key_new(TLS_KEY_RSA);
	(void)state;

	assert_non_null(rsa);
	memset(long_host, 'b', sizeof(long_host));
	for (size_t i = 63; i < 253; i += 64)
		long_host[i] = '.';
	for (size_t i = 1; i < sizeof(long_host); i += 63) {
		struct tls_identity *leaf = ca_leaf_new(issuer, rsa, slice_of(long_host, i), NULL);
		assert_non_null(leaf);
		EVP_PKEY *shown = X509_get0_pubkey(leaf->leaf);
		assert_int_equal(verify(leaf->leaf, leaf->chain, root->certificate), X509_V_OK);
		assert_int_equal(X509_check_private_key(leaf->leaf, leaf->key), 1);
		assert_string_equal(EVP_PKEY_get0_type_name(shown), "RSA");
		assert_int_equal(EVP_PKEY_get_bits(shown), 2048);
		assert_int_equal(X509_get_key_usage(leaf->leaf), KU_DIGITAL_SIGNATURE);
		assert_int_equal(
		        ASN1_STRING_length(X509_get0_subject_key_id(leaf->leaf)), CA_KEY_ID_BYTES);
		tls_identity_release(leaf);
	}
	/* Two mints have two keys. */
	struct ca_leaf_key *other = ca_leaf_key_new(TLS_KEY_RSA);
	assert_non_null(other);
	assert_int_not_equal(EVP_PKEY_eq(rsa->key, other->key), 1);
	assert_memory_not_equal(rsa->id, other->id, CA_KEY_ID_BYTES);
	ca_leaf_key_free(other);
	ca_leaf_key_free(rsa);
}

static void test_leaf_for_addresses(void **state)
{
	static const char *const texts[] = {"192.0.2.7", "2001:db8::7"};
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct ip address;
		assert_true(ip_parse(slice_from_string(texts[i]), &address));
		struct tls_identity *leaf = ca_leaf_new(issuer, key, none, &address);
		assert_non_null(leaf);
		assert_int_equal(verify(leaf->leaf, leaf->chain, root->certificate), X509_V_OK);
		assert_int_equal(X509_check_ip_asc(leaf->leaf, texts[i], 0), 1);
		assert_int_equal(X509_check_ip_asc(leaf->leaf, texts[!i], 0), 0);
		assert_int_equal(X509_check_host(leaf->leaf, texts[i], 0,
		                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL),
		        0);
		tls_identity_release(leaf);
	}
}

static void test_no_leaf_for(void **state)
{
	char long_host[254];
	struct ip nothing = {0};
	(void)state;

	memset(long_host, 'a', sizeof(long_host));
	assert_null(ca_leaf_new(issuer, key, slice_of(long_host, 254), NULL));
	assert_null(ca_leaf_new(issuer, key, none, NULL));
	assert_null(ca_leaf_new(issuer, key, none, &nothing));
	assert_null(ca_leaf_new(issuer, key, SLICE("*.example.com"), NULL));
	assert_null(ca_leaf_new(issuer, key, SLICE("a\0b"), NULL));
	assert_null(ca_leaf_new(issuer, key, SLICE("a b"), NULL));
	assert_null(ca_leaf_new(issuer, key,
	        SLICE("b\xc3\xbc"
	              "cher"),
	        NULL));
	assert_null(ca_leaf_new(issuer, key, SLICE("a/b"), NULL));
}

static void test_leaf_validity_and_serials(void **state)
{
	struct tls_identity *a = ca_leaf_new(issuer, key, SLICE("a.example"), NULL);
	struct tls_identity *b = ca_leaf_new(issuer, key, SLICE("a.example"), NULL);
	time_t now = time(NULL), t;
	(void)state;

	assert_int_not_equal(
	        ASN1_INTEGER_cmp(X509_get0_serialNumber(a->leaf), X509_get0_serialNumber(b->leaf)),
	        0);
	t = now - 48 * 3600 + 60;
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(a->leaf), &t), -1);
	t = now - 48 * 3600 - 60;
	assert_int_equal(X509_cmp_time(X509_get0_notBefore(a->leaf), &t), 1);
	t = (time_t)tls_identity_expires_s(a) - 1;
	assert_int_equal(X509_cmp_time(X509_get0_notAfter(a->leaf), &t), 1);
	t = (time_t)tls_identity_expires_s(a) + 1;
	assert_int_equal(X509_cmp_time(X509_get0_notAfter(a->leaf), &t), -1);
	assert_in_range(tls_identity_expires_s(a) - now, 5 * 86400 - 60, 5 * 86400 + 60);
	tls_identity_release(a);
	tls_identity_release(b);
}

static void test_times_around_2050(void **state)
{
	static const struct {
		int64_t seconds;
		const char *der; /* tag, length, text */
		bool ok;
	} cases[] = {
	        {0,
	                "\x17\x0d"
	                "700101000000Z",
	                true},
	        {-631152000,
	                "\x17\x0d"
	                "500101000000Z",
	                true}, /* 1950 */
	        {-631152001, "", false},
	        {2524607999,
	                "\x17\x0d"
	                "491231235959Z",
	                true}, /* the last second of 2049 */
	        {2524608000,
	                "\x18\x0f"
	                "20500101000000Z",
	                true},
	        {951782400,
	                "\x17\x0d"
	                "000229000000Z",
	                true}, /* a leap day */
	        {253402300799,
	                "\x18\x0f"
	                "99991231235959Z",
	                true},
	        {253402300800, "", false},
	        {INT64_MAX, "", false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t out[32];
		struct writer w = writer_over(out, sizeof(out));
		der_write_time(&w, cases[i].seconds);
		assert_int_equal(w.failed, !cases[i].ok);
		if (cases[i].ok) {
			assert_int_equal(w.len, strlen(cases[i].der));
			assert_memory_equal(out, cases[i].der, w.len);
		}
	}
}

static void test_der_lengths(void **state)
{
	static const struct {
		const char *p;
		size_t n;
		bool ok;
	} cases[] = {
	        {"\x30\x00", 2, true},
	        {"\x30\x01", 2, false},
	        {"\x30\x80", 2, false},      /* indefinite */
	        {"\x30\x81\x01x", 4, false}, /* not the shortest form */
	        {"\x30\x82\x00\x01x", 5, false},
	        {"\x30\x83\x00\x00\x01x", 6, false}, /* longer than anything read here */
	        {"\x30\x84\xff\xff\xff\xff", 6, false},
	        {"\x31\x00", 2, false}, /* another tag */
	        {"\x30", 1, false},
	        {"", 0, false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct reader r = reader_over(cases[i].p, cases[i].n);
		struct slice whole;
		der_read(&r, DER_SEQUENCE, &whole);
		assert_int_equal(reader_done(&r), cases[i].ok);
		assert_int_equal(whole.n, cases[i].ok ? cases[i].n : 0);
	}
	for (size_t n = 0; n < 66000; n += n < 300 ? 1 : 997) { /* what is written is read again */
		static uint8_t content[66000], out[66010];
		struct writer w = writer_over(out, sizeof(out));
		der_write(&w, DER_OCTET_STRING, slice_of(content, n));
		assert_int_equal(w.failed, n > 65535);
		struct reader r = reader_over(out, w.len);
		if (!w.failed)
			assert_int_equal(der_read(&r, DER_OCTET_STRING, NULL).n, n);
	}
}

static void test_der_round_trip(void **state)
{
	struct secret secret = {0};
	struct buf pem;
	(void)state;

	assert_int_equal(ca_key_der(issuer, &secret), 0);
	assert_in_range(secret.n, 32, CA_KEY_MAX);
	struct ca *copy = ca_from_der(ca_certificate_der(issuer), secret_slice(&secret));
	assert_non_null(copy);
	struct tls_identity *leaf = ca_leaf_new(copy, key, SLICE("a.example"), NULL);
	assert_int_equal(verify(leaf->leaf, leaf->chain, root->certificate), X509_V_OK);
	tls_identity_release(leaf);
	ca_free(copy);

	/* a key of another, a certificate of another, trailing bytes, every truncation, nothing at
	 * all */
	assert_null(ca_from_der(ca_certificate_der(root), secret_slice(&secret)));
	buf_init(&pem, 4096);
	buf_append_slice(&pem, ca_certificate_der(issuer));
	buf_append(&pem, "x", 1);
	assert_null(ca_from_der(buf_slice(&pem), secret_slice(&secret)));
	for (size_t n = 0; n < ca_certificate_der(issuer).n; n += 7)
		assert_null(ca_from_der(slice_of(buf_bytes(&pem), n), secret_slice(&secret)));
	for (size_t n = 0; n < secret.n; n += 3)
		assert_null(ca_from_der(ca_certificate_der(issuer), slice_of(secret.p, n)));
	buf_fini(&pem);
	assert_null(ca_from_der(none, none));
	secret_free(&secret);
}

/* Other keys, and a certificate that is not a CA's. */
static void test_unfit_authorities(void **state)
{
	(void)state;
	struct tls_identity *leaf = ca_leaf_new(issuer, key, SLICE("a.example"), NULL);
	EVP_PKEY *other = EVP_EC_gen("P-384");
	struct tls_identity *p384 = pair_custom_leaf("DNS:x", -60, 3600, other, NULL, other);
	struct {
		X509 *certificate;
		EVP_PKEY *key;
	} unfit[] = {{leaf->leaf, leaf->key}, {p384->leaf, other}};

	for (size_t i = 0; i < 2; i++) {
		unsigned char *c = NULL, *k = NULL;
		PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(unfit[i].key);
		int c_n = i2d_X509(unfit[i].certificate, &c),
		    k_n = i2d_PKCS8_PRIV_KEY_INFO(info, &k);
		assert_null(ca_from_der(slice_of(c, (size_t)c_n), slice_of(k, (size_t)k_n)));
		PKCS8_PRIV_KEY_INFO_free(info);
		OPENSSL_free(c);
		OPENSSL_free(k);
	}
	tls_identity_release(leaf);
	tls_identity_release(p384);
	EVP_PKEY_free(other);
}

static void test_pem(void **state)
{
	struct buf pem;
	(void)state;

	buf_init(&pem, 8192);
	buf_append(&pem, "before\n", 7);
	assert_int_equal(ca_pem_append(ca_certificate_der(root), &pem), 0);
	BIO *bio = BIO_new_mem_buf(buf_bytes(&pem), (int)pem.len);
	X509 *read = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	assert_non_null(read);
	assert_int_equal(X509_cmp(read, root->certificate), 0);
	X509_free(read);
	BIO_free(bio);
	buf_fini(&pem);

	static uint8_t big[CA_CERTIFICATE_MAX + 1];
	buf_init(&pem, 100); /* no room: nothing is left behind */
	assert_int_equal(ca_pem_append(ca_certificate_der(root), &pem), -ENOBUFS);
	assert_int_equal(pem.len, 0);
	assert_int_equal(ca_pem_append(slice_of(big, sizeof(big)), &pem), -EINVAL);
	buf_fini(&pem);
}

static void write_pem(const char *path, X509 *certificate)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	PEM_write_X509(f, certificate);
	fclose(f);
}

/* The same judgment from the program that operators use. */
static void test_openssl_verify(void **state)
{
	char dir[] = "/tmp/test_ca.XXXXXX", r[64], i[64], l[64], command[400];
	(void)state;

	if (system("command -v openssl >/dev/null 2>&1") != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(r, sizeof(r), "%s/root", dir);
	snprintf(i, sizeof(i), "%s/issuer", dir);
	snprintf(l, sizeof(l), "%s/leaf", dir);
	struct tls_identity *leaf = ca_leaf_new(issuer, key, SLICE("a.example"), NULL);
	write_pem(r, root->certificate);
	write_pem(i, issuer->certificate);
	write_pem(l, leaf->leaf);
	snprintf(command, sizeof(command),
	        "openssl verify -x509_strict -check_ss_sig -purpose sslserver -verify_hostname "
	        "a.example -CAfile %s -untrusted %s %s >/dev/null",
	        r, i, l);
	int good = system(command);
	snprintf(command, sizeof(command),
	        "openssl verify -x509_strict -CAfile %s %s >/dev/null 2>&1", r, l);
	int without_issuer = system(command);
	unlink(r), unlink(i), unlink(l), rmdir(dir);
	tls_identity_release(leaf);
	assert_int_equal(good, 0);
	assert_int_not_equal(without_issuer, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_authorities),
	        cmocka_unit_test(test_ends_with_its_parent),
	        cmocka_unit_test(test_chain_above),
	        cmocka_unit_test(test_authority_names),
	        cmocka_unit_test(test_leaf_for_hosts),
	        cmocka_unit_test(test_leaf_with_rsa_key),
	        cmocka_unit_test(test_leaf_for_addresses),
	        cmocka_unit_test(test_no_leaf_for),
	        cmocka_unit_test(test_leaf_validity_and_serials),
	        cmocka_unit_test(test_times_around_2050),
	        cmocka_unit_test(test_der_lengths),
	        cmocka_unit_test(test_der_round_trip),
	        cmocka_unit_test(test_unfit_authorities),
	        cmocka_unit_test(test_pem),
	        cmocka_unit_test(test_openssl_verify),
	};

	return cmocka_run_group_tests(tests, make_chain, drop_chain);
}
