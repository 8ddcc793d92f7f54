/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of the bundle commands, and prints what is wrong with them. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bundle/bundle.h"

bool bundle_complain(const char *path, const char *format, ...)
{
	char text[SIGNED_BUNDLE_WHY_MAX + 256], shown[PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "vethguard: error: %s%s%s\n",
	        path ? slice_escape(slice_from_string(path), shown, sizeof(shown)) : "",
	        path ? ": " : "", text);
	return false;
}

static int read_open(int fd, size_t max, struct buf *out)
{
	ssize_t n = 1;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (n) {
		uint8_t *room;

		if (out->len > max)
			return -EFBIG;
		room = buf_reserve(out, 1);
		if (!room)
			return -ENOMEM;
		n = read(fd, room, out->cap - out->start - out->len);
		if (n < 0)
			return -errno;
		buf_commit(out, (size_t)n);
	}
	return 0;
}

bool bundle_read(const char *path, size_t max, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	buf_init_secret(out, max + 1); /* it may be a key */
	if (fd < 0)
		return bundle_complain(path, "%s", strerror(errno));
	rc = read_open(fd, max, out);
	close(fd);
	if (rc == -EFBIG)
		return bundle_complain(path, "it has more than %zu bytes", max);
	return !rc || bundle_complain(path, "%s",
	                      rc == -EINVAL ? "it is not a regular file" : strerror(-rc));
}
