/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: denies hold against every reading of a path (reading.h). So whether a deny
 * meets a pattern is also asked with both widened by everything that a reading can change.
 */
#include "policy/diff/paths.h"

#include <string.h>

#include "policy/url/pattern.h"
#include "vethguard/policy/policy.h"

/* True for a ';' or an escape other than "%2F": if an allow pattern has one, its shortest reading
 * counts as well (lookup_allows). */
static bool has_readings(struct slice pattern)
{
	const char *p = pattern.p, *end = pattern.p + pattern.n;

	if (memchr(p, ';', pattern.n))
		return true;
	for (; (p = memchr(p, '%', (size_t)(end - p))); p++)
		if (end - p < 3 || memcmp(p, "%2F", 3) != 0)
			return true;
	return false;
}

bool paths_contain(struct slice outer, struct slice inner)
{
	return outer.n == 0 || (inner.n > 0 && pattern_contains(outer, inner));
}

bool paths_allow_contains(struct slice outer, struct slice inner)
{
	return slice_equals(outer, inner) ||
	       (paths_contain(outer, inner) &&
	               (outer.n == 0 || !(has_readings(outer) || has_readings(inner))));
}

bool paths_meet(struct slice a, struct slice b)
{
	return a.n == 0 || b.n == 0 || pattern_overlaps(a, b);
}

/* Writes a pattern that matches every reading of every path of the given one, in lower case.
 * Segments that can be read in several ways become "**". One byte becomes at most three. */
static struct slice open_wide(struct slice pattern, char out[POLICY_PATH_MAX * 3])
{
	size_t n = 0;

	for (size_t at = 1; at <= pattern.n;) {
		struct slice segment = pattern_segment_at(pattern, at);
		bool opens = segment.n == 0 || memchr(segment.p, '*', segment.n) ||
		             memchr(segment.p, ';', segment.n) ||
		             memchr(segment.p, '%', segment.n) || segment.p[segment.n - 1] == '.';

		at += segment.n + 1;
		if (opens)
			segment = SLICE("**");
		out[n++] = '/';
		for (size_t i = 0; i < segment.n; i++) {
			char c = segment.p[i];

			out[n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
		}
	}
	return slice_of(out, n);
}

/* Writes a deny's pattern as wide as its readings, in lower case: an escaped slash ends a segment,
 * any other escape becomes a wildcard. One byte becomes at most three. */
static struct slice open_deny(struct slice deny, char out[POLICY_PATH_MAX * 3])
{
	size_t n = 0;

	for (size_t i = 0; i < deny.n; i++) {
		char c = deny.p[i];

		if (c == '/' && i + 1 == deny.n && n > 0)
			break;
		if (c == '%' && deny.n - i >= 3) {
			c = memcmp(deny.p + i, "%2F", 3) == 0 ? '/' : '*';
			i += 2;
		}
		if (c == '/' && n > 0 && out[n - 1] == '/') {
			out[n++] = '*';
			out[n++] = '*';
		}
		out[n++] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	return slice_of(out, n);
}

bool paths_deny_meets(struct slice deny, struct slice pattern)
{
	char wide[POLICY_PATH_MAX * 3], wide_deny[POLICY_PATH_MAX * 3];

	return paths_meet(deny, pattern) ||
	       pattern_overlaps(open_deny(deny, wide_deny), open_wide(pattern, wide));
}
