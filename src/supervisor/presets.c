/* SPDX-License-Identifier: Apache-2.0 */
/* A program run from build/bin finds the tree it came from; one that is installed, its data
 * directory. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/presets.h"

#ifndef VETHGUARD_DATADIR
#define VETHGUARD_DATADIR "/usr/local/share/vethguard"
#endif

static int is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *presets_directory(char out[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	/* build/bin, or build/asan/bin: the tree is two or three levels up. */
	for (int up = 0; n > 0 && up < 4; up++) {
		self[n] = 0;
		char *slash = strrchr(self, '/');
		if (!slash || slash == self)
			break;
		*slash = 0;
		n = slash - self;
		int length = snprintf(out, PATH_MAX, "%s/policies/presets", self);
		if (up >= 2 && length > 0 && length < PATH_MAX && is_directory(out))
			return out;
	}
	snprintf(out, PATH_MAX, "%s/presets", VETHGUARD_DATADIR);
	return out;
}
