/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a path with k parts that may be read in two ways has 2^k readings, so they
 * are not written out. The pattern runs as an automaton over the full form of the path, and bit
 * sets keep the states that some reading leads to:
 *
 *   now       everything up to here was read
 *   skipped   inside of parameters that are taken away; goes on at the next border
 *   trimmed   inside of dots and spaces that are taken away; goes on where they end the segment
 *
 * State j waits for byte j of the pattern. A border that follows a border or the end of the pattern
 * may be consumed without effect: slashes in a row are one, and a slash at the end is none. The
 * work is bounded by the product of both lengths and is usually near the path's length, since few
 * states are alive at a time. No stack grows, nothing is allocated.
 */
#include "policy/decide/reading.h"

#define WORDS_MAX (READING_MAX / 64 + 1)

struct states {
	size_t words;
	bool any; /* false: certainly empty */
	uint64_t bits[WORDS_MAX];
};

struct run {
	struct slice pattern;
	struct states sets[4];
	struct states *now, *next, *skipped, *trimmed;
};

static bool is_border(char c)
{
	return c == '/' || c == READING_SLASH;
}

static void clear(struct states *s)
{
	if (s->any)
		memset(s->bits, 0, s->words * sizeof(s->bits[0]));
	s->any = false;
}

static void set(struct states *s, size_t j)
{
	s->bits[j / 64] |= UINT64_C(1) << (j % 64);
	s->any = true;
}

static void merge(struct states *into, const struct states *from)
{
	if (!from->any)
		return;
	for (size_t i = 0; i < into->words; i++)
		into->bits[i] |= from->bits[i];
	into->any = true;
}

/* Adds the states that are reached from j without a byte; they are all greater than j. */
static void follow(struct run *run, size_t j)
{
	if (j >= run->pattern.n)
		return;
	if (run->pattern.p[j] == READING_STAR || run->pattern.p[j] == READING_INSIDE ||
	        run->pattern.p[j] == READING_NOTHING)
		set(run->now, j + 1);
	else if (run->pattern.p[j] == READING_DEPTH && run->pattern.n - j >= 2)
		set(run->now, j + 2);
}

static void take_byte(struct run *run, size_t j, char c)
{
	struct slice p = run->pattern;
	bool border = is_border(c);

	if (border && (j == p.n || (j > 0 && is_border(p.p[j - 1]))))
		set(run->next, j);
	if (j == p.n)
		return;
	switch (p.p[j]) {
	case READING_STAR:
		if (c != '/')
			set(run->next, j);
		break;
	case READING_ONE:
		if (c != '/')
			set(run->next, j + 1);
		break;
	case READING_INSIDE:
		set(run->next, j);
		break;
	case READING_DEPTH:
		if (border)
			set(run->next, j + 1);
		break;
	case READING_NOTHING:
		break;
	default:
		if (c == p.p[j] || (border && is_border(p.p[j])))
			set(run->next, j + 1);
	}
}

/* Follows every state of now and then lets it take the byte. */
static void take(struct run *run, char c)
{
	for (size_t w = 0; w < run->now->words; w++) {
		uint64_t done = 0;

		for (uint64_t left; (left = run->now->bits[w] & ~done) != 0;) {
			unsigned bit = (unsigned)__builtin_ctzll(left);

			done |= UINT64_C(1) << bit;
			follow(run, w * 64 + bit);
			take_byte(run, w * 64 + bit, c);
		}
	}
}

static void advance(struct run *run, char c)
{
	struct states *old = run->now;

	if (is_border(c) || c == ';')
		merge(run->now, run->trimmed);
	if (is_border(c))
		merge(run->now, run->skipped);
	if (c == '.' || c == ' ')
		merge(run->trimmed, run->now);
	else
		clear(run->trimmed);
	if (c == ';')
		merge(run->skipped, run->now);
	else if (c == '/')
		clear(run->skipped);
	clear(run->next);
	take(run, c);
	run->now = run->next;
	run->next = old;
}

static bool ends_well(struct run *run)
{
	size_t end = run->pattern.n;

	merge(run->now, run->skipped);
	merge(run->now, run->trimmed);
	for (size_t j = 0; j < end; j++)
		if (run->now->bits[j / 64] >> (j % 64) & 1)
			follow(run, j);
	return (run->now->bits[end / 64] >> (end % 64) & 1) != 0;
}

bool reading_matches(struct slice pattern, struct slice path)
{
	struct run run;

	if (pattern.n > READING_MAX)
		return false;
	run.pattern = pattern;
	for (size_t i = 0; i < 4; i++) {
		run.sets[i].words = pattern.n / 64 + 1;
		run.sets[i].any = true;
		clear(&run.sets[i]);
	}
	run.now = &run.sets[0];
	run.next = &run.sets[1];
	run.skipped = &run.sets[2];
	run.trimmed = &run.sets[3];
	set(run.now, 0);
	for (size_t i = 0; i < path.n; i++) {
		if (!run.now->any && !run.skipped->any && !run.trimmed->any)
			return false;
		advance(&run, path.p[i]);
	}
	return ends_well(&run);
}
