/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice: a borrowed run of bytes. It owns nothing, is not NUL-terminated, and may hold any byte.
 */
#ifndef VETHGUARD_BASE_SLICE_H
#define VETHGUARD_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
	const char *p;
	size_t n;
};

/* For printf("%.*s", SLICE_ARG(s)). The caller has to make sure that s has nothing that a terminal interprets. */
#define SLICE_ARG(s) (int)(s).n, (s).p
/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

static inline struct slice slice_of(const void *p, size_t n)
{
	return (struct slice){p, n};
}

static inline struct slice slice_from_string(const char *s)
{
	return (struct slice){s, s ? strlen(s) : 0};
}

static inline bool slice_equals(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The value of a hexadecimal digit of either case, or -1. */
static inline int slice_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Compares ASCII letters without regard to case, as for field names (RFC 9110 section 5.1) and host names. */
bool slice_equals_ignoring_case(struct slice a, struct slice b);
bool slice_starts_with(struct slice s, struct slice prefix);
bool slice_ends_with(struct slice s, struct slice suffix);
/* The index of the first c in s, or -1. */
ptrdiff_t slice_find_byte(struct slice s, char c);
/* s without leading and trailing space and tab: OWS of RFC 9110 section 5.6.3. */
struct slice slice_trim(struct slice s);
/* Parses the whole slice as decimal digits without a sign. Returns false if it is empty, has another byte or exceeds
 * max. */
bool slice_to_u64(struct slice s, uint64_t max, uint64_t *out);
/* How many bytes at the beginning of s are allowed in a token (RFC 9110 section 5.6.2). */
size_t slice_token_length(struct slice s);
/* Writes s to out (out_size > 0, NUL-terminated) as printable ASCII: other bytes and backslash become \xNN; a text
 * that does not fit ends in "...". Returns out. Use it for everything from a sandbox or the network. */
char *slice_escape(struct slice s, char *out, size_t out_size);
/* The same, but keeps backslashes: for a text whose parts were escaped before. */
char *slice_escape_controls(struct slice s, char *out, size_t out_size);

#endif
