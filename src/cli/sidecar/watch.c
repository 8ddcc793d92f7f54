/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --watch keeps the policy's files, with what stat(2) said of each before it was read. The
 * supervisor tells the files only after it has read them. So sidecar_watch_begin() looks at the
 * known files before a reading, and sidecar_watch_take() replaces the list after it. A file that is
 * new in the list and may have changed since the reading began counts as changed: the policy is
 * read once more.
 *
 * A file that is missing for a moment, while it is replaced, has not changed yet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/sidecar/sidecar.h"

struct sidecar_watched {
	char *path; /* owned */
	struct stat seen;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void look(struct sidecar_watched *f)
{
	struct stat now;

	if (stat(f->path, &now) == 0)
		f->seen = now;
}

void sidecar_watch_begin(struct sidecar_watch *w)
{
	/* File systems stamp files by this clock, or by a finer one that is never behind it. */
	clock_gettime(CLOCK_REALTIME_COARSE, &w->begun);
	for (size_t i = 0; i < w->count; i++)
		look(&w->files[i]);
}

static const struct sidecar_watched *find(const struct sidecar_watch *w, struct slice path)
{
	for (size_t i = 0; i < w->count; i++)
		if (slice_equals(slice_from_string(w->files[i].path), path))
			return &w->files[i];
	return NULL;
}

/* Returns 0 or -ENOMEM. */
static int fill(const struct sidecar_watch *w, struct slice path, struct sidecar_watched *out)
{
	const struct sidecar_watched *before = find(w, path);

	out->path = strndup(path.p, path.n);
	if (!out->path)
		return -ENOMEM;
	if (before) {
		out->seen = before->seen;
		return 0;
	}
	look(out);
	if (!is_before(&out->seen.st_ctim, &w->begun))
		memset(&out->seen, 0, sizeof(out->seen));
	return 0;
}

static void drop(struct sidecar_watched *files, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(files[i].path);
	free(files);
}

int sidecar_watch_take(
        struct sidecar_watch *w, const struct message_paths *paths, struct failure *failure)
{
	const size_t count = paths->count;
	struct sidecar_watched *files = calloc(count ? count : 1, sizeof(*files));
	size_t n = 0;
	int rc = files ? 0 : -ENOMEM;

	while (rc == 0 && n < count)
		rc = fill(w, paths->paths[n], &files[n]) ? -ENOMEM : (n++, 0);
	if (rc != 0) {
		drop(files, n);
		return failure_set(failure, rc, "cannot watch the policy's files");
	}
	drop(w->files, w->count);
	w->files = files;
	w->count = count;
	return 0;
}

bool sidecar_watch_changed(const struct sidecar_watch *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct stat now;

		if (stat(w->files[i].path, &now) == 0 && !is_same(&now, &w->files[i].seen))
			return true;
	}
	return false;
}

void sidecar_watch_end(struct sidecar_watch *w)
{
	drop(w->files, w->count);
	*w = (struct sidecar_watch){0};
}
