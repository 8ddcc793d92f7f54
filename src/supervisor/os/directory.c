/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/os/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

DIR *directory_list(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir) {
		error = errno;
		close(fd);
		errno = error;
	}
	return dir;
}
