/* SPDX-License-Identifier: Apache-2.0 */
/* raw_signature: signatures of P-256 as r and s, one after the other (RFC 7518 section 3.4), and in
 * the ASN.1 that OpenSSL takes. */
#ifndef VETHGUARD_SRC_TLS_SIGNATURE_RAW_SIGNATURE_H
#define VETHGUARD_SRC_TLS_SIGNATURE_RAW_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAW_SIGNATURE_BYTES 64
#define DER_SIGNATURE_MAX 80

/* Returns the length, or 0. */
size_t raw_signature_to_der(const uint8_t raw[RAW_SIGNATURE_BYTES], uint8_t der[DER_SIGNATURE_MAX]);
bool raw_signature_from_der(const uint8_t *der, size_t n, uint8_t raw[RAW_SIGNATURE_BYTES]);

#endif
