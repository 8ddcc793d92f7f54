/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that do not fit into a datagram: two servers on loopback, in the same loop, say so over
 * UDP and answer over TCP as each test tells them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "no_memory.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/loop/resolver.h"
#include "vethguard/wire/dns_lookup.h"

#define SERVERS 2
#define CONNECTIONS 16
#define TIMEOUT_MS 60000 /* no test waits so long, and none fails on a slow machine */
#define SILENT_MS 1500   /* for tests in which a try has to time out */
#define PORT_TRIES 100
#define TRUNCATED \
	"the resolver's answer does not fit into a datagram and could not be fetched over TCP"

struct server;

/* A query as a server sees it. */
struct query {
	uint8_t bytes[600];
	size_t n, end; /* of the question */
	uint16_t type;
};

struct connection {
	struct loop_io io;
	struct loop_task later;
	struct server *server;
	struct query query;
	uint8_t rest[64]; /* what is sent in a later turn */
	size_t rest_n;
};

typedef void (*behavior)(struct connection *c, const struct query *q);

struct server {
	struct loop_io udp, tcp;
	struct config_server at;
	behavior behave; /* over TCP */
	bool whole;      /* UDP holds the answer */
	unsigned asked, streamed, plain;
	struct query last; /* over UDP */
	unsigned alike;    /* queries over TCP that were those of UDP */
};

struct waiter {
	struct resolver_wait wait;
	struct resolver_answer answer;
};

static struct fixture {
	uint32_t timeout_ms; /* 0: TIMEOUT_MS */
	struct loop *loop;
	struct resolver *resolver;
	struct server servers[SERVERS];
	struct connection connections[CONNECTIONS];
	unsigned connected;
	struct loop_timer stop;
	bool answered;
	struct waiter waiter;
} f;

/* --- servers --- */

static bool read_query(struct query *q)
{
	size_t at = 12;

	while (at < q->n && q->bytes[at])
		at += q->bytes[at] + 1u;
	if (at + 5 > q->n)
		return false;
	q->end = at + 5;
	q->type = (uint16_t)(q->bytes[at + 1] << 8 | q->bytes[at + 2]);
	return true;
}

/* A reply up to the end of its question, with room for its length before it. */
static struct writer begin(
        uint8_t *out, size_t cap, const struct query *q, unsigned flags, unsigned answers)
{
	struct writer w = writer_over(out, cap);

	writer_u16(&w, 0);
	writer_bytes(&w, q->bytes, 2);
	writer_u16(&w, (uint16_t)(0x8180 | flags));
	writer_u16(&w, 1);
	writer_u16(&w, (uint16_t)answers);
	writer_u32(&w, 0);
	writer_bytes(&w, q->bytes + 12, q->end - 12);
	return w;
}

static void add_address(struct writer *w, uint16_t type, uint8_t last)
{
	uint8_t bytes[16] = {192, 0, 2};
	size_t n = type == DNS_A ? 4 : 16;

	bytes[n - 1] = last;
	writer_u16(w, 0xc00c);
	writer_u16(w, type);
	writer_u16(w, 1);
	writer_u32(w, 60);
	writer_vector(w, 2, slice_of(bytes, n));
}

static void put_length(struct writer *w, size_t n)
{
	assert_false(w->failed);
	w->p[0] = (uint8_t)(n >> 8);
	w->p[1] = (uint8_t)n;
}

static void put(struct connection *c, struct writer *w)
{
	put_length(w, w->len - 2);
	assert_int_equal(send(c->io.fd, w->p, w->len, MSG_NOSIGNAL), w->len);
}

static void on_query(struct loop_io *io, unsigned events)
{
	struct server *s = container_of(io, struct server, udp);
	struct sockaddr_in from;
	socklen_t from_n = sizeof(from);
	uint8_t out[600];
	struct query q;
	struct writer w;
	ssize_t n = recvfrom(
	        io->fd, q.bytes, sizeof(q.bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &from_n);

	(void)events;
	q.n = n < 0 ? 0 : (size_t)n;
	if (!read_query(&q))
		return;
	s->asked++;
	s->plain += !q.bytes[11];
	s->last = q;
	w = begin(out, sizeof(out), &q, s->whole ? 0 : 0x0200, s->whole);
	if (s->whole)
		add_address(&w, q.type, 9);
	sendto(io->fd, out + 2, w.len - 2, 0, (struct sockaddr *)&from, from_n);
}

static void close_connection(struct connection *c)
{
	int fd = c->io.fd;

	loop_task_cancel(f.loop, &c->later);
	loop_io_close(&c->io);
	if (fd >= 0)
		close(fd);
	c->io.fd = -1;
}

static void on_bytes(struct loop_io *io, unsigned events)
{
	struct connection *c = container_of(io, struct connection, io);
	uint8_t bytes[602];
	ssize_t n = recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	(void)events;
	if (n <= 2) {
		if (n >= 0 || errno != EAGAIN)
			close_connection(c);
		return;
	}
	assert_int_equal(bytes[0] << 8 | bytes[1], n - 2); /* one query, whole */
	c->query.n = (size_t)n - 2;
	memcpy(c->query.bytes, bytes + 2, c->query.n);
	assert_true(read_query(&c->query));
	c->server->streamed++;
	c->server->alike += c->query.n == c->server->last.n &&
	                    memcmp(c->query.bytes, c->server->last.bytes, c->query.n) == 0;
	if (c->server->behave)
		c->server->behave(c, &c->query);
}

static void on_later(struct loop_task *task)
{
	struct connection *c = container_of(task, struct connection, later);

	assert_int_equal(send(c->io.fd, c->rest, c->rest_n, MSG_NOSIGNAL), c->rest_n);
}

static void on_connection(struct loop_io *io, unsigned events)
{
	struct server *s = container_of(io, struct server, tcp);
	struct connection *c = &f.connections[f.connected];
	int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	assert_true(f.connected++ < CONNECTIONS);
	c->server = s;
	c->later.run = on_later;
	c->io.fd = fd;
	if (loop_io_open_level(f.loop, &c->io, fd, LOOP_READ, on_bytes) < 0) /* no memory */
		close_connection(c);
}

/* --- what they answer over TCP --- */

static void well(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, q->type, 1);
	put(c, &w);
}

/* The first bytes now, the rest in another turn of the loop. */
static void in_pieces(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 0, 1);
	size_t first = c->server->streamed == 1 ? 1 : 7;

	add_address(&w, q->type, 1);
	put_length(&w, w.len - 2);
	c->rest_n = w.len - first;
	assert_true(c->rest_n <= sizeof(c->rest));
	memcpy(c->rest, out + first, c->rest_n);
	assert_int_equal(send(c->io.fd, out, first, MSG_NOSIGNAL), first);
	loop_task_queue(f.loop, &c->later);
}

/* Another id, another name, a query, nothing at all; then the answer; then more. */
static void among_others(struct connection *c, const struct query *q)
{
	static const struct {
		size_t at;
		uint8_t flip;
	} lies[] = {{2, 1}, {15, 4}, {4, 0x80}};
	uint8_t out[600];

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct writer w = begin(out, sizeof(out), q, 0, 1);

		add_address(&w, q->type, 66);
		out[lies[i].at] ^= lies[i].flip;
		put(c, &w);
	}
	assert_int_equal(send(c->io.fd, "\0\0", 2, MSG_NOSIGNAL), 2);
	well(c, q);
	well(c, q);
}

static void a_flood(struct connection *c, const struct query *q)
{
	uint8_t out[600];

	for (unsigned i = 0; i < 100; i++) {
		struct writer w = begin(out, sizeof(out), q, 0, 1);

		add_address(&w, q->type, 66);
		out[2] ^= (uint8_t)(i + 1);
		put(c, &w);
	}
}

static void truncated_again(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 0x0200, 1);

	add_address(&w, q->type, 66);
	put(c, &w);
}

static void fails(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 2, 0);

	put(c, &w);
}

static void knows_no_such_name(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 3, 0);

	put(c, &w);
}

static void hangs_up(struct connection *c, const struct query *q)
{
	(void)q;
	close_connection(c);
}

static void hangs_up_within(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, q->type, 66);
	put_length(&w, w.len - 1); /* a byte more than comes */
	assert_int_equal(send(c->io.fd, out, w.len, MSG_NOSIGNAL), w.len);
	close_connection(c);
}

static void in_small_letters(struct connection *c, const struct query *q)
{
	uint8_t out[600];
	struct writer w = begin(out, sizeof(out), q, 0, 1);
	bool changed = false;

	for (size_t i = 14; i < 2 + q->end - 4; i++) {
		uint8_t small = (uint8_t)tolower(out[i]);

		changed = changed || small != out[i];
		out[i] = small;
	}
	add_address(&w, q->type, changed ? 66 : 1);
	put(c, &w);
}

/* As long as a reply may be, or longer: padded behind its records. */
static void of_length(struct connection *c, const struct query *q, size_t n)
{
	static uint8_t out[2 + DNS_LOOKUP_STREAM_MAX + 1];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, q->type, 1);
	memset(out + w.len, 0, sizeof(out) - w.len);
	w.len = 2 + n;
	put(c, &w);
}

static void at_the_limit(struct connection *c, const struct query *q)
{
	of_length(c, q, DNS_LOOKUP_STREAM_MAX);
}

static void beyond_the_limit(struct connection *c, const struct query *q)
{
	of_length(c, q, DNS_LOOKUP_STREAM_MAX + 1);
}

static void with_many_addresses(struct connection *c, const struct query *q)
{
	static uint8_t out[2 + DNS_LOOKUP_STREAM_MAX];
	struct writer w = begin(out, sizeof(out), q, 0, 300);

	for (unsigned i = 0; i < 300; i++)
		add_address(&w, q->type, (uint8_t)i);
	put(c, &w);
}

/* --- the resolver --- */

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	container_of(wait, struct waiter, wait)->answer = *answer;
	f.answered = true;
	loop_stop(f.loop);
}

static void run_for(int64_t ms)
{
	loop_timer_set(&f.stop, ms);
	assert_int_equal(loop_run(f.loop), 0);
	loop_timer_cancel(&f.stop);
}

static const struct resolver_answer *ask(const char *name)
{
	const struct resolver_answer *now;

	f.answered = false;
	f.waiter.wait.on_answer = on_answer;
	now = resolver_get(f.resolver, slice_from_string(name), &f.waiter.wait);
	if (now)
		return now;
	run_for(TIMEOUT_MS);
	assert_true(f.answered);
	return &f.waiter.answer;
}

static void begin_with(unsigned servers, behavior first, behavior second)
{
	struct config_server at[SERVERS] = {f.servers[0].at, f.servers[1].at};

	f.servers[0].behave = first;
	f.servers[1].behave = second;
	f.resolver = resolver_new(
	        f.loop, at, servers, NULL, 0, f.timeout_ms ? f.timeout_ms : TIMEOUT_MS);
	assert_non_null(f.resolver);
}

/* Both kinds of socket on one port. */
static int open_server(struct server *s)
{
	for (unsigned i = 0; i < PORT_TRIES; i++) {
		struct sockaddr_in at = {
		        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t n = sizeof(at);
		int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		int tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (bind(udp, (struct sockaddr *)&at, n) == 0 &&
		        getsockname(udp, (struct sockaddr *)&at, &n) == 0 &&
		        bind(tcp, (struct sockaddr *)&at, n) == 0 && listen(tcp, 16) == 0) {
			s->at.address = (struct ip){4, {127, 0, 0, 1}};
			s->at.port = ntohs(at.sin_port);
			return loop_io_open_level(f.loop, &s->udp, udp, LOOP_READ, on_query) |
			       loop_io_open_level(f.loop, &s->tcp, tcp, LOOP_READ, on_connection);
		}
		close(udp);
		close(tcp);
	}
	return -1;
}

static void close_listener(struct server *s)
{
	int fd = s->tcp.fd;

	loop_io_close(&s->tcp);
	if (fd >= 0)
		close(fd);
	s->tcp.fd = -1;
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	for (unsigned i = 0; i < CONNECTIONS; i++)
		f.connections[i].io.fd = -1;
	f.loop = loop_new();
	return f.loop && open_server(&f.servers[0]) == 0 && open_server(&f.servers[1]) == 0 &&
	                       loop_timer_open(f.loop, &f.stop, on_stop) == 0
	               ? 0
	               : -1;
}

static int tear_down(void **state)
{
	(void)state;
	resolver_free(f.resolver);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		close_connection(&f.connections[i]);
	for (unsigned i = 0; i < SERVERS; i++) {
		int fd = f.servers[i].udp.fd;

		loop_io_close(&f.servers[i].udp);
		close(fd);
		close_listener(&f.servers[i]);
	}
	loop_timer_close(&f.stop);
	loop_free(f.loop);
	return 0;
}

static void is_address(const struct resolver_answer *a, uint8_t last)
{
	if (a->count != 2)
		fail_msg("%zu addresses, %s", a->count, a->error ? a->error : "");
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(a->addresses[i].bytes[a->addresses[i].family == 4 ? 3 : 15], last);
}

/* --- tests --- */

static void test_the_answer_comes_over_tcp(void **state)
{
	(void)state;
	begin_with(1, well, NULL);
	is_address(ask("a-host-with-many-letters.test"), 1);
	assert_int_equal(f.servers[0].asked, 2);
	assert_int_equal(f.servers[0].streamed, 2);
	assert_int_equal(f.servers[0].alike, 0); /* chance of its own */
	assert_int_equal(f.servers[0].plain, 0);
}

static void test_no_tcp_where_a_datagram_holds_it(void **state)
{
	(void)state;
	f.servers[0].whole = true;
	begin_with(1, well, NULL);
	is_address(ask("host.test"), 9);
	assert_int_equal(f.servers[0].streamed, 0);
	assert_int_equal(f.connected, 0);
}

static void test_an_answer_in_pieces(void **state)
{
	(void)state;
	begin_with(1, in_pieces, NULL);
	is_address(ask("h.test"), 1);
}

static void test_messages_that_are_no_answer_are_passed_over(void **state)
{
	(void)state;
	begin_with(1, among_others, NULL);
	is_address(ask("host.test"), 1);
	assert_int_equal(f.servers[0].streamed, 2);
}

static void test_a_flood_ends_the_try(void **state)
{
	int64_t start = clock_monotonic_ms();
	const struct resolver_answer *a;

	(void)state;
	begin_with(1, a_flood, NULL);
	a = ask("host.test");
	assert_int_equal(a->count, 0);
	assert_string_equal(a->error, "the resolver failed");
	assert_true(clock_monotonic_ms() - start < TIMEOUT_MS / 2);
	assert_int_equal(f.servers[0].streamed, 4);
}

static void test_what_cannot_be_had_over_tcp_fails(void **state)
{
	static const behavior bad[] = {
	        truncated_again, hangs_up, hangs_up_within, beyond_the_limit, NULL};

	(void)state;
	f.timeout_ms = SILENT_MS;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct resolver_answer *a;

		resolver_free(f.resolver);
		begin_with(1, bad[i], NULL);
		a = ask("host.test");
		assert_int_equal(a->count, 0);
		assert_string_equal(a->error, TRUNCATED);
	}
	close_listener(&f.servers[0]);
	resolver_free(f.resolver);
	begin_with(1, NULL, NULL);
	assert_string_equal(ask("host.test")->error, TRUNCATED);
}

static void test_the_next_server_is_asked(void **state)
{
	static const behavior bad[] = {
	        truncated_again, hangs_up, hangs_up_within, beyond_the_limit, fails, NULL};

	(void)state;
	f.timeout_ms = SILENT_MS;
	f.servers[1].whole = true;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		resolver_free(f.resolver);
		begin_with(2, bad[i], NULL);
		is_address(ask("host.test"), 9);
		/* The first one is first also after silence: it has answered over UDP. */
		is_address(ask("host-2.test"), 9);
		assert_int_equal(f.servers[0].asked, 4 * (i + 1));
		for (unsigned k = 0; k < CONNECTIONS; k++)
			close_connection(&f.connections[k]);
		f.connected = 0;
	}
}

static void test_a_name_that_does_not_exist(void **state)
{
	(void)state;
	begin_with(2, knows_no_such_name, NULL);
	assert_string_equal(ask("host.test")->error, "the name does not exist");
	assert_int_equal(f.servers[1].asked, 0);
}

static void test_who_does_not_know_the_case_is_not_believed(void **state)
{
	(void)state;
	begin_with(1, in_small_letters, NULL);
	is_address(ask("a-host-with-many-letters-in-its-name.test"), 1);
	assert_int_equal(f.servers[0].plain, 2);
	assert_int_equal(f.servers[0].streamed, 4);
}

static void test_long_answers(void **state)
{
	const struct resolver_answer *a;

	(void)state;
	begin_with(1, at_the_limit, NULL);
	is_address(ask("host.test"), 1);
	f.servers[0].behave = with_many_addresses;
	a = ask("many.test");
	assert_int_equal(a->count, RESOLVER_ADDRESSES_MAX);
}

static void test_without_memory_a_name_fails(void **state)
{
	unsigned nth = 0, failed = 0;
	bool met;

	(void)state;
	begin_with(1, well, NULL);
	do {
		const struct resolver_answer *a;
		char name[32];

		for (unsigned k = 0; k < CONNECTIONS; k++)
			close_connection(&f.connections[k]);
		f.connected = 0;
		snprintf(name, sizeof(name), "host-%u.test", nth);
		no_memory_at(++nth);
		a = ask(name);
		met = no_memory_met();
		assert_true(a->count > 0 || met);
		assert_true(a->count > 0 || a->error);
		failed += !a->count;
	} while (met);
	assert_true(failed >= 2);
}

static void test_freed_while_a_connection_is_out(void **state)
{
	(void)state;
	begin_with(1, NULL, NULL);
	f.waiter.wait.on_answer = on_answer;
	assert_null(resolver_get(f.resolver, SLICE("host.test"), &f.waiter.wait));
	for (unsigned i = 0; i < TIMEOUT_MS / 10 && f.servers[0].streamed < 2; i++)
		run_for(10);
	assert_int_equal(f.servers[0].streamed, 2);
	resolver_free(f.resolver);
	f.resolver = NULL;
	assert_false(f.answered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_the_answer_comes_over_tcp),
	        TEST(test_no_tcp_where_a_datagram_holds_it),
	        TEST(test_an_answer_in_pieces),
	        TEST(test_messages_that_are_no_answer_are_passed_over),
	        TEST(test_a_flood_ends_the_try),
	        TEST(test_what_cannot_be_had_over_tcp_fails),
	        TEST(test_the_next_server_is_asked),
	        TEST(test_a_name_that_does_not_exist),
	        TEST(test_who_does_not_know_the_case_is_not_believed),
	        TEST(test_long_answers),
	        TEST(test_without_memory_a_name_fails),
	        TEST(test_freed_while_a_connection_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
