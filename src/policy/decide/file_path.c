/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that vethguard does not know opens the file whose path a request names. So an allow
 * rule takes only paths that every program reads alike.
 */
#include "policy/decide/file_path.h"

#include "policy/decide/condition.h"
#include "policy/url/pattern.h"

static bool is_dots(struct slice segment)
{
	return slice_equals(segment, SLICE(".")) || slice_equals(segment, SLICE(".."));
}

/* True for a segment that programs read differently. last: the segment ends the path, so it may be
 * empty. */
static bool is_doubtful(struct slice segment, bool last)
{
	if (is_dots(segment) || (segment.n == 0 && !last))
		return true;
	for (size_t i = 0; i < segment.n; i++) {
		unsigned char c = (unsigned char)segment.p[i];

		if (c < ' ' || c == 0x7f || c == '\\' || c == '%')
			return true;
	}
	return false;
}

/* True if some segment is doubtful. at: where the first segment begins. */
static bool has_doubt(struct slice text, size_t at)
{
	while (at <= text.n) {
		struct slice segment = pattern_segment_at(text, at);

		at += segment.n + 1;
		if (is_doubtful(segment, at > text.n))
			return true;
	}
	return false;
}

bool file_path_is_plain(struct slice text)
{
	return text.n > 0 && text.n <= POLICY_PATH_MAX && text.p[0] == '/' && !has_doubt(text, 1);
}

bool file_path_allows(struct slice pattern, struct slice text)
{
	return file_path_is_plain(text) && pattern_matches(pattern, text);
}

bool file_path_denies(struct slice pattern, struct slice text)
{
	if (text.n > POLICY_PATH_MAX || has_doubt(text, text.n > 0 && text.p[0] == '/'))
		return true;
	return (text.n > 0 && text.p[0] == '/' && pattern_matches(pattern, text)) ||
	       condition_matches(pattern, text, true);
}
