/* SPDX-License-Identifier: Apache-2.0 */
/* The controlling terminal; see run/terminal.h. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/run/terminal.h"

void terminal_open(struct terminal *t)
{
	t->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	/* Avoids the descriptor numbers that belong to the command. */
	if (t->fd >= 0 && t->fd < 3) {
		int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);

		close(t->fd);
		t->fd = fd;
	}
	t->owned = terminal_is_ours(t);
}

bool terminal_is_ours(const struct terminal *t)
{
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

void terminal_take(const struct terminal *t)
{
	if (t->fd >= 0 && t->owned)
		(void)!tcsetpgrp(t->fd, getpgrp());
}

void terminal_close(struct terminal *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}
