/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of files that a policy names, made absolute without asking the file system. */
#include <string.h>
#include <unistd.h>

#include "policy/load/loader.h"

#define PATH_TEXT_MAX 4096

/* Appends the segments of path to out and resolves "..". */
static size_t add_segments(char *out, size_t n, struct slice path)
{
	while (path.n > 0) {
		ptrdiff_t slash = slice_find_byte(path, '/');
		size_t len = slash < 0 ? path.n : (size_t)slash;
		struct slice segment = slice_of(path.p, len);

		path = slash < 0 ? slice_of(path.p, 0)
		                 : slice_of(path.p + len + 1, path.n - len - 1);
		if (len == 0 || slice_equals(segment, SLICE(".")))
			continue;
		if (slice_equals(segment, SLICE(".."))) {
			while (n > 0 && out[--n] != '/')
				;
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, segment.p, len);
		n += len;
	}
	return n;
}

struct slice load_join(struct arena *arena, struct slice file, struct slice relative)
{
	char *out = arena_take(arena, file.n + relative.n + 3);
	size_t dir = file.n, n = 0;

	if (!out)
		return SLICE("");
	while (dir > 0 && file.p[dir - 1] != '/')
		dir--;
	if (relative.n == 0 || relative.p[0] != '/')
		n = add_segments(out, n, slice_of(file.p, dir));
	n = add_segments(out, n, relative);
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return slice_of(out, n);
}

struct slice load_absolute(struct arena *arena, const char *path)
{
	char directory[PATH_TEXT_MAX];
	struct slice base = SLICE("/");

	if (path[0] != '/' && getcwd(directory, sizeof(directory) - 1)) {
		size_t n = strlen(directory);

		directory[n++] = '/';
		base = slice_of(directory, n);
	}
	return load_join(arena, base, slice_from_string(path));
}
