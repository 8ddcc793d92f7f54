/* SPDX-License-Identifier: Apache-2.0 */
/* base64 (RFC 4648) of secrets: writes into the caller's memory and leaves no copies. */
#ifndef VETHGUARD_SRC_CREDENTIAL_BASE64_H
#define VETHGUARD_SRC_CREDENTIAL_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Size of the padded base64 of n bytes. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

extern const char base64_standard[64], base64_url[64];

/* Encodes with the standard alphabet and padding; out has room for BASE64_SIZE(n). Returns the
 * bytes written. */
size_t base64_encode(const uint8_t *p, size_t n, uint8_t *out);
/* Encodes only the characters whose six bits all come from p, if p is `lead` bytes (0 to 2)
 * behind the start of a group of three. out has room for BASE64_SIZE(n). Returns the number of
 * characters. */
size_t base64_inner(
        const uint8_t *p, size_t n, unsigned lead, const char alphabet[64], uint8_t *out);

#endif
