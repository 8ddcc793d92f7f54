/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/barrier.h"

bool barrier_find(const char *path, char *out, size_t out_size, struct stat *st)
{
	const char *slash = path;

	if (path[0] != '/' || strlen(path) >= out_size)
		return false;
	while (slash) {
		size_t n = slash == path ? 1 : (size_t)(slash - path);

		snprintf(out, out_size, "%.*s", (int)n, path);
		if (faccessat(AT_FDCWD, out, X_OK, AT_EACCESS) != 0)
			return errno == EACCES && stat(out, st) == 0;
		slash = strchr(slash + 1, '/');
	}
	return false;
}
