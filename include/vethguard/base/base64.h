/* SPDX-License-Identifier: Apache-2.0 */
/* base64 (RFC 4648), also of secrets: writes into the caller's memory and leaves no copies. */
#ifndef VETHGUARD_BASE_BASE64_H
#define VETHGUARD_BASE_BASE64_H

#include <sys/types.h>

#include "vethguard/base/buf.h"

/* Characters for n bytes, with padding. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

/* The alphabets of sections 4 and 5. */
extern const char base64_standard[64], base64_url[64];

/* Encodes; out has room for BASE64_SIZE(n). base64_standard gets padding, base64_url none. Returns the number of
 * characters. */
size_t base64_encode(const void *p, size_t n, const char alphabet[64], void *out);
/* Appends the bytes in the standard alphabet, with padding. Returns 0, -ENOBUFS or -ENOMEM; on failure a part may have
 * been appended. */
int base64_append(struct buf *out, struct slice bytes);
/* Encodes only the characters whose six bits all come from p, if p is `lead` bytes (0 to 2) behind the start of a
 * group of three. out has room for BASE64_SIZE(n). Returns the number of characters. */
size_t base64_inner(const void *p, size_t n, unsigned lead, const char alphabet[64], void *out);

/* What base64_decode() accepts beside strict base64: the standard alphabet, whole padding or none, unused bits
 * zero. */
enum base64_accept {
	BASE64_STRICT = 0,
	BASE64_EITHER = 1,  /* a character may be of either alphabet */
	BASE64_LENIENT = 2, /* unused bits may be anything, and the padding cut */
	BASE64_LINES = 4    /* blanks and line ends between characters; the padding is whole */
};

/* Decodes into out. accept: values of base64_accept, ORed. Returns the number of bytes, at most cap; -EBADMSG; or
 * -ENOBUFS: there are more. */
ssize_t base64_decode(struct slice text, unsigned accept, void *out, size_t cap);

#endif
