/* SPDX-License-Identifier: Apache-2.0 */
/* responder: what each kind of query is answered, what is recorded, and both transports over
 * loopback. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dns/internal.h"
#include "vethguard/dns/responder.h"
#include "vethguard/policy/load.h"

static const char policy_text[] = "vethguard: 1\n"
                                  "name: test\n"
                                  "allow:\n"
                                  "  - name: api\n"
                                  "    to: https://api.example.com\n"
                                  "  - name: ssh\n"
                                  "    to: tcp://git.example.com:22\n"
                                  "  - name: files\n"
                                  "    to: https://*.files.example.com\n"
                                  "  - name: intranet\n"
                                  "    to: http://wiki\n"
                                  "  - name: mixed\n"
                                  "    to: tcp://mixed.example.com:22\n"
                                  "deny:\n"
                                  "  - name: never\n"
                                  "    to: https://bad.example.com\n"
                                  "  - name: not-that\n"
                                  "    to: https://mixed.example.com\n";

static int read_text(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

/* --- a responder with its policy, its names, and the last event it sent --- */

static struct {
	uint8_t *image;
	struct policy policy;
	const struct policy *in_force;
	struct names *names;
	struct loop *loop;
	struct responder *responder;

	size_t count;
	size_t hold_after; /* so many events; 0: never */
	struct event event;
	char host[300], rule[100], detail[200];
} fixture;

static void on_query(void *context, struct event *event)
{
	(void)context;
	if (++fixture.count == fixture.hold_after)
		responder_hold(fixture.responder, true);
	fixture.event = *event;
	snprintf(fixture.host, sizeof(fixture.host), "%.*s", SLICE_ARG(event->host));
	snprintf(fixture.rule, sizeof(fixture.rule), "%.*s", SLICE_ARG(event->rule));
	snprintf(fixture.detail, sizeof(fixture.detail), "%.*s", SLICE_ARG(event->detail));
}

static int start(bool observe, uint32_t rate)
{
	static struct diag_list diags;
	struct policy_reader reader = {
	        .context = (void *)(uintptr_t)policy_text, .read = read_text};
	struct policy_load_options options = {.observe = observe};
	struct responder_config config = {.on_query = on_query, .queries_per_s = rate};
	struct ip_prefix pool4, pool6;
	size_t size;

	memset(&fixture, 0, sizeof(fixture));
	memset(&diags, 0, sizeof(diags));
	if (policy_load(&reader, "test.yaml", &options, &fixture.image, &size, &diags) < 0) {
		diag_print(&diags, stderr);
		return -1;
	}
	if (policy_open(&fixture.policy, fixture.image, size) < 0)
		return -1;
	ip_prefix_parse(SLICE("10.200.0.0/16"), &pool4);
	ip_prefix_parse(SLICE("fd00:1::/64"), &pool6);
	fixture.in_force = &fixture.policy;
	fixture.names = names_new(&pool4, &pool6, 100);
	fixture.loop = loop_new();
	config.policy = &fixture.in_force;
	config.names = fixture.names;
	config.loop = fixture.loop;
	fixture.responder = responder_new(&config);
	return fixture.responder ? 0 : -1;
}

static int setup(void **state)
{
	(void)state;
	return start(false, 100000);
}

static int setup_observe(void **state)
{
	(void)state;
	return start(true, 100000);
}

static int setup_slow(void **state)
{
	(void)state;
	return start(false, 3);
}

static int teardown(void **state)
{
	(void)state;
	responder_free(fixture.responder);
	names_free(fixture.names);
	loop_free(fixture.loop);
	free(fixture.image);
	return 0;
}

/* A query for name (labels split at dots) into out. */
static size_t make_query(uint8_t *out, const char *name, uint16_t type, uint16_t class)
{
	struct writer w = writer_over(out, 512);

	writer_bytes(&w, "\xab\xcd\1\0\0\1\0\0\0\0\0\0", 12);
	while (*name) {
		size_t n = strcspn(name, ".");

		writer_vector(&w, 1, slice_of(name, n));
		name += n + (name[n] == '.');
	}
	writer_u8(&w, 0);
	writer_u16(&w, type);
	writer_u16(&w, class);
	assert_false(w.failed);
	return w.len;
}

static uint8_t answer[DNS_ANSWER_MAX];
static size_t answer_n;

static void ask_bytes(const uint8_t *query, size_t n)
{
	const struct responder_peer peer = {.client = {.family = 4, .bytes = {10, 200, 0, 2}},
	        .client_port = 4444,
	        .asked_port = 53};

	answer_n = responder_answer(fixture.responder, query, n, &peer, answer, sizeof(answer));
}

static void ask_class(const char *name, uint16_t type, uint16_t class)
{
	uint8_t query[512];

	ask_bytes(query, make_query(query, name, type, class));
	assert_true(answer_n >= 12);
	assert_memory_equal(answer, "\xab\xcd", 2);
}

static void ask(const char *name, uint16_t type)
{
	ask_class(name, type, 1);
}

/* Where there may be no answer. */
static void ask_in_vain(const char *name)
{
	uint8_t query[512];

	ask_bytes(query, make_query(query, name, DNS_A, 1));
}

static unsigned rcode(void)
{
	return answer[3] & 15;
}

static unsigned answers(void)
{
	return answer[6] << 8 | answer[7];
}

static void expect_verdict(const char *name, enum event_decision decision, const char *rule)
{
	size_t before = fixture.count;

	ask(name, DNS_A);
	assert_int_equal(rcode(), DNS_NOERROR);
	assert_int_equal(answers(), 1);
	assert_int_equal(fixture.count, before + 1);
	if (fixture.event.decision != decision)
		fail_msg("%s: decision %d", name, fixture.event.decision);
	if (rule)
		assert_string_equal(fixture.rule, rule);
	assert_string_equal(fixture.host, name);
	assert_int_equal(fixture.event.answer.family, 4);
}

static void the_policy_names_the_decision(void **state)
{
	(void)state;
	expect_verdict("api.example.com", EVENT_ALLOWED, "api");
	expect_verdict("git.example.com", EVENT_ALLOWED, NULL);
	expect_verdict("a.files.example.com", EVENT_ALLOWED, "files");
	expect_verdict("wiki", EVENT_ALLOWED, NULL);
	expect_verdict("files.example.com", EVENT_DENIED, "");
	expect_verdict("evil.example", EVENT_DENIED, "");
	assert_int_equal(fixture.event.policy_reason, POLICY_REASON_DEFAULT);
	expect_verdict("bad.example.com", EVENT_DENIED, "never");
	assert_int_equal(fixture.event.policy_reason, POLICY_REASON_RULE);
	/* Denied over https, allowed for ssh. */
	expect_verdict("mixed.example.com", EVENT_ALLOWED, NULL);
}

static void observing(void **state)
{
	(void)state;
	expect_verdict("api.example.com", EVENT_ALLOWED, "api");
	expect_verdict("git.example.com", EVENT_ALLOWED, NULL);
	expect_verdict("evil.example", EVENT_OBSERVED, "");
	expect_verdict("bad.example.com", EVENT_OBSERVED, "never");
}

static void events_are_filled(void **state)
{
	(void)state;
	ask("API.Example.COM", DNS_AAAA);
	assert_string_equal(fixture.host, "api.example.com");
	assert_memory_equal(answer + 12, "\3API\7Example\3COM", 16); /* the question as it was */
	assert_int_equal(fixture.event.kind, EVENT_DNS);
	assert_int_equal(fixture.event.dns_id, 0xabcd);
	assert_int_equal(fixture.event.dns_type, DNS_AAAA);
	assert_int_equal(fixture.event.dns_class, 1);
	assert_int_equal(fixture.event.answer.family, 6);
	assert_int_equal(fixture.event.src_port, 4444);
	assert_int_equal(fixture.event.dst_port, 53);
	assert_int_equal(fixture.event.protocol, 17);
	assert_int_equal(fixture.event.bytes_out, 12 + 17 + 4);
	assert_int_equal(fixture.event.bytes_in, answer_n);
	assert_true(fixture.event.time_ms > 0);
}

static void one_name_has_one_pair_of_addresses(void **state)
{
	uint8_t first[4];
	struct slice host;

	(void)state;
	ask("api.example.com", DNS_A);
	memcpy(first, answer + answer_n - 4, 4);
	assert_true(names_lookup(fixture.names, &fixture.event.answer, &host));
	assert_true(slice_equals(host, SLICE("api.example.com")));
	ask("other.example.com", DNS_A);
	assert_memory_not_equal(first, answer + answer_n - 4, 4);
	ask("api.EXAMPLE.com", DNS_A);
	assert_memory_equal(first, answer + answer_n - 4, 4);
	ask("api.example.com", DNS_AAAA);
	assert_true(names_lookup(fixture.names, &fixture.event.answer, &host));
	assert_true(slice_equals(host, SLICE("api.example.com")));
}

static void other_types_have_no_data(void **state)
{
	static const uint16_t types[] = {2, 5, 6, 12, 15, 16, 33, 64, 65, 252, 255, 65535};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask("api.example.com", types[i]);
		assert_int_equal(rcode(), DNS_NOERROR);
		assert_int_equal(answers(), 0);
		assert_int_equal(answer[9], 1); /* a SOA, so that it is cached */
		assert_int_equal(fixture.event.answer.family, 0);
	}
	ask("", 2);
	assert_int_equal(rcode(), DNS_NOERROR);
	assert_int_equal(answers(), 0);
}

static void names_that_do_not_exist(void **state)
{
	static const char *const names[] = {"localhost", "a.localhost", "LOCALHOST", "x.onion",
	        "onion", "a.invalid", "printer", "wpad", "1.2.3.4", "a.b*", "a b.example.com",
	        "2.0.200.10.in-addr.arpa", "0.1.200.10.in-addr.arpa", "8.8.8.8.in-addr.arpa"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int aaaa = 0; aaaa < 2; aaaa++) {
			ask(names[i], aaaa ? DNS_AAAA : DNS_A);
			if (rcode() != DNS_NXDOMAIN || answers() != 0)
				fail_msg("%s", names[i]);
			assert_int_equal(fixture.event.dns_rcode, DNS_NXDOMAIN);
		}
	}
	ask("0.1.200.10.in-addr.arpa", DNS_PTR);
	assert_int_equal(rcode(), DNS_NXDOMAIN);
	assert_int_equal(fixture.event.decision, EVENT_ALLOWED);
	ask("8.8.8.8.in-addr.arpa", DNS_PTR);
	assert_int_equal(rcode(), DNS_NXDOMAIN);
	assert_int_equal(fixture.event.decision, EVENT_DENIED);
	/* Names that only look alike. */
	expect_verdict("notlocalhost.example", EVENT_DENIED, "");
	expect_verdict("localhost.example", EVENT_DENIED, "");
	expect_verdict("notonion.example", EVENT_DENIED, "");
}

static void other_classes_and_versions(void **state)
{
	uint8_t query[512];
	size_t n;

	(void)state;
	ask_class("version.bind", 16, 3);
	assert_int_equal(rcode(), DNS_REFUSED);
	ask_class("api.example.com", DNS_A, 255);
	assert_int_equal(rcode(), DNS_REFUSED);
	assert_int_equal(answers(), 0);
	n = make_query(query, "api.example.com", DNS_A, 1);
	query[11] = 1;
	memcpy(query + n, "\0\0\x29\4\xd0\0\1\0\0\0\0", 11);
	ask_bytes(query, n + 11);
	assert_int_equal(fixture.event.dns_rcode, DNS_BADVERS);
	assert_int_equal(answers(), 0);
}

static void malformed_queries(void **state)
{
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);

	(void)state;
	ask_bytes(query, n - 1);
	assert_int_equal(answer_n, 12);
	assert_int_equal(rcode(), DNS_FORMERR);
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_CLIENT);
	assert_int_equal(fixture.count, 1);
	query[2] = 0x28; /* UPDATE */
	ask_bytes(query, n);
	assert_int_equal(answer_n, 12);
	assert_int_equal(rcode(), DNS_NOTIMP);
	query[2] = 0x80; /* a response: silence, but a record */
	ask_bytes(query, n);
	assert_int_equal(answer_n, 0);
	ask_bytes(query, 11);
	assert_int_equal(answer_n, 0);
	ask_bytes(query, 0);
	assert_int_equal(answer_n, 0);
	assert_int_equal(fixture.count, 5);
	assert_int_equal(fixture.event.decision, EVENT_DENIED);
}

static void a_full_pool_is_a_failure(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%d.example", i);
		ask(name, DNS_A);
		assert_int_equal(answers(), 1);
	}
	ask("one-more.example", DNS_A);
	assert_int_equal(rcode(), DNS_SERVFAIL);
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_LIMIT);
	ask("one-more.example", 16); /* needs no address */
	assert_int_equal(rcode(), DNS_NOERROR);
	ask("n0.example", DNS_AAAA); /* has one already */
	assert_int_equal(answers(), 1);
}

static void over_the_rate(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		ask("api.example.com", DNS_A);
		assert_int_equal(answers(), 1);
	}
	for (int i = 0; i < 3; i++) {
		ask("api.example.com", DNS_A);
		assert_int_equal(rcode(), DNS_REFUSED);
		assert_int_equal(answers(), 0);
	}
	for (int i = 0; i < 47; i++) {
		ask_in_vain("api.example.com");
		assert_int_equal(answer_n, 0);
	}
	ask_bytes((const uint8_t *)"garbage", 7);
	assert_int_equal(answer_n, 0);
	assert_int_equal(fixture.count, 3); /* none of those has a record of its own */
	assert_int_equal(responder_refused(fixture.responder), 51);
	usleep(1010000);
	ask("api.example.com", DNS_A);
	assert_int_equal(answers(), 1);
	assert_int_equal(fixture.count, 5);
	assert_int_equal(responder_refused(fixture.responder), 51);
}

static void stop_loop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void run_loop(int64_t ms)
{
	struct loop_timer timer = {0};

	assert_int_equal(loop_timer_open(fixture.loop, &timer, stop_loop), 0);
	loop_timer_set(&timer, ms);
	assert_int_equal(loop_run(fixture.loop), 0);
	loop_timer_close(&timer);
}

static void refusals_are_recorded_without_another_query(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		ask_in_vain("api.example.com");
	assert_int_equal(fixture.count, 3);
	run_loop(1100);
	assert_int_equal(fixture.count, 4);
	assert_string_equal(fixture.detail, "7 queries beyond 3 in a second were refused.");
	assert_int_equal(fixture.event.cause, EVENT_CAUSE_LIMIT);
	assert_int_equal(fixture.event.src_port, 4444);
}

/* --- transports --- */

static int listen_on(int type, struct sockaddr_in *at)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(*at);
	int fd;

	/* UDP on the wildcard, so that the address that was asked matters. */
	if (type == SOCK_DGRAM)
		any.sin_addr.s_addr = htonl(INADDR_ANY);
	fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &n), 0);
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd;
}

static void udp_answers_from_the_asked_address(void **state)
{
	struct sockaddr_in at, from;
	socklen_t from_n = sizeof(from);
	uint8_t query[512], reply[1500];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	at.sin_addr.s_addr = htonl(0x7f00004d); /* 127.0.0.77 */
	for (int i = 0; i < 100; i++)
		assert_int_equal(
		        sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at)), n);
	assert_int_equal(sendto(client, reply, 0, 0, (struct sockaddr *)&at, sizeof(at)), 0);
	run_loop(100);
	for (int i = 0; i < 100; i++) {
		assert_true(recvfrom(client, reply, sizeof(reply), 0, (struct sockaddr *)&from,
		                    &from_n) > (ssize_t)n);
		assert_int_equal(ntohl(from.sin_addr.s_addr), 0x7f00004d);
		assert_int_equal(from.sin_port, at.sin_port);
	}
	assert_true(recv(client, reply, sizeof(reply), 0) < 0);
	assert_int_equal(fixture.count, 101);
	assert_int_equal(fixture.event.dst.bytes[3], 77);
	close(client);
}

/* Of a flood that came past the fence in few packets, a bounded number is read in a second. */
static void udp_reads_no_more_than_the_fence_would_let_through(void **state)
{
	enum { PER_S = 3, MOST = PER_S * RESPONDER_READ_MOST + RESPONDER_TURN_QUERIES };
	struct sockaddr_in at;
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	for (int i = 0; i < 3 * MOST; i++)
		sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at));
	run_loop(100);
	assert_true(fixture.responder->paused);
	assert_in_range(fixture.responder->queries + responder_refused(fixture.responder),
	        PER_S * RESPONDER_READ_MOST, MOST);
	while (fixture.responder->paused) /* and then it goes on */
		run_loop(100);
	run_loop(100);
	assert_true(responder_refused(fixture.responder) > MOST);
	close(client);
}

static int connect_to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* The query with its length before it. */
static size_t make_framed(uint8_t *out, const char *name)
{
	size_t n = make_query(out + 2, name, DNS_A, 1);

	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	return n + 2;
}

static void tcp_takes_queries_in_any_pieces(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	ssize_t got;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(send(client, query + i, 1, 0), 1);
		run_loop(2);
		assert_int_equal(fixture.count, i + 1 == n);
	}
	got = recv(client, reply, sizeof(reply), 0);
	assert_true(got > 2);
	assert_int_equal(reply[0] << 8 | reply[1], got - 2);
	assert_memory_equal(reply + 2, "\xab\xcd\x81\x80", 4);
	assert_int_equal(fixture.event.protocol, 6);
	assert_int_equal(fixture.event.dst_port, ntohs(at.sin_port));
	close(client);
}

/* More queries at once than one turn takes, and more answers than the out buffer holds. */
static void tcp_pipelines(void **state)
{
	enum { QUERIES = 3000 };
	struct sockaddr_in at;
	uint8_t query[512], reply[65536];
	size_t n = make_framed(query, "api.example.com");
	static uint8_t all[QUERIES * 64];
	size_t sent = 0, got = 0, size;
	int client;

	(void)state;
	assert_true(n <= 64);
	for (size_t i = 0; i < QUERIES; i++)
		memcpy(all + i * n, query, n);
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	size = 2 + (n - 2) + 16; /* of each answer */
	for (int turn = 0; turn < 2000 && got < QUERIES * size; turn++) {
		ssize_t more =
		        sent < QUERIES * n ? send(client, all + sent, QUERIES * n - sent, 0) : 0;

		sent += more > 0 ? (size_t)more : 0;
		run_loop(1);
		if (turn < 50)
			continue; /* let the answers pile up first */
		while ((more = recv(client, reply, sizeof(reply), 0)) > 0)
			got += (size_t)more;
		assert_true(more < 0 && errno == EAGAIN);
	}
	assert_int_equal(got, QUERIES * size);
	assert_int_equal(fixture.count, QUERIES);
	close(client);
}

static void tcp_answers_before_it_closes(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	assert_int_equal(send(client, query, n, 0), n);
	assert_int_equal(send(client, query, 5, 0), 5); /* and half a query */
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	run_loop(20);
	assert_true(recv(client, reply, sizeof(reply), 0) > (ssize_t)n);
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 0);
	assert_int_equal(fixture.count, 1);
	close(client);
}

static void tcp_cuts_off_garbage(void **state)
{
	struct sockaddr_in at;
	uint8_t reply[100];
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	assert_int_equal(send(client, "\0\0", 2, 0), 2);
	run_loop(20);
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 0);
	close(client);
}

static void tcp_ends_where_far_too_much_is_asked(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	ssize_t got = -1;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	for (int i = 0; i < 50; i++)
		send(client, query, n, MSG_NOSIGNAL);
	for (int turn = 0; turn < 200; turn++) {
		run_loop(20);
		while ((got = recv(client, reply, sizeof(reply), 0)) > 0)
			;
		if (got == 0 || errno != EAGAIN)
			break;
	}
	assert_true(got == 0 || errno == ECONNRESET);
	assert_in_range(responder_refused(fixture.responder), 4, 47);
	close(client);
}

static void tcp_connections_are_bounded(void **state)
{
	struct sockaddr_in at;
	int clients[40];
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	size_t served = 0, closed = 0;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	for (size_t i = 0; i < 40; i++)
		clients[i] = connect_to(&at);
	run_loop(20);
	for (size_t i = 0; i < 40; i++)
		send(clients[i], query, n, MSG_NOSIGNAL);
	run_loop(20);
	for (size_t i = 0; i < 40; i++) {
		ssize_t got = recv(clients[i], reply, sizeof(reply), 0);

		served += got > 0;
		closed += got == 0 || (got < 0 && errno != EAGAIN);
		close(clients[i]);
	}
	assert_int_equal(served, 32);
	assert_int_equal(closed, 8);
	run_loop(20); /* those are gone: there is room again */
	clients[0] = connect_to(&at);
	send(clients[0], query, n, 0);
	run_loop(20);
	assert_true(recv(clients[0], reply, sizeof(reply), 0) > 0);
	close(clients[0]);
}

/* Of many connections in a second the next ones are taken by the batch, and none is lost. */
static void tcp_floods_are_taken_by_the_batch(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	bool rested = false;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	for (int i = 0; i < 500 && !rested; i++) {
		close(connect_to(&at));
		run_loop(1);
		rested = !fixture.responder->listeners->io.watch;
	}
	assert_true(rested);
	client = connect_to(&at);
	send(client, query, n, 0);
	for (int i = 0; i < 100 && recv(client, reply, sizeof(reply), MSG_PEEK) < 0; i++)
		run_loop(20);
	assert_true(recv(client, reply, sizeof(reply), 0) > (ssize_t)n);
	close(client);
	run_loop(100);
	assert_non_null(fixture.responder->listeners->io.watch);
}

/* What has come while there was no room for its events is answered when there is, in order. */
static void held_in_the_middle(void **state)
{
	struct sockaddr_in udp_at, tcp_at;
	uint8_t query[512], framed[512], reply[1500];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	size_t framed_n = make_framed(framed, "api.example.com");
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), tcp;

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &udp_at)), 0);
	assert_int_equal(
	        responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &tcp_at)), 0);
	tcp = connect_to(&tcp_at);
	for (unsigned round = 0; round < 2; round++) {
		fixture.hold_after = fixture.count + 1;
		for (int i = 0; i < 20 && round == 0; i++)
			sendto(udp, query, n, 0, (struct sockaddr *)&udp_at, sizeof(udp_at));
		for (int i = 0; i < 20 && round == 1; i++)
			assert_int_equal(send(tcp, framed, framed_n, 0), framed_n);
		run_loop(50);
		assert_int_equal(fixture.count, fixture.hold_after);
		assert_true(recv(round ? tcp : udp, reply, sizeof(reply), 0) > (ssize_t)n);
		assert_true(
		        recv(round ? tcp : udp, reply, sizeof(reply), 0) < 0 && errno == EAGAIN);
		if (round == 0) { /* whoever comes now waits as well */
			assert_int_equal(send(tcp, framed, framed_n, 0), framed_n);
			run_loop(20);
			assert_int_equal(fixture.count, 1);
		}
		fixture.hold_after = 0;
		responder_hold(fixture.responder, false);
		responder_hold(fixture.responder, false);
		run_loop(50);
		assert_int_equal(fixture.count, round == 0 ? 21 : 41);
		while (recv(round ? tcp : udp, reply, sizeof(reply), 0) > 0)
			;
		while (recv(tcp, reply, sizeof(reply), 0) > 0)
			;
	}
	close(udp);
	close(tcp);
}

/* A pause for its rate and a hold do not lift each other. */
static void held_and_paused(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint64_t refused;

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	for (int i = 0; i < 300; i++)
		sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at));
	run_loop(50);
	assert_true(fixture.responder->paused);
	refused = responder_refused(fixture.responder);
	responder_hold(fixture.responder, true);
	responder_hold(fixture.responder, false);
	run_loop(50);
	assert_int_equal(responder_refused(fixture.responder), refused);
	responder_hold(fixture.responder, true);
	while (fixture.responder->paused)
		run_loop(100);
	run_loop(50);
	assert_int_equal(responder_refused(fixture.responder), refused);
	responder_hold(fixture.responder, false);
	run_loop(50);
	assert_true(responder_refused(fixture.responder) > refused);
	close(client);
}

#define IN_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_LOOP(the_policy_names_the_decision),
	        cmocka_unit_test_setup_teardown(observing, setup_observe, teardown),
	        IN_LOOP(events_are_filled),
	        IN_LOOP(one_name_has_one_pair_of_addresses),
	        IN_LOOP(other_types_have_no_data),
	        IN_LOOP(names_that_do_not_exist),
	        IN_LOOP(other_classes_and_versions),
	        IN_LOOP(malformed_queries),
	        IN_LOOP(a_full_pool_is_a_failure),
	        cmocka_unit_test_setup_teardown(over_the_rate, setup_slow, teardown),
	        cmocka_unit_test_setup_teardown(
	                tcp_ends_where_far_too_much_is_asked, setup_slow, teardown),
	        cmocka_unit_test_setup_teardown(
	                refusals_are_recorded_without_another_query, setup_slow, teardown),
	        IN_LOOP(udp_answers_from_the_asked_address),
	        cmocka_unit_test_setup_teardown(
	                udp_reads_no_more_than_the_fence_would_let_through, setup_slow, teardown),
	        IN_LOOP(tcp_takes_queries_in_any_pieces),
	        IN_LOOP(tcp_pipelines),
	        IN_LOOP(tcp_answers_before_it_closes),
	        IN_LOOP(tcp_cuts_off_garbage),
	        IN_LOOP(tcp_connections_are_bounded),
	        IN_LOOP(tcp_floods_are_taken_by_the_batch),
	        IN_LOOP(held_in_the_middle),
	        cmocka_unit_test_setup_teardown(held_and_paused, setup_slow, teardown),
	};

	return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
