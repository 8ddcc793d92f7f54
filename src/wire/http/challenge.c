/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: commas divide both challenges and the parameters of a challenge. A word that
 * "=" and a value follow is a parameter of the present challenge; any other word is the scheme of
 * the next one. One cursor walks over the text, and nothing is read twice except such a word.
 */
#include "vethguard/wire/challenge.h"

#include <errno.h>
#include <sys/types.h>

static bool is_token_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token68_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~+/", c));
}

static struct slice without(struct slice s, size_t n)
{
	return slice_of(s.p + n, s.n - n);
}

/* Skips blanks; if commas is set, also the commas before the list's next element. */
static struct slice skip(struct slice s, bool commas)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t' || (commas && *s.p == ',')))
		s = without(s, 1);
	return s;
}

static struct slice take_word(struct slice *s, bool (*belongs)(char c))
{
	size_t n = 0;
	struct slice word;

	while (n < s->n && belongs(s->p[n]))
		n++;
	word = slice_of(s->p, n);
	*s = without(*s, n);
	return word;
}

static bool ends_element(struct slice s)
{
	s = skip(s, false);
	return !s.n || *s.p == ',';
}

/* Takes "NAME =" off rest if a parameter begins there. */
static bool take_name(struct slice *rest, struct slice *name)
{
	struct slice s = *rest;

	*name = take_word(&s, is_token_byte);
	s = skip(s, false);
	if (!name->n || !s.n || *s.p != '=')
		return false;
	s = skip(without(s, 1), false);
	if (!s.n || *s.p == '=' || *s.p == ',')
		return false;
	*rest = s;
	return true;
}

/* Takes a quoted string off s, and writes it to out, which has max bytes, without quotes and
 * escapes. out NULL: nothing is written, and there is no bound. Returns the length, or -EBADMSG. */
static ssize_t take_quoted(struct slice *s, char *out, size_t max)
{
	size_t n = 0;

	*s = without(*s, 1);
	while (s->n && *s->p != '"') {
		bool escaped = *s->p == '\\';
		uint8_t c;

		if (escaped && s->n < 2)
			return -EBADMSG;
		c = (uint8_t)s->p[escaped];
		if ((c < ' ' && c != '\t') || c == 0x7f || (out && n == max))
			return -EBADMSG;
		if (out)
			out[n] = (char)c;
		n++;
		*s = without(*s, 1 + (size_t)escaped);
	}
	if (!s->n)
		return -EBADMSG;
	*s = without(*s, 1);
	return (ssize_t)n;
}

/* Takes the value of a parameter off s, and keeps it if it is the realm. Returns 0 or -EBADMSG. */
static int take_value(struct slice *s, bool is_realm, struct challenge *out)
{
	char *text = is_realm ? out->text : NULL;
	struct slice word;
	ssize_t n;

	if (*s->p == '"') {
		n = take_quoted(s, text, sizeof(out->text));
	} else {
		word = take_word(s, is_token_byte);
		n = word.n && (!is_realm || word.n <= sizeof(out->text)) ? (ssize_t)word.n
		                                                         : -EBADMSG;
		if (n > 0 && is_realm)
			memcpy(text, word.p, word.n);
	}
	if (n < 0 || !ends_element(*s))
		return -EBADMSG;
	if (is_realm)
		out->realm = slice_of(out->text, (size_t)n);
	return 0;
}

/* True if the name is among the count names before it. */
static bool is_repeated(const struct slice *names, size_t count, struct slice name)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equals_ignoring_case(names[i], name))
			return true;
	return false;
}

static int take_parameters(struct slice *rest, struct challenge *out)
{
	struct slice names[CHALLENGE_PARAMETERS_MAX], name;

	while (take_name(rest, &name)) {
		if (out->parameters == CHALLENGE_PARAMETERS_MAX ||
		        is_repeated(names, out->parameters, name) ||
		        take_value(rest, slice_equals_ignoring_case(name, SLICE("realm")), out) < 0)
			return -EBADMSG;
		names[out->parameters++] = name;
		*rest = skip(*rest, true);
	}
	return 0;
}

int challenge_next(struct slice *rest, struct challenge *out)
{
	struct slice s = skip(*rest, true), word;

	out->realm = SLICE("");
	out->parameters = 0;
	if (rest->n > CHALLENGE_FIELD_MAX)
		return -EBADMSG;
	*rest = s;
	if (!s.n)
		return 0;
	out->scheme = take_word(&s, is_token_byte);
	if (!out->scheme.n || (s.n && *s.p != ' ' && *s.p != ','))
		return -EBADMSG;
	*rest = skip(s, true);
	if (ends_element(s)) /* a scheme alone */
		return 1;
	*rest = skip(s, false);
	if (take_parameters(rest, out) < 0)
		return -EBADMSG;
	if (out->parameters)
		return 1;
	/* token68 (section 11.2) */
	word = take_word(rest, is_token68_byte);
	while (rest->n && *rest->p == '=')
		*rest = without(*rest, 1);
	if (!word.n || !ends_element(*rest))
		return -EBADMSG;
	*rest = skip(*rest, true);
	return 1;
}
