/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a system's store has about 150 certificates, of which a sandbox's upstreams
 * need a handful. So the PEM text stays text. The first lookup scans it once and notes each
 * certificate's position and a hash of its subject. A lookup decodes and parses the certificates
 * with the requested hash and gives them to OpenSSL's store, which keeps them. A subject that was
 * looked up before is found in that store and does not come here again.
 */
#include "tls/private.h"
#include "tls/der.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>

#define CERTIFICATE_TEXT_MAX \
	32768 /* bytes of base64 with line ends; a longer certificate is not usable */
#define CERTIFICATE_DER_MAX (CERTIFICATE_TEXT_MAX / 4 * 3)

static const char begin_mark[] = "-----BEGIN CERTIFICATE-----";
static const char end_mark[] = "-----END CERTIFICATE-----";

struct entry {
	unsigned long subject_hash;
	const uint8_t *text; /* base64 */
	uint32_t n;
	bool loaded; /* in OpenSSL's store already, or not a certificate */
};

struct tls_trust {
	const uint8_t *pem; /* borrowed */
	size_t n;
	struct entry *entries;
	size_t count;
	size_t cap;
	size_t unusable;
	bool indexed;
	X509_LOOKUP_METHOD *method;
	X509_STORE *store;
};

/* Decodes a base64 text into out[CERTIFICATE_DER_MAX]. Returns 0 if it is not base64 or too
 * long. */
static size_t decode(const uint8_t *text, size_t n, uint8_t *out)
{
	EVP_ENCODE_CTX *ctx;
	int got = 0, rest = 0;

	if (n > CERTIFICATE_TEXT_MAX)
		return 0;
	ctx = EVP_ENCODE_CTX_new();
	if (!ctx)
		return 0;
	EVP_DecodeInit(ctx);
	bool ok = EVP_DecodeUpdate(ctx, out, &got, text, (int)n) >= 0 &&
	          EVP_DecodeFinal(ctx, out + got, &rest) > 0;
	EVP_ENCODE_CTX_free(ctx);
	return ok ? (size_t)(got + rest) : 0;
}

/* Computes the hash of a certificate's subject in its canonical form, without parsing the rest. */
static bool subject_hash(const uint8_t *der, size_t n, unsigned long *hash)
{
	struct reader outer = reader_over(der, n);
	struct slice body = der_read(&outer, DER_SEQUENCE, NULL);
	struct reader r = reader_over(body.p, body.n);
	struct slice tbs = der_read(&r, DER_SEQUENCE, NULL);
	struct slice subject;
	int ok = 0;

	if (!reader_done(&outer) || r.failed)
		return false;
	r = reader_over(tbs.p, tbs.n);
	if (der_peek(&r) == DER_CONTEXT_CONSTRUCTED)
		der_read(&r, DER_CONTEXT_CONSTRUCTED, NULL); /* version */
	der_read(&r, DER_INTEGER, NULL);                     /* serial number */
	der_read(&r, DER_SEQUENCE, NULL);                    /* signature algorithm */
	der_read(&r, DER_SEQUENCE, NULL);                    /* issuer */
	der_read(&r, DER_SEQUENCE, NULL);                    /* validity */
	der_read(&r, DER_SEQUENCE, &subject);
	if (r.failed)
		return false;
	const unsigned char *p = (const unsigned char *)subject.p;
	X509_NAME *name = d2i_X509_NAME(NULL, &p, (long)subject.n);
	if (!name)
		return false;
	*hash = X509_NAME_hash_ex(name, NULL, NULL, &ok);
	X509_NAME_free(name);
	return ok == 1;
}

static bool entry_add(struct tls_trust *trust, struct entry entry)
{
	if (trust->count == trust->cap) {
		size_t cap = trust->cap ? trust->cap * 2 : 256;
		struct entry *grown = reallocarray(trust->entries, cap, sizeof(*grown));
		if (!grown)
			return false;
		trust->entries = grown;
		trust->cap = cap;
	}
	trust->entries[trust->count++] = entry;
	return true;
}

static const uint8_t *find(const uint8_t *p, const uint8_t *end, const char *mark)
{
	return memmem(p, (size_t)(end - p), mark, strlen(mark));
}

/* Notes the certificate whose base64 is text, or counts it as unusable. */
static void index_block(struct tls_trust *trust, const uint8_t *text, size_t n, uint8_t *der)
{
	struct entry entry = {.text = text, .n = (uint32_t)n};
	size_t der_n = decode(text, n, der);

	if (der_n == 0 || !subject_hash(der, der_n, &entry.subject_hash) ||
	        !entry_add(trust, entry))
		trust->unusable++;
}

static void index_all(struct tls_trust *trust)
{
	const uint8_t *p = trust->pem;
	const uint8_t *end = p + trust->n;
	uint8_t *der = malloc(CERTIFICATE_DER_MAX);

	if (!der)
		return;
	while ((p = find(p, end, begin_mark))) {
		p += sizeof(begin_mark) - 1;
		const uint8_t *stop = find(p, end, "-----");
		if (!stop || !(stop == find(stop, end, end_mark))) {
			trust->unusable++; /* cut off, or another block begins inside */
			continue;
		}
		index_block(trust, p, (size_t)(stop - p), der);
		p = stop + sizeof(end_mark) - 1;
	}
	free(der);
	trust->indexed = true;
	ERR_clear_error();
}

/* Parses one entry into OpenSSL's store. The result is borrowed from the store, or NULL. */
static X509 *entry_load(struct tls_trust *trust, struct entry *entry, uint8_t *der)
{
	size_t n = decode(entry->text, entry->n, der);
	X509 *certificate = n > 0 ? tls_x509_parse(der, n) : NULL;

	entry->loaded = true;
	if (!certificate)
		return NULL;
	int ok = X509_STORE_add_cert(trust->store, certificate);
	X509_free(certificate);
	return ok ? certificate : NULL;
}

/* Loads every certificate with this subject. Returns the first one, borrowed from the store, or
 * NULL. */
static X509 *load_subject(struct tls_trust *trust, const X509_NAME *name)
{
	int ok = 0;
	unsigned long hash = X509_NAME_hash_ex(name, NULL, NULL, &ok);
	uint8_t *der = NULL;
	X509 *found = NULL;

	for (size_t i = 0; ok == 1 && i < trust->count; i++) {
		struct entry *entry = &trust->entries[i];
		if (entry->subject_hash != hash || entry->loaded)
			continue;
		if (!der && !(der = malloc(CERTIFICATE_DER_MAX)))
			break;
		X509 *certificate = entry_load(trust, entry, der);
		if (certificate && !found &&
		        X509_NAME_cmp(X509_get_subject_name(certificate), name) == 0)
			found = certificate;
	}
	free(der);
	return found;
}

static int get_by_subject(
        X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *out)
{
	struct tls_trust *trust = X509_LOOKUP_get_method_data(lookup);

	if (type != X509_LU_X509)
		return 0;
	if (!trust->indexed)
		index_all(trust);
	X509 *certificate = load_subject(trust, name);
	if (!certificate || !X509_OBJECT_set1_X509(out, certificate))
		return 0;
	/* The caller takes its own reference of the result, as with OpenSSL's directory lookup,
	 * which returns one that the store owns. So the reference that was just made has to go. */
	X509_free(certificate);
	return 1;
}

static bool store_setup(struct tls_trust *trust)
{
	trust->store = X509_STORE_new();
	trust->method = X509_LOOKUP_meth_new("certificates parsed when looked up");
	if (!trust->store || !trust->method ||
	        !X509_LOOKUP_meth_set_get_by_subject(trust->method, get_by_subject))
		return false;
	X509_LOOKUP *lookup = X509_STORE_add_lookup(trust->store, trust->method);
	return lookup && X509_LOOKUP_set_method_data(lookup, trust);
}

struct tls_trust *tls_trust_new(const uint8_t *pem, size_t n)
{
	struct tls_trust *trust = calloc(1, sizeof(*trust));

	if (!trust)
		return NULL;
	tls_library_init();
	trust->pem = pem;
	trust->n = n;
	if (!store_setup(trust)) {
		tls_trust_free(trust);
		trust = NULL;
	}
	ERR_clear_error();
	return trust;
}

void tls_trust_free(struct tls_trust *trust)
{
	if (!trust)
		return;
	X509_STORE_free(trust->store);
	X509_LOOKUP_meth_free(trust->method);
	free(trust->entries);
	free(trust);
}

void tls_trust_count(struct tls_trust *trust, size_t *usable, size_t *unusable)
{
	if (!trust->indexed)
		index_all(trust);
	*usable = trust->count;
	*unusable = trust->unusable;
}

X509_STORE *tls_trust_store(struct tls_trust *trust)
{
	return trust->store;
}
