/* SPDX-License-Identifier: Apache-2.0 */
/* Refused packets are reported: each packet that did not pass, and no other, is counted and
 * logged with its reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "refused.h"

static void what_was_refused_is_logged_and_counted(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {
	        {"vethguard:other", IPPROTO_UDP, 443, w->spec.sandbox4, world_ip("203.0.113.7"),
	                false},
	        {"vethguard:other", IPPROTO_UDP, 443, w->spec.sandbox6, world_ip("2001:db8::7"),
	                false},
	};
	struct fence_counters before = counted(w), after;

	refusal(w, "203.0.113.7", 443);
	refusal(w, "2001:db8::7", 443);
	after = counted(w);
	assert_int_equal(after.packets - before.packets, 2);
	assert_int_equal(after.bytes - before.bytes, (20 + 8 + 6) + (40 + 8 + 6));
	assert_logged(w, seen);
}

static void what_passed_is_not_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before = counted(w), after;

	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	after = counted(w);
	assert_int_equal(after.packets, before.packets);
	assert_int_equal(after.bytes, before.bytes);
}

static void false_sources_do_not_pass(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {
	        {"vethguard:source", IPPROTO_UDP, 53, world_ip("198.51.100.9"), world_ip("8.8.8.8"),
	                false},
	        {"vethguard:source", IPPROTO_UDP, 53, world_ip("2001:db8:bad::9"),
	                world_ip("2001:4860:4860::8888"), false},
	};

	assert_relayed(
	        w, w->dns4, "8.8.8.8", 53); /* the sandbox learns the gate's MAC truthfully */
	assert_relayed(w, w->dns6, "2001:4860:4860::8888", 53);
	assert_int_equal(netns_run(w->sandbox, add_false_addresses, w), 0);
	send_from(w, "198.51.100.9", "8.8.8.8", 53);
	send_from(w, "2001:db8:bad::9", "2001:4860:4860::8888", 53);
	assert_logged(w, seen);
	assert_false(world_readable(w->dns4, 0));
	assert_false(world_readable(w->dns6, 0));
}

static void a_ping_is_refused_and_logged(void **state)
{
	struct world *w = *state;
	struct seen seen[2] = {{"vethguard:other", IPPROTO_ICMP, 8 << 8, w->spec.sandbox4,
	                               world_ip("10.77.0.1"), false},
	        {.found = true}};
	uint8_t request[8] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0}, answer[128];
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&seen[0].dst, 0, &ss);
	int fd = open_socket(w->sandbox, AF_INET, SOCK_RAW, IPPROTO_ICMP);

	assert_int_equal(sendto(fd, request, sizeof(request), 0, (struct sockaddr *)&ss, n), 8);
	assert_true(world_readable(fd, WORLD_TIMEOUT_MS));
	assert_true(recv(fd, answer, sizeof(answer), 0) >= 28);
	assert_int_equal(answer[20], 3);  /* unreachable */
	assert_int_equal(answer[21], 13); /* administratively prohibited */
	assert_logged(w, seen);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_WORLD(what_was_refused_is_logged_and_counted),
	        IN_WORLD(what_passed_is_not_counted),
	        IN_WORLD(false_sources_do_not_pass),
	        IN_WORLD(a_ping_is_refused_and_logged),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
