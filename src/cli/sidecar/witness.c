/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules cannot be read without CAP_NET_ADMIN. But the fence has three rules that only the guard's
 * own packets meet, and that are there only together with all others (one transaction):
 *
 * - TCP to the witness port of the loopback address arrives at the guard's port, and the kernel
 *   tells the original destination;
 * - UDP to the same port arrives at the name service's port;
 * - UDP to the port beside it cannot be sent.
 *
 * So the guard sees that the fence is in force, that it is the guard's user that passes, and that
 * the ports are the ones it will listen on.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/sidecar/sidecar.h"

#define WITNESS_MS 2000
#define ORIGINAL_DESTINATION 80 /* SO_ORIGINAL_DST */

#define NOT_FENCED                                                                                \
	"no fence is in force for this user (%u) and these ports: start 'vethguard sidecar init " \
	"--uid %u' before, with CAP_NET_ADMIN and the same configuration"

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

static int bind_loopback(int type, uint16_t port)
{
	struct sockaddr_in at = loopback(port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0, one = 1;

	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	        (type == SOCK_STREAM && listen(fd, 1) < 0))
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Returns a connected socket, or -errno of the attempt to connect or send. */
static int send_to(int type, uint16_t port)
{
	struct sockaddr_in to = loopback(port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0 && type == SOCK_DGRAM && send(fd, "", 1, MSG_NOSIGNAL) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, WITNESS_MS) == 1 && (p.revents & POLLIN) != 0;
}

static bool came_rewritten(int listener)
{
	struct sockaddr_in original = {0};
	socklen_t n = sizeof(original);
	int fd = readable(listener) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
	bool is;

	if (fd < 0)
		return false;
	is = getsockopt(fd, IPPROTO_IP, ORIGINAL_DESTINATION, &original, &n) == 0 &&
	     ntohs(original.sin_port) == FENCE_WITNESS_PORT;
	close(fd);
	return is;
}

/* *arrives: what was sent to the witness port came to this one. Returns 0, or -errno of binding. */
static int try_port(int type, uint16_t port, bool *arrives)
{
	int own = bind_loopback(type, port), fd;

	*arrives = false;
	if (own < 0)
		return own;
	fd = send_to(type, FENCE_WITNESS_PORT);
	if (fd >= 0)
		*arrives = type == SOCK_STREAM ? came_rewritten(own) : readable(own);
	if (fd >= 0)
		close(fd);
	close(own);
	return 0;
}

bool sidecar_witness_again(void)
{
	int fd = send_to(SOCK_DGRAM, FENCE_WITNESS_REFUSED_PORT);

	if (fd >= 0)
		close(fd);
	return fd == -EPERM;
}

static int not_fenced(struct failure *failure)
{
	return failure_set(failure, 0, NOT_FENCED, (unsigned)geteuid(), (unsigned)geteuid());
}

int sidecar_witness(const struct fence_shared_spec *spec, struct failure *failure)
{
	const uint16_t ports[] = {spec->tcp_port, spec->dns_port};
	const int types[] = {SOCK_STREAM, SOCK_DGRAM};

	if (!sidecar_witness_again())
		return not_fenced(failure);
	for (size_t i = 0; i < 2; i++) {
		bool arrives;
		int rc = try_port(types[i], ports[i], &arrives);

		if (rc)
			return failure_set(failure, rc,
			        "port %u of the loopback address, which the guard needs",
			        (unsigned)ports[i]);
		if (!arrives)
			return not_fenced(failure);
	}
	return 0;
}
