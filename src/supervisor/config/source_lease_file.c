/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One JSON file for each lease, "PID.START.NUMBER.json", with pid and start time of the process
 * that uses its value. The files are read strictly, and only if nobody else could have written
 * them.
 */
#include "supervisor/config/source_lease_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/base/process.h"

#define NAME_MAX_BYTES 96
#define SUFFIX ".json"

/* --- copies --- */

static struct slice put(char **at, struct slice text)
{
	struct slice copy = slice_of(*at, text.n);

	if (text.n)
		memcpy(*at, text.p, text.n);
	*at += text.n;
	return copy;
}

int lease_words_copy(struct lease_words *out, const struct lease_words *words)
{
	const struct policy_credential *c = &words->credential;
	size_t n = c->location.n + 1;
	char *at;

	*out = *words;
	for (size_t i = 0; i < c->argc; i++)
		n += c->argv[i].n;
	out->texts = at = malloc(n);
	if (!at)
		return -ENOMEM;
	out->credential = (struct policy_credential){.source = POLICY_SOURCE_FETCH,
	        .argc = c->argc,
	        .timeout_ms = c->timeout_ms,
	        .name = SLICE("")};
	out->credential.location = put(&at, c->location);
	for (size_t i = 0; i < c->argc; i++)
		out->credential.argv[i] = put(&at, c->argv[i]);
	if (identity_copy(&out->identity, &words->identity) == 0)
		return 0;
	free(out->texts);
	return -ENOMEM;
}

void lease_words_fini(struct lease_words *words)
{
	if (words->texts)
		identity_fini(&words->identity);
	free(words->texts);
	words->texts = NULL;
}

/* --- writing --- */

static void name_of(char out[NAME_MAX_BYTES], uint64_t number)
{
	uint64_t start = 0;

	(void)process_start_time(getpid(), &start);
	snprintf(out, NAME_MAX_BYTES, "%d.%" PRIu64 ".%" PRIu64 SUFFIX, (int)getpid(), start,
	        number);
}

static json_t *pack(const struct lease_words *w)
{
	const struct policy_credential *c = &w->credential;
	json_t *words = json_array(), *groups = json_array();

	for (size_t i = 0; i < c->argc; i++)
		json_array_append_new(words, json_stringn(c->argv[i].p, c->argv[i].n));
	for (size_t i = 0; i < w->identity.group_count; i++)
		json_array_append_new(groups, json_integer((json_int_t)w->identity.groups[i]));
	return json_pack("{s:s, s:s%, s:o, s:I, s:I, s:I, s:I, s:b, s:o}", "lease", w->id, "url",
	        c->location.p, c->location.n, "words", words, "timeout_ms",
	        (json_int_t)c->timeout_ms, "ends_ms", (json_int_t)w->ends_ms, "uid",
	        (json_int_t)w->identity.uid, "gid", (json_int_t)w->identity.gid, "asked",
	        w->identity.asked, "groups", groups);
}

static int write_whole(int directory, const char *name, const char *text)
{
	char fresh[NAME_MAX_BYTES + 8];
	size_t n = strlen(text);
	int fd, rc = 0;

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	fd = openat(directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != (ssize_t)n || fsync(fd) < 0)
		rc = errno ? -errno : -EIO;
	close(fd);
	if (!rc && renameat(directory, fresh, directory, name) < 0)
		rc = -errno;
	if (!rc && fsync(directory) < 0)
		rc = -errno;
	if (rc)
		unlinkat(directory, fresh, 0);
	return rc;
}

int lease_file_write(int directory, uint64_t number, const struct lease_words *words)
{
	char name[NAME_MAX_BYTES], *text;
	json_t *root = pack(words);
	int rc = -ENOMEM;

	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	name_of(name, number);
	if (text)
		rc = strlen(text) < LEASE_FILE_MAX ? write_whole(directory, name, text) : -E2BIG;
	free(text);
	json_decref(root);
	return rc;
}

void lease_file_remove(int directory, uint64_t number)
{
	char name[NAME_MAX_BYTES];

	name_of(name, number);
	if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
		log_warn("the note of a lease cannot be removed: %s", strerror(errno));
}

/* --- reading --- */

static json_t *load(int directory, const char *name)
{
	static char text[LEASE_FILE_MAX];
	json_t *root = NULL;
	struct stat st;
	ssize_t n;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	        !(st.st_mode & (S_IWGRP | S_IWOTH))) {
		n = read(fd, text, sizeof(text));
		if (n > 0 && n < (ssize_t)sizeof(text))
			root = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	}
	close(fd);
	return root;
}

static bool take_words(const json_t *words, struct policy_credential *c)
{
	c->argc = json_array_size(words);
	if (c->argc == 0 || c->argc >= POLICY_ARGV_MAX)
		return false;
	for (size_t i = 0; i < c->argc; i++) {
		const json_t *word = json_array_get(words, i);

		if (!json_is_string(word) || json_string_length(word) == 0 ||
		        json_string_length(word) > MESSAGE_FETCH_ARGUMENT_MAX)
			return false;
		c->argv[i] = slice_of(json_string_value(word), json_string_length(word));
	}
	return true;
}

static bool take_groups(const json_t *list, gid_t groups[IDENTITY_GROUPS_MAX], struct identity *id)
{
	id->groups = groups;
	id->group_count = json_array_size(list);
	if (!json_is_array(list) || id->group_count > IDENTITY_GROUPS_MAX)
		return false;
	for (size_t i = 0; i < id->group_count; i++) {
		json_int_t gid = json_integer_value(json_array_get(list, i));

		if (!json_is_integer(json_array_get(list, i)) || gid < 0 || gid >= UINT32_MAX)
			return false;
		groups[i] = (gid_t)gid;
	}
	return true;
}

/* The result points into root and groups. */
static bool read_note(json_t *root, gid_t groups[IDENTITY_GROUPS_MAX], struct lease_words *out)
{
	json_int_t timeout_ms, ends_ms, uid, gid;
	const char *lease, *url;
	json_t *words, *list;
	int asked;

	*out = (struct lease_words){.ends_ms = 0};
	if (json_unpack(root, "{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:b, s:o !}", "lease", &lease,
	            "url", &url, "words", &words, "timeout_ms", &timeout_ms, "ends_ms", &ends_ms,
	            "uid", &uid, "gid", &gid, "asked", &asked, "groups", &list) != 0 ||
	        strlen(lease) == 0 || strlen(lease) > MESSAGE_LEASE_MAX || !*url ||
	        strlen(url) > MESSAGE_FETCH_ARGUMENT_MAX || timeout_ms < 0 ||
	        timeout_ms > UINT32_MAX || ends_ms < 0 || uid < 0 || uid >= UINT32_MAX || gid < 0 ||
	        gid >= UINT32_MAX || !take_words(words, &out->credential) ||
	        !take_groups(list, groups, &out->identity))
		return false;
	snprintf(out->id, sizeof(out->id), "%s", lease);
	out->credential.location = slice_from_string(url);
	out->credential.timeout_ms = (uint32_t)timeout_ms;
	out->ends_ms = ends_ms;
	out->identity.uid = (uid_t)uid;
	out->identity.gid = (gid_t)gid;
	out->identity.asked = asked;
	return true;
}

/* True if the process that wrote the file still runs. */
static bool is_in_use(const char *name)
{
	uint64_t start, now = 0;
	int pid;

	return sscanf(name, "%d.%" SCNu64 ".", &pid, &start) == 2 && pid > 0 &&
	       process_start_time(pid, &now) == 0 && now == start;
}

static void take_file(int directory, const char *name, uint64_t *last_number,
        void (*each)(void *context, uint64_t number, struct lease_words *words), void *context)
{
	static gid_t groups[IDENTITY_GROUPS_MAX];
	char own[NAME_MAX_BYTES], shown[2 * NAME_MAX_BYTES];
	struct lease_words words;
	json_t *root = load(directory, name);

	if (root && read_note(root, groups, &words)) {
		name_of(own, ++*last_number);
		if (renameat(directory, name, directory, own) == 0)
			each(context, *last_number, &words);
	} else {
		log_warn("the note %s of a lease cannot be understood and is removed",
		        slice_escape(slice_from_string(name), shown, sizeof(shown)));
		unlinkat(directory, name, 0);
	}
	json_decref(root);
}

#define FILES_MAX 4096

/* Collects the names first, because the directory changes meanwhile. */
void lease_files_take(int directory, uint64_t *last_number,
        void (*each)(void *context, uint64_t number, struct lease_words *words), void *context)
{
	struct dirent **names = NULL;
	char path[64];
	int count;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
	count = scandir(path, &names, NULL, NULL);
	for (int i = 0; i < count; i++) {
		size_t n = strlen(names[i]->d_name);

		if (i < FILES_MAX && n > strlen(SUFFIX) && n < NAME_MAX_BYTES &&
		        strcmp(names[i]->d_name + n - strlen(SUFFIX), SUFFIX) == 0 &&
		        !is_in_use(names[i]->d_name))
			take_file(directory, names[i]->d_name, last_number, each, context);
		free(names[i]);
	}
	free(names);
}
