/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the meter searches for a quote, which may begin a name. If no known name,
 * quote and colon follow (the quote may have ended a string), the search goes on with the next
 * quote. A quote behind a backslash is part of a string.
 */
#include "vethguard/wire/token_meter.h"

#include <string.h>

enum { OUTSIDE, NAME, COLON, NUMBER };

/* What a number counts. TOO: added to the number of INPUT or OUTPUT. CACHED_OF_INPUT: OpenAI and
 * Google count cached tokens in the input as well. */
enum meaning { INPUT, INPUT_TOO, CACHED, CACHED_OF_INPUT, OUTPUT, OUTPUT_TOO };

static const struct {
	const char *name;
	enum meaning meaning;
} names[] = {
        {"prompt_tokens", INPUT},
        {"input_tokens", INPUT},
        {"inputTokens", INPUT},
        {"promptTokenCount", INPUT},
        {"toolUsePromptTokenCount", INPUT_TOO},
        {"cache_creation_input_tokens", INPUT_TOO},
        {"cacheWriteInputTokens", INPUT_TOO},
        {"cache_read_input_tokens", CACHED},
        {"cacheReadInputTokens", CACHED},
        {"cached_tokens", CACHED_OF_INPUT},
        {"cachedContentTokenCount", CACHED_OF_INPUT},
        {"completion_tokens", OUTPUT},
        {"output_tokens", OUTPUT},
        {"outputTokens", OUTPUT},
        {"candidatesTokenCount", OUTPUT},
        {"thoughtsTokenCount", OUTPUT_TOO},
};
#define NAMES (sizeof(names) / sizeof(names[0]))
_Static_assert(NAMES == TOKEN_METER_NAMES, "a number for each name");

static void enter(struct token_meter *m, uint8_t state)
{
	m->state = state;
}

/* Returns the name's index, or NAMES. */
static size_t find(const struct token_meter *m)
{
	for (size_t i = 0; i < NAMES; i++)
		if (strlen(names[i].name) == m->name_n &&
		        memcmp(names[i].name, m->name, m->name_n) == 0)
			return i;
	return NAMES;
}

static bool is_of_name(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void end_number(struct token_meter *m)
{
	if (m->digits) {
		m->found = true;
		if (m->number > m->greatest[m->at])
			m->greatest[m->at] = m->number;
	}
	enter(m, OUTSIDE);
}

/* Takes a byte of what may be a name, or the byte after it. */
static void take_name(struct token_meter *m, uint8_t c)
{
	size_t at;

	if (is_of_name(c) && m->name_n < TOKEN_METER_NAME_MAX) {
		m->name[m->name_n++] = (char)c;
		return;
	}
	enter(m, OUTSIDE);
	if (c != '"')
		return;
	at = find(m);
	if (at == NAMES)
		return;
	m->at = (uint8_t)at;
	enter(m, COLON);
}

static void take_number(struct token_meter *m, uint8_t c)
{
	if (c >= '0' && c <= '9') {
		m->digits = true;
		m->number = m->number * 10 + (uint64_t)(c - '0');
		if (m->number > TOKEN_METER_MOST)
			m->number = TOKEN_METER_MOST;
	} else if (m->digits || !is_space(c)) {
		end_number(m);
	}
}

/* Takes a byte inside of a name, or of what follows one. Returns true if the byte may also begin a
 * name. */
static bool take_inside(struct token_meter *m, uint8_t c)
{
	switch (m->state) {
	case NAME:
		take_name(m, c);
		return false;
	case COLON:
		if (c == ':') {
			m->number = 0;
			m->digits = false;
			enter(m, NUMBER);
		} else if (!is_space(c)) {
			enter(m, OUTSIDE);
		}
		break;
	default:
		take_number(m, c);
		break;
	}
	return m->state == OUTSIDE;
}

void token_meter_take(struct token_meter *m, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t *quote;

		if (m->state != OUTSIDE && !take_inside(m, p[i])) {
			m->escaped = p[i] == '\\';
			continue;
		}
		quote = memchr(p + i, '"', n - i);
		if (!quote) {
			m->escaped = p[n - 1] == '\\';
			return;
		}
		if (quote > p + i)
			m->escaped = quote[-1] == '\\';
		i = (size_t)(quote - p);
		if (!m->escaped) {
			enter(m, NAME);
			m->name_n = 0;
		}
		m->escaped = false;
	}
}

bool token_meter_read(const struct token_meter *m, uint64_t out[TOKEN_KINDS])
{
	uint64_t sums[OUTPUT_TOO + 1] = {0}, of_input;

	for (size_t i = 0; i < NAMES; i++) {
		const enum meaning what = names[i].meaning;
		uint64_t n = m->greatest[i];

		if (m->state == NUMBER && m->digits && m->at == i && m->number > n)
			n = m->number;
		if (what == INPUT_TOO)
			sums[what] += n;
		else if (n > sums[what])
			sums[what] = n;
	}
	of_input = sums[CACHED_OF_INPUT] < sums[INPUT] ? sums[CACHED_OF_INPUT] : sums[INPUT];
	out[TOKEN_INPUT] = sums[INPUT] - of_input + sums[INPUT_TOO];
	out[TOKEN_CACHED] = sums[CACHED] + of_input;
	out[TOKEN_OUTPUT] = sums[OUTPUT] + sums[OUTPUT_TOO];
	return m->found || (m->state == NUMBER && m->digits);
}
