/* SPDX-License-Identifier: Apache-2.0 */
/* decode: undoes one encoding of a text, or of a run in it. Each writes at most as many bytes as it
 * reads, into out, which may not be the text itself, and returns their number. */
#ifndef VETHGUARD_SRC_DLP_DECODE_H
#define VETHGUARD_SRC_DLP_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_RUN_MIN 24 /* characters of base64: 18 bytes, fewer than the shortest key has */

#define DECODE_HEX_MIN 36 /* hex digits: 18 bytes */

struct decode_run {
	size_t at, n;
};

/* Finds the next run of characters of base64 from *at on, which may go over lines. */
bool decode_next_run(const uint8_t *text, size_t n, size_t at, struct decode_run *out);
/* Kinds of places that decode_kinds() looks for. If a kind's bit is not set, the text has no such
 * place. */
enum decode_kind {
	DECODE_PERCENT = 1,
	DECODE_ESCAPE = 2,
	DECODE_INVISIBLE = 4,
	DECODE_GZIP = 8, /* the first two bytes of such data */
	DECODE_ZLIB = 16,
	DECODE_ALL_KINDS = 31
};
unsigned decode_kinds(const uint8_t *text, size_t n);
/* Finds the next DECODE_HEX_MIN hex digits or more in a row. */
bool decode_next_hex(const uint8_t *text, size_t n, size_t at, struct decode_run *out);
/* Decodes base64 of either alphabet; passes over all other bytes. Returns the number of bits, six
 * for each character; those of the last byte that are beyond them are 0. */
size_t decode_base64(const uint8_t *text, size_t n, uint8_t *out);
/* Takes the first character off what was decoded: moves the bits by six. Returns how many are left.
 */
size_t decode_base64_next(uint8_t *decoded, size_t bits);
size_t decode_hex(const uint8_t *text, size_t n, uint8_t *out);
/* Decodes the next pairs of hex digits, from *from on, with one and the same sign between them.
 * Sets *from to the byte behind them. Returns the number of bytes; 0: there are no pairs. */
size_t decode_next_pairs(const uint8_t *text, size_t n, size_t *from, uint8_t *out);
/* Where the next escape of each kind begins, from at on; n: there is none. */
size_t decode_find_percent(const uint8_t *text, size_t n, size_t at);
size_t decode_find_escape(const uint8_t *text, size_t n, size_t at);
size_t decode_find_invisible(const uint8_t *text, size_t n, size_t at);
size_t decode_percent(const uint8_t *text, size_t n, uint8_t *out);
/* As forms have it: "+" is a space. */
size_t decode_form(const uint8_t *text, size_t n, uint8_t *out);
/* Those of JSON and of programming languages that stand for a byte. */
size_t decode_escapes(const uint8_t *text, size_t n, uint8_t *out);
/* Leaves out characters that nobody sees: zero-width ones, soft hyphens. */
size_t decode_invisible(const uint8_t *text, size_t n, uint8_t *out);

#endif
