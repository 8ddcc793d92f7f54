/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private keys of CAs as bytes. They leave only as PKCS#8 in secret memory; OpenSSL wipes its own
 * copies when a key is freed.
 */
#include "tls/ca/ca_private.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/param_build.h>

#define KEY_NUMBER_BYTES 32

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

EVP_PKEY *ca_key_from_der(struct slice der)
{
	const uint8_t *p = (const uint8_t *)der.p;

	if (der.n != KEY_DER_BYTES ||
	        memcmp(p, key_before_number, sizeof(key_before_number)) != 0 ||
	        memcmp(p + KEY_NUMBER_AT + KEY_NUMBER_BYTES, key_before_point,
	                sizeof(key_before_point)) != 0)
		return NULL;
	return key_from_parts(p + KEY_NUMBER_AT, p + KEY_POINT_AT);
}

const uint8_t *ca_key_point(struct slice der)
{
	return der.n == KEY_DER_BYTES ? (const uint8_t *)der.p + KEY_POINT_AT : NULL;
}

int ca_key_to_der(EVP_PKEY *key, struct secret *out)
{
	BIGNUM *number = BN_secure_new();
	size_t n = 0;
	int rc = number ? secret_alloc(out, KEY_DER_BYTES) : -ENOMEM;

	if (rc == 0) {
		memcpy(out->p, key_before_number, sizeof(key_before_number));
		memcpy(out->p + KEY_NUMBER_AT + KEY_NUMBER_BYTES, key_before_point,
		        sizeof(key_before_point));
		if (!EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) ||
		        BN_bn2binpad(number, out->p + KEY_NUMBER_AT, KEY_NUMBER_BYTES) !=
		                KEY_NUMBER_BYTES ||
		        !EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY,
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
