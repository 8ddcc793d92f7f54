/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: of each literal the three bytes that are rarest in ordinary texts are its
 * key. The vector search (base/vector.h) passes over the text and stops at places that may have a
 * key; keys are grouped by their last byte, so few places do. A table tells which literals have
 * the key that stands there. Each of these is compared, and what follows it is judged.
 */
#include "dlp/match.h"

#include <string.h>

#include "dlp/patterns.h"
#include "vethguard/base/vector.h"

#define KEY_N VECTOR_DEPTH
#define SLOTS 4096
#define NO_PATTERN UINT16_MAX
#define PATTERNS_MAX 256
#define MARK "vethguard"

static struct {
	bool ready, vectors;
	struct vector_groups places;
	uint16_t first[SLOTS], next[PATTERNS_MAX];
	uint8_t key[PATTERNS_MAX];    /* where the key is in the literal */
	uint8_t length[PATTERNS_MAX]; /* of the literal */
} table;

static unsigned slot_of(const uint8_t *key)
{
	return (key[0] * 0x9e5u ^ key[1] * 0x61u ^ key[2] * 0x7fdu) % SLOTS;
}

/* How rare a byte is in texts that programs send. */
static unsigned rarity(char c)
{
	if (c >= 'a' && c <= 'z')
		return strchr("qxzjkvw", c) ? 2 : 0;
	if (c >= '0' && c <= '9')
		return 3;
	if (c >= 'A' && c <= 'Z')
		return 4;
	return c == ' ' || c == '/' ? 1 : 5;
}

static size_t choose_key(const char *literal)
{
	size_t best = 0, n = strlen(literal);
	unsigned most = 0;

	for (size_t i = 0; i + KEY_N <= n; i++) {
		const char *k = literal + i;
		bool repeats = k[0] == k[1] || k[1] == k[2];
		unsigned score =
		        1 + (rarity(k[0]) + rarity(k[1]) + 2 * rarity(k[2])) * (repeats ? 1 : 2);

		if (score > most) {
			most = score;
			best = i;
		}
	}
	return best;
}

static unsigned group_of(char last)
{
	if (last >= 'a' && last <= 'z')
		return 0;
	if (last >= 'A' && last <= 'Z')
		return last < 'L' ? 1 : 2;
	if (last >= '0' && last <= '9')
		return 3;
	return last == '-' ? 4 : last == '_' ? 5 : last == '.' ? 6 : 7;
}

static void prepare(void)
{
	memset(table.first, 0xff, sizeof(table.first));
	for (size_t i = pattern_count; i-- > 0;) { /* so that the first one is found first */
		size_t at = choose_key(patterns[i].literal);
		const uint8_t *key = (const uint8_t *)patterns[i].literal + at;
		unsigned slot = slot_of(key);

		table.key[i] = (uint8_t)at;
		table.length[i] = (uint8_t)strlen(patterns[i].literal);
		table.next[i] = table.first[slot];
		table.first[slot] = (uint16_t)i;
		for (unsigned depth = 0; depth < KEY_N; depth++)
			vector_add(&table.places, group_of((char)key[2]), depth, key[depth]);
	}
	table.vectors = vector_works();
	table.ready = true;
}

/* True if the text from start on, before what follows the token, has the mark of placeholders. */
static bool is_placeholder(const uint8_t *text, size_t n, const struct shape_place *p)
{
	size_t end = p->at + p->literal_n + p->run;

	(void)n;
	return memmem(text + p->at, end - p->at, MARK, sizeof(MARK) - 1);
}

/* True if the literal of the pattern with this index is at text[at], and what has to be around. */
static bool is_there(unsigned index, const uint8_t *text, size_t n, size_t at)
{
	const struct pattern *pattern = &patterns[index];
	struct shape_place p = {text, n, at, table.length[index], 0};
	size_t behind = at + p.literal_n;

	if (behind > n || text[at] != (uint8_t)pattern->literal[0] ||
	        memcmp(text + at, pattern->literal, p.literal_n) != 0)
		return false;
	p.run = shape_run(pattern->class, text + behind, n - behind, PATTERN_RUN_MAX);
	if (pattern->check == shape_exact && p.run != pattern->min)
		return false;
	return p.run >= pattern->min &&
	       (!pattern->even || shape_is_even(text + behind, p.run, pattern->even)) &&
	       (!pattern->check || pattern->check(&p)) && !is_placeholder(text, n, &p);
}

/* What stands at the key text[at]; DLP_NONE: nothing that counts. */
static uint32_t look(const struct dlp_question *question, const uint8_t *text, size_t n, size_t at)
{
	for (uint16_t i = table.first[slot_of(text + at)]; i != NO_PATTERN; i = table.next[i]) {
		const struct pattern *pattern = &patterns[i];

		if (at < table.key[i] || !is_there(i, text, n, at - table.key[i]))
			continue;
		if (question->except && dlp_set_has(question->except, pattern->format))
			continue;
		if (!question->passes || !question->passes(question->context, pattern->format))
			return pattern->format;
	}
	return DLP_NONE;
}

uint32_t match_find(const struct dlp_question *question, const uint8_t *text, size_t n)
{
	uint32_t found;
	size_t at = 0;

	if (!table.ready)
		prepare();
	while (table.vectors && vector_find(&table.places, text, n, &at)) {
		found = look(question, text, n, at);
		if (found != DLP_NONE)
			return found;
		at++;
	}
	for (; at + KEY_N <= n; at++) {
		found = look(question, text, n, at);
		if (found != DLP_NONE)
			return found;
	}
	return DLP_NONE;
}
