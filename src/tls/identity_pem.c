/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: makes an identity from an operator's PEM files. OpenSSL parses them; every
 * failure becomes a sentence for the operator, which has no byte of the key. */
#include "tls/elsewhere.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "vethguard/base/clock.h"

struct parts {
	X509 *leaf;
	EVP_PKEY *key;
	STACK_OF(X509) * chain;
	int64_t expires_s;
};

static int no_passphrase(char *buf, int size, int writing, void *context)
{
	(void)buf, (void)size, (void)writing, (void)context;
	return -1;
}

static X509 *next_certificate(BIO *bio)
{
	X509 *certificate = X509_new_ex(tls_library(), NULL);

	if (certificate && PEM_read_bio_X509(bio, &certificate, no_passphrase, NULL))
		return certificate;
	X509_free(certificate);
	return NULL;
}

static const char *read_chain(struct slice pem, struct parts *out)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	const char *why = NULL;
	X509 *above;

	out->chain = sk_X509_new_null();
	out->leaf = bio ? next_certificate(bio) : NULL;
	if (!bio || !out->chain)
		why = "no memory";
	else if (!out->leaf)
		why = "the certificate's file does not begin with a certificate (PEM)";
	while (!why && (above = next_certificate(bio))) {
		if (sk_X509_num(out->chain) + 1 < TLS_IDENTITY_CHAIN_MAX &&
		        sk_X509_push(out->chain, above) > 0)
			continue;
		X509_free(above);
		why = "the certificate's file has too many certificates";
	}
	/* OpenSSL reports the end of the text as an error too, with this reason. */
	if (!why && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		why = "a certificate above the first is damaged";
	BIO_free(bio);
	ERR_clear_error();
	return why;
}

static const char *read_key(struct slice pem, struct parts *out)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

	out->key = bio ? PEM_read_bio_PrivateKey_ex(
	                         bio, NULL, no_passphrase, NULL, tls_library(), NULL)
	               : NULL;
	BIO_free(bio);
	ERR_clear_error();
	return out->key ? NULL : "the key's file has no private key (PEM) without a passphrase";
}

static const char *check(struct parts *p)
{
	int days, seconds;

	if (X509_check_private_key(p->leaf, p->key) != 1) { /* it compares the public halves */
		ERR_clear_error();
		return "the key is not that of the certificate";
	}
	if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(p->leaf)))
		return "the certificate says wrongly when it expires";
	p->expires_s = clock_real_ms() / 1000 + (int64_t)days * 24 * 3600 + seconds;
	return days < 0 || seconds < 0 ? "the certificate has expired" : NULL;
}

/* Takes the certificate's public key in place of the private one. */
static const char *take_public_key(struct slice pem, struct parts *p)
{
	if (memmem(pem.p, pem.n, "PRIVATE KEY-----", sizeof("PRIVATE KEY-----") - 1))
		return "it holds a private key, but the policy says that the key is in a token";
	p->key = X509_get_pubkey(p->leaf);
	ERR_clear_error();
	if (!p->key || !(EVP_PKEY_is_a(p->key, "RSA") || EVP_PKEY_is_a(p->key, "EC")))
		return "a key in a token is RSA or EC, and that of the certificate is neither";
	return NULL;
}

static struct tls_identity *finish(
        struct parts *p, bool elsewhere, const char *fault, char why[TLS_IDENTITY_WHY_MAX])
{
	struct tls_identity *identity = NULL;

	if (!fault)
		fault = check(p);
	if (!fault) {
		identity = tls_identity_new(p->leaf, p->key, p->chain, p->expires_s);
		fault = identity ? "" : "no memory";
	}
	snprintf(why, TLS_IDENTITY_WHY_MAX, "%s", fault);
	if (identity) {
		identity->elsewhere = elsewhere;
		return identity;
	}
	X509_free(p->leaf);
	EVP_PKEY_free(p->key);
	sk_X509_pop_free(p->chain, X509_free);
	return NULL;
}

struct tls_identity *tls_identity_read_elsewhere(struct slice pem, char why[TLS_IDENTITY_WHY_MAX])
{
	struct parts p = {0};
	const char *fault;

	tls_library_init();
	ERR_clear_error();
	fault = pem.n > INT32_MAX ? "a file is too long" : NULL;
	if (!elsewhere_is_possible())
		fault = "this OpenSSL cannot wait for a signature from elsewhere";
	if (!fault)
		fault = read_chain(pem, &p);
	if (!fault)
		fault = take_public_key(pem, &p);
	return finish(&p, true, fault, why);
}

struct tls_identity *tls_identity_read(
        struct slice chain, struct slice key, char why[TLS_IDENTITY_WHY_MAX])
{
	struct parts p = {0};
	const char *fault;

	tls_library_init();
	ERR_clear_error();
	fault = chain.n > INT32_MAX || key.n > INT32_MAX ? "a file is too long" : NULL;
	if (!fault)
		fault = read_chain(chain, &p);
	if (!fault)
		fault = read_key(key, &p);
	return finish(&p, false, fault, why);
}
