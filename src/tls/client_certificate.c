/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A certificate that its own key signs. Whoever takes it knows its hash, so nobody has to sign it
 * for them, and no CA has to be kept.
 */
#include "vethguard/tls/client_certificate.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "tls/ca/ca_private.h"
#include "vethguard/base/base64.h"

#define BACKDATE_S (2 * 86400) /* for clients and servers whose clock is wrong */
#define PEM_MAX 4096
#define LINE 64 /* characters of a line of PEM (RFC 7468 section 2) */

static bool set_validity(X509 *certificate, int64_t expires_s)
{
	return ASN1_TIME_set(X509_getm_notBefore(certificate), time(NULL) - BACKDATE_S) &&
	       ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)expires_s);
}

static bool fill(X509 *x, EVP_PKEY *key, struct slice name, int64_t expires_s)
{
	return X509_set_version(x, X509_VERSION_3) && ca_set_serial(x) && ca_set_name(x, name) &&
	       set_validity(x, expires_s) && X509_set_issuer_name(x, X509_get_subject_name(x)) &&
	       X509_set_pubkey(x, key) &&
	       ca_add_extension(x, x, NID_basic_constraints, "critical,CA:FALSE") &&
	       ca_add_extension(x, x, NID_key_usage, "critical,digitalSignature") &&
	       ca_add_extension(x, x, NID_ext_key_usage, "clientAuth") &&
	       ca_add_extension(x, x, NID_subject_key_identifier, "hash") &&
	       X509_sign(x, key, EVP_sha256()) > 0;
}

static size_t put(struct secret *out, size_t at, const char *text, size_t n)
{
	memcpy(out->p + at, text, n);
	return at + n;
}

/* Writes the key's PEM. Nothing but secret memory has a copy of it. */
static int write_key(EVP_PKEY *key, struct secret *out)
{
	static const char begin[] = "-----BEGIN PRIVATE KEY-----\n",
	                  end[] = "-----END PRIVATE KEY-----\n";
	struct secret der = {0}, text = {0};
	int rc = ca_key_to_der(key, &der);

	rc = rc ? rc : secret_alloc(&text, BASE64_SIZE(CA_KEY_MAX));
	rc = rc ? rc : secret_alloc(out, PEM_MAX);
	if (!rc) {
		text.n = base64_encode(der.p, der.n, base64_standard, text.p);
		out->n = put(out, 0, begin, sizeof(begin) - 1);
		for (size_t at = 0; at < text.n; at += LINE) {
			const size_t left = text.n - at, n = left < LINE ? left : LINE;

			out->n = put(out, out->n, (const char *)text.p + at, n);
			out->n = put(out, out->n, "\n", 1);
		}
		out->n = put(out, out->n, end, sizeof(end) - 1);
	}
	secret_free(&der);
	secret_free(&text);
	return rc;
}

/* Writes the certificate's PEM and hash. */
static int write_certificate(X509 *x, struct client_certificate *out)
{
	unsigned char *der = NULL;
	const int n = i2d_X509(x, &der);
	const struct slice bytes = slice_of(der, n > 0 ? (size_t)n : 0);
	struct digest digest = {0};
	int rc = n > 0 ? digest_init(&digest) : -ENOMEM;

	buf_init(&out->pem, PEM_MAX);
	rc = rc ? rc : digest_sha256_hex(&digest, &bytes, 1, out->sha256);
	rc = rc ? rc : ca_pem_append(bytes, &out->pem);
	digest_fini(&digest);
	OPENSSL_free(der);
	return rc;
}

int client_certificate_make(
        struct slice common_name, int64_t expires_s, struct client_certificate *out)
{
	EVP_PKEY *key;
	X509 *x;
	int rc;

	*out = (struct client_certificate){.sha256 = ""};
	if (expires_s <= (int64_t)time(NULL) || !common_name.n)
		return -EINVAL;
	tls_library_init();
	x = X509_new_ex(tls_library(), NULL);
	key = EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256");
	rc = x && key && fill(x, key, common_name, expires_s) ? 0 : -ENOMEM;
	rc = rc ? rc : write_certificate(x, out);
	rc = rc ? rc : write_key(key, &out->key);
	X509_free(x);
	EVP_PKEY_free(key);
	ERR_clear_error();
	if (rc)
		client_certificate_fini(out);
	return rc;
}

void client_certificate_fini(struct client_certificate *c)
{
	buf_fini(&c->pem);
	secret_free(&c->key);
}
