/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading: a path as servers may read it. One server decodes an escaped slash, another cuts
 * parameters off, a third merges slashes, and some do several of these. A deny rule holds against
 * every combination; an allow rule does not match if some reading leads out of it.
 *
 * Two forms are made of a canonical path (url_path.h):
 * - full: every escape is decoded until none is left; overlong and full-width characters become the
 *   ASCII they stand for; letters are in lower case; backslashes and escaped slashes become
 *   READING_SLASH; runs of '/' become one. Everything that a server may take away is still there.
 * - shortest: the full form without parameters, without dots and spaces at the end of a segment and
 *   without a slash at the end of the path; every slash is a '/'. All readings of one path have the
 *   same shortest form. The exception is an escaped slash inside of parameters, which either ends
 *   the parameters or is cut off with them (path_view.has_two_cuts).
 *
 * The same forms of a pattern hold READING_* in place of its wildcards.
 */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_READING_H
#define VETHGUARD_SRC_POLICY_DECIDE_READING_H

#include "vethguard/policy/policy.h"

#define READING_MAX (POLICY_PATH_MAX / 2 * 3) /* bytes; "/" and "*" make three of two */

enum {
	READING_STAR = 1, /* any run of bytes in one segment */
	READING_ONE,      /* one byte of a segment */
	READING_NOTHING,  /* stands between a slash and READING_STAR, so that only the slash may
	                     be doubled */
	READING_DEPTH,    /* any number of segments with the slash before each; READING_INSIDE
	                     always follows */
	READING_INSIDE,
	READING_WILDCARD_MAX = READING_INSIDE,
	READING_SLASH,   /* may end a segment, or be a byte in it */
	READING_CONTROL, /* any control but NUL */
};

/* Writes the full form of path into out, which has POLICY_PATH_MAX bytes; path has no more. Returns
 * false if some reading has a NUL or a dot segment. */
bool reading_of_path(struct slice path, char *out, size_t *n);
/* Writes the full form of a canonical pattern of at most POLICY_PATH_MAX bytes into out, which has
 * READING_MAX bytes. Returns the length. */
size_t reading_of_pattern(struct slice pattern, char *out);
/* Writes the shortest form of a full form into out, which has as many bytes as full and may be
 * full.p. Returns the length. */
size_t reading_shortest(struct slice full, char *out);
/* True if the pattern is its own full form, apart from wildcards. */
bool reading_pattern_is_simple(struct slice pattern);

/* True where the pattern (full form) matches some reading of the path (full form). */
bool reading_matches(struct slice pattern, struct slice path);

/* A path with its forms, which are made when they are first needed. */
struct path_view {
	struct slice path;
	struct slice full, shortest; /* set if is_ready */
	struct slice once;           /* set if has_levels: as full, but decoded only once */
	bool is_ready;
	enum { VIEW_UNSEEN, VIEW_PLAIN, VIEW_AMBIGUOUS } kind; /* path_view_is_plain() */
	bool has_levels;   /* something is encoded more than once */
	bool has_two_cuts; /* an escaped slash stands in parameters: the shortest form here has
	                      it cut off with them, other readings keep what follows it */
	char full_bytes[POLICY_PATH_MAX], once_bytes[POLICY_PATH_MAX];
	char shortest_bytes[POLICY_PATH_MAX];
};
/* path must be canonical. */
void path_view_init(struct path_view *view, struct slice path);
bool path_view_is_plain(struct path_view *view);
void path_view_make(struct path_view *view);
/* Makes the view unless the path is plain. */
bool path_view_has_two_cuts(struct path_view *view);

#endif
