/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/config/bundle_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/fd.h"

#define SERIAL "serial"
#define FILE_NAME "bundle"
#define CURRENT "current"
#define NEW ".new"
#define TREE "tree-"
#define TREE_NEW "tree.new"
#define TREE_NAME_MAX 64
#define TREE_DIGEST_BYTES 8
#define SERIAL_LINE_MAX (20 + 1 + 2 * SIGNED_BUNDLE_DIGEST_BYTES + 1)
#define OPEN_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define FILE_MODE 0644
#define FOLDER_MODE 0755

/* --- files --- */

/* Makes a new file and waits until it is on the disk. */
static int make_file(int dir, const char *name, struct slice text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | OPEN_FLAGS, FILE_MODE), rc;

	if (fd < 0)
		return -errno;
	rc = fchmod(fd, FILE_MODE) < 0 ? -errno : fd_write_all(fd, text);
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

/* Replaces a file, and waits until that is on the disk. */
static int replace_file(int dir, const char *name, struct slice text)
{
	char fresh[TREE_NAME_MAX];
	int rc;

	snprintf(fresh, sizeof(fresh), "%s" NEW, name);
	unlinkat(dir, fresh, 0);
	rc = make_file(dir, fresh, text);
	if (!rc && renameat(dir, fresh, dir, name) < 0)
		rc = -errno;
	if (!rc && fsync(dir) < 0)
		rc = -errno;
	if (rc)
		unlinkat(dir, fresh, 0);
	return rc;
}

/* Appends a file that only this user may write, of 1 to max bytes. Returns 0 or -errno. */
static int read_file(int dir, const char *name, size_t max, struct buf *out)
{
	int fd = openat(dir, name, O_RDONLY | OPEN_FLAGS), rc = 0;
	struct stat st;
	uint8_t *room;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	         (st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_size <= 0 || st.st_size > (off_t)max)
		rc = -EBADMSG;
	room = rc ? NULL : buf_reserve(out, (size_t)st.st_size);
	if (!rc && !room)
		rc = -ENOMEM;
	n = rc ? 0 : read(fd, room, (size_t)st.st_size);
	if (!rc && n != (ssize_t)st.st_size)
		rc = n < 0 ? -errno : -EIO;
	if (!rc)
		buf_commit(out, (size_t)n);
	close(fd);
	return rc;
}

/* --- the serial --- */

static bool take_serial(struct bundle_store *s, struct slice line)
{
	const ptrdiff_t space = slice_find_byte(line, ' ');
	const char *hex = line.p + space + 1;

	if (space < 0 || line.n != (size_t)space + 1 + 2 * sizeof(s->digest) + 1 ||
	        line.p[line.n - 1] != '\n' ||
	        !slice_to_u64(
	                slice_of(line.p, (size_t)space), SIGNED_BUNDLE_SERIAL_MAX, &s->highest) ||
	        !s->highest)
		return false;
	for (size_t i = 0; i < sizeof(s->digest); i++) {
		const int high = slice_hex_digit(hex[2 * i]), low = slice_hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		s->digest[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int read_serial(struct bundle_store *s)
{
	struct buf text;
	int rc;

	buf_init(&text, SERIAL_LINE_MAX);
	rc = read_file(s->dir, SERIAL, SERIAL_LINE_MAX, &text);
	if (!rc && !take_serial(s, buf_slice(&text)))
		rc = -EBADMSG;
	if (rc)
		s->highest = 0;
	buf_fini(&text);
	/* A bundle without its serial is damage too. */
	if (rc == -ENOENT && faccessat(s->dir, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EBADMSG;
	return rc == -ENOENT ? 0 : rc;
}

static int write_serial(struct bundle_store *s, const struct signed_bundle *b)
{
	char line[SERIAL_LINE_MAX + 1];
	int n = snprintf(line, sizeof(line), "%" PRIu64 " ", b->serial), rc;

	for (size_t i = 0; i < sizeof(b->digest); i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%02x", b->digest[i]);
	line[n++] = '\n';
	rc = replace_file(s->dir, SERIAL, slice_of(line, (size_t)n));
	if (!rc) {
		s->highest = b->serial;
		memcpy(s->digest, b->digest, sizeof(s->digest));
	}
	return rc;
}

/* --- the tree --- */

static void tree_name(const struct signed_bundle *b, char out[TREE_NAME_MAX])
{
	int n = snprintf(out, TREE_NAME_MAX, TREE "%" PRIu64 "-", b->serial);

	for (size_t i = 0; i < TREE_DIGEST_BYTES; i++, n += 2)
		snprintf(out + n, TREE_NAME_MAX - (size_t)n, "%02x", b->digest[i]);
}

/* Removes a directory with files in it, but no directories. */
static void remove_tree(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		unlinkat(fd, entry->d_name, 0);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Writes the name to which `current` leads, or an empty one. */
static void target_of(int dir, char out[TREE_NAME_MAX])
{
	ssize_t n = readlinkat(dir, CURRENT, out, TREE_NAME_MAX);

	out[n > 0 && n < TREE_NAME_MAX ? n : 0] = 0;
}

static bool leads_to(int dir, const char *name)
{
	char target[TREE_NAME_MAX];

	target_of(dir, target);
	return strcmp(target, name) == 0;
}

static int fill_tree(int dir, const struct signed_bundle *b)
{
	int rc = fchmod(dir, FOLDER_MODE) < 0 ? -errno : 0;

	for (size_t i = 0; !rc && i < b->file_count; i++) {
		char name[CONFIG_BUNDLE_FILE_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", SLICE_ARG(b->files[i].name));
		rc = make_file(dir, name, b->files[i].text);
	}
	if (!rc && fsync(dir) < 0)
		rc = -errno;
	return rc;
}

/* Makes the tree under its own name. */
static int make_tree(int dir, const struct signed_bundle *b, const char *name)
{
	int fd, rc;

	remove_tree(dir, TREE_NEW);
	if (mkdirat(dir, TREE_NEW, FOLDER_MODE) < 0)
		return -errno;
	fd = openat(dir, TREE_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	rc = fd < 0 ? -errno : fill_tree(fd, b);
	if (fd >= 0)
		close(fd);
	if (!rc && !leads_to(dir, name)) {
		remove_tree(dir, name);
		if (renameat(dir, TREE_NEW, dir, name) < 0)
			rc = -errno;
	}
	remove_tree(dir, TREE_NEW);
	return rc;
}

static int lead_to(int dir, const char *name)
{
	unlinkat(dir, CURRENT NEW, 0);
	if (symlinkat(name, dir, CURRENT NEW) < 0)
		return -errno;
	if (renameat(dir, CURRENT NEW, dir, CURRENT) < 0)
		return -errno;
	return fsync(dir) < 0 ? -errno : 0;
}

/* `current` leads to the tree `before` again, or nowhere if there is none or that fails: never to
 * files that are not in force. */
static void lead_back(int dir, const char *before)
{
	if (leads_to(dir, before))
		return;
	if (*before)
		(void)lead_to(dir, before);
	if (!*before || !leads_to(dir, before))
		unlinkat(dir, CURRENT, 0);
}

/* Removes the trees to which `current` does not lead. */
static void tidy(int dir, const char *keep)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (strncmp(entry->d_name, TREE, sizeof(TREE) - 1) == 0 &&
		        strcmp(entry->d_name, keep) != 0)
			remove_tree(dir, entry->d_name);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
}

int bundle_store_extract(struct bundle_store *s, const struct signed_bundle *b)
{
	char name[TREE_NAME_MAX];
	int rc = 0;

	tree_name(b, name);
	if (leads_to(s->dir, name))
		return 0;
	rc = make_tree(s->dir, b, name);
	if (!rc)
		rc = lead_to(s->dir, name);
	if (!rc)
		tidy(s->dir, name);
	return rc;
}

void bundle_store_hide(const struct bundle_store *s)
{
	unlinkat(s->dir, CURRENT, 0);
}

/* --- all --- */

int bundle_store_keep(struct bundle_store *s, const struct signed_bundle *b)
{
	char name[TREE_NAME_MAX], before[TREE_NAME_MAX];
	int rc;

	tree_name(b, name);
	target_of(s->dir, before);
	rc = make_tree(s->dir, b, name);
	if (!rc)
		rc = write_serial(s, b);
	if (!rc)
		rc = replace_file(s->dir, FILE_NAME, slice_of(b->memory, b->n));
	if (!rc)
		rc = lead_to(s->dir, name);
	if (rc)
		lead_back(s->dir, before);
	else
		tidy(s->dir, name);
	return rc;
}

int bundle_store_read(const struct bundle_store *s, struct buf *out)
{
	return read_file(s->dir, FILE_NAME, SIGNED_BUNDLE_BYTES_MAX, out);
}

int bundle_store_open(struct bundle_store *s, int parent, const char *name)
{
	struct stat st;

	*s = (struct bundle_store){.dir = -1};
	if (mkdirat(parent, name, FOLDER_MODE) < 0 && errno != EEXIST)
		return -errno;
	s->dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir < 0 || fstat(s->dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EBADMSG;
	return read_serial(s);
}

void bundle_store_close(struct bundle_store *s)
{
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
}

int bundle_store_path(const char *base, const char *text, char *out, size_t out_size)
{
	struct slice name, file;

	if (!config_bundle_split(slice_from_string(text), &name, &file))
		return 0;
	if (!file.n || snprintf(out, out_size, "%s/%.*s/" CURRENT "/%.*s", base, SLICE_ARG(name),
	                       SLICE_ARG(file)) >= (int)out_size)
		return -EINVAL;
	return 1;
}
