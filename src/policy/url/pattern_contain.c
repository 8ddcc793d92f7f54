/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: does every path that matches one pattern match another? The inner pattern is
 * walked as if it were a path whose wildcards are bytes and segments that only a wildcard of the
 * outer pattern can match. A yes is always right; the answer is no if only several outer pieces
 * together would match.
 */
#include "policy/url/pattern.h"
#include "policy/url/url_path.h"

#define CONTAIN_STEPS_MAX 4096 /* segments compared; after that the answer is no */

/* Both are one segment and not "**". */
static bool segment_contains(struct slice outer, struct slice inner)
{
	size_t o = 0, i = 0, star = SIZE_MAX, taken = 0;

	if (outer.n == 1 && outer.p[0] == '*') {
		bool literal = false, alone = inner.n == 1 && inner.p[0] == '*';

		for (size_t k = 0; k < inner.n; k++)
			literal = literal || inner.p[k] != '*';
		return (literal || alone) && !url_find_escaped_slash(inner.p, inner.n);
	}
	while (i < inner.n) {
		if (o < outer.n && outer.p[o] == '*') {
			star = ++o;
			taken = i;
		} else if (o < outer.n && inner.p[i] != '*' && outer.p[o] == inner.p[i]) {
			o++;
			i++;
		} else if (star != SIZE_MAX &&
		           !(inner.n - taken >= 3 && memcmp(inner.p + taken, "%2F", 3) == 0)) {
			o = star;
			i = ++taken;
		} else {
			return false;
		}
	}
	while (o < outer.n && outer.p[o] == '*')
		o++;
	return o == outer.n;
}

static bool contains_from(
        struct slice outer, size_t o, struct slice inner, size_t i, unsigned *budget)
{
	while (o <= outer.n) {
		struct slice want = pattern_segment_at(outer, o), have;

		if (*budget == 0)
			return false;
		--*budget;
		if (pattern_is_any_depth(want)) {
			if (contains_from(outer, o + 3, inner, i, budget))
				return true;
			if (i > inner.n)
				return false;
			have = pattern_segment_at(inner, i);
			if (url_find_escaped_slash(have.p, have.n))
				return false;
			i += have.n + 1;
			continue;
		}
		if (i > inner.n)
			return false;
		have = pattern_segment_at(inner, i);
		if (pattern_is_any_depth(have) || !segment_contains(want, have))
			return false;
		o += want.n + 1;
		i += have.n + 1;
	}
	return i > inner.n;
}

bool pattern_contains(struct slice outer, struct slice inner)
{
	unsigned budget = CONTAIN_STEPS_MAX;

	return slice_equals(outer, inner) || contains_from(outer, 1, inner, 1, &budget);
}
