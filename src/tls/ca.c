/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a process makes few roots and intermediates, so these go through OpenSSL's
 * X509 functions; leaves are made all the time and go through leaf.c. Private keys leave only as
 * PKCS#8 in secret memory; OpenSSL wipes its own copies when a key is freed. A public key is put
 * into a certificate, and found in one, as its point: OpenSSL's encoders and decoders, which do
 * this for any kind of key, take longer than everything else together.
 */
#include "tls/ca_internal.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "vethguard/base/hash.h"

#define KEY_NUMBER_BYTES 32
#define SERIAL_BYTES 20
#define BACKDATE_DAYS 2
#define VALIDITY_DAYS_MAX 36500

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
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

static bool set_serial(X509 *certificate)
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

static bool set_name(X509 *certificate, struct slice name)
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

static bool set_validity(X509 *certificate, unsigned days)
{
	return days > 0 && days <= VALIDITY_DAYS_MAX &&
	       X509_time_adj_ex(X509_getm_notBefore(certificate), -BACKDATE_DAYS, 0, NULL) &&
	       X509_time_adj_ex(
	               X509_getm_notAfter(certificate), (int)days - BACKDATE_DAYS, 0, NULL);
}

/* Sets what the struct keeps besides certificate and key. */
static bool derive(struct ca *ca)
{
	unsigned char *p = NULL;
	const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(ca->certificate);
	int n = i2d_X509(ca->certificate, &p);

	ca->der = p;
	if (n <= 0 || n > CA_CERTIFICATE_MAX)
		return false;
	ca->der_n = (size_t)n;
	p = NULL;
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

/* Sets everything except the signature. issuer: NULL for a root. */
static bool fill(X509 *certificate, EVP_PKEY *key, X509 *issuer, struct slice name, unsigned days)
{
	X509 *above = issuer ? issuer : certificate;

	return X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
	       set_name(certificate, name) && set_validity(certificate, days) &&
	       X509_set_issuer_name(certificate, X509_get_subject_name(above)) &&
	       set_public_key(certificate, key) &&
	       add_extension(certificate, above, NID_basic_constraints,
	               issuer ? "critical,CA:TRUE,pathlen:0" : "critical,CA:TRUE,pathlen:1") &&
	       add_extension(certificate, above, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_extension(certificate, above, NID_subject_key_identifier, "hash") &&
	       add_extension(certificate, above, NID_authority_key_identifier, "keyid:always");
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

static struct ca *make(const struct ca *issuer, struct slice name, unsigned days)
{
	struct ca *ca = calloc(1, sizeof(*ca));

	if (!ca)
		return NULL;
	tls_library_init();
	ca->certificate = X509_new_ex(tls_library(), NULL);
	ca->key = EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-256");
	if (!ca->certificate || !ca->key ||
	        !fill(ca->certificate, ca->key, issuer ? issuer->certificate : NULL, name, days) ||
	        !X509_sign(ca->certificate, issuer ? issuer->key : ca->key, EVP_sha256()) ||
	        !parse_again(ca) || !derive(ca)) {
		ca_free(ca);
		ca = NULL;
	}
	ERR_clear_error();
	return ca;
}

struct ca *ca_new_root(struct slice common_name, unsigned days)
{
	return make(NULL, common_name, days);
}

struct ca *ca_new_intermediate(const struct ca *root, struct slice common_name, unsigned days)
{
	return make(root, common_name, days);
}

/* PKCS#8 of a P-256 key (RFC 5958, RFC 5915) has one form, in which only the number and the point
 * vary. OpenSSL's own encoders and decoders leave copies of the number in memory. */
#define KEY_NUMBER_AT sizeof(key_before_number)
#define KEY_POINT_AT (KEY_NUMBER_AT + KEY_NUMBER_BYTES + sizeof(key_before_point))
#define KEY_DER_BYTES (KEY_POINT_AT + CA_POINT_BYTES)

static const uint8_t key_before_number[] = {0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06,
        0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, KEY_NUMBER_BYTES};
static const uint8_t key_before_point[] = {0xa1, 0x44, 0x03, 0x42, 0x00};

/* The parameters' copy of the number is in OpenSSL's secure heap, as the number itself is. */
static EVP_PKEY *key_from_parts(const uint8_t *number, const uint8_t *point)
{
	BIGNUM *n = BN_secure_new();
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(tls_library(), "EC", NULL);
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	if (n && build && ctx && BN_bin2bn(number, KEY_NUMBER_BYTES, n) &&
	        OSSL_PARAM_BLD_push_utf8_string(
	                build, OSSL_PKEY_PARAM_GROUP_NAME, SN_X9_62_prime256v1, 0) &&
	        OSSL_PARAM_BLD_push_BN_pad(build, OSSL_PKEY_PARAM_PRIV_KEY, n, KEY_NUMBER_BYTES) &&
	        OSSL_PARAM_BLD_push_octet_string(
	                build, OSSL_PKEY_PARAM_PUB_KEY, point, CA_POINT_BYTES))
		params = OSSL_PARAM_BLD_to_param(build);
	if (params && EVP_PKEY_fromdata_init(ctx) == 1)
		EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(ctx);
	BN_clear_free(n);
	return key;
}

static EVP_PKEY *key_from_der(struct slice der)
{
	const uint8_t *p = (const uint8_t *)der.p;

	if (der.n != KEY_DER_BYTES ||
	        memcmp(p, key_before_number, sizeof(key_before_number)) != 0 ||
	        memcmp(p + KEY_NUMBER_AT + KEY_NUMBER_BYTES, key_before_point,
	                sizeof(key_before_point)) != 0)
		return NULL;
	return key_from_parts(p + KEY_NUMBER_AT, p + KEY_POINT_AT);
}

struct ca *ca_from_der(struct slice certificate, struct slice key)
{
	struct ca *ca;

	if (certificate.n == 0 || certificate.n > CA_CERTIFICATE_MAX || key.n == 0 ||
	        key.n > CA_KEY_MAX)
		return NULL;
	ca = calloc(1, sizeof(*ca));
	if (!ca)
		return NULL;
	tls_library_init();
	ca->certificate = tls_x509_parse((const uint8_t *)certificate.p, certificate.n);
	ca->key = key_from_der(key);
	if (!ca->certificate || !ca->key || X509_check_ca(ca->certificate) != 1 ||
	        !has_public_key(ca->certificate, (const uint8_t *)key.p + KEY_POINT_AT) ||
	        !derive(ca)) {
		ca_free(ca);
		ca = NULL;
	}
	ERR_clear_error();
	return ca;
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
	BIGNUM *number = BN_secure_new();
	size_t n = 0;
	int rc = number ? secret_alloc(out, KEY_DER_BYTES) : -ENOMEM;

	if (rc == 0) {
		memcpy(out->p, key_before_number, sizeof(key_before_number));
		memcpy(out->p + KEY_NUMBER_AT + KEY_NUMBER_BYTES, key_before_point,
		        sizeof(key_before_point));
		if (!EVP_PKEY_get_bn_param(ca->key, OSSL_PKEY_PARAM_PRIV_KEY, &number) ||
		        BN_bn2binpad(number, out->p + KEY_NUMBER_AT, KEY_NUMBER_BYTES) !=
		                KEY_NUMBER_BYTES ||
		        !EVP_PKEY_get_octet_string_param(ca->key, OSSL_PKEY_PARAM_PUB_KEY,
		                out->p + KEY_POINT_AT, CA_POINT_BYTES, &n) ||
		        n != CA_POINT_BYTES) {
			secret_free(out);
			rc = -ENOMEM;
		} else {
			out->n = KEY_DER_BYTES;
		}
	}
	BN_clear_free(number);
	ERR_clear_error();
	return rc;
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
