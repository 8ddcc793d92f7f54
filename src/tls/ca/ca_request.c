/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ways in which an operator's CA gets here. Either the key is made here, leaves as a
 * request only, and the certificate follows; or certificate and key come as files. The second key
 * may be of a kind that leaves are not signed with here: it signs sandboxes' intermediates only.
 *
 * The key's file is decoded by OpenSSL's default context, because that of connections (library.c)
 * knows no decoders for private keys. The caller holds the key anyway, so copies that stay in its
 * memory tell nothing new.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "tls/ca/ca_pem.h"

#define RSA_BITS_LEAST 2048
#define KEY_FILE_MAX 8192 /* DER bytes: RSA of 16384 bits is larger, and refused */

struct ca_request {
	EVP_PKEY *key;
};

static struct ca_request *request_of(EVP_PKEY *key)
{
	struct ca_request *request = key ? calloc(1, sizeof(*request)) : NULL;

	if (request)
		request->key = key;
	else
		EVP_PKEY_free(key);
	ERR_clear_error();
	return request;
}

struct ca_request *ca_request_new(void)
{
	tls_library_init();
	return request_of(EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256"));
}

struct ca_request *ca_request_from_der(struct slice key)
{
	tls_library_init();
	return request_of(ca_key_from_der(key));
}

void ca_request_free(struct ca_request *request)
{
	if (!request)
		return;
	EVP_PKEY_free(request->key);
	free(request);
}

int ca_request_key_der(const struct ca_request *request, struct secret *out)
{
	return ca_key_to_der(request->key, out);
}

/* Returns whether the certificate is a CA's that may sign. */
static bool is_authority(X509 *x509, char why[CA_WHY_MAX])
{
	if (X509_check_ca(x509) == 1)
		return true;
	if (X509_get_extension_flags(x509) & EXFLAG_CA)
		ca_refuse(why, "the certificate's key may not sign certificates; sign with "
		               "keyUsage=critical,keyCertSign,cRLSign");
	else
		ca_refuse(why, "the certificate is not a CA's; sign with "
		               "basicConstraints=critical,CA:TRUE,pathlen:1");
	return false;
}

static bool add_extensions(X509_REQ *request)
{
	static const struct {
		int nid;
		const char *value;
	} asked[] = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:1"},
	        {NID_key_usage, "critical,keyCertSign,cRLSign"}};
	STACK_OF(X509_EXTENSION) *all = sk_X509_EXTENSION_new_null();
	bool good = all != NULL;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, NULL, NULL, request, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	for (size_t i = 0; good && i < sizeof(asked) / sizeof(asked[0]); i++) {
		X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &ctx, asked[i].nid, asked[i].value);

		good = one && sk_X509_EXTENSION_push(all, one) > 0;
		if (!good)
			X509_EXTENSION_free(one);
	}
	good = good && X509_REQ_add_extensions(request, all) == 1;
	sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
	return good;
}

static bool fill(X509_REQ *request, EVP_PKEY *key, struct slice name)
{
	return X509_REQ_set_version(request, X509_REQ_VERSION_1) == 1 &&
	       X509_NAME_add_entry_by_NID(X509_REQ_get_subject_name(request), NID_commonName,
	               MBSTRING_UTF8, (const unsigned char *)name.p, (int)name.n, -1, 0) == 1 &&
	       X509_REQ_set_pubkey(request, key) == 1 && add_extensions(request) &&
	       X509_REQ_sign(request, key, EVP_sha256()) > 0;
}

/* The key as the request's writer needs it: a key made by number and point has no encoder in the
 * context of connections. */
static EVP_PKEY *encodable(EVP_PKEY *key)
{
	uint8_t point[CA_POINT_BYTES];
	struct secret der = {0};
	const unsigned char *p;
	EVP_PKEY *out = NULL;

	if (!ca_point(key, point) || ca_key_to_der(key, &der) != 0)
		return NULL;
	p = der.p;
	out = d2i_AutoPrivateKey_ex(NULL, &p, (long)der.n, NULL, NULL);
	secret_free(&der);
	return out;
}

int ca_request_pem(const struct ca_request *request, struct slice common_name, struct buf *out)
{
	EVP_PKEY *key =
	        common_name.n > 0 && common_name.n <= CA_NAME_MAX ? encodable(request->key) : NULL;
	X509_REQ *made = key ? X509_REQ_new() : NULL;
	BIO *text = made ? BIO_new(BIO_s_mem()) : NULL;
	int rc = -ENOMEM;
	char *p;
	long n;

	if (text && fill(made, key, common_name) && PEM_write_bio_X509_REQ(text, made) == 1) {
		n = BIO_get_mem_data(text, &p);
		rc = n > 0 ? buf_append(out, p, (size_t)n) : -ENOMEM;
	}
	BIO_free(text);
	X509_REQ_free(made);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return rc;
}

struct ca *ca_request_accept(
        const struct ca_request *request, struct slice certificate, char why[CA_WHY_MAX])
{
	X509 *x509 = tls_x509_parse((const uint8_t *)certificate.p, certificate.n);
	struct ca *ca;

	if (!x509 || X509_check_private_key(x509, request->key) != 1) {
		ca_refuse(why, "the certificate is for another key than the one that waits here; "
		               "sign the request that 'vethguard ca csr' prints");
		X509_free(x509);
		ERR_clear_error();
		return NULL;
	}
	if (!is_authority(x509, why)) {
		X509_free(x509);
		return NULL;
	}
	EVP_PKEY_up_ref(request->key);
	ca = ca_adopt(x509, request->key, false);
	if (!ca)
		ca_refuse(why,
		        "the certificate cannot be used: it has more than %d bytes, or "
		        "there is no memory",
		        CA_CERTIFICATE_MAX);
	return ca;
}

/* Decodes the text's only key. */
static EVP_PKEY *read_key(struct slice pem, char why[CA_WHY_MAX])
{
	struct ca_pem_block block;
	struct secret der;
	const unsigned char *p;
	EVP_PKEY *key = NULL;
	int rc;

	ca_refuse(why, "no memory for the key");
	if (secret_alloc(&der, KEY_FILE_MAX) < 0)
		return NULL;
	do
		rc = ca_pem_next(&pem, &block, der.p, der.cap);
	while (rc == 0 && !slice_ends_with(block.label, SLICE("PRIVATE KEY")));
	if (rc != 0)
		ca_refuse(why, "the key: no private key is in the file; it has to be PEM "
		               "(-----BEGIN PRIVATE KEY-----)");
	else if (slice_starts_with(block.label, SLICE("ENCRYPTED")))
		ca_refuse(why, "the key is encrypted, and nobody is there to type its "
		               "passphrase: 'openssl pkey' writes it without one, for a file of "
		               "mode 0600");
	else if (block.n == 0)
		ca_refuse(why, "the key's file is damaged, or its passphrase is in the way "
		               "(Proc-Type: ENCRYPTED); put it back from a copy");
	else {
		p = der.p;
		key = d2i_AutoPrivateKey_ex(NULL, &p, (long)block.n, NULL, NULL);
		if (!key)
			ca_refuse(why, "the key's file is damaged; put it back from a copy");
	}
	secret_free(&der);
	return key;
}

static bool is_good_kind(EVP_PKEY *key)
{
	char curve[32];
	size_t n = 0;

	if (EVP_PKEY_is_a(key, "RSA"))
		return EVP_PKEY_get_bits(key) >= RSA_BITS_LEAST;
	return EVP_PKEY_is_a(key, "EC") &&
	       EVP_PKEY_get_group_name(key, curve, sizeof(curve), &n) == 1 &&
	       (strcmp(curve, SN_X9_62_prime256v1) == 0 || strcmp(curve, SN_secp384r1) == 0);
}

struct ca *ca_from_certificate(struct slice certificate, char why[CA_WHY_MAX])
{
	EVP_PKEY *key;
	struct ca *ca = NULL;
	X509 *x509;

	tls_library_init();
	x509 = tls_x509_parse((const uint8_t *)certificate.p, certificate.n);
	key = x509 ? X509_get_pubkey(x509) : NULL;
	if (!key) {
		ca_refuse(why, "the certificate is damaged");
	} else if (!is_good_kind(key)) {
		ca_refuse(why,
		        "the certificate's key is neither P-256, P-384 nor RSA of %d bits and "
		        "more, "
		        "which are the kinds that clients know",
		        RSA_BITS_LEAST);
	} else if (is_authority(x509, why)) {
		ca = ca_adopt(x509, key, false);
		if (ca)
			ca->elsewhere = true;
		else
			ca_refuse(why, "no memory");
		ERR_clear_error();
		return ca;
	}
	X509_free(x509);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return NULL;
}

struct ca *ca_from_pem(struct slice certificate, struct slice key, char why[CA_WHY_MAX])
{
	EVP_PKEY *private_key;
	struct ca *ca = NULL;
	X509 *x509;

	tls_library_init();
	x509 = tls_x509_parse((const uint8_t *)certificate.p, certificate.n);
	private_key = read_key(key, why);
	if (!x509 || !private_key) {
		if (private_key)
			ca_refuse(why, "the certificate is damaged");
	} else if (!is_good_kind(private_key)) {
		ca_refuse(why,
		        "the key is neither P-256, P-384 nor RSA of %d bits and more, "
		        "which are the kinds that clients know",
		        RSA_BITS_LEAST);
	} else if (X509_check_private_key(x509, private_key) != 1) {
		ca_refuse(why, "the key is not that of the certificate; name the pair that "
		               "belongs together");
	} else if (is_authority(x509, why)) {
		ca = ca_adopt(x509, private_key, false);
		if (!ca)
			ca_refuse(why, "no memory");
		ERR_clear_error();
		return ca;
	}
	X509_free(x509);
	EVP_PKEY_free(private_key);
	ERR_clear_error();
	return NULL;
}
