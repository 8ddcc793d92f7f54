/* SPDX-License-Identifier: Apache-2.0 */
/* Queries to name servers that err, lie or have others beside them: two servers on loopback, in the
 * same loop, that answer as each test tells them. The resolver's clock stands still, so that nobody
 * is late, and a server that is to be silent moves it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "no_memory.h"
#include "still_clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/loop/resolver.h"

/* The linker wraps: clock_gettime loop_timer_set */
void __real_loop_timer_set(struct loop_timer *timer, int64_t delay_ms);
void __wrap_loop_timer_set(struct loop_timer *timer, int64_t delay_ms);

#define TYPE_A 1
#define TYPE_CNAME 5
#define TYPE_AAAA 28
#define SERVERS 2
#define TIMEOUT_MS 60000 /* no test waits so long, and none fails on a slow machine */
#define SILENT_MS 100    /* for tests in which a try has to time out */
#define MANY 300         /* more than are asked at a time */

struct server;

/* A query as a server sees it. */
struct query {
	const uint8_t *p;
	size_t n, end; /* of the question */
	uint16_t type;
	bool edns;
	char name[256];
	struct sockaddr_in from;
};

typedef void (*behavior)(struct server *server, const struct query *q);

struct server {
	struct loop_io io;
	struct config_server at;
	behavior behave;
	unsigned asked, plain; /* queries; those without EDNS */
	bool mixed;            /* letters of both sizes were seen */
	char last[256];
	uint16_t ports[2 * MANY];
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
	struct loop_timer stop;
	unsigned answered, wanted;
	struct waiter waiters[MANY];
} f;

/* --- servers --- */

static void read_query(struct query *q)
{
	size_t at = 12, out = 0;

	while (q->p[at]) {
		memcpy(q->name + out, q->p + at + 1, q->p[at]);
		out += q->p[at];
		q->name[out++] = '.';
		at += q->p[at] + 1u;
	}
	q->name[out ? out - 1 : 0] = '\0';
	q->end = at + 5;
	q->type = (uint16_t)(q->p[at + 1] << 8 | q->p[at + 2]);
	q->edns = q->p[11];
}

static void note(struct server *s, const struct query *q)
{
	bool large = false, small = false;

	for (const char *c = q->name; *c; c++) {
		large = large || isupper((unsigned char)*c);
		small = small || islower((unsigned char)*c);
	}
	s->mixed = s->mixed || (large && small);
	s->plain += !q->edns;
	if (s->asked < 2 * MANY)
		s->ports[s->asked] = q->from.sin_port;
	s->asked++;
	memcpy(s->last, q->name, sizeof(s->last));
}

static void on_query(struct loop_io *io, unsigned events)
{
	struct server *s = container_of(io, struct server, io);
	uint8_t bytes[512];
	struct query q = {.p = bytes};
	socklen_t n = sizeof(q.from);
	ssize_t got = recvfrom(
	        io->fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&q.from, &n);

	(void)events;
	if (got < 17)
		return;
	q.n = (size_t)got;
	read_query(&q);
	note(s, &q);
	if (s->behave)
		s->behave(s, &q);
}

static void send_to(const struct server *s, const struct query *q, const struct writer *w)
{
	assert_false(w->failed);
	sendto(s->io.fd, w->p, w->len, 0, (const struct sockaddr *)&q->from, sizeof(q->from));
}

/* A reply up to the end of its question. */
static struct writer begin(
        uint8_t *out, size_t cap, const struct query *q, unsigned rcode, unsigned answers)
{
	struct writer w = writer_over(out, cap);

	writer_bytes(&w, q->p, 2);
	writer_u16(&w, (uint16_t)(0x8180 | rcode));
	writer_u16(&w, 1);
	writer_u16(&w, (uint16_t)answers);
	writer_u32(&w, 0);
	writer_bytes(&w, q->p + 12, q->end - 12);
	return w;
}

static void write_name(struct writer *w, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		writer_vector(w, 1, slice_of(name, n));
		name += n + (name[n] == '.');
	}
	writer_u8(w, 0);
}

/* A record of a name, NULL: the question's. Addresses are 192.0.2.LAST and 2001:db8::LAST. */
static void add_address(struct writer *w, const char *owner, uint16_t type, uint8_t last)
{
	static const uint8_t v4[4] = {192, 0, 2}, v6[16] = {0x20, 0x01, 0x0d, 0xb8};
	uint8_t bytes[16] = {0};
	size_t n = type == TYPE_A ? 4 : 16;

	memcpy(bytes, type == TYPE_A ? v4 : v6, n);
	bytes[n - 1] = last;
	if (owner)
		write_name(w, owner);
	else
		writer_u16(w, 0xc00c);
	writer_u16(w, type);
	writer_u16(w, 1);
	writer_u32(w, 60);
	writer_vector(w, 2, slice_of(bytes, n));
}

static void add_alias(struct writer *w, const char *owner, const char *target)
{
	uint8_t bytes[256];
	struct writer name = writer_over(bytes, sizeof(bytes));

	write_name(&name, target);
	write_name(w, owner);
	writer_u16(w, TYPE_CNAME);
	writer_u16(w, 1);
	writer_u32(w, 60);
	writer_vector(w, 2, slice_of(bytes, name.len));
}

static void well(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, NULL, q->type, 1);
	send_to(s, q, &w);
}

static void nobody_knows(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 2, 0);

	send_to(s, q, &w);
}

static void refuses(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 5, 0);

	send_to(s, q, &w);
}

static void of_another_name(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 2);

	add_address(&w, "other.test", q->type, 1);
	add_address(&w, "host.test.other.test", q->type, 2);
	send_to(s, q, &w);
}

/* Three aliases, last to first. */
static void by_aliases(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 5);

	add_address(&w, "d.test", q->type, 7);
	add_address(&w, "not-d.test", q->type, 8);
	add_alias(&w, "C.test", "d.TEST");
	add_alias(&w, "b.test", "c.test");
	add_alias(&w, "host.test", "b.test");
	send_to(s, q, &w);
}

static void in_circles(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 2);

	add_alias(&w, "host.test", "b.test");
	add_alias(&w, "b.test", "host.test");
	send_to(s, q, &w);
}

/* The owner's name is a pointer to itself. */
static void with_a_loop(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	writer_u16(&w, (uint16_t)(0xc000 | w.len));
	writer_u16(&w, q->type);
	writer_u16(&w, 1);
	writer_u32(&w, 60);
	writer_vector(&w, 2, slice_of("\1\2\3\4", 4));
	send_to(s, q, &w);
}

/* Forgeries first: another id, another name, a query, nothing; then the answer. */
static void after_forgeries(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, NULL, q->type, 66);
	out[0] ^= 1;
	send_to(s, q, &w);
	out[0] ^= 1;
	out[13] = 'x';
	send_to(s, q, &w);
	out[13] = q->p[13];
	out[2] = 1;
	send_to(s, q, &w);
	w.len = 0;
	send_to(s, q, &w);
	well(s, q);
}

/* Nothing but forgeries, each of them fit but for its id. */
static void a_flood(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, NULL, q->type, 66);
	for (unsigned i = 0; i < 100; i++) {
		out[0] ^= (uint8_t)(i + 1);
		send_to(s, q, &w);
		out[0] = q->p[0];
	}
}

/* A server that does not keep the case of names. To the mixed-case query it lies, like a forger
 * who knows everything but the case. */
static void in_small_letters(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);
	bool changed = false;

	for (size_t i = 12; i < q->end - 4; i++) {
		uint8_t small = (uint8_t)tolower(out[i]);

		changed = changed || small != out[i];
		out[i] = small;
	}
	add_address(&w, NULL, q->type, changed ? 66 : 1);
	send_to(s, q, &w);
}

/* Knows EDNS as little as RFC 1035 does, and refuses by the bare header. */
static void without_edns(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 1, 0);

	if (!q->edns) {
		well(s, q);
		return;
	}
	out[4] = out[5] = 0;
	w.len = 12;
	send_to(s, q, &w);
}

static void from_elsewhere(struct server *s, const struct query *q)
{
	uint8_t out[512];
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, NULL, q->type, 66);
	send_to(&f.servers[s == &f.servers[0]], q, &w);
	well(s, q);
}

/* Both queries have come, and their time is over. */
static void silent(struct server *s, const struct query *q)
{
	(void)q;
	if (s->asked % 2 == 0)
		clock_move(SILENT_MS);
}

/* An address of the wrong length; an answer that ends in its middle; one that is too long. */
static void misshapen(struct server *s, const struct query *q)
{
	static unsigned turn;
	uint8_t out[2000] = {0};
	struct writer w = begin(out, sizeof(out), q, 0, 1);

	add_address(&w, NULL, q->type == TYPE_A ? TYPE_AAAA : TYPE_A, 66);
	switch (turn++ % 3) {
	case 0:
		out[q->end + 3] = (uint8_t)q->type;
		break;
	case 1:
		w.len -= 3;
		break;
	case 2:
		w.len = 0;
		w = begin(out, sizeof(out), q, 0, 1);
		add_address(&w, NULL, q->type, 66);
		w.len = 1300;
		break;
	}
	send_to(s, q, &w);
	clock_move(SILENT_MS); /* what is passed over ends no try */
}

/* --- the resolver --- */

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	container_of(wait, struct waiter, wait)->answer = *answer;
	if (++f.answered == f.wanted)
		loop_stop(f.loop);
}

/* The second family's answer has plenty of time, too. */
void __wrap_loop_timer_set(struct loop_timer *timer, int64_t delay_ms)
{
	__real_loop_timer_set(timer, delay_ms > 0 ? TIMEOUT_MS : 0);
}

static void settle(unsigned count)
{
	f.wanted = f.answered + count;
	loop_timer_set(&f.stop, TIMEOUT_MS);
	assert_int_equal(loop_run(f.loop), 0);
	loop_timer_cancel(&f.stop);
	assert_int_equal(f.answered, f.wanted);
}

static void ask_only(unsigned i, const char *name)
{
	f.waiters[i].wait.on_answer = on_answer;
	assert_null(resolver_get(f.resolver, slice_from_string(name), &f.waiters[i].wait));
}

static const struct resolver_answer *ask(const char *name)
{
	ask_only(0, name);
	settle(1);
	return &f.waiters[0].answer;
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

static int open_server(struct server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), most = 1 << 20;

	/* Room for all queries that are open at a time: no answer comes late, so none may get lost.
	 */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	if (bind(fd, (struct sockaddr *)&at, n) < 0 ||
	        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return -1;
	s->at.address = (struct ip){4, {127, 0, 0, 1}};
	s->at.port = ntohs(at.sin_port);
	return loop_io_open_level(f.loop, &s->io, fd, LOOP_READ, on_query);
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	clock_stop();
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
	for (unsigned i = 0; i < SERVERS; i++) {
		int fd = f.servers[i].io.fd;

		loop_io_close(&f.servers[i].io);
		close(fd);
	}
	loop_timer_close(&f.stop);
	loop_free(f.loop);
	clock_go();
	return 0;
}

static void is_address(const struct resolver_answer *a, uint8_t last)
{
	assert_int_equal(a->count, 2);
	assert_int_equal(a->addresses[0].bytes[a->addresses[0].family == 4 ? 3 : 15], last);
	assert_int_equal(a->addresses[1].bytes[a->addresses[1].family == 4 ? 3 : 15], last);
}

/* --- tests --- */

static void test_what_belongs_to_another_name_is_no_answer(void **state)
{
	const struct resolver_answer *a;

	(void)state;
	begin_with(1, of_another_name, NULL);
	a = ask("host.test");
	assert_int_equal(a->count, 0);
	assert_string_equal(a->error, "the name has no address");
}

static void test_aliases_are_followed_in_any_order(void **state)
{
	(void)state;
	begin_with(1, by_aliases, NULL);
	is_address(ask("host.test"), 7);
}

static void test_aliases_in_circles_end(void **state)
{
	const struct resolver_answer *a;

	(void)state;
	begin_with(1, in_circles, NULL);
	a = ask("host.test");
	assert_int_equal(a->count, 0);
	assert_string_equal(a->error, "the resolver failed");
}

static void test_pointers_in_circles_end(void **state)
{
	(void)state;
	begin_with(1, with_a_loop, NULL);
	assert_string_equal(ask("host.test")->error, "the resolver failed");
}

static void test_misshapen_answers_fail(void **state)
{
	static const char *const names[] = {"a.test", "b.test", "c.test"};

	(void)state;
	f.timeout_ms = SILENT_MS;
	begin_with(1, misshapen, NULL);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ask(names[i])->count, 0);
}

static void test_forgeries_are_passed_over(void **state)
{
	(void)state;
	begin_with(1, after_forgeries, NULL);
	is_address(ask("host.test"), 1);
	assert_int_equal(f.servers[0].asked, 2);
}

static void test_who_answers_from_elsewhere_is_not_heard(void **state)
{
	(void)state;
	begin_with(1, from_elsewhere, NULL);
	is_address(ask("host.test"), 1);
}

/* A forger has a few guesses for each port, not the time that a name may take. */
static void test_a_flood_of_forgeries_ends_the_try(void **state)
{
	(void)state;
	begin_with(1, a_flood, NULL);
	assert_int_equal(ask("host.test")->count, 0); /* though the time stands still */
	assert_int_equal(f.servers[0].asked, 4);
	assert_int_not_equal(f.servers[0].ports[0], f.servers[0].ports[2]);
}

static void test_each_question_has_a_port_of_its_own(void **state)
{
	(void)state;
	begin_with(1, well, NULL);
	for (unsigned i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "host-%u.test", i);
		is_address(ask(name), 1);
	}
	assert_int_equal(f.servers[0].asked, 16);
	for (unsigned i = 1; i < 16; i++)
		assert_int_not_equal(f.servers[0].ports[i], f.servers[0].ports[i - 1]);
	assert_true(f.servers[0].mixed);
	assert_int_equal(f.servers[0].plain, 0);
}

static void test_who_does_not_know_the_case_is_not_believed(void **state)
{
	(void)state;
	begin_with(1, in_small_letters, NULL);
	is_address(ask("a-host-with-many-letters-in-its-name.test"), 1);
	assert_int_equal(f.servers[0].plain, 2);
}

static void test_a_server_without_edns_is_asked_plainly(void **state)
{
	(void)state;
	begin_with(1, without_edns, NULL);
	is_address(ask("host.test"), 1);
	assert_int_equal(f.servers[0].asked, 4);
}

static void test_the_next_server_is_asked(void **state)
{
	static const behavior bad[] = {silent, nobody_knows, refuses, with_a_loop};

	(void)state;
	f.timeout_ms = SILENT_MS;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		resolver_free(f.resolver);
		begin_with(2, bad[i], well);
		is_address(ask("host.test"), 1);
	}
}

/* Connected to itself, the first server's socket receives nothing from others: they are told that
 * nobody listens. Its port stays taken, so no other program's socket swallows a query. */
static void test_nobody_listens_at_the_first_server(void **state)
{
	struct sockaddr_in own;
	socklen_t n = sizeof(own);
	int fd = f.servers[0].io.fd;

	(void)state;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &n), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&own, n), 0);
	begin_with(2, NULL, well);
	is_address(ask("host.test"), 1);
	assert_int_equal(f.servers[0].asked, 0);
}

static void test_after_silence_another_one_is_asked_first(void **state)
{
	(void)state;
	f.timeout_ms = SILENT_MS;
	begin_with(2, silent, well);
	is_address(ask("host.test"), 1);
	is_address(ask("host-2.test"), 1);
	assert_int_equal(f.servers[0].asked, 2); /* for the first name alone */
}

/* The owner of a name can make a server fail for it as often as they like: the server is still
 * asked for other names. */
static void test_names_that_fail_harm_no_others(void **state)
{
	(void)state;
	begin_with(1, nobody_knows, NULL);
	for (unsigned i = 0; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "fails-%u.test", i);
		assert_int_equal(ask(name)->count, 0);
		assert_int_equal(strncasecmp(f.servers[0].last, name, sizeof(name)), 0);
	}
	f.servers[0].behave = well;
	is_address(ask("host.test"), 1);
	f.servers[0].behave = refuses;
	assert_string_equal(ask("host-2.test")->error, "the resolver refused to answer");
	f.servers[0].behave = well;
	is_address(ask("host-3.test"), 1);
	assert_int_equal(strncasecmp(f.servers[0].last, "host-3.test", 12), 0);
}

static void test_more_questions_than_are_out_at_a_time(void **state)
{
	(void)state;
	begin_with(1, well, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof(name), "host-%u.test", i);
		ask_only(i, name);
	}
	settle(MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_true(f.waiters[i].answer.count > 0);
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

		snprintf(name, sizeof(name), "host-%u.test", nth);
		no_memory_at(++nth);
		f.waiters[0].wait.on_answer = on_answer;
		a = resolver_get(f.resolver, slice_from_string(name), &f.waiters[0].wait);
		met = no_memory_met();
		if (!a) {
			settle(1);
			a = &f.waiters[0].answer;
		}
		assert_true(a->count > 0 || met);
		assert_true(a->count > 0 || a->error);
		failed += !a->count;
	} while (met);
	assert_true(failed >= 2); /* the query, the table's own */
}

static void test_freed_while_questions_wait_for_their_turn(void **state)
{
	(void)state;
	begin_with(1, NULL, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof(name), "host-%u.test", i);
		ask_only(i, name);
	}
	resolver_free(f.resolver);
	f.resolver = NULL;
	assert_int_equal(f.answered, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_what_belongs_to_another_name_is_no_answer),
	        TEST(test_aliases_are_followed_in_any_order),
	        TEST(test_aliases_in_circles_end),
	        TEST(test_pointers_in_circles_end),
	        TEST(test_misshapen_answers_fail),
	        TEST(test_forgeries_are_passed_over),
	        TEST(test_who_answers_from_elsewhere_is_not_heard),
	        TEST(test_a_flood_of_forgeries_ends_the_try),
	        TEST(test_each_question_has_a_port_of_its_own),
	        TEST(test_who_does_not_know_the_case_is_not_believed),
	        TEST(test_a_server_without_edns_is_asked_plainly),
	        TEST(test_the_next_server_is_asked),
	        TEST(test_nobody_listens_at_the_first_server),
	        TEST(test_after_silence_another_one_is_asked_first),
	        TEST(test_names_that_fail_harm_no_others),
	        TEST(test_more_questions_than_are_out_at_a_time),
	        TEST(test_without_memory_a_name_fails),
	        TEST(test_freed_while_questions_wait_for_their_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
