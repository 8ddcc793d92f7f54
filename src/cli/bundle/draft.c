/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what goes into a bundle: policies, key sets, revocations. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/bundle/bundle.h"
#include "vethguard/base/utf8.h"

static bool is_utf8(struct slice text)
{
	struct utf8 u = {0};

	return utf8_feed(&u, (const uint8_t *)text.p, text.n) && utf8_is_whole(&u);
}

/* --- files --- */

static bool add_file(struct bundle_parts *p, const char *path, const char *suffix)
{
	const size_t i = p->draft.file_count;
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const struct slice name = slice_from_string(base);

	if (!config_bundle_is_file(name) || !slice_ends_with(name, slice_from_string(suffix)))
		return bundle_complain(path,
		        "in a bundle, its name has to be at most %d letters, digits, '-', '_' and "
		        "'.', ending with %s",
		        CONFIG_BUNDLE_FILE_MAX, suffix);
	if (i == SIGNED_BUNDLE_FILES_MAX)
		return bundle_complain(path, "more than %d files", SIGNED_BUNDLE_FILES_MAX);
	for (size_t k = 0; k < i; k++)
		if (strcmp(p->names[k], base) == 0)
			return bundle_complain(path, "another file has this name already");
	p->draft.file_count++; /* its text is freed in any case */
	if (!bundle_read(path, SIGNED_BUNDLE_BYTES_MAX, &p->texts[i]))
		return false;
	if (!is_utf8(buf_slice(&p->texts[i])))
		return bundle_complain(path, "it is not UTF-8");
	snprintf(p->names[i], sizeof(p->names[i]), "%s", base);
	p->draft.files[i] = (struct signed_bundle_file){
	        slice_from_string(p->names[i]), buf_slice(&p->texts[i])};
	return true;
}

static bool add_entries(
        struct bundle_parts *p, const char *path, const char *suffix, struct dirent **list, int n)
{
	bool good = true, any = false;

	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		char file[PATH_MAX];

		if (good && name[0] != '.' &&
		        slice_ends_with(slice_from_string(name), slice_from_string(suffix))) {
			any = true;
			good = snprintf(file, sizeof(file), "%s/%s", path, name) < PATH_MAX &&
			       add_file(p, file, suffix);
		}
		free(list[i]);
	}
	return any ? good : bundle_complain(path, "it has no file that ends with %s", suffix);
}

bool bundle_add(struct bundle_parts *p, const char *path, const char *suffix)
{
	struct dirent **list = NULL;
	struct stat st;
	bool good;
	int n;

	if (stat(path, &st) < 0)
		return bundle_complain(path, "%s", strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return add_file(p, path, suffix);
	n = scandir(path, &list, NULL, alphasort);
	if (n < 0)
		return bundle_complain(path, "%s", strerror(errno));
	good = add_entries(p, path, suffix, list, n);
	free(list);
	return good;
}

/* --- revocations --- */

/* Takes the next word off the line. */
static struct slice word(struct slice *line)
{
	struct slice w;
	size_t n = 0;

	*line = slice_trim(*line);
	while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
		n++;
	w = slice_of(line->p, n);
	*line = slice_of(line->p + n, line->n - n);
	return w;
}

static bool add_session(struct bundle_parts *p, struct slice rest)
{
	struct slice name = word(&rest);

	if (!name.n || name.n > SIGNED_BUNDLE_SESSION_MAX || slice_trim(rest).n ||
	        p->draft.session_count == SIGNED_BUNDLE_REVOKED_MAX)
		return false;
	p->sessions[p->draft.session_count++] = name;
	return true;
}

static bool add_token(struct bundle_parts *p, struct slice rest)
{
	struct signed_bundle_token t;

	t.signer = word(&rest);
	t.id = slice_trim(rest); /* it may hold spaces */
	if (!t.signer.n || t.signer.n > SIGNED_BUNDLE_SIGNER_MAX || !t.id.n ||
	        t.id.n > SIGNED_BUNDLE_ID_MAX || p->draft.token_count == SIGNED_BUNDLE_REVOKED_MAX)
		return false;
	p->tokens[p->draft.token_count++] = t;
	return true;
}

static bool add_line(struct bundle_parts *p, struct slice line)
{
	struct slice kind;

	line = slice_trim(line);
	if (!line.n || line.p[0] == '#')
		return true;
	kind = word(&line);
	if (slice_equals(kind, SLICE("session")))
		return add_session(p, line);
	return slice_equals(kind, SLICE("token")) && add_token(p, line);
}

bool bundle_add_revocations(struct bundle_parts *p, const char *path)
{
	struct slice rest;
	unsigned number = 0;

	if (!bundle_read(path, SIGNED_BUNDLE_BYTES_MAX, &p->revocations))
		return false;
	rest = buf_slice(&p->revocations);
	if (!is_utf8(rest))
		return bundle_complain(path, "it is not UTF-8");
	p->draft.sessions = p->sessions;
	p->draft.tokens = p->tokens;
	while (rest.n) {
		ptrdiff_t end = slice_find_byte(rest, '\n');
		const size_t n = end < 0 ? rest.n : (size_t)end, used = n + (end >= 0);

		number++;
		if (!add_line(p, slice_of(rest.p, n)))
			return bundle_complain(path,
			        "line %u: write \"session NAME\" or \"token SIGNER ID\", at most "
			        "%d "
			        "of each",
			        number, SIGNED_BUNDLE_REVOKED_MAX);
		rest = slice_of(rest.p + used, rest.n - used);
	}
	return true;
}

void bundle_parts_fini(struct bundle_parts *p)
{
	for (size_t i = 0; i < p->draft.file_count; i++)
		buf_fini(&p->texts[i]);
	buf_fini(&p->revocations);
}
