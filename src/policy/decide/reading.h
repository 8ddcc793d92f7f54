/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading: a path as servers may read it. One server decodes an escaped slash, another one cuts
 * parameters off, a third one merges slashes, and some do several of these. A deny rule holds
 * against all of them, in every combination; an allow rule that a reading leads out of does not
 * match.
 *
 * Two forms are made of a canonical path (url_path.h):
 *   full: every escape decoded until none is left, overlong and full-width characters as the ASCII
 *     that they stand for, letters small, slashes that were escaped and backslashes as
 *     READING_SLASH, runs of '/' as one. What a server may take away is still there.
 *   shortest: also without parameters, without dots and spaces at the end of a segment and without
 *     a slash at the end of the path; every slash is a '/'. All readings of one path have the same
 *     shortest form.
 * Only a slash that came escaped inside of parameters makes a difference to that: it ends them, or
 * goes with them. The same forms of a pattern hold READING_* in place of its wildcards.
 */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_READING_H
#define VETHGUARD_SRC_POLICY_DECIDE_READING_H

#include "vethguard/policy/policy.h"

#define READING_MAX (POLICY_PATH_MAX / 2 * 3) /* bytes; "/" and "*" make three of two */

enum {
	READING_STAR = 1, /* any run of bytes in one segment */
	READING_ONE,      /* one byte of a segment */
	READING_NOTHING, /* between a slash and READING_STAR, so that only the former may be doubled
	                  */
	READING_DEPTH, /* any number of segments with the slash before each; READING_INSIDE follows
	                */
	READING_INSIDE,
	READING_WILDCARD_MAX = READING_INSIDE,
	READING_SLASH,   /* may be a border of a segment, or a byte in it */
	READING_CONTROL, /* any control but NUL */
};

/* False where some reading has a NUL or a dot segment. out has POLICY_PATH_MAX bytes, path no more.
 */
bool reading_of_path(struct slice path, char *out, size_t *n);
/* out has READING_MAX bytes. The pattern is canonical and has POLICY_PATH_MAX bytes at most. */
size_t reading_of_pattern(struct slice pattern, char *out);
/* Of a full form; out has as many bytes, and may be full.p. Returns the new length. */
size_t reading_shortest(struct slice full, char *out);
/* The path has no other reading than itself, but for the case of letters and a '/' at its end. */
bool reading_is_plain(struct slice path);
/* The pattern is its own full form, wildcards apart. */
bool reading_pattern_is_simple(struct slice pattern);

/* True where the pattern (full form) matches some reading of the path (full form). */
bool reading_matches(struct slice pattern, struct slice path);

/* A path with the forms that are made of it when they are first needed. */
struct path_view {
	struct slice path;
	struct slice full, shortest; /* once is_ready */
	struct slice once;           /* with has_levels: as full, but decoded only once */
	bool is_ready;
	enum { VIEW_UNSEEN, VIEW_PLAIN, VIEW_AMBIGUOUS } kind; /* path_view_is_plain() */
	bool has_levels;   /* something is encoded more than once */
	bool has_two_cuts; /* an escaped slash stands in parameters: in the shortest form here it is
	                      cut off with them, some readings have another one */
	char full_bytes[POLICY_PATH_MAX], once_bytes[POLICY_PATH_MAX];
	char shortest_bytes[POLICY_PATH_MAX];
};
/* The path is canonical. */
void path_view_init(struct path_view *view, struct slice path);
bool path_view_is_plain(struct path_view *view);
void path_view_make(struct path_view *view);
/* Makes the view unless the path is plain. */
bool path_view_has_two_cuts(struct path_view *view);

#endif
