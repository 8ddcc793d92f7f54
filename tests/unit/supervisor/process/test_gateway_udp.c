/* SPDX-License-Identifier: Apache-2.0 */
/* UDP sockets for clients of the gateway: at which addresses and ports, and how many. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/supervisor.h"

static struct supervisor sv;
static const struct ip at = {4, {127, 0, 0, 77}}, other = {4, {127, 0, 0, 78}};

static int set_up(void **state)
{
	struct config_gateway *g = &sv.gateway.config;

	(void)state;
	sv.gateway.udp_sockets = 0;
	g->udp_first = g->udp_last = 0;
	g->listener_count = 1;
	g->listeners[0] = (struct config_gateway_listener){.address = at, .port = 8443};
	return 0;
}

/* Opens a socket, checks that it has this address and port, and closes it. */
static uint16_t opens(const struct ip *address)
{
	struct sockaddr_storage self;
	socklen_t n = sizeof(self);
	struct message_worker_associated told;
	int fd = gateway_udp_open(&sv, address, &told);
	uint16_t port;
	struct ip is;

	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&self, &n), 0);
	is = ip_from_sockaddr((struct sockaddr *)&self, &port);
	assert_true(ip_equals(&is, address));
	assert_int_equal(told.port, port);
	assert_int_not_equal(port, 0);
	assert_true(ip_equals(&told.address, &sv.gateway.config.udp_address4) ||
	            ip_equals(&told.address, address));
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	return port;
}

static void refuses(const struct ip *address, int error)
{
	struct message_worker_associated told;

	assert_int_equal(gateway_udp_open(&sv, address, &told), error);
	assert_int_equal(told.port, 0);
}

static void only_where_the_gateway_listens(void **state)
{
	const struct ip none = {0}, any = {4, {0}}, any6 = {6, {0}}, loopback6 = {6, {[15] = 1}};

	(void)state;
	opens(&at);
	refuses(&other, -EACCES);
	refuses(&any, -EACCES);
	refuses(&any6, -EACCES);
	refuses(&none, -EACCES);
	refuses(&loopback6, -EACCES);
	sv.gateway.config.listener_count = 0;
	refuses(&at, -EACCES);
}

/* A listener at every address of one family. */
static void at_every_address_of_the_host(void **state)
{
	const struct ip any = {4, {0}}, loopback6 = {6, {[15] = 1}}, foreign = {4, {192, 0, 2, 1}};

	(void)state;
	sv.gateway.config.listeners[0].address = any;
	opens(&at);
	opens(&other);
	refuses(&any, -EACCES);
	refuses(&loopback6, -EACCES);
	refuses(&foreign, -EADDRNOTAVAIL);
}

static void ports_of_the_configuration(void **state)
{
	struct config_gateway *g = &sv.gateway.config;
	struct message_worker_associated told;
	uint16_t port, second;
	int fd;

	(void)state;
	port = opens(&at); /* a free one */
	g->udp_first = g->udp_last = port;
	fd = gateway_udp_open(&sv, &at, &told);
	assert_true(fd >= 0);
	assert_int_equal(told.port, port);
	refuses(&at, -EADDRINUSE);
	g->udp_first--;
	g->udp_last++;
	for (unsigned i = 0; i < 20; i++) {
		second = opens(&at);
		assert_true(second == port - 1 || second == port + 1);
	}
	close(fd);
	g->udp_first = g->udp_last = port;
	assert_int_equal(opens(&at), port);
}

/* The client is told the configured address of the same family, if there is one. */
static void behind_a_nat(void **state)
{
	struct config_gateway *g = &sv.gateway.config;
	struct message_worker_associated told;
	int fd;

	(void)state;
	g->udp_address6 = (struct ip){6, {0x20, 1}};
	fd = gateway_udp_open(&sv, &at, &told);
	assert_true(fd >= 0 && ip_equals(&told.address, &at));
	close(fd);
	g->udp_address4 = (struct ip){4, {203, 0, 113, 7}};
	fd = gateway_udp_open(&sv, &at, &told);
	assert_true(fd >= 0 && ip_equals(&told.address, &g->udp_address4));
	close(fd);
	g->udp_address4 = g->udp_address6 = (struct ip){0};
}

static void all_together_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GATEWAY_UDP_SOCKETS_MAX; i++)
		opens(&at);
	refuses(&at, -EMFILE);
	gateway_udp_closed(&sv, 1);
	opens(&at);
	refuses(&at, -EMFILE);
	gateway_udp_closed(&sv, GATEWAY_UDP_SOCKETS_MAX + 1); /* more than there are */
	assert_int_equal(sv.gateway.udp_sockets, 0);
	opens(&at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(only_where_the_gateway_listens, set_up),
	        cmocka_unit_test_setup(at_every_address_of_the_host, set_up),
	        cmocka_unit_test_setup(ports_of_the_configuration, set_up),
	        cmocka_unit_test_setup(behind_a_nat, set_up),
	        cmocka_unit_test_setup(all_together_are_bounded, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
