/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: path patterns of rules, matched on canonical paths. */
#ifndef VETHGUARD_SRC_POLICY_URL_PATTERN_H
#define VETHGUARD_SRC_POLICY_URL_PATTERN_H

#include "vethguard/base/slice.h"

/* "*" matches bytes of one segment (a segment that is only "*" is never empty); "**" matches any
 * number of segments. Both texts begin with '/'. */
bool pattern_matches(struct slice pattern, struct slice path);
/* True if some path matches both. */
bool pattern_overlaps(struct slice a, struct slice b);
/* True only if every path that matches inner matches outer as well; may be false although that is
 * so. */
bool pattern_contains(struct slice outer, struct slice inner);
/* How specific the pattern is: first by its literal start, then by having no wildcards, then by all
 * literal bytes. */
uint32_t pattern_rank(struct slice pattern);
/* The leading segments without wildcards ("" or "/seg/seg"), at most depth_max; *depth is their
 * number. */
struct slice pattern_literal_start(struct slice pattern, unsigned depth_max, unsigned *depth);
bool pattern_has_wildcard(struct slice pattern);

/* The segment that begins at a position of a pattern or path: up to the next '/', or to the end. */
static inline struct slice pattern_segment_at(struct slice text, size_t at)
{
	const char *slash = memchr(text.p + at, '/', text.n - at);

	return slice_of(text.p + at, slash ? (size_t)(slash - text.p) - at : text.n - at);
}

/* "**" */
static inline bool pattern_is_any_depth(struct slice segment)
{
	return segment.n == 2 && segment.p[0] == '*' && segment.p[1] == '*';
}

#endif
