/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/signature/raw_signature.h"

#include <openssl/ecdsa.h>

#define HALF_BYTES (RAW_SIGNATURE_BYTES / 2) /* of r and s */

size_t raw_signature_to_der(const uint8_t raw[RAW_SIGNATURE_BYTES], uint8_t der[DER_SIGNATURE_MAX])
{
	ECDSA_SIG *signature = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(raw, HALF_BYTES, NULL);
	BIGNUM *s = BN_bin2bn(raw + HALF_BYTES, HALF_BYTES, NULL);
	uint8_t *p = der;
	int n = 0;

	if (signature && r && s && ECDSA_SIG_set0(signature, r, s) == 1) {
		n = i2d_ECDSA_SIG(signature, NULL);
		n = n > 0 && n <= DER_SIGNATURE_MAX ? i2d_ECDSA_SIG(signature, &p) : 0;
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(signature);
	return n > 0 ? (size_t)n : 0;
}

bool raw_signature_from_der(const uint8_t *der, size_t n, uint8_t raw[RAW_SIGNATURE_BYTES])
{
	ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)n);
	bool good = signature &&
	            BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, HALF_BYTES) == HALF_BYTES &&
	            BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + HALF_BYTES, HALF_BYTES) ==
	                    HALF_BYTES;

	ECDSA_SIG_free(signature);
	return good;
}
