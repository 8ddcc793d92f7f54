/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of a dump with and without the kernel's word that it was overtaken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <libmnl/libmnl.h>
#include <string.h>

#include "vethguard/netlink/dump.h"

#define MESSAGES 3

static _Alignas(struct nlmsghdr) char datagram[4096];

/* The one with this number is marked; MESSAGES: none. */
static size_t fill(unsigned marked)
{
	size_t n = 0;

	memset(datagram, 0, sizeof(datagram));
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct nlmsghdr *message = mnl_nlmsg_put_header(datagram + n);

		message->nlmsg_flags =
		        (uint16_t)(NLM_F_MULTI | (i == marked ? NLM_F_DUMP_INTR : 0));
		mnl_nlmsg_put_extra_header(message, 5); /* and padding */
		n += MNL_ALIGN(message->nlmsg_len);
	}
	return n;
}

static void assert_unmarked(size_t n)
{
	struct nlmsghdr *message = (struct nlmsghdr *)datagram;
	int left = (int)n;
	unsigned count = 0;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left), count++)
		assert_int_equal(message->nlmsg_flags, NLM_F_MULTI);
	assert_int_equal(count, MESSAGES);
}

static void any_message_may_say_it(void **state)
{
	(void)state;
	for (unsigned marked = 0; marked <= MESSAGES; marked++) {
		size_t n = fill(marked);

		assert_int_equal(netlink_dump_overtaken(datagram, n), marked < MESSAGES);
		assert_unmarked(n);
		assert_false(netlink_dump_overtaken(datagram, n));
	}
}

/* An incomplete message is ignored. */
static void datagrams_that_are_cut(void **state)
{
	size_t n = fill(MESSAGES - 1);

	(void)state;
	assert_false(netlink_dump_overtaken(datagram, 0));
	for (size_t cut = 0; cut < n; cut++)
		assert_false(netlink_dump_overtaken(datagram, cut));
	assert_true(netlink_dump_overtaken(datagram, n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_message_may_say_it),
	        cmocka_unit_test(datagrams_that_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
