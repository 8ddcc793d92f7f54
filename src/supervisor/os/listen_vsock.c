/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only root may attach a vsock port. For a Unix socket, the rights of its directory say who may
 * make one there. A CID does not say whose machine it is, so another member of the group could give
 * a policy to somebody else's machine.
 */
#include "supervisor/os/listen_vsock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Must follow sys/socket.h: older versions need it and do not include it. */
#include <linux/vm_sockets.h>

#define BACKLOG 1024

static int explain(const struct listen_socket *s, int error, char *why, size_t why_size)
{
	if (error == EAFNOSUPPORT || error == ENODEV)
		snprintf(why, why_size,
		        "%s: this kernel has no vsock: 'modprobe vhost_vsock' loads it where it is "
		        "a "
		        "module",
		        s->path);
	else if (error == EADDRINUSE)
		snprintf(why, why_size,
		        "%s: the port is taken: the kernel gives a vsock port to one socket only, "
		        "so "
		        "each machine needs a port of its own",
		        s->path);
	else if (error == EACCES)
		snprintf(why, why_size,
		        "%s: the daemon may not listen on ports below 1024: take a higher one",
		        s->path);
	else
		snprintf(why, why_size, "%s: %s", s->path, strerror(error));
	return -error;
}

int listen_vsock_open(const struct listen_socket *s, char *why, size_t why_size)
{
	const struct sockaddr_vm at = {
	        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = s->vsock.port};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
	        listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	if (fd >= 0)
		close(fd);
	return explain(s, error, why, why_size);
}
