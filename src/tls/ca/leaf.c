/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two leaves of one issuer differ in serial number, validity and name;
 * everything else is the same bytes. So a leaf's TBSCertificate (RFC 5280 section 4.1) is written
 * here directly, from constants, the issuer's name and key id, and the shared key's
 * SubjectPublicKeyInfo, and then signed. Each constant below is DER, with a comment that says what
 * it is. The tests check the result with OpenSSL's strict verifier.
 */
#include "tls/ca/ca_private.h"
#include "tls/der.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"

#define HOST_MAX 253
#define SERIAL_BYTES 16
#define BACKDATE_S (48 * 3600)
#define LIFE_S (7 * 24 * 3600)
#define SIGNATURE_MAX 80
#define NAME_MAX_BYTES 320 /* bytes of any DER name in a leaf */
#define EXTENSIONS_MAX 640

/* AlgorithmIdentifier ecdsa-with-SHA256 (RFC 5758 section 3.2) */
static const uint8_t ecdsa_sha256[] = {
        0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};
/* [0] EXPLICIT INTEGER 2: version 3 */
static const uint8_t version_3[] = {0xa0, 0x03, 0x02, 0x01, 0x02};
/* basicConstraints, critical, empty: not an authority */
static const uint8_t basic_constraints[] = {
        0x30, 0x0c, 0x06, 0x03, 0x55, 0x1d, 0x13, 0x01, 0x01, 0xff, 0x04, 0x02, 0x30, 0x00};
/* keyUsage, critical, digitalSignature */
static const uint8_t key_usage[] = {0x30, 0x0e, 0x06, 0x03, 0x55, 0x1d, 0x0f, 0x01, 0x01, 0xff,
        0x04, 0x04, 0x03, 0x02, 0x07, 0x80};
/* extKeyUsage, serverAuth */
static const uint8_t extended_key_usage[] = {0x30, 0x13, 0x06, 0x03, 0x55, 0x1d, 0x25, 0x04, 0x0c,
        0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01};
/* subjectKeyIdentifier up to its 20 bytes */
static const uint8_t subject_key_id[] = {
        0x30, 0x1d, 0x06, 0x03, 0x55, 0x1d, 0x0e, 0x04, 0x16, 0x04, 0x14};
/* authorityKeyIdentifier, keyIdentifier, up to its 20 bytes */
static const uint8_t authority_key_id[] = {
        0x30, 0x1f, 0x06, 0x03, 0x55, 0x1d, 0x23, 0x04, 0x18, 0x30, 0x16, 0x80, 0x14};
/* OID subjectAltName */
static const uint8_t subject_alt_name[] = {0x06, 0x03, 0x55, 0x1d, 0x11};
/* BOOLEAN TRUE: critical */
static const uint8_t critical[] = {0x01, 0x01, 0xff};
/* OID commonName */
static const uint8_t common_name[] = {0x06, 0x03, 0x55, 0x04, 0x03};

#define PUT(w, constant) writer_bytes((w), (constant), sizeof(constant))

static bool host_is_plain(struct slice host)
{
	if (host.n == 0 || host.n > HOST_MAX)
		return false;
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool digit = c >= '0' && c <= '9';
		if (!letter && !digit && c != '-' && c != '_' && c != '.')
			return false;
	}
	return true;
}

static void write_serial(struct writer *w)
{
	uint8_t serial[SERIAL_BYTES];

	random_bytes(serial, sizeof(serial));
	serial[0] = (serial[0] & 0x3f) | 0x40; /* positive, and in its shortest form */
	der_write(w, DER_INTEGER, slice_of(serial, sizeof(serial)));
}

static void write_validity(struct writer *w, int64_t from_s, int64_t to_s)
{
	uint8_t both[2 * 17];
	struct writer times = writer_over(both, sizeof(both));

	der_write_time(&times, from_s);
	der_write_time(&times, to_s);
	w->failed |= times.failed;
	der_write(w, DER_SEQUENCE, slice_of(both, times.len));
}

/* Name ::= SEQUENCE { SET { SEQUENCE { commonName, UTF8String } } }, or the empty SEQUENCE. */
static void write_subject(struct writer *w, struct slice name)
{
	if (name.n == 0 || name.n > CA_NAME_MAX) {
		der_write(w, DER_SEQUENCE, slice_of("", 0));
		return;
	}
	size_t attribute = sizeof(common_name) + 2 + name.n;
	der_write_header(w, DER_SEQUENCE, attribute + 4);
	der_write_header(w, DER_SET, attribute + 2);
	der_write_header(w, DER_SEQUENCE, attribute);
	PUT(w, common_name);
	der_write(w, DER_UTF8_STRING, name);
}

/* GeneralNames with one name: dNSName [2] or iPAddress [7]. */
static void write_alt_name(
        struct writer *w, struct slice host, const struct ip *address, bool is_critical)
{
	uint8_t name_bytes[NAME_MAX_BYTES], names_bytes[NAME_MAX_BYTES],
	        value_bytes[NAME_MAX_BYTES];
	struct writer name = writer_over(name_bytes, sizeof(name_bytes));
	struct writer names = writer_over(names_bytes, sizeof(names_bytes));
	struct writer value = writer_over(value_bytes, sizeof(value_bytes));

	if (host.n > 0)
		der_write(&name, DER_CONTEXT | 2, host);
	else
		der_write(&name, DER_CONTEXT | 7,
		        slice_of(address->bytes, address->family == 4 ? 4 : 16));
	der_write(&names, DER_SEQUENCE, slice_of(name_bytes, name.len));
	PUT(&value, subject_alt_name);
	if (is_critical)
		PUT(&value, critical);
	der_write(&value, DER_OCTET_STRING, slice_of(names_bytes, names.len));
	w->failed |= name.failed || names.failed || value.failed;
	der_write(w, DER_SEQUENCE, slice_of(value_bytes, value.len));
}

static void write_extensions(struct writer *w, const struct ca *issuer,
        const struct ca_leaf_key *key, struct slice host, const struct ip *address,
        bool subject_is_empty)
{
	uint8_t bytes[EXTENSIONS_MAX], list_bytes[EXTENSIONS_MAX];
	struct writer all = writer_over(bytes, sizeof(bytes));
	struct writer list = writer_over(list_bytes, sizeof(list_bytes));

	PUT(&all, basic_constraints);
	PUT(&all, key_usage);
	PUT(&all, extended_key_usage);
	PUT(&all, subject_key_id);
	PUT(&all, key->id);
	PUT(&all, authority_key_id);
	PUT(&all, issuer->key_id);
	write_alt_name(&all, host, address, subject_is_empty);
	der_write(&list, DER_SEQUENCE, slice_of(bytes, all.len));
	w->failed |= all.failed || list.failed;
	der_write(w, DER_CONTEXT_CONSTRUCTED | 3, slice_of(list_bytes, list.len));
}

/* The subject's common name: the host, or the address as text. Clients hold a name there against
 * an issuer's name constraints as a host name, which an address never is: then there is none. */
static struct slice subject_of(const struct ca *issuer, struct slice host, const struct ip *address,
        char text[IP_TEXT_MAX])
{
	if (host.n > 0)
		return host;
	return X509_get_ext_by_NID(issuer->certificate, NID_name_constraints, -1) >= 0
	               ? slice_of("", 0)
	               : slice_from_string(ip_format(address, text));
}

/* Writes the TBSCertificate into out[CA_CERTIFICATE_MAX]; returns its length, 0 on failure. */
static size_t write_tbs(uint8_t *out, const struct ca *issuer, const struct ca_leaf_key *key,
        struct slice host, const struct ip *address, int64_t from_s, int64_t to_s)
{
	uint8_t bytes[CA_CERTIFICATE_MAX];
	struct writer body = writer_over(bytes, sizeof(bytes));
	struct writer w = writer_over(out, CA_CERTIFICATE_MAX);
	char text[IP_TEXT_MAX];
	struct slice name = subject_of(issuer, host, address, text);

	PUT(&body, version_3);
	write_serial(&body);
	PUT(&body, ecdsa_sha256);
	writer_bytes(&body, issuer->name, issuer->name_n);
	write_validity(&body, from_s, to_s);
	write_subject(&body, name);
	writer_bytes(&body, key->spki, key->spki_n);
	write_extensions(&body, issuer, key, host, address, name.n == 0 || name.n > CA_NAME_MAX);
	der_write(&w, DER_SEQUENCE, slice_of(bytes, body.len));
	return body.failed || w.failed ? 0 : w.len;
}

/* Writes Certificate ::= SEQUENCE { tbs, algorithm, signature } into out[CA_CERTIFICATE_MAX];
 * returns its length, 0 on failure. */
static size_t write_leaf(uint8_t *out, const struct ca *issuer, struct slice tbs)
{
	uint8_t digest[32];
	uint8_t signature[SIGNATURE_MAX];
	size_t n = SIGNATURE_MAX;
	struct writer w = writer_over(out, CA_CERTIFICATE_MAX);

	if (!ca_sha256(tbs.p, tbs.n, digest) ||
	        EVP_PKEY_sign(issuer->signer, signature, &n, digest, sizeof(digest)) != 1)
		return 0;
	der_write_signed(
	        &w, tbs, slice_of(ecdsa_sha256, sizeof(ecdsa_sha256)), slice_of(signature, n));
	return w.failed ? 0 : w.len;
}

/* Makes the identity of a finished certificate; consumes leaf. */
static struct tls_identity *identify(
        X509 *leaf, const struct ca *issuer, const struct ca_leaf_key *key, int64_t expires_s)
{
	STACK_OF(X509) *chain = sk_X509_new_null();
	struct tls_identity *identity = NULL;

	if (chain && X509_add_cert(chain, issuer->certificate, X509_ADD_FLAG_UP_REF) &&
	        (!issuer->above || X509_add_certs(chain, issuer->above, X509_ADD_FLAG_UP_REF)))
		identity = tls_identity_new(leaf, key->key, chain, expires_s);
	if (!identity) {
		sk_X509_pop_free(chain, X509_free);
		X509_free(leaf);
		return NULL;
	}
	EVP_PKEY_up_ref(key->key);
	return identity;
}

struct tls_identity *ca_leaf_new(const struct ca *issuer, const struct ca_leaf_key *key,
        struct slice host, const struct ip *address)
{
	uint8_t tbs[CA_CERTIFICATE_MAX], der[CA_CERTIFICATE_MAX];
	int64_t now_s = clock_real_ms() / 1000, from_s = now_s - BACKDATE_S;
	int64_t to_s = from_s + LIFE_S < issuer->expires_s ? from_s + LIFE_S : issuer->expires_s;

	if (to_s <= now_s)
		return NULL;
	if (host.n > 0 ? !host_is_plain(host)
	               : !address || (address->family != 4 && address->family != 6))
		return NULL;
	size_t n = write_tbs(tbs, issuer, key, host, address, from_s, to_s);
	if (n > 0)
		n = write_leaf(der, issuer, slice_of(tbs, n));
	X509 *leaf = n > 0 ? tls_x509_parse(der, n) : NULL;
	struct tls_identity *identity = NULL;
	if (leaf)
		identity = identify(leaf, issuer, key, to_s);
	ERR_clear_error();
	return identity;
}
