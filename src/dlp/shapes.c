/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of formats with a checksum, of what can be decoded, and of texts around keys. A checksum
 * that is right makes the surroundings of a token unimportant. A token whose checksum is wrong
 * still counts where nothing adjoins it: it may be of another make, and a program must not get it
 * past by altering a character.
 */
#include "dlp/shapes.h"

#include <string.h>
#include <zlib.h>

#include "vethguard/base/base64.h"

#define EVEN_MAX 128 /* bytes of a run that are counted */

/* Bit i of a byte's entry: the byte is of class i. */
static uint8_t members[256];
_Static_assert(CLASS_COUNT <= 8, "a bit for each class");

static unsigned classes_of(uint8_t c)
{
	const bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'Z';
	const bool lower = c >= 'a' && c <= 'z', alnum = digit || upper || lower;
	const bool word = alnum || c == '-' || c == '_';

	return (unsigned)alnum << CLASS_ALNUM | (unsigned)word << CLASS_WORD |
	       (unsigned)(word || c == '.' || c == '=' || c == '~') << CLASS_TOKEN |
	       (unsigned)(word || c == '+' || c == '/' || c == '=') << CLASS_BASE64 |
	       (unsigned)(upper || (c >= '2' && c <= '7')) << CLASS_BASE32 |
	       (unsigned)(upper || digit) << CLASS_CAPS |
	       (unsigned)(lower || digit) << CLASS_LOWER |
	       (unsigned)(slice_hex_digit((char)c) >= 0) << CLASS_HEX;
}

bool shape_is(enum shape_class class, uint8_t c)
{
	if (!members['a'])
		for (unsigned i = 0; i < 256; i++)
			members[i] = (uint8_t)classes_of((uint8_t)i);
	return members[c] >> class & 1;
}

size_t shape_run(enum shape_class class, const uint8_t *text, size_t n, size_t max)
{
	size_t run = 0;

	while (run < n && run < max && shape_is(class, text[run]))
		run++;
	return run;
}

size_t shape_run_before(enum shape_class class, const uint8_t *text, size_t at, size_t max)
{
	size_t run = 0;

	while (run < at && run < max && shape_is(class, text[at - 1 - run]))
		run++;
	return run;
}

bool shape_is_even(const uint8_t *p, size_t n, unsigned letters)
{
	uint8_t counts[256] = {0};
	size_t squares = 0;

	if (n > EVEN_MAX)
		n = EVEN_MAX;
	for (size_t i = 0; i < n; i++)
		squares += 2u * counts[p[i]]++ + 1;
	return n * n >= letters * squares;
}

#define TAG_N 2 /* a field's tag and length may adjoin the text of the field before */

/* True if the byte before the token is its length, as in a message of Protocol Buffers. */
static bool follows_length(const struct shape_place *p)
{
	size_t n = p->literal_n + p->run, length = p->text[p->at - 1];

	return length <= n && n - length <= TAG_N;
}

bool shape_bounded(const struct shape_place *p)
{
	return p->at == 0 || !shape_is_alnum(p->text[p->at - 1]) || follows_length(p);
}

bool shape_exact(const struct shape_place *p)
{
	size_t end = p->at + p->literal_n + p->run;

	return shape_bounded(p) && (end >= p->n || !shape_is_alnum(p->text[end]));
}

/* --- checksums --- */

#define CRC_DIGITS 6

/* The CRC-32 as six digits of base 62. */
static void crc_digits(const void *p, size_t n, char out[CRC_DIGITS])
{
	static const char digits[] =
	        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	unsigned long crc = crc32(0, p, (unsigned)n);

	for (size_t i = CRC_DIGITS; i-- > 0; crc /= 62)
		out[i] = digits[crc % 62];
}

#define GITHUB_BODY 30

/* 30 characters, and six of a checksum over these. */
static bool has_crc(const struct shape_place *p)
{
	char digits[CRC_DIGITS];

	if (p->run < GITHUB_BODY + CRC_DIGITS)
		return false;
	crc_digits(shape_behind(p), GITHUB_BODY, digits);
	return memcmp(shape_behind(p) + GITHUB_BODY, digits, CRC_DIGITS) == 0;
}

bool shape_github(const struct shape_place *p)
{
	return has_crc(p) || shape_bounded(p);
}

bool shape_npm(const struct shape_place *p)
{
	return has_crc(p) || (p->run >= GITHUB_BODY + CRC_DIGITS && shape_bounded(p));
}

#define GRAFANA_BODY 32
#define GRAFANA_CRC 8

/* 32 characters, "_", and the CRC-32 of all before that in hex digits. */
bool shape_grafana(const struct shape_place *p)
{
	const uint8_t *body = shape_behind(p);
	size_t left = p->n - p->at - p->literal_n;

	return left >= GRAFANA_BODY + 1 + GRAFANA_CRC && body[GRAFANA_BODY] == '_' &&
	       shape_run(CLASS_ALNUM, body, left, GRAFANA_BODY) == GRAFANA_BODY &&
	       shape_run(CLASS_HEX, body + GRAFANA_BODY + 1, GRAFANA_CRC, GRAFANA_CRC) ==
	               GRAFANA_CRC;
}

/* --- what can be decoded --- */

#define JWT_HEAD_MAX 1024

/* A header that is JSON with "alg", a payload, and a signature. */
bool shape_jwt(const struct shape_place *p)
{
	const uint8_t *start = p->text + p->at;
	size_t left = p->n - p->at, head, body;
	uint8_t json[JWT_HEAD_MAX];
	ssize_t n;

	head = shape_run(CLASS_WORD, start, left, JWT_HEAD_MAX);
	if (head + 1 >= left || start[head] != '.')
		return false;
	body = shape_run(CLASS_WORD, start + head + 1, left - head - 1, left);
	if (body < 4 || head + 1 + body >= left || start[head + 1 + body] != '.')
		return false;
	n = base64_decode(
	        slice_of(start, head), BASE64_EITHER | BASE64_LENIENT, json, sizeof(json));
	return n > 2 && json[0] == '{' && json[n - 1] == '}' &&
	       memmem(json, (size_t)n, "\"alg\"", 5);
}

#define MACAROON_HEAD 24 /* characters that hold the head and the location's first bytes */

/* A macaroon of version 2 whose location is an index of packages: 2, 1, length, "pypi.org". */
bool shape_pypi(const struct shape_place *p)
{
	const uint8_t *start = p->text + p->at + 5;
	uint8_t out[MACAROON_HEAD];
	ssize_t n = base64_decode(
	        slice_of(start, MACAROON_HEAD), BASE64_EITHER | BASE64_LENIENT, out, sizeof(out));

	return n > 11 && out[0] == 2 && out[1] == 1 &&
	       memmem(out + 3, (size_t)n - 3, "pypi.org", 8);
}

/* --- texts --- */

#define PEM_LABEL_MAX 40
#define PEM_BODY_MIN 16
#define PEM_GAP_MAX 64 /* bytes between the first line and the key, or its headers */

/* True for what stands between lines: white space, as forms write it too, and what strings of
 * programs put around. */
static bool is_between_lines(const uint8_t *p, size_t left)
{
	static const char signs[] = " \t\r\n\"'+";

	return strchr(signs, *p) ? *p != 0
	                         : *p == '\\' || (left > 1 && p[-1] == '\\' && strchr("nr", *p));
}

/* "-----BEGIN ... PRIVATE KEY ...-----" and some of the key or a header; line ends may be written
 * as escapes. */
bool shape_pem(const struct shape_place *p)
{
	static const char *const headers[] = {"Proc-Type:", "DEK-Info:", "Version:", "Comment:"};
	const uint8_t *label = shape_behind(p);
	size_t left = p->n - p->at - p->literal_n, n = 0, gap = 0;

	while (n < left && n < PEM_LABEL_MAX && label[n] != '-')
		n++;
	if (!(memmem(label, n, "PRIVATE KEY", 11) || memmem(label, n, "PRIVATE+KEY", 11)) ||
	        left - n < 5 || memcmp(label + n, "-----", 5) != 0)
		return false;
	for (n += 5; n < left && gap < PEM_GAP_MAX && is_between_lines(label + n, left - n); gap++)
		n++;
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (left - n > strlen(headers[i]) &&
		        memcmp(label + n, headers[i], strlen(headers[i])) == 0)
			return true;
	return shape_run(CLASS_BASE64, label + n, left - n, PEM_BODY_MIN) == PEM_BODY_MIN;
}

bool shape_openssh(const struct shape_place *p)
{
	return p->at + p->literal_n < p->n && *shape_behind(p) == 0;
}

bool shape_putty(const struct shape_place *p)
{
	size_t left = p->n - p->at - p->literal_n;

	return left >= 2 && shape_behind(p)[0] >= '1' && shape_behind(p)[0] <= '9' &&
	       shape_behind(p)[1] == ':';
}
