/* SPDX-License-Identifier: Apache-2.0 */
/* base64 (RFC 4648) of secrets: into memory the caller owns, nothing is left on the way. */
#ifndef VETHGUARD_SRC_CREDENTIAL_BASE64_H
#define VETHGUARD_SRC_CREDENTIAL_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of base64 with padding for n bytes. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

extern const char base64_standard[64], base64_url[64];

/* Standard alphabet with padding; out has room for BASE64_SIZE(n). Returns the bytes written. */
size_t base64_encode(const uint8_t *p, size_t n, uint8_t *out);
/* The characters that p alone determines where it stands `lead` bytes (0 to 2) behind the start of
 * a group of three: those whose six bits all come from p. out has room for BASE64_SIZE(n). Returns
 * their number. */
size_t base64_inner(
        const uint8_t *p, size_t n, unsigned lead, const char alphabet[64], uint8_t *out);

#endif
