/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners and log sockets: their options, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>
#include <netinet/tcp.h>

#include "world.h"

static void assert_option(int fd, int level, int name, int expected)
{
	int value = -1;
	socklen_t n = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &n), 0);
	assert_int_equal(value, expected);
}

static void assert_flags(int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

static void listeners_have_their_options(void **state)
{
	int fd = fence_listen(4, true, 0, 7);

	(void)state;
	assert_flags(fd);
	assert_option(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
	assert_option(fd, SOL_SOCKET, SO_ACCEPTCONN, 1);
	assert_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 0);
	assert_int_not_equal(world_port(fd), 0);
	close(fd);
	fd = fence_listen(6, true, 0, 7);
	assert_flags(fd);
	assert_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1);
	assert_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	close(fd);
	fd = fence_listen(4, false, 0, 0);
	assert_flags(fd);
	assert_option(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
	assert_option(fd, IPPROTO_IP, IP_RECVORIGDSTADDR, 1);
	assert_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
	close(fd);
	fd = fence_listen(6, false, 0, 0);
	assert_flags(fd);
	assert_option(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1);
	assert_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	assert_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	close(fd);
}

static void both_families_share_a_port(void **state)
{
	int a = fence_listen(4, true, 0, 1), b = fence_listen(6, true, world_port(a), 1);
	int c = fence_listen(4, false, world_port(a), 0);

	(void)state;
	assert_true(a >= 0 && b >= 0 && c >= 0);
	assert_int_equal(world_port(a), world_port(b));
	close(a);
	close(b);
	close(c);
}

static int stranger(int type)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, type, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* A port of another program is refused; a worker's socket stands beside the former worker's. */
static void a_port_in_use_is_refused(void **state)
{
	int tcp = stranger(SOCK_STREAM), udp = stranger(SOCK_DGRAM);

	(void)state;
	assert_int_equal(fence_listen(4, true, world_port(tcp), 1), -EADDRINUSE);
	assert_int_equal(fence_listen(4, false, world_port(udp), 0), -EADDRINUSE);
	close(tcp);
	close(udp);
	tcp = fence_listen(4, true, 0, 1);
	udp = fence_listen(4, true, world_port(tcp), 1);
	assert_true(udp >= 0);
	close(tcp);
	close(udp);
}

static void sockets_get_their_ports_later(void **state)
{
	int fd = fence_socket(4, true), other;

	(void)state;
	assert_flags(fd);
	assert_option(fd, IPPROTO_IP, IP_TRANSPARENT, 1);
	assert_int_equal(world_port(fd), 0);
	assert_int_equal(fence_bind(fd, 4, 0), 0);
	assert_int_not_equal(world_port(fd), 0);
	assert_option(fd, SOL_SOCKET, SO_ACCEPTCONN, 0);
	assert_int_not_equal(fence_bind(fd, 4, 0), 0); /* it is bound already */
	other = fence_socket(6, false);
	assert_flags(other);
	assert_option(other, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	assert_int_equal(world_port(other), 0);
	assert_int_not_equal(fence_bind(other, 4, 0), 0); /* of the other family */
	assert_int_equal(fence_bind(other, 6, 0), 0);
	close(other);
	close(fd);
	assert_int_equal(fence_socket(5, true), -EAFNOSUPPORT);
	assert_int_equal(fence_bind(-1, 4, 0), -EBADF);
	fd = fence_nflog_socket();
	other = fence_nflog_socket();
	assert_flags(fd);
	assert_int_equal(fence_nflog_bind(fd, 7), 0);
	assert_int_not_equal(fence_nflog_bind(other, 7), 0);
	assert_int_not_equal(fence_nflog_bind(-1, 8), 0);
	close(fd);
	assert_int_equal(fence_nflog_bind(other, 7), 0); /* its reader is gone */
	close(other);
}

static void bad_arguments_are_refused(void **state)
{
	(void)state;
	assert_int_equal(fence_listen(0, true, 0, 1), -EAFNOSUPPORT);
	assert_int_equal(fence_listen(5, true, 0, 1), -EAFNOSUPPORT);
	assert_int_equal(fence_listen(AF_INET6, true, 0, 1), -EAFNOSUPPORT);
}

static void a_log_group_has_one_reader(void **state)
{
	int fd = fence_nflog_open(FENCE_NFLOG_GROUP), other;

	(void)state;
	assert_flags(fd);
	assert_int_equal(fence_nflog_open(FENCE_NFLOG_GROUP), -EPERM);
	other = fence_nflog_open(FENCE_NFLOG_GROUP + 1);
	assert_flags(other);
	close(fd);
	fd = fence_nflog_open(FENCE_NFLOG_GROUP);
	assert_flags(fd);
	close(fd);
	close(other);
}

static void an_idle_log_has_nothing_to_read(void **state)
{
	int fd = fence_nflog_open(FENCE_NFLOG_GROUP);
	char byte;

	(void)state;
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(listeners_have_their_options),
	        cmocka_unit_test(both_families_share_a_port),
	        cmocka_unit_test(a_port_in_use_is_refused),
	        cmocka_unit_test(sockets_get_their_ports_later),
	        cmocka_unit_test(bad_arguments_are_refused),
	        cmocka_unit_test(a_log_group_has_one_reader),
	        cmocka_unit_test(an_idle_log_has_nothing_to_read),
	};

	(void)world_setup;
	(void)world_teardown;
	(void)world_shell;
	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
