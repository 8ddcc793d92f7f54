/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel does not list Landlock's rules, but it enforces them, so this tries one. Separate from
 * describe.c, so that roles without connections link no function that could make one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/jail_state.h"

static bool is_listed(uint16_t port)
{
	for (size_t i = 0; i < jail_state.port_count; i++)
		if (jail_state.ports[i] == port)
			return true;
	return false;
}

/* Uses a port that no rule names at this machine's own address, so nothing leaves the machine. */
static void probe(struct buf *out)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint16_t port = 1;
	int fd, rc;

	while (port < UINT16_MAX && is_listed(port))
		port++;
	to.sin_port = htons(port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	rc = fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	buf_printf(out, "landlock_probe: port %u %s\n", port,
	        rc == EACCES ? "refused" : "not refused");
}

void jail_probes_connections(void)
{
	jail_state.probe = probe;
}
