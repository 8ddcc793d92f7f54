/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy of the network is asked for a tunnel and answers with a response head. The head is read
 * in the kernel's buffer (MSG_PEEK) and taken out only when it is complete: the bytes after it come
 * from the destination and belong to the next user of the socket. The proxy is not trusted: its
 * answer is bounded and read strictly, and no byte of it is shown to anybody.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/dial/egress.h"
#include "vethguard/base/secret.h"

#define STATUS_LINE_MIN 12 /* "HTTP/1.1 200" */
#define REQUEST_MAX 2048   /* two authorities and the credentials: bounded by the configuration */

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.x NNN" and then nothing or a space (RFC 9112 section 4). */
static bool read_status(const uint8_t *p, size_t n, unsigned *status)
{
	if (n < STATUS_LINE_MIN || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
	        p[8] != ' ' || !is_digit(p[9]) || !is_digit(p[10]) || !is_digit(p[11]) ||
	        (n > STATUS_LINE_MIN && p[12] != ' '))
		return false;
	*status = (unsigned)(p[9] - '0') * 100 + (unsigned)(p[10] - '0') * 10 +
	          (unsigned)(p[11] - '0');
	return true;
}

/* A field line: a name, a colon; folded ones are none. */
static bool is_field(const uint8_t *p, size_t n)
{
	const uint8_t *colon = memchr(p, ':', n);

	return colon && colon > p && p[0] != ' ' && p[0] != '\t';
}

/* The bytes of the next line without its CRLF; -1: it is not whole; -2: it holds what no line may.
 */
static int next_line(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\r') {
			if (i + 1 == n)
				return -1;
			return p[i + 1] == '\n' ? (int)i : -2;
		}
		if ((p[i] < 0x20 && p[i] != '\t') || p[i] == 0x7f)
			return -2;
	}
	return -1;
}

enum egress_answer egress_answer_parse(const uint8_t *p, size_t n, size_t *head, unsigned *status)
{
	bool whole = n < EGRESS_HEAD_MAX;
	size_t at = 0;

	if (!whole)
		n = EGRESS_HEAD_MAX;
	for (bool first = true;; first = false) {
		int line = next_line(p + at, n - at);

		if (line == -2)
			return EGRESS_BAD;
		if (line == -1)
			return whole ? EGRESS_MORE : EGRESS_BAD;
		if (!first && line == 0)
			break;
		if (first ? !read_status(p, (size_t)line, status) : !is_field(p + at, (size_t)line))
			return EGRESS_BAD;
		at += (size_t)line + 2;
	}
	*head = at + 2;
	if (*status < 200 || *status > 599)
		return EGRESS_BAD;
	return *status < 300 ? EGRESS_OPEN : EGRESS_REFUSED;
}

enum egress_answer egress_listen(int fd, unsigned *status)
{
	uint8_t bytes[EGRESS_HEAD_MAX];
	enum egress_answer answer;
	size_t head;
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return EGRESS_MORE;
	if (n <= 0)
		return EGRESS_ENDED;
	answer = egress_answer_parse(bytes, (size_t)n, &head, status);
	if (answer == EGRESS_OPEN && recv(fd, bytes, head, MSG_DONTWAIT) != (ssize_t)head)
		return EGRESS_ENDED;
	return answer;
}

int egress_ask(int fd, const char *target, struct slice authorization)
{
	char text[REQUEST_MAX];
	int n = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%.*s%s\r\n",
	        target, target, authorization.n ? "Proxy-Authorization: " : "",
	        (int)authorization.n, authorization.n ? authorization.p : "",
	        authorization.n ? "\r\n" : "");
	int rc = 0;

	if (n < 0 || (size_t)n >= sizeof(text)) {
		rc = -EMSGSIZE;
	} else {
		ssize_t sent = send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);

		/* The buffer of a new connection has room for all of it. */
		rc = sent < 0 ? -errno : sent != n ? -EAGAIN : 0;
	}
	secret_wipe(text, sizeof(text));
	return rc;
}

const char *egress_refusal_text(enum egress_answer answer, unsigned status)
{
	if (answer == EGRESS_ENDED)
		return "the egress proxy closed the connection before it answered";
	if (answer != EGRESS_REFUSED)
		return "the egress proxy's answer is not a valid response to CONNECT";
	if (status == 407)
		return "the egress proxy refused the connection: 407, check egress.user and "
		       "egress.password_file";
	if (status == 403)
		return "the egress proxy refused the destination: 403, it is not allowed there";
	if (status >= 500)
		return "the egress proxy could not reach the destination (it answered 5xx)";
	return "the egress proxy refused the connection with an unexpected status";
}

/* The port is chosen when connecting, by the pair of both ends: one address can have more
 * connections than there are ports. */
static int bind_address(const struct ip *address, int fd)
{
	struct sockaddr_storage from;
	socklen_t n = ip_to_sockaddr(address, 0, &from);
	const int one = 1;

	/* IPv6 sockets take the option of this level as well. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&from, n);
}

const char *egress_bind(const struct config_egress *egress, int fd, uint8_t family)
{
	const struct ip *address = family == 4 ? &egress->address4 : &egress->address6;

	if (egress->interface[0] && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, egress->interface,
	                                    (socklen_t)strnlen(egress->interface, IFNAMSIZ)) < 0)
		return "egress.interface cannot be used: check that it exists";
	if (!egress->address4.family && !egress->address6.family)
		return NULL;
	if (!address->family)
		return family == 4 ? "egress.address names no IPv4 address to connect from"
		                   : "egress.address names no IPv6 address to connect from";
	if (bind_address(address, fd) < 0)
		return "egress.address cannot be used: does this host still have it?";
	return NULL;
}
