/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event in any folder only starts a short wait; after it every file's stat(2) is compared with
 * the previous one. So it does not matter how a file was changed: written, renamed over, or reached
 * through a symbolic link that was exchanged somewhere above it (as with ConfigMaps). A missing
 * file is not reported, because editors remove files for a moment; it is reported when it is back.
 * Missing folders are looked for every POLICY_WATCH_RETRY_MS. Only local files (local_file.h) are
 * examined: elsewhere stat(2) may never return.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/os/local_file.h"
#include "supervisor/config/policy_watch.h"

#define EVENTS                                                                              \
	(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | \
	        IN_DELETE_SELF | IN_MOVE_SELF)

#define READS_MAX 16 /* per turn of the loop: constant writes hold nothing else up */

struct watched_file {
	char *path; /* owned */
	struct stat seen;
};

struct owner {
	struct owner *next;
	void *owner;
	size_t count;
	struct watched_file *files; /* owned */
	bool changed;
};

struct folder {
	struct folder *next;
	int id; /* -1: not there */
	bool used;
	char path[];
};

struct policy_watch {
	struct loop *loop;
	int fd;
	struct loop_io io;
	struct loop_timer quiet, retry;
	bool again;       /* an owner is told later: tell() does not start over */
	int64_t since_ms; /* first event of a burst; 0: none */
	struct owner *owners;
	struct folder *folders;
	size_t folder_count;
	void (*changed)(void *context, void *owner);
	void *context;
};

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void owner_free(struct owner *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->files[i].path);
	free(o->files);
	free(o);
}

/* Returns 0 or -errno; LOCAL_FILE_UNKNOWN: it was not examined. */
static int examine(const char *path, struct stat *out)
{
	int fd = local_file_find(path), rc;

	if (fd < 0)
		return fd;
	rc = fstat(fd, out) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Marks owners with a changed file. */
static void look(struct policy_watch *w)
{
	for (struct owner *o = w->owners; o; o = o->next)
		for (size_t i = 0; i < o->count; i++) {
			struct stat now;

			if (examine(o->files[i].path, &now) != 0 || same(&now, &o->files[i].seen))
				continue;
			o->files[i].seen = now;
			o->changed = true;
		}
}

static void tell(struct policy_watch *w)
{
	struct owner *o = w->owners;

	look(w);
	w->again = false;
	while (o && !w->again) {
		if (!o->changed) {
			o = o->next;
			continue;
		}
		o->changed = false;
		w->changed(w->context, o->owner);
		o = w->owners; /* the callback may have changed the list */
	}
}

/* Returns 0 or -errno; a missing folder is left for later. */
static int folder_open(struct policy_watch *w, struct folder *f)
{
	char path[64];
	int fd = local_file_find(f->path), rc = fd < 0 ? fd : 0;

	f->id = -1;
	if (!rc) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		f->id = inotify_add_watch(w->fd, path, EVENTS | IN_ONLYDIR);
		rc = f->id < 0 ? -errno : 0;
		close(fd);
	}
	if (!rc || rc == -ENOSPC || rc == -ENOMEM)
		return rc;
	loop_timer_set(&w->retry, POLICY_WATCH_RETRY_MS);
	return 0;
}

static void on_quiet(struct loop_timer *timer)
{
	struct policy_watch *w = container_of(timer, struct policy_watch, quiet);

	w->since_ms = 0;
	tell(w);
}

static void on_retry(struct loop_timer *timer)
{
	struct policy_watch *w = container_of(timer, struct policy_watch, retry);

	for (struct folder *f = w->folders; f; f = f->next)
		if (f->id < 0 && folder_open(w, f) != 0)
			loop_timer_set(&w->retry, POLICY_WATCH_RETRY_MS);
	tell(w);
}

static void on_event(struct policy_watch *w, const struct inotify_event *event)
{
	if (!(event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)))
		return;
	for (struct folder *f = w->folders; f; f = f->next)
		if (f->id == event->wd) {
			if (!(event->mask & IN_IGNORED))
				inotify_rm_watch(w->fd, f->id);
			f->id = -1;
		}
	loop_timer_set(&w->retry, POLICY_WATCH_RETRY_MS);
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct policy_watch *w = container_of(io, struct policy_watch, io);
	_Alignas(struct inotify_event) char buffer[4096];
	int64_t now = loop_now_ms(w->loop), left;
	ssize_t n;

	(void)events;
	for (unsigned reads = 0; reads < READS_MAX && (n = read(w->fd, buffer, sizeof(buffer))) > 0;
	        reads++)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event =
			        (const struct inotify_event *)(void *)(buffer + at);

			on_event(w, event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	if (!w->since_ms)
		w->since_ms = now;
	left = w->since_ms + POLICY_WATCH_LATE_MS - now;
	loop_timer_set(&w->quiet, left < 0                       ? 0
	                          : left < POLICY_WATCH_QUIET_MS ? left
	                                                         : POLICY_WATCH_QUIET_MS);
}

struct policy_watch *policy_watch_new(
        struct loop *loop, void (*changed)(void *context, void *owner), void *context, int *error)
{
	struct policy_watch *w = calloc(1, sizeof(*w));

	*error = -ENOMEM;
	if (!w)
		return NULL;
	*w = (struct policy_watch){.loop = loop, .changed = changed, .context = context};
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		*error = -errno;
	else if (loop_timer_open(loop, &w->quiet, on_quiet) == 0 &&
	         loop_timer_open(loop, &w->retry, on_retry) == 0 &&
	         loop_io_open_level(loop, &w->io, w->fd, LOOP_READ, on_ready) == 0)
		return w;
	policy_watch_free(w);
	return NULL;
}

void policy_watch_free(struct policy_watch *w)
{
	struct owner *next_owner;
	struct folder *next;

	if (!w)
		return;
	loop_io_close(&w->io);
	loop_timer_close(&w->quiet);
	loop_timer_close(&w->retry);
	if (w->fd >= 0)
		close(w->fd);
	for (struct owner *o = w->owners; o; o = next_owner) {
		next_owner = o->next;
		owner_free(o);
	}
	for (struct folder *f = w->folders; f; f = next) {
		next = f->next;
		free(f);
	}
	free(w);
}

static int add_folder(struct policy_watch *w, const char *file)
{
	const char *slash = strrchr(file, '/');
	size_t n = slash && slash > file ? (size_t)(slash - file) : 1;
	struct folder *f;

	for (f = w->folders; f; f = f->next)
		if (strlen(f->path) == n && memcmp(f->path, file, n) == 0) {
			f->used = true;
			return 0;
		}
	if (w->folder_count == POLICY_WATCH_FOLDERS_MAX)
		return -ENOSPC;
	f = calloc(1, sizeof(*f) + n + 1);
	if (!f)
		return -ENOMEM;
	memcpy(f->path, file, n);
	f->used = true;
	f->next = w->folders;
	w->folders = f;
	w->folder_count++;
	return folder_open(w, f);
}

static void drop_unused_folders(struct policy_watch *w)
{
	struct folder **at = &w->folders;

	while (*at) {
		struct folder *f = *at;

		if (f->used) {
			at = &f->next;
			continue;
		}
		if (f->id >= 0)
			inotify_rm_watch(w->fd, f->id);
		*at = f->next;
		w->folder_count--;
		free(f);
	}
}

/* Watches the folders of all owners and no others. Goes on after an error and returns the first. */
static int watch_folders(struct policy_watch *w)
{
	int error = 0;

	for (struct folder *f = w->folders; f; f = f->next)
		f->used = false;
	for (struct owner *o = w->owners; o; o = o->next)
		for (size_t i = 0; i < o->count; i++) {
			int rc = add_folder(w, o->files[i].path);

			error = error ? error : rc;
		}
	drop_unused_folders(w);
	return error;
}

static bool take_out(struct policy_watch *w, void *owner)
{
	for (struct owner **at = &w->owners; *at; at = &(*at)->next)
		if ((*at)->owner == owner) {
			struct owner *o = *at;

			*at = o->next;
			owner_free(o);
			return true;
		}
	return false;
}

void policy_watch_forget(struct policy_watch *w, void *owner)
{
	if (take_out(w, owner))
		watch_folders(w);
}

void policy_watch_again(struct policy_watch *w, void *owner)
{
	for (struct owner *o = w->owners; o; o = o->next)
		if (o->owner == owner) {
			o->changed = true;
			loop_timer_set(&w->retry, POLICY_WATCH_RETRY_MS);
			w->again = true;
		}
}

static struct owner *owner_new(void *owner, const char *const *files, size_t count)
{
	struct owner *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return NULL;
	o->owner = owner;
	o->files = calloc(count ? count : 1, sizeof(*o->files));
	for (; o->files && o->count < count; o->count++) {
		struct watched_file *f = &o->files[o->count];

		f->path = strdup(files[o->count]);
		if (!f->path)
			break;
		rc = examine(f->path, &f->seen);
		if (rc)
			memset(&f->seen, 0, sizeof(f->seen));
		if (rc == LOCAL_FILE_UNKNOWN)
			log_warn("%s is not watched: it lies on a file system that may stop "
			         "answering",
			        f->path);
	}
	if (o->files && o->count == count)
		return o;
	owner_free(o);
	return NULL;
}

int policy_watch_set(struct policy_watch *w, void *owner, const char *const *files, size_t count)
{
	struct owner *o = owner_new(owner, files, count);
	int rc;

	take_out(w, owner);
	if (!o)
		return -ENOMEM;
	o->next = w->owners;
	w->owners = o;
	rc = watch_folders(w);
	if (rc)
		policy_watch_forget(w, owner);
	return rc;
}
