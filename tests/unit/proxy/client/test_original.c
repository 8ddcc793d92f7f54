/* SPDX-License-Identifier: Apache-2.0 */
/* The original destination of a client. The sidecar's tests have rewritten connections. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privileges.h"
#include "proxy/client/client.h"

static void without_rewriting_it_is_the_sockets_own(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t n = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), from = socket(AF_INET, SOCK_STREAM, 0), fd;
	struct ip ip;
	uint16_t port = 0;

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(connect(from, (struct sockaddr *)&at, n), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_true(client_dialed_address(fd, false, &ip, &port));
	assert_int_equal(ip.family, 4);
	assert_int_equal(port, ntohs(at.sin_port));
	/* The kernel tracks no connection here: nothing is taken for the destination. */
	assert_false(client_dialed_address(fd, true, &ip, &port));
	assert_false(client_dialed_address(-1, false, &ip, &port));
	assert_false(client_dialed_address(-1, true, &ip, &port));
	close(fd);
	close(from);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_rewriting_it_is_the_sockets_own)};

	if (!privileges_for_namespaces() || system("ip link set lo up") != 0) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
