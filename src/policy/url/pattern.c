/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a path is a list of segments; "/a/" has the two segments "a" and "". A
 * position in a text is the first byte of a segment; the position behind the last segment is n + 1.
 * Matching remembers one place to return to: the last "**". That is enough, because the part
 * between two "**" may always be matched at its first fit. The same holds for "*" inside a segment.
 * So the time is bounded by the product of both lengths, and no stack grows.
 */
#include "policy/url/pattern.h"
#include "policy/url/url_path.h"

#define OVERLAP_STEPS_MAX 1024 /* segments compared, which also bounds the recursion */

static bool is_escaped_slash(struct slice segment, size_t at)
{
	return segment.n - at >= 3 && memcmp(segment.p + at, "%2F", 3) == 0;
}

static bool has_escaped_slash(struct slice segment)
{
	return url_find_escaped_slash(segment.p, segment.n) != NULL;
}

static bool segment_matches(struct slice pattern, struct slice segment)
{
	size_t p = 0, s = 0;
	size_t star = SIZE_MAX, taken = 0; /* the place behind the last '*', and the end of what
	                                      that '*' has matched */

	if (pattern.n == 1 && pattern.p[0] == '*')
		return segment.n > 0 && !has_escaped_slash(segment);
	while (s < segment.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = ++p;
			taken = s;
		} else if (p < pattern.n && pattern.p[p] == segment.p[s]) {
			p++;
			s++;
		} else if (star != SIZE_MAX && !is_escaped_slash(segment, taken)) {
			p = star;
			s = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

bool pattern_matches(struct slice pattern, struct slice path)
{
	size_t p = 1, s = 1;
	size_t star = SIZE_MAX, taken = 0;

	while (s <= path.n) {
		struct slice want, have;

		if (p <= pattern.n) {
			want = pattern_segment_at(pattern, p);
			if (pattern_is_any_depth(want)) {
				star = p += want.n + 1;
				taken = s;
				if (p > pattern.n) /* the last "**" matches the rest */
					return !has_escaped_slash(slice_of(path.p + s, path.n - s));
				continue;
			}
			have = pattern_segment_at(path, s);
			if (segment_matches(want, have)) {
				p += want.n + 1;
				s += have.n + 1;
				continue;
			}
		}
		if (star == SIZE_MAX)
			return false;
		have = pattern_segment_at(path, taken);
		if (has_escaped_slash(have))
			return false;
		taken += have.n + 1;
		s = taken;
		p = star;
	}
	while (p <= pattern.n && pattern_is_any_depth(pattern_segment_at(pattern, p)))
		p += 3;
	return p > pattern.n;
}

/* True if some run of bytes matches both segment patterns. A '*' on either side may match whatever
 * the other side wants, so only the parts before the first star and behind the last one can
 * contradict. */
static bool segment_overlaps(struct slice a, struct slice b)
{
	bool star_a = memchr(a.p, '*', a.n) != NULL, star_b = memchr(b.p, '*', b.n) != NULL;
	size_t n;

	if (!star_a)
		return segment_matches(b, a);
	if (!star_b)
		return segment_matches(a, b);
	for (n = 0; n < a.n && n < b.n && a.p[n] != '*' && b.p[n] != '*'; n++)
		if (a.p[n] != b.p[n])
			return false;
	for (n = 1; n <= a.n && n <= b.n && a.p[a.n - n] != '*' && b.p[b.n - n] != '*'; n++)
		if (a.p[a.n - n] != b.p[b.n - n])
			return false;
	return true;
}

/* Compares a from position i with b from position j. Each step shortens one side. Rules' patterns
 * have few "**", and budget bounds the rest: patterns that exceed it count as overlapping. */
static bool overlaps_from(struct slice a, size_t i, struct slice b, size_t j, unsigned *budget)
{
	struct slice x, y;

	while (i <= a.n && j <= b.n) {
		if (*budget == 0)
			return true;
		--*budget;
		x = pattern_segment_at(a, i);
		y = pattern_segment_at(b, j);
		if (pattern_is_any_depth(x))
			return overlaps_from(a, i + 3, b, j, budget) ||
			       overlaps_from(a, i, b, j + y.n + 1, budget);
		if (pattern_is_any_depth(y))
			return overlaps_from(a, i, b, j + 3, budget) ||
			       overlaps_from(a, i + x.n + 1, b, j, budget);
		if (!segment_overlaps(x, y))
			return false;
		i += x.n + 1;
		j += y.n + 1;
	}
	while (i <= a.n && pattern_is_any_depth(pattern_segment_at(a, i)))
		i += 3;
	while (j <= b.n && pattern_is_any_depth(pattern_segment_at(b, j)))
		j += 3;
	return i > a.n && j > b.n;
}

bool pattern_overlaps(struct slice a, struct slice b)
{
	unsigned budget = OVERLAP_STEPS_MAX;

	return overlaps_from(a, 1, b, 1, &budget);
}

bool pattern_has_wildcard(struct slice pattern)
{
	return pattern.n > 0 && memchr(pattern.p, '*', pattern.n) != NULL;
}

uint32_t pattern_rank(struct slice pattern)
{
	uint32_t start = 0, all = 0;
	bool wild = pattern_has_wildcard(pattern);

	while (start < pattern.n && pattern.p[start] != '*')
		start++;
	// "/a/**" also matches "/a": its last slash is no literal that a path must have
	if (start > 0 && pattern.n - start >= 2 && pattern.p[start + 1] == '*')
		start--;
	for (size_t i = 0; i < pattern.n; i++)
		all += pattern.p[i] != '*';
	return start << 15 | (uint32_t)!wild << 14 | (all > 0x3fff ? 0x3fff : all);
}

struct slice pattern_literal_start(struct slice pattern, unsigned depth_max, unsigned *depth)
{
	size_t at = 1, end = 0;

	*depth = 0;
	while (at <= pattern.n && *depth < depth_max) {
		struct slice segment = pattern_segment_at(pattern, at);

		if (pattern_has_wildcard(segment))
			break;
		end = at + segment.n;
		at = end + 1;
		++*depth;
	}
	return slice_of(pattern.p, end);
}
