/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lexical grammar: section 2.1 of the specification. Blanks, line ends, commas and comments
 * separate tokens. A comment with a CR alone, or with a line separator of Unicode, is refused,
 * because for some readers the comment ends there.
 */
#include "policy/graphql/graphql_lexer.h"

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char at(const struct graphql_lexer *l, size_t n)
{
	return (size_t)(l->end - l->p) > n ? l->p[n] : '\0';
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' && c != '\t' && c != '\n' && c != '\r';
}

/* Returns false if the comment is refused. */
static bool skip_comment(struct graphql_lexer *l)
{
	for (; l->p < l->end && *l->p != '\n'; l->p++) {
		if (*l->p == '\r')
			return at(l, 1) == '\n';
		if (is_control(*l->p))
			return false;
		if (at(l, 0) == '\xe2' && at(l, 1) == '\x80' && (at(l, 2) & '\xfe') == '\xa8')
			return false;
	}
	return true;
}

static bool skip_ignored(struct graphql_lexer *l)
{
	for (; l->p < l->end; l->p++) {
		if (*l->p == '#') {
			if (!skip_comment(l))
				return false;
			if (l->p == l->end)
				return true;
		}
		if (*l->p != ' ' && *l->p != '\t' && *l->p != '\n' && *l->p != '\r' && *l->p != ',')
			return true;
	}
	return true;
}

static size_t digits(struct graphql_lexer *l)
{
	size_t n = 0;

	for (; is_digit(at(l, 0)); n++)
		l->p++;
	return n;
}

/* Reads a number. A digit, a dot or a name directly behind it is an error. */
static int read_number(struct graphql_lexer *l)
{
	size_t n;

	l->p += *l->p == '-';
	if (at(l, 0) == '0' && is_digit(at(l, 1)))
		return GRAPHQL_BROKEN;
	n = digits(l);
	if (n > 0 && at(l, 0) == '.') {
		l->p++;
		n = digits(l);
	}
	if (n > 0 && (at(l, 0) | 0x20) == 'e') {
		l->p++;
		if (at(l, 0) == '+' || at(l, 0) == '-')
			l->p++;
		n = digits(l);
	}
	return n == 0 || at(l, 0) == '.' || is_name_start(at(l, 0)) ? GRAPHQL_BROKEN
	                                                            : GRAPHQL_NUMBER;
}

/* Reads a block string. l->p: behind the three quotes that begin it. */
static int read_block(struct graphql_lexer *l)
{
	while (l->p < l->end) {
		bool quotes = at(l, 1) == '"' && at(l, 2) == '"';

		if (is_control(*l->p))
			return GRAPHQL_BROKEN;
		if (*l->p == '\\' && quotes && at(l, 3) == '"') {
			l->p += 4;
		} else if (*l->p == '"' && quotes) {
			l->p += 3;
			return GRAPHQL_STRING;
		} else {
			l->p++;
		}
	}
	return GRAPHQL_BROKEN;
}

/* Reads `count` hex digits, or with 0 as many as there are. Returns -1 if there are none, or too
 * many for a character. */
static int32_t read_hex(struct graphql_lexer *l, unsigned count)
{
	int32_t value = 0;
	unsigned n = 0;
	int digit;

	for (; (count == 0 || n < count) && (digit = slice_hex_digit(at(l, 0))) >= 0; n++) {
		value = value << 4 | digit;
		if (value > 0x10ffff)
			return -1;
		l->p++;
	}
	return n == 0 || (count && n < count) ? -1 : value;
}

/* Reads an escape. l->p: behind "\u". Half of a surrogate pair is an error without the other
 * half. */
static bool read_unicode(struct graphql_lexer *l)
{
	bool braces = at(l, 0) == '{';
	int32_t value;

	l->p += braces;
	value = read_hex(l, braces ? 0 : 4);
	if (braces) {
		if (at(l, 0) != '}')
			return false;
		l->p++;
		return value >= 0 && (value < 0xd800 || value > 0xdfff);
	}
	if (value < 0xd800 || value > 0xdfff)
		return value >= 0;
	if (value > 0xdbff || at(l, 0) != '\\' || at(l, 1) != 'u')
		return false;
	l->p += 2;
	value = read_hex(l, 4);
	return value >= 0xdc00 && value <= 0xdfff;
}

/* Reads a string. l->p: at the quote that begins it. */
static int read_string(struct graphql_lexer *l)
{
	if (at(l, 1) == '"' && at(l, 2) == '"') {
		l->p += 3;
		return read_block(l);
	}
	for (l->p++; l->p < l->end && *l->p != '\n' && *l->p != '\r' && !is_control(*l->p);) {
		if (*l->p == '"') {
			l->p++;
			return GRAPHQL_STRING;
		}
		if (*l->p++ != '\\')
			continue;
		if (at(l, 0) == 'u') {
			l->p++;
			if (!read_unicode(l))
				return GRAPHQL_BROKEN;
		} else if (at(l, 0) && slice_find_byte(SLICE("\"\\/bfnrt"), at(l, 0)) >= 0) {
			l->p++;
		} else {
			return GRAPHQL_BROKEN;
		}
	}
	return GRAPHQL_BROKEN;
}

static int read_name(struct graphql_lexer *l)
{
	const char *begin = l->p;

	while (l->p < l->end && (is_name_start(*l->p) || is_digit(*l->p)))
		l->p++;
	l->name = slice_of(begin, (size_t)(l->p - begin));
	return GRAPHQL_NAME;
}

static int read_token(struct graphql_lexer *l)
{
	char c;

	if (!skip_ignored(l))
		return GRAPHQL_BROKEN;
	if (l->p == l->end)
		return GRAPHQL_END;
	c = *l->p;
	if (is_name_start(c))
		return read_name(l);
	if (slice_find_byte(SLICE("!$&():=@[]{|}"), c) >= 0) {
		l->p++;
		return c;
	}
	if (c == '"')
		return read_string(l);
	if (c == '-' || is_digit(c))
		return read_number(l);
	if (c != '.' || at(l, 1) != '.' || at(l, 2) != '.')
		return GRAPHQL_BROKEN;
	l->p += 3;
	return GRAPHQL_SPREAD;
}

void graphql_lexer_next(struct graphql_lexer *l)
{
	if (l->token == GRAPHQL_BROKEN)
		return;
	if (l->left == 0) {
		l->token = GRAPHQL_BROKEN;
		return;
	}
	l->left--;
	l->token = read_token(l);
}

void graphql_lexer_init(struct graphql_lexer *l, struct slice text, unsigned tokens)
{
	*l = (struct graphql_lexer){.p = text.p, .end = text.p + text.n, .left = tokens};
	graphql_lexer_next(l);
}
