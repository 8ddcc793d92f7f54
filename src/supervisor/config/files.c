/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy on a file system that may stop answering is read by a child process. The child loads the
 * policy as the supervisor would, so it finds the same files, and writes two records for each to
 * its report: first that it is about to read the file (all that is known if the read never ends),
 * then the result. The supervisor loads the policy again, from the report. A file that the child
 * did not find does not belong to the policy.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"
#include "supervisor/config/private.h"

#define BEYOND (-EOVERFLOW) /* not an error of a file: SETTINGS_FILES_MAX would be exceeded */

enum { ABOUT_TO_READ = 1, HAS_READ };

/* Path and text follow. Parent and child are the same program. */
struct record {
	uint32_t kind;
	int32_t error;
	uint64_t path_n, text_n; /* path_n includes the NUL */
	struct policy_file_facts facts;
};

struct settings_file {
	const char *path, *text;
	size_t n;
	int error;
	struct policy_file_facts facts;
};

struct settings_files {
	void *memory;
	size_t size, count, room;
	struct settings_file *items; /* owned */
	const char *waits_for, *beyond;
};

const struct settings_files settings_no_files;

/* The child. */

struct reading {
	struct settings_opening opening;
	int report;
	size_t left;
};

static int put(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			at += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

static int put_record(int report, const struct record *r, const char *path, const char *text)
{
	int rc = put(report, r, sizeof(*r));

	if (!rc)
		rc = put(report, path, r->path_n);
	return rc ? rc : put(report, text, r->text_n);
}

static int read_and_tell(void *context, const char *path, char **text, size_t *n)
{
	struct reading *r = context;
	struct record record = {.kind = ABOUT_TO_READ, .path_n = strlen(path) + 1};
	int rc = put_record(r->report, &record, path, NULL);

	if (rc)
		return rc;
	*text = NULL;
	*n = 0;
	rc = settings_read(&r->opening, path, text, n);
	/* A file system may return these values too. */
	if (rc == LOCAL_FILE_UNKNOWN || rc == BEYOND)
		rc = -EIO;
	if (!rc && *n > r->left) {
		free(*text);
		*text = NULL;
		*n = 0;
		rc = BEYOND;
	}
	record.kind = HAS_READ;
	record.error = rc;
	record.text_n = rc ? 0 : *n;
	record.facts = r->opening.facts;
	r->left -= record.text_n;
	int written = put_record(r->report, &record, path, *text);
	if (!written)
		return rc;
	free(rc ? NULL : *text);
	return written;
}

int settings_files_read(const struct identity *identity, const char *policy_path,
        const struct policy_load_options *options, int report)
{
	struct reading r = {.opening = {.identity = identity,
	                            .files = policy_reader_files(policy_default_preset_dir())},
	        .report = report,
	        .left = SETTINGS_FILES_MAX};
	const struct policy_reader reader = {
	        .context = &r, .read = read_and_tell, .preset_dir = r.opening.files.preset_dir};
	struct policy_load_options without_floor = *options;
	struct diag_list *diags = calloc(1, sizeof(*diags));
	uint8_t *image = NULL;
	size_t size;
	int rc;

	r.opening.files.context = &r.opening.facts;
	if (!diags)
		return -ENOMEM;
	without_floor.floor = NULL; /* it is local: the parent reads it */
	rc = policy_load(&reader, policy_path, &without_floor, &image, &size, diags);
	free(image);
	free(diags);
	return rc == -ENOMEM ? rc : 0; /* the parent finds and reports the faults again */
}

/* The parent. */

static bool add(struct settings_files *files, const struct settings_file *file)
{
	struct settings_file *items = files->items;

	if (files->count == files->room) {
		files->room = files->room ? 2 * files->room : 8;
		items = realloc(items, files->room * sizeof(*items));
		if (!items)
			return false;
		files->items = items;
	}
	items[files->count++] = *file;
	return true;
}

/* An incomplete record at the end was being written when the child ended. */
static bool parse(struct settings_files *files)
{
	const char *at = files->memory;
	size_t left = files->size;

	while (left >= sizeof(struct record)) {
		struct record r;
		const char *path = at + sizeof(r);

		memcpy(&r, at, sizeof(r));
		left -= sizeof(r);
		if (r.path_n == 0 || r.path_n > left || r.text_n > left - r.path_n)
			return true;
		if (path[r.path_n - 1] != 0)
			return false;
		left -= r.path_n + r.text_n;
		at = path + r.path_n + r.text_n;
		files->waits_for = r.kind == ABOUT_TO_READ ? path : NULL;
		if (r.kind == HAS_READ && r.error == BEYOND && !files->beyond)
			files->beyond = path;
		const struct settings_file file = {
		        path, path + r.path_n, r.text_n, r.error, r.facts};
		if (r.kind == HAS_READ && !add(files, &file))
			return false;
	}
	return true;
}

struct settings_files *settings_files_open(int report)
{
	struct settings_files *files = calloc(1, sizeof(*files));
	struct stat st;

	if (!files || fstat(report, &st) < 0) {
		free(files);
		return NULL;
	}
	if (st.st_size > 0) {
		files->memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, report, 0);
		if (files->memory == MAP_FAILED)
			files->memory = NULL;
		else
			files->size = (size_t)st.st_size;
	}
	if ((files->memory || st.st_size == 0) && parse(files))
		return files;
	settings_files_free(files);
	return NULL;
}

const char *settings_files_waits_for(const struct settings_files *files)
{
	return files->waits_for;
}

const char *settings_files_beyond(const struct settings_files *files)
{
	return files->beyond;
}

void settings_files_free(struct settings_files *files)
{
	if (!files)
		return;
	if (files->memory)
		munmap(files->memory, files->size);
	free(files->items);
	free(files);
}

int settings_files_get(const struct settings_files *files, const char *path, char **text, size_t *n,
        struct policy_file_facts *facts)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct settings_file *f = &files->items[i];

		if (strcmp(f->path, path) != 0)
			continue;
		if (f->error)
			return f->error;
		*text = malloc(f->n + 1);
		if (!*text)
			return -ENOMEM;
		memcpy(*text, f->text, f->n);
		(*text)[f->n] = 0;
		*n = f->n;
		*facts = f->facts;
		return 0;
	}
	return LOCAL_FILE_UNKNOWN;
}
