/* SPDX-License-Identifier: Apache-2.0 */
/* datagrams: UDP sockets of a test, and what comes to them. Include it behind fixture.h and
 * still_clock.h. */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_DATAGRAMS_H
#define VETHGUARD_TESTS_UNIT_PROXY_DATAGRAMS_H

#define UDP_MAX 65507 /* payload over IPv4 */
#define QUIET_MS 30

static int origin_udp;
static uint8_t in[UDP_MAX + 1], big[UDP_MAX]; /* in: the last datagram */
static struct sockaddr_in from;               /* its sender */

static inline int bound(struct sockaddr_in at)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1,
	    most = 1 << 20;

	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, &one, sizeof(one)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Returns the size of the next datagram, or -1 if none comes. */
static inline ssize_t next(int fd)
{
	socklen_t n = sizeof(from);
	ssize_t got = -1;

	for (int64_t end = clock_boot_ms() + PATIENCE_MS; got < 0 && clock_boot_ms() < end;
	        pump(&w, 1))
		got = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &n);
	return got;
}

static inline void expect_text(int fd, const char *text)
{
	assert_int_equal(next(fd), strlen(text));
	assert_memory_equal(in, text, strlen(text));
}

static inline void expect_silence(int fd)
{
	pump(&w, QUIET_MS);
	assert_int_equal(recv(fd, in, sizeof(in), 0), -1);
}

#endif
