/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a process makes few roots and intermediates, so these go through OpenSSL's
 * X509 functions; leaves are made all the time and go through leaf.c. A public key is put
 * into a certificate, and found in one, as its point: OpenSSL's encoders and decoders, which do
 * this for any kind of key, take longer than everything else together.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vethguard/base/hash.h"
#include "vethguard/tls/ca_names.h"

#define SERIAL_BYTES 20
#define BACKDATE_DAYS 2
#define VALIDITY_DAYS_MAX 36500

bool ca_add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool ok = extension && X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	return ok;
}

bool ca_set_serial(X509 *certificate)
{
	uint8_t bytes[SERIAL_BYTES];
	BIGNUM *number;

	random_bytes(bytes, sizeof(bytes));
	bytes[0] = (bytes[0] & 0x3f) | 0x40; /* positive, and always of this length */
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
	BN_free(number);
	return ok;
}

bool ca_set_name(X509 *certificate, struct slice name)
{
	size_t n = name.n;

	if (n > CA_NAME_MAX) {
		n = CA_NAME_MAX;
		while (n > 0 &&
		        ((uint8_t)name.p[n] & 0xc0) == 0x80) /* not inside a UTF-8 character */
			n--;
	}
	return n > 0 &&
	       X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
	               MBSTRING_UTF8, (const unsigned char *)name.p, (int)n, -1, 0);
}

int64_t ca_time_s(const ASN1_TIME *time)
{
	struct tm tm;

	return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* What an issuer signs ends with it at the latest. issuer: NULL for a root. */
static bool set_validity(X509 *certificate, const X509 *issuer, unsigned days)
{
	if (days == 0 || days > VALIDITY_DAYS_MAX ||
	        !X509_time_adj_ex(X509_getm_notBefore(certificate), -BACKDATE_DAYS, 0, NULL) ||
	        !X509_time_adj_ex(
	                X509_getm_notAfter(certificate), (int)days - BACKDATE_DAYS, 0, NULL))
		return false;
	return !issuer ||
	       ca_time_s(X509_get0_notAfter(issuer)) >=
	               ca_time_s(X509_get0_notAfter(certificate)) ||
	       X509_set1_notAfter(certificate, X509_get0_notAfter(issuer)) == 1;
}

static bool set_der(struct ca *ca)
{
	unsigned char *p = NULL;
	int n = i2d_X509(ca->certificate, &p);

	ca->der = p;
	ca->der_n = n > 0 ? (size_t)n : 0;
	ca->expires_s = ca_time_s(X509_get0_notAfter(ca->certificate));
	return n > 0 && n <= CA_CERTIFICATE_MAX && ca->expires_s > 0;
}

/* Sets what the struct keeps besides certificate and key. */
static bool derive(struct ca *ca)
{
	unsigned char *p = NULL;
	const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(ca->certificate);
	int n;

	if (!set_der(ca))
		return false;
	n = i2d_X509_NAME(X509_get_subject_name(ca->certificate), &p);
	ca->name = p;
	if (n <= 0 || !id || ASN1_STRING_length(id) != CA_KEY_ID_BYTES)
		return false;
	ca->name_n = (size_t)n;
	memcpy(ca->key_id, ASN1_STRING_get0_data(id), CA_KEY_ID_BYTES);
	ca->signer = EVP_PKEY_CTX_new_from_pkey(tls_library(), ca->key, NULL);
	return ca->signer && EVP_PKEY_sign_init(ca->signer) == 1 &&
	       EVP_PKEY_CTX_set_signature_md(ca->signer, EVP_sha256()) == 1;
}

static bool set_public_key(X509 *certificate, EVP_PKEY *key)
{
	unsigned char *point = OPENSSL_malloc(CA_POINT_BYTES);

	if (point && ca_point(key, point) &&
	        X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(certificate),
	                OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
	                OBJ_nid2obj(NID_X9_62_prime256v1), point, CA_POINT_BYTES) == 1)
		return true; /* the certificate now owns point */
	OPENSSL_free(point);
	return false;
}

/* True if the certificate's public key is on P-256 and is this point. */
static bool has_public_key(const X509 *certificate, const uint8_t point[CA_POINT_BYTES])
{
	const unsigned char *bytes;
	const void *curve;
	ASN1_OBJECT *kind;
	X509_ALGOR *algorithm;
	int n, type;

	if (X509_PUBKEY_get0_param(
	            &kind, &bytes, &n, &algorithm, X509_get_X509_PUBKEY(certificate)) != 1 ||
	        OBJ_obj2nid(kind) != NID_X9_62_id_ecPublicKey || n != CA_POINT_BYTES)
		return false;
	X509_ALGOR_get0(NULL, &type, &curve, algorithm);
	return type == V_ASN1_OBJECT && OBJ_obj2nid(curve) == NID_X9_62_prime256v1 &&
	       memcmp(bytes, point, CA_POINT_BYTES) == 0;
}

/* names: of ca_names.h; NULL: any name. */
static bool add_names(X509 *certificate, X509 *issuer, const char *names)
{
	char value[sizeof("critical,") + CA_NAMES_MAX];

	if (!names)
		return true;
	return snprintf(value, sizeof(value), "critical,%s", names) < (int)sizeof(value) &&
	       ca_add_extension(certificate, issuer, NID_name_constraints, value);
}

/* Sets everything except the signature. issuer: NULL for a root. */
static bool fill(X509 *certificate, EVP_PKEY *key, X509 *issuer, const struct ca_wanted *wanted)
{
	X509 *above = issuer ? issuer : certificate;

	return X509_set_version(certificate, X509_VERSION_3) && ca_set_serial(certificate) &&
	       ca_set_name(certificate, wanted->name) &&
	       set_validity(certificate, issuer, wanted->days) &&
	       X509_set_issuer_name(certificate, X509_get_subject_name(above)) &&
	       set_public_key(certificate, key) &&
	       ca_add_extension(certificate, above, NID_basic_constraints,
	               issuer ? "critical,CA:TRUE,pathlen:0" : "critical,CA:TRUE,pathlen:1") &&
	       ca_add_extension(
	               certificate, above, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_names(certificate, above, wanted->names) &&
	       ca_add_extension(certificate, above, NID_subject_key_identifier, "hash") &&
	       ca_add_extension(certificate, above, NID_authority_key_identifier, "keyid:always");
}

/* Parses the certificate again, so that OpenSSL knows the public key, which was set as a point. */
static bool parse_again(struct ca *ca)
{
	unsigned char *der = NULL;
	int n = i2d_X509(ca->certificate, &der);

	X509_free(ca->certificate);
	ca->certificate = n > 0 ? tls_x509_parse(der, (size_t)n) : NULL;
	OPENSSL_free(der);
	return ca->certificate != NULL;
}

bool ca_prepare(struct ca **out, const struct ca *issuer, const struct ca_wanted *wanted)
{
	struct ca *ca = *out = calloc(1, sizeof(*ca));

	if (!ca)
		return false;
	tls_library_init();
	ca->certificate = X509_new_ex(tls_library(), NULL);
	ca->key = EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256");
	return ca->certificate && ca->key &&
	       fill(ca->certificate, ca->key, issuer ? issuer->certificate : NULL, wanted);
}

bool ca_complete(struct ca *ca)
{
	return parse_again(ca) && derive(ca);
}

static struct ca *make(const struct ca *issuer, const struct ca_wanted *wanted)
{
	struct ca *ca;

	if (!ca_prepare(&ca, issuer, wanted) ||
	        !X509_sign(ca->certificate, issuer ? issuer->key : ca->key, EVP_sha256()) ||
	        !ca_complete(ca)) {
		ca_free(ca);
		ca = NULL;
	}
	ERR_clear_error();
	return ca;
}

struct ca *ca_adopt(X509 *certificate, EVP_PKEY *key, bool is_issuer)
{
	struct ca *ca = calloc(1, sizeof(*ca));

	if (!ca) {
		X509_free(certificate);
		EVP_PKEY_free(key);
		return NULL;
	}
	ca->certificate = certificate;
	ca->key = key;
	if (!certificate || !key || X509_check_ca(certificate) != 1 ||
	        !(is_issuer ? derive(ca) : set_der(ca))) {
		ca_free(ca);
		ca = NULL;
	}
	ERR_clear_error();
	return ca;
}

struct ca *ca_new_root(struct slice common_name, unsigned days)
{
	return make(NULL, &(struct ca_wanted){common_name, days, NULL});
}

struct ca *ca_new_intermediate(const struct ca *root, struct slice common_name, unsigned days)
{
	return ca_new_intermediate_for(root, &(struct ca_wanted){common_name, days, NULL});
}

struct ca *ca_new_intermediate_for(const struct ca *root, const struct ca_wanted *wanted)
{
	return root->elsewhere ? NULL : make(root, wanted);
}

bool ca_key_is_elsewhere(const struct ca *ca)
{
	return ca->elsewhere;
}

struct ca *ca_from_der(struct slice certificate, struct slice key)
{
	if (certificate.n == 0 || certificate.n > CA_CERTIFICATE_MAX || key.n == 0 ||
	        key.n > CA_KEY_MAX)
		return NULL;
	tls_library_init();
	X509 *x509 = tls_x509_parse((const uint8_t *)certificate.p, certificate.n);
	const uint8_t *point = ca_key_point(key);
	if (x509 && (!point || !has_public_key(x509, point))) {
		X509_free(x509);
		x509 = NULL;
	}
	return ca_adopt(x509, x509 ? ca_key_from_der(key) : NULL, true);
}

int ca_set_chain(struct ca *ca, const struct slice *der, size_t count)
{
	STACK_OF(X509) *above = count > CA_CHAIN_MAX ? NULL : sk_X509_new_null();
	int rc = count > CA_CHAIN_MAX ? -EINVAL : above ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && rc == 0; i++) {
		X509 *x509 = tls_x509_parse((const uint8_t *)der[i].p, der[i].n);

		if (!x509)
			rc = -EBADMSG;
		else if (!sk_X509_push(above, x509))
			rc = -ENOMEM;
		if (rc)
			X509_free(x509);
	}
	ERR_clear_error();
	if (rc) {
		sk_X509_pop_free(above, X509_free);
		return rc;
	}
	sk_X509_pop_free(ca->above, X509_free);
	ca->above = above;
	return 0;
}

int64_t ca_expires_s(const struct ca *ca)
{
	return ca->expires_s;
}

void ca_warm_up(void)
{
	struct ca *made = ca_new_root(SLICE("warm-up"), 1);
	struct secret key = {0};

	if (made && ca_key_der(made, &key) == 0)
		ca_free(ca_from_der(ca_certificate_der(made), secret_slice(&key)));
	secret_free(&key);
	ca_free(made);
	ca_leaf_key_free(ca_leaf_key_new(TLS_KEY_ECDSA));
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	EVP_PKEY_CTX_free(ca->signer);
	EVP_PKEY_free(ca->key);
	X509_free(ca->certificate);
	sk_X509_pop_free(ca->above, X509_free);
	OPENSSL_free(ca->der);
	OPENSSL_free(ca->name);
	free(ca);
}

struct slice ca_certificate_der(const struct ca *ca)
{
	return slice_of(ca->der, ca->der_n);
}

int ca_key_der(const struct ca *ca, struct secret *out)
{
	return ca->elsewhere ? -ENOKEY : ca_key_to_der(ca->key, out);
}

int ca_pem_append(struct slice der, struct buf *out)
{
	static const struct slice begin = {"-----BEGIN CERTIFICATE-----\n", 28};
	static const struct slice end = {"-----END CERTIFICATE-----\n", 26};
	const size_t line_bytes = 48; /* 64 characters */
	size_t before = out->len;
	int rc = der.n > CA_CERTIFICATE_MAX ? -EINVAL : buf_append_slice(out, begin);

	while (rc == 0 && der.n > 0) {
		unsigned char line[66];
		size_t n = der.n < line_bytes ? der.n : line_bytes;
		int text = EVP_EncodeBlock(line, (const unsigned char *)der.p, (int)n);
		line[text] = '\n';
		rc = buf_append(out, line, (size_t)text + 1);
		der.p += n;
		der.n -= n;
	}
	if (rc == 0)
		rc = buf_append_slice(out, end);
	if (rc < 0)
		out->len = before;
	return rc;
}
