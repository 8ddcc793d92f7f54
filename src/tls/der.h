/* SPDX-License-Identifier: Apache-2.0 */
/* der: reads and writes DER (X.690) element by element, with the sticky cursors of base. */
#ifndef VETHGUARD_SRC_TLS_DER_H
#define VETHGUARD_SRC_TLS_DER_H

#include "vethguard/base/cursor.h"

enum {
	DER_INTEGER = 0x02,
	DER_BIT_STRING = 0x03,
	DER_OCTET_STRING = 0x04,
	DER_UTF8_STRING = 0x0c,
	DER_UTC_TIME = 0x17,
	DER_GENERALIZED_TIME = 0x18,
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_CONTEXT = 0x80,            /* | number: primitive */
	DER_CONTEXT_CONSTRUCTED = 0xa0 /* | number */
};

/* Returns the content of the next element, which must have this tag and a definite length of at
 * most 65535 in its shortest form; otherwise r fails. *whole, unless NULL, becomes the element with
 * its header. */
struct slice der_read(struct reader *r, uint8_t tag, struct slice *whole);
/* The tag of the next element, which is not taken; 0 at the end. */
uint8_t der_peek(const struct reader *r);

/* Writes one element with at most 65535 bytes of content; otherwise w fails. */
void der_write(struct writer *w, uint8_t tag, struct slice content);
/* Writes only the header; the caller writes the content next. */
void der_write_header(struct writer *w, uint8_t tag, size_t content_len);
/* Writes SEQUENCE { part, algorithm, BIT STRING of the signature }: a certificate, whose part that
 * is signed and whose AlgorithmIdentifier are DER already (RFC 5280 section 4.1). */
#define DER_SIGNED_MORE 16 /* bytes beside the three */
void der_write_signed(
        struct writer *w, struct slice part, struct slice algorithm, struct slice signature);
/* Writes seconds since the epoch as UTCTime until 2049 and as GeneralizedTime from 2050 on (RFC
 * 5280 section 4.1.2.5). */
void der_write_time(struct writer *w, int64_t seconds);

#endif
