/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two things make JSON less simple than it looks. Engines write limits of 64 bits
 * (18446744073709551615 is "no limit"), which jansson does not hold: such numbers become strings
 * with a random mark while they are here, and numbers again when they are written. And the real
 * runtime's parser is another one: Go's takes "LINUX" for "linux", and of a member that stands
 * twice every parser takes one. So what two parsers could read differently is refused.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/hash.h"
#include "runtime/config.h"

#define DIGITS_SAFE 18 /* as many digits fit into 63 bits in any case */
#define DIGITS_MAX 20

static void make_mark(char mark[CONFIG_MARK_BYTES])
{
	uint64_t number[2];

	random_bytes(number, sizeof(number));
	snprintf(mark, CONFIG_MARK_BYTES, "%016llx%016llx", (unsigned long long)number[0],
	        (unsigned long long)number[1]);
}

/* The length of a whole number that jansson might not hold, or 0. */
static size_t large_number(struct slice text, size_t at)
{
	size_t n = 0;

	if (at > 0 && (isalnum((unsigned char)text.p[at - 1]) || strchr(".+-", text.p[at - 1])))
		return 0;
	while (at + n < text.n && isdigit((unsigned char)text.p[at + n]))
		n++;
	if (n <= DIGITS_SAFE || n > DIGITS_MAX ||
	        (at + n < text.n && strchr(".eE", text.p[at + n]) && text.p[at + n]))
		return 0;
	return n;
}

/* Copies the text and puts large numbers into strings. */
static int wrap_numbers(struct slice text, const char *mark, struct buf *out)
{
	bool in_string = false;
	size_t from = 0;
	int rc = 0;

	for (size_t i = 0; i < text.n && !rc; i++) {
		size_t n = in_string ? 0 : large_number(text, i);

		if (text.p[i] == '"')
			in_string = !in_string;
		else if (in_string && text.p[i] == '\\')
			i++;
		if (n == 0)
			continue;
		rc = buf_append(out, text.p + from, i - from);
		if (!rc)
			rc = buf_printf(out, "\"%s%.*s\"", mark, (int)n, text.p + i);
		i += n - 1;
		from = i + 1;
	}
	return rc ? rc : buf_append(out, text.p + from, text.n - from);
}

/* Takes them out of their strings again, in place. */
static void unwrap_numbers(char *text, const char *mark)
{
	size_t n = strlen(mark);
	char *to = text, *from = text, *found;

	while ((found = strstr(from, mark)) != NULL) {
		size_t before = (size_t)(found - 1 - from),
		       digits = strspn(found + n, "0123456789");

		memmove(to, from, before);
		to += before;
		memmove(to, found + n, digits);
		to += digits;
		from = found + n + digits + 1;
	}
	memmove(to, from, strlen(from) + 1);
}

/* True if Go would take a key of the object for one of these names, which it is not. */
static bool has_double(const json_t *object, const char *const names[], const char **culprit)
{
	json_t *o = (json_t *)(uintptr_t)object; /* jansson's iteration takes no const */

	for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
		const char *key = json_object_iter_key(at);

		*culprit = key;
		for (const char *p = key; *p; p++)
			if ((unsigned char)*p >= 0x80) /* U+212A folds to k, U+017F to s */
				return true;
		for (size_t i = 0; names[i]; i++)
			if (strcasecmp(key, names[i]) == 0 && strcmp(key, names[i]) != 0)
				return true;
	}
	return false;
}

static bool check_keys(const json_t *object, const char *where, struct fault *fault)
{
	static const char *const names[] = {"ociVersion", "process", "root", "hostname", "mounts",
	        "hooks", "annotations", "linux", "env", "args", "cwd", "path", "readonly",
	        "namespaces", "type", "destination", "source", "options", "prestart",
	        "createRuntime", "capabilities", NULL};
	const char *culprit = "";
	char shown[64];

	return !has_double(object, names, &culprit) ||
	       fault_set(fault,
	               CONFIG_FILE ": %s: the member \"%s\" is spelled in another way than the "
	                           "specification's",
	               where, slice_escape(slice_from_string(culprit), shown, sizeof(shown)));
}

static bool check_all_keys(const json_t *root, struct fault *fault)
{
	static const char *const objects[] = {"process", "root", "hooks", "linux"};
	const json_t *list[] = {json_object_get(root, "mounts"),
	        json_object_get(json_object_get(root, "linux"), "namespaces"),
	        json_object_get(json_object_get(root, "hooks"), "prestart")};

	if (!check_keys(root, "the top", fault))
		return false;
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (!check_keys(json_object_get(root, objects[i]), objects[i], fault))
			return false;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		for (size_t j = 0; j < json_array_size(list[i]); j++)
			if (!check_keys(json_array_get(list[i], j), "a list", fault))
				return false;
	return true;
}

bool config_parse(struct config *c, struct slice text, struct fault *fault)
{
	json_error_t error;
	struct buf wrapped;
	char shown[160];
	int rc;

	make_mark(c->mark);
	/* A wrapped number grows by less than three times its length. */
	buf_init(&wrapped, (size_t)CONFIG_MAX * 3);
	rc = wrap_numbers(text, c->mark, &wrapped);
	c->root = rc ? NULL
	             : json_loadb((char *)buf_slice(&wrapped).p, wrapped.len,
	                       JSON_REJECT_DUPLICATES, &error);
	buf_fini(&wrapped);
	if (rc)
		return fault_set(fault, CONFIG_FILE ": %s", strerror(-rc));
	if (!c->root)
		return fault_set(fault, CONFIG_FILE " is not JSON: line %d: %s", error.line,
		        slice_escape(slice_from_string(error.text), shown, sizeof(shown)));
	if (!json_is_object(c->root))
		fault_set(fault, CONFIG_FILE " is not a JSON object");
	else if (check_all_keys(c->root, fault))
		return true;
	config_free(c);
	return false;
}

static bool read_file(const char *path, struct buf *out, struct fault *fault)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	uint8_t *room;
	ssize_t n = -1;

	if (fd < 0)
		return fault_set(fault, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > CONFIG_MAX) {
		close(fd);
		return fault_set(
		        fault, "%s is not a regular file of at most %u bytes", path, CONFIG_MAX);
	}
	while ((room = buf_reserve(out, 65536)) && (n = read(fd, room, 65536)) > 0)
		buf_commit(out, (size_t)n);
	close(fd);
	return (room && n == 0) || fault_set(fault, "%s cannot be read", path);
}

static bool load(struct config *c, const char *name, struct fault *fault)
{
	char path[PATH_MAX + 64];
	struct buf text;
	bool good;

	snprintf(path, sizeof(path), "%s/%s", c->bundle, name);
	buf_init(&text, CONFIG_MAX + 65536);
	good = read_file(path, &text, fault) && config_parse(c, buf_slice(&text), fault);
	buf_fini(&text);
	return good;
}

bool config_read(struct config *c, const char *bundle, struct fault *fault)
{
	*c = (struct config){.root = NULL};
	if (!realpath(bundle ? bundle : ".", c->bundle))
		return fault_set(
		        fault, "the bundle %s: %s", bundle ? bundle : ".", strerror(errno));
	if (!load(c, CONFIG_FILE, fault))
		return false;
	if (!json_object_get(json_object_get(c->root, "annotations"), CONFIG_EDITED))
		return true;
	config_free(c);
	c->again = true;
	return load(c, CONFIG_ORIGINAL, fault);
}

char *config_text(const struct config *c)
{
	char *text = json_dumps(c->root, JSON_INDENT(0) | JSON_COMPACT);

	if (text)
		unwrap_numbers(text, c->mark);
	return text;
}

static int write_file(const char *path, const char *text)
{
	size_t left = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	for (; left > 0; text += n, left -= (size_t)n) {
		n = write(fd, text, left);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			break;
	}
	int rc = n < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* link(2) first: at every moment there is a config.json, and the original under one of both names.
 */
static int exchange(const char *path, const char *original, const char *new)
{
	if (unlink(original) < 0 && errno != ENOENT)
		return -errno;
	if (link(path, original) < 0)
		return -errno;
	return rename(new, path) == 0 ? 0 : -errno;
}

bool config_write(const struct config *c, struct fault *fault)
{
	char path[PATH_MAX + 64], original[PATH_MAX + 64], new[PATH_MAX + 64],
	        *text = config_text(c);
	struct stat st;
	int rc = text ? 0 : -ENOMEM;

	snprintf(path, sizeof(path), "%s/" CONFIG_FILE, c->bundle);
	snprintf(original, sizeof(original), "%s/" CONFIG_ORIGINAL, c->bundle);
	snprintf(new, sizeof(new), "%s/" CONFIG_FILE ".new", c->bundle);
	if (!rc)
		rc = write_file(new, text);
	free(text);
	if (!rc && stat(path, &st) == 0) {
		(void)!chown(new, st.st_uid, st.st_gid);
		(void)chmod(new, st.st_mode & 0777);
	}
	if (!rc && c->again)
		rc = rename(new, path) == 0 ? 0 : -errno;
	else if (!rc)
		rc = exchange(path, original, new);
	if (rc)
		unlink(new);
	return rc == 0 || fault_set(fault, "%s cannot be written: %s", path, strerror(-rc));
}

void config_restore(const char *bundle)
{
	char path[PATH_MAX + 64], original[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" CONFIG_FILE, bundle);
	snprintf(original, sizeof(original), "%s/" CONFIG_ORIGINAL, bundle);
	(void)rename(original, path);
}

void config_free(struct config *c)
{
	json_decref(c->root);
	c->root = NULL;
}
