/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: looks at the permissions of the file and of each directory above it, and
 * keeps the widest set of people found: everybody, then a group, then one owner. Nothing is opened
 * here; the caller knows how a directory may be looked at.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/policy/writers.h"

#define PATH_TEXT_MAX 4096

static void found(struct policy_writers *w, enum policy_writer who, uint32_t id, const char *place)
{
	if (who <= w->who)
		return;
	w->who = who;
	w->id = id;
	snprintf(w->place, sizeof(w->place), "%s", place);
}

void policy_writers_add(
        struct policy_writers *w, const struct stat *st, const char *place, uint32_t user)
{
	const bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);

	if (st->st_uid != 0 && st->st_uid != user)
		found(w, POLICY_WRITER_OWNER, st->st_uid, place);
	if (!sticky && (st->st_mode & S_IWGRP) && st->st_gid != 0 && st->st_gid != st->st_uid &&
	        st->st_gid != user)
		found(w, POLICY_WRITER_GROUP, st->st_gid, place);
	if (!sticky && (st->st_mode & S_IWOTH))
		found(w, POLICY_WRITER_EVERYBODY, 0, place);
}

void policy_writers_add_above(struct policy_writers *w, const char *path, uint32_t user,
        policy_writers_look *look, void *context)
{
	char directory[PATH_TEXT_MAX];
	struct stat st;
	char *slash;

	if (snprintf(directory, sizeof(directory), "%s", path) >= (int)sizeof(directory))
		return;
	while ((slash = strrchr(directory, '/')) != NULL) {
		const char *at = slash == directory ? "/" : directory;

		*slash = 0;
		if (look(context, at, &st) == 0)
			policy_writers_add(w, &st, at, user);
	}
}

bool policy_writers_equal(const struct policy_writers *a, const struct policy_writers *b)
{
	return a->who == b->who && a->id == b->id && strcmp(a->place, b->place) == 0;
}

const char *policy_writers_text(const struct policy_writers *w, char out[POLICY_WRITERS_TEXT_MAX])
{
	char who[32] = "everybody", place[POLICY_WRITERS_TEXT_MAX / 3];
	const char *remedy = w->who == POLICY_WRITER_EVERYBODY ? "chmod o-w" : "chmod g-w";

	slice_escape(slice_from_string(w->place), place, sizeof(place));
	if (w->who == POLICY_WRITER_GROUP)
		snprintf(who, sizeof(who), "group %u", w->id);
	if (w->who == POLICY_WRITER_OWNER && w->place[0])
		snprintf(out, POLICY_WRITERS_TEXT_MAX,
		        "lies below %s of user %u, who can put another file in its place: keep it "
		        "where only root and who uses it can write",
		        place, w->id);
	else if (w->who == POLICY_WRITER_OWNER)
		snprintf(out, POLICY_WRITERS_TEXT_MAX,
		        "belongs to user %u, who can change it: let it belong to root or to who "
		        "uses it",
		        w->id);
	else if (w->place[0])
		snprintf(out, POLICY_WRITERS_TEXT_MAX,
		        "lies below %s, where %s can put another file in its place: '%s %s' fixes "
		        "that",
		        place, who, remedy, place);
	else
		snprintf(out, POLICY_WRITERS_TEXT_MAX, "can be changed by %s: '%s' fixes that", who,
		        remedy);
	return out;
}
