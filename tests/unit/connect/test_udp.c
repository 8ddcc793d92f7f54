/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp, channel: which association carries which flow, the bounds, what is refused and for how long,
 * and answers that belong to no flow. Associations and sockets are the test's.
 */
/* The linker wraps: association_open association_free association_send clock_monotonic_ms */
/* The linker wraps: capture_open capture_open_flow capture_is_gone unreachable_send */
/* The linker wraps: names_of names_host names_hold names_release */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "association.h"
#include "udp.h"
#include "vethguard/base/log.h"
#include "vethguard/dns/responder.h"
#include "vethguard/wire/socks5.h"

struct association {
	const struct association_ops *ops;
	void *context;
	bool open;
	unsigned sent;
	uint8_t last[SOCKS5_HEADER_MAX];
	size_t last_n;
};

static struct association made[64];
static size_t made_count, open_count;
static int64_t now_ms;
static unsigned refusals;
static uint16_t gone_port; /* of the client whose socket is closed */
static int program = -1;   /* the program's end of the newest flow */
static int held;
static struct connect owner;
static struct udp *u;

int64_t __wrap_clock_monotonic_ms(void);
struct association *__wrap_association_open(
        struct connect *c, const struct association_ops *ops, void *context);
void __wrap_association_free(struct association *a);
void __wrap_association_send(struct association *a, const void *header, size_t header_n,
        const void *payload, size_t payload_n);
int __wrap_capture_open(int family, uint16_t *port);
int __wrap_capture_open_flow(const struct endpoint *client, const struct endpoint *destination);
bool __wrap_capture_is_gone(const struct endpoint *client);
void __wrap_unreachable_send(
        const struct endpoint *client, const struct endpoint *destination, size_t n);
bool __wrap_names_of(const struct connect *c, const struct ip *address, char *out, size_t size);
void __wrap_names_host(const struct connect *c, const struct ip *address, char *out, size_t size);
void __wrap_names_hold(struct names *names, const struct ip *address);
void __wrap_names_release(struct names *names, const struct ip *address);

int64_t __wrap_clock_monotonic_ms(void)
{
	return now_ms;
}

struct association *__wrap_association_open(
        struct connect *c, const struct association_ops *ops, void *context)
{
	struct association *a = &made[made_count];

	(void)c;
	if (open_count == ASSOCIATIONS_MAX)
		return NULL;
	assert_true(made_count < sizeof(made) / sizeof(*made));
	*a = (struct association){.ops = ops, .context = context, .open = true};
	made_count++;
	open_count++;
	return a;
}

void __wrap_association_free(struct association *a)
{
	assert_true(a->open);
	a->open = false;
	open_count--;
}

void __wrap_association_send(struct association *a, const void *header, size_t header_n,
        const void *payload, size_t payload_n)
{
	(void)payload, (void)payload_n;
	assert_true(a->open);
	a->sent++;
	memcpy(a->last, header, header_n);
	a->last_n = header_n;
}

int __wrap_capture_open(int family, uint16_t *port)
{
	*port = family == 6 ? 6006 : 4004;
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int __wrap_capture_open_flow(const struct endpoint *client, const struct endpoint *destination)
{
	int pair[2];

	(void)client, (void)destination;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	if (program >= 0)
		close(program);
	program = pair[1];
	return pair[0];
}

bool __wrap_capture_is_gone(const struct endpoint *client)
{
	return client->port == gone_port;
}

void __wrap_unreachable_send(
        const struct endpoint *client, const struct endpoint *destination, size_t n)
{
	(void)client, (void)destination, (void)n;
	refusals++;
}

/* 198.18.0.N is the name nN.test; 198.19.0.0/16 is of no name any more. */
bool __wrap_names_of(const struct connect *c, const struct ip *address, char *out, size_t size)
{
	(void)c;
	snprintf(out, size, "shown");
	return !(address->bytes[0] == 198 && address->bytes[1] == 19);
}

void __wrap_names_host(const struct connect *c, const struct ip *address, char *out, size_t size)
{
	(void)c;
	snprintf(out, size, "%s", "");
	if (address->bytes[0] == 198 && address->bytes[1] == 18)
		snprintf(out, size, "n%u.test", address->bytes[3]);
}

void __wrap_names_hold(struct names *names, const struct ip *address)
{
	(void)names, (void)address;
	held++;
}

void __wrap_names_release(struct names *names, const struct ip *address)
{
	(void)names, (void)address;
	held--;
}

static int set_up(void **state)
{
	(void)state;
	log_open("test_udp", LOG_LEVEL_ERROR);
	owner = (struct connect){.base = event_base_new()};
	made_count = open_count = refusals = gone_port = 0;
	now_ms = 1000000;
	u = udp_serve(&owner);
	return u ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	udp_end(u);
	event_base_free(owner.base);
	if (program >= 0)
		close(program);
	program = -1;
	return open_count == 0 && held == 0 ? 0 : -1;
}

static struct endpoint endpoint(uint8_t a, uint8_t b, uint8_t last, uint16_t port)
{
	return (struct endpoint){{4, {a, b, 0, last}}, port};
}

/* The program with this port sends to 192.0.2.LAST. */
static void sends(uint16_t port, uint8_t last)
{
	const struct endpoint client = endpoint(10, 77, 2, port), to = endpoint(192, 0, last, 443);

	udp_take(u, &client, &to, (const uint8_t *)"x", 1);
}

static void sends_to_name(uint16_t port, uint8_t last)
{
	const struct endpoint client = endpoint(10, 77, 2, port), to = endpoint(198, 18, last, 443);

	udp_take(u, &client, &to, (const uint8_t *)"x", 1);
}

/* An answer of association i from 192.0.0.LAST (or the name), port 443. */
static void answers(size_t i, const char *name, uint8_t last, uint16_t port)
{
	const struct endpoint from = endpoint(192, 0, last, port);
	uint8_t datagram[SOCKS5_HEADER_MAX + 6];
	struct socks5_header header;
	const size_t n =
	        socks5_header_write(slice_from_string(name), &from.address, from.port, datagram);

	memcpy(datagram + n, "answer", 6);
	assert_true(socks5_header_parse(datagram, n + 6, &header));
	made[i].ops->received(made[i].context, &header, datagram, n + 6);
}

/* What the newest flow's program gets. */
static void hears(const char *text)
{
	char in[16];
	const ssize_t n = recv(program, in, sizeof(in), MSG_DONTWAIT);

	assert_int_equal(n, text ? (ssize_t)strlen(text) : -1);
	if (text)
		assert_memory_equal(in, text, strlen(text));
}

static void test_one_flow(void **state)
{
	(void)state;
	assert_int_equal(udp_port(u, 4), 4004);
	assert_int_equal(udp_port(u, 6), 6006);
	sends(1, 7);
	sends(1, 7);
	assert_int_equal(made_count, 1);
	assert_int_equal(made[0].sent, 2);
	assert_int_equal(made[0].last_n, 10);
	assert_memory_equal(made[0].last, "\0\0\0\1\xc0\0\0\7\1\xbb", 10);
	answers(0, NULL, 7, 443);
	hears("answer");
	sends_to_name(1, 9);
	assert_int_equal(made_count, 1);
	assert_memory_equal(made[0].last, "\0\0\0\3\7n9.test\1\xbb", 14);
	answers(0, "n9.test", 0, 443);
	hears("answer");
}

static void test_answers_from_elsewhere(void **state)
{
	(void)state;
	sends(1, 8);
	sends(2, 8);
	sends(1, 7); /* carried by the first; its program listens */
	assert_int_equal(made_count, 2);
	answers(0, NULL, 9, 443);
	answers(0, NULL, 7, 444);
	answers(0, "n7.test", 7, 443);
	answers(1, NULL, 7, 443); /* by an association that does not carry it */
	hears(NULL);
	answers(0, NULL, 7, 443);
	hears("answer");
	sends_to_name(1, 7);
	answers(0, "n8.test", 0, 443);
	answers(0, "N7.test", 0, 443);
	answers(0, "n7.test", 0, 444);
	answers(0, NULL, 7, 443); /* the other flow's */
	hears(NULL);
}

static void test_one_destination(void **state)
{
	(void)state;
	for (uint16_t port = 1; port <= ASSOCIATIONS_MAX; port++)
		sends(port, 7);
	assert_int_equal(made_count, ASSOCIATIONS_MAX);
	sends(100, 7); /* all are in use */
	assert_int_equal(made_count, ASSOCIATIONS_MAX);
	for (size_t i = 0; i < made_count; i++)
		assert_int_equal(made[i].sent, 1);
	assert_int_equal(refusals, 0);
	gone_port = 3;
	sends(101, 7); /* takes the place of the program that is gone */
	assert_int_equal(made[2].sent, 2);
	gone_port = 0;
	now_ms += FLOW_YIELDS_MS - 1;
	sends(1, 7);
	sends(102, 7);
	assert_int_equal(made[1].sent, 1);
	now_ms += 1;
	sends(103, 7); /* takes the place of the one that is idle for the longest time */
	assert_int_equal(made[0].sent, 2);
	assert_int_equal(made[1].sent, 2);
	sends(1, 8); /* another destination is no problem */
	assert_int_equal(made_count, ASSOCIATIONS_MAX);
}

static void test_a_gone_programs_place(void **state)
{
	(void)state;
	for (uint16_t port = 1; port < 200; port++) {
		sends(port, 7);
		gone_port = port;
	}
	assert_int_equal(made_count, 1);
	assert_int_equal(made[0].sent, 199);
	assert_int_equal(u->flow_count, 1);
}

static void test_flows_are_bounded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FLOWS_MAX + 10; i++)
		sends(1, (uint8_t)i), sends(2, (uint8_t)i);
	assert_int_equal(u->flow_count, FLOWS_MAX);
	assert_int_equal(refusals, 0);
	now_ms += FLOW_YIELDS_MS;
	sends(3, 1);
	assert_int_equal(u->flow_count, FLOWS_MAX);
	assert_int_equal(made[2].sent, 1);
}

static void test_refused(void **state)
{
	(void)state;
	sends(1, 7);
	sends(1, 8);
	made[0].ops->ended(made[0].context, ASSOCIATION_REFUSED, "no rule");
	assert_int_equal(refusals, 2);
	assert_int_equal(u->flow_count, 0);
	for (unsigned i = 0; i < 100; i++)
		sends((uint16_t)(i + 1), 7);
	assert_int_equal(refusals, 102);
	assert_int_equal(made_count, 1);
	now_ms += REFUSED_MS - 1;
	sends(1, 7);
	assert_int_equal(made_count, 1);
	now_ms += 1;
	sends(1, 7);
	assert_int_equal(made_count, 2);
	assert_int_equal(made[1].sent, 1);
	assert_int_equal(refusals, 103);
}

static void test_unknown(void **state)
{
	(void)state;
	sends(1, 7);
	made[0].ops->ended(made[0].context, ASSOCIATION_UNKNOWN, "the token");
	assert_int_equal(refusals, 1);
	now_ms += UNKNOWN_MS - 1;
	sends(1, 7);
	assert_int_equal(refusals, 2);
	assert_int_equal(made_count, 1);
	now_ms += 1;
	sends(1, 7);
	assert_int_equal(made_count, 2);
}

static void test_failed(void **state)
{
	(void)state;
	sends(1, 7);
	made[0].ops->ended(made[0].context, ASSOCIATION_FAILED, "not reached");
	for (unsigned i = 0; i < 100; i++)
		sends(1, 7);
	assert_int_equal(refusals, 0); /* it may work soon */
	assert_int_equal(made_count, 1);
	now_ms += FAILED_MS;
	sends(1, 7);
	assert_int_equal(made_count, 2);
	made[1].ops->ready(made[1].context);
	made[1].ops->ended(made[1].context, ASSOCIATION_OVER, "a reload");
	sends(1, 7); /* at once */
	assert_int_equal(made_count, 3);
	assert_int_equal(made[2].sent, 1);
	assert_int_equal(u->flow_count, 1);
}

static void test_a_name_that_is_gone(void **state)
{
	const struct endpoint client = endpoint(10, 77, 2, 1), to = endpoint(198, 19, 1, 443);

	(void)state;
	udp_take(u, &client, &to, (const uint8_t *)"x", 1);
	assert_int_equal(made_count, 0);
	assert_int_equal(refusals, 1);
}

static void test_idle(void **state)
{
	(void)state;
	sends_to_name(1, 7);
	sends(2, 7);
	assert_int_equal(held, 1);
	now_ms += FLOW_IDLE_MS - 1;
	sends(2, 7);
	event_active(u->sweep, EV_TIMEOUT, 0);
	event_base_loop(owner.base, EVLOOP_NONBLOCK);
	assert_int_equal(u->flow_count, 2);
	now_ms += 1;
	event_active(u->sweep, EV_TIMEOUT, 0);
	event_base_loop(owner.base, EVLOOP_NONBLOCK);
	assert_int_equal(u->flow_count, 1);
	assert_int_equal(held, 0);
	gone_port = 2;
	now_ms += FLOW_YIELDS_MS;
	event_active(u->sweep, EV_TIMEOUT, 0);
	event_base_loop(owner.base, EVLOOP_NONBLOCK);
	assert_int_equal(u->flow_count, 0);
	assert_int_equal(open_count, 1);
	now_ms += CHANNEL_IDLE_MS;
	event_active(u->sweep, EV_TIMEOUT, 0);
	event_base_loop(owner.base, EVLOOP_NONBLOCK);
	assert_int_equal(open_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_one_flow),
	        TEST(test_answers_from_elsewhere),
	        TEST(test_one_destination),
	        TEST(test_a_gone_programs_place),
	        TEST(test_flows_are_bounded),
	        TEST(test_refused),
	        TEST(test_unknown),
	        TEST(test_failed),
	        TEST(test_a_name_that_is_gone),
	        TEST(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
