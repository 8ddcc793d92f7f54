/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/base/fd.h"

#include <errno.h>
#include <unistd.h>

int fd_write_all(int fd, struct slice bytes)
{
	while (bytes.n > 0) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	return 0;
}
