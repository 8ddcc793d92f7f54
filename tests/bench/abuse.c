/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile program in a sandbox can do to the machine, one way at a time, until its standard
 * input ends; then one line of JSON: how much it did and what that cost it.
 *
 *   abuse CPU spin                       nothing but computing
 *   abuse CPU connect ADDRESS PORT       opens connections and drops them
 *   abuse CPU slow ADDRESS PORT COUNT    holds COUNT connections, a byte of a request a second each
 *   abuse CPU dns ADDRESS PORT           name queries, each for a new name, answers not read
 *   abuse CPU packets ADDRESS PORT RATE  datagrams of 1,400 bytes, RATE Mbit/s (0: all that goes)
 *   abuse CPU datagrams ADDRESS PORT N   datagrams of 16 bytes, N of them in each packet
 * (UDP_SEGMENT) abuse CPU noise ADDRESS PORT         TCP acknowledgements of connections that there
 * are none of abuse CPU refusals ADDRESS PORT N    requests that are refused, over N connections
 * that are kept
 *
 *   abuse CPU strangers ADDRESS PORT RATE FILE FIRST N  RATE connections per second (0: all that
 * goes), each of which says what is in FILE and hangs up, from N addresses in turn, of which FIRST
 * is the first
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

#define DATAGRAM 1400
#define SLOW_MAX 16384
#define ASKING_MAX 512
#define PIPELINED 8     /* requests on their way over one connection */
#define SEGMENT 16      /* bytes of a datagram among many in one packet */
#define SEGMENTS_MAX 64 /* of one packet: UDP_MAX_SEGMENTS */
#define BATCH 64        /* actions between two looks at the clock and at standard input */
#define BITS_PER_MBIT 1000000.0

static uint64_t done, failed;
static struct sockaddr_in target;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Standard input has ended, or ends within so long. */
static bool over(int wait_ms)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&in, 1, wait_ms) > 0;
}

static int open_socket(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		net_die("socket: %s", strerror(errno));
	return fd;
}

static void count(bool good)
{
	done += good;
	failed += !good;
}

static void spin(void)
{
	while (!over(0))
		for (volatile unsigned i = 0; i < 1000000; i++)
			continue;
}

static void flood_connections(void)
{
	int fds[BATCH];

	while (!over(0)) {
		for (unsigned i = 0; i < BATCH; i++) {
			fds[i] = open_socket(SOCK_STREAM);
			int r = connect(fds[i], (struct sockaddr *)&target, sizeof(target));

			count(r == 0 || errno == EINPROGRESS);
		}
		for (unsigned i = 0; i < BATCH; i++)
			close(fds[i]);
	}
}

static void hold_connections(unsigned wanted)
{
	static int fds[SLOW_MAX];
	static const char text[] = "GET http://api.lab.test/bytes/1 HTTP/1.1\r\nX-Slow: ";

	for (unsigned i = 0; i < wanted; i++)
		fds[i] = -1;
	for (size_t turn = 0; !over(1000); turn++) {
		char byte = turn < sizeof(text) - 1 ? text[turn] : 'x';

		for (unsigned i = 0; i < wanted; i++) {
			if (fds[i] >= 0 && send(fds[i], &byte, 1, MSG_NOSIGNAL) == 1) {
				count(true);
				continue;
			}
			if (fds[i] >= 0)
				close(fds[i]);
			fds[i] = open_socket(SOCK_STREAM);
			count(connect(fds[i], (struct sockaddr *)&target, sizeof(target)) == 0 ||
			        errno == EINPROGRESS);
		}
	}
}

/* A query for the address of a name that nobody has asked for before. */
static size_t make_query(uint8_t *out, uint32_t number)
{
	static const uint8_t head[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8};
	static const uint8_t tail[] = {4, 't', 'e', 's', 't', 0, 0, 1, 0, 1};
	char label[9];

	memcpy(out, head, sizeof(head));
	out[0] = (uint8_t)(number >> 8);
	out[1] = (uint8_t)number;
	snprintf(label, sizeof(label), "%08x", number);
	memcpy(out + sizeof(head), label, 8);
	memcpy(out + sizeof(head) + 8, tail, sizeof(tail));
	return sizeof(head) + 8 + sizeof(tail);
}

static void flood_queries(void)
{
	int fd = open_socket(SOCK_DGRAM);
	uint8_t query[64];
	uint32_t number = 0;

	if (connect(fd, (struct sockaddr *)&target, sizeof(target)) != 0)
		net_die("connect: %s", strerror(errno));
	while (!over(0)) {
		for (unsigned i = 0; i < BATCH; i++)
			count(send(fd, query, make_query(query, number++), 0) > 0);
	}
	close(fd);
}

static void flood_packets(double mbit)
{
	int fd = open_socket(SOCK_DGRAM);
	static uint8_t datagram[DATAGRAM];
	double per_s = mbit * BITS_PER_MBIT / (8 * DATAGRAM), start = now(CLOCK_MONOTONIC);

	while (!over(0)) {
		double due = mbit > 0 ? (now(CLOCK_MONOTONIC) - start) * per_s
		                      : (double)done + (double)failed + BATCH;

		if ((double)(done + failed) >= due)
			usleep(200);
		for (unsigned i = 0; i < BATCH && (double)(done + failed) < due; i++)
			count(sendto(fd, datagram, sizeof(datagram), 0, (struct sockaddr *)&target,
			              sizeof(target)) > 0);
	}
	close(fd);
}

/* --- many datagrams in one packet --- */

static void flood_datagrams(int segments)
{
	int fd = open_socket(SOCK_DGRAM), size = SEGMENT;
	static uint8_t packet[SEGMENTS_MAX * SEGMENT];
	size_t n = (size_t)segments * SEGMENT;

	if (connect(fd, (struct sockaddr *)&target, sizeof(target)) != 0 ||
	        (segments > 1 &&
	                setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) != 0))
		net_die("datagrams: %s", strerror(errno));
	while (!over(0))
		for (unsigned i = 0; i < BATCH; i++)
			if (send(fd, packet, n, 0) > 0)
				done += (unsigned)segments;
			else
				failed++;
	close(fd);
}

/* --- segments of no connection --- */

static uint32_t sum_of(const void *p, size_t n)
{
	const uint8_t *bytes = p;
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

struct segment {
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

static void fill_segment(struct segment *s, in_addr_t from, uint32_t number)
{
	uint32_t sum;

	memset(s, 0, sizeof(*s));
	s->ip.version = 4;
	s->ip.ihl = sizeof(s->ip) / 4;
	s->ip.ttl = 64;
	s->ip.protocol = IPPROTO_TCP;
	s->ip.saddr = from;
	s->ip.daddr = target.sin_addr.s_addr;
	s->tcp.source = htons((uint16_t)(1024 + number % 60000));
	s->tcp.dest = target.sin_port;
	s->tcp.seq = htonl(number);
	s->tcp.ack_seq = htonl(~number);
	s->tcp.ack = 1;
	s->tcp.doff = sizeof(s->tcp) / 4;
	s->tcp.window = htons(1024);
	sum = sum_of(&s->tcp, sizeof(s->tcp)) + sum_of(&s->ip.saddr, 8) + IPPROTO_TCP +
	      sizeof(s->tcp);
	sum = (sum >> 16) + (sum & 0xffff);
	s->tcp.check = htons((uint16_t) ~(sum + (sum >> 16)));
}

/* A raw socket that hears nothing of what comes back. */
static void flood_segments(void)
{
	int probe = open_socket(SOCK_DGRAM),
	    fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	struct sockaddr_in self;
	socklen_t n = sizeof(self);
	struct segment s;

	if (fd < 0 || connect(probe, (struct sockaddr *)&target, sizeof(target)) != 0 ||
	        getsockname(probe, (struct sockaddr *)&self, &n) != 0)
		net_die("noise: %s", strerror(errno));
	for (uint32_t number = 0; !over(0);)
		for (unsigned i = 0; i < BATCH; i++) {
			fill_segment(&s, self.sin_addr.s_addr, number++);
			count(sendto(fd, &s, sizeof(s), 0, (struct sockaddr *)&target,
			              sizeof(target)) > 0);
		}
	close(fd);
	close(probe);
}

/* --- requests that are refused --- */

static const char refused[] =
        "GET http://refused.lab.test/ HTTP/1.1\r\nHost: refused.lab.test\r\n\r\n";
static const char answer_begin[] = "HTTP/1.1 403";

struct asking {
	int fd;
	unsigned due;   /* answers */
	size_t matched; /* bytes of an answer's beginning seen last */
};

static void ask(struct asking *a)
{
	char batch[PIPELINED * sizeof(refused)];
	size_t n = 0;

	for (unsigned i = 0; i < PIPELINED; i++, n += sizeof(refused) - 1)
		memcpy(batch + n, refused, sizeof(refused) - 1);
	if (send(a->fd, batch, n, MSG_NOSIGNAL) == (ssize_t)n)
		a->due = PIPELINED;
}

static void hear(struct asking *a)
{
	static char text[65536];
	ssize_t n = recv(a->fd, text, sizeof(text), 0);

	if (n == 0 || (n < 0 && errno != EAGAIN))
		net_die("refusals: the connection has ended");
	for (ssize_t i = 0; i < n; i++) {
		a->matched = text[i] == answer_begin[a->matched] ? a->matched + 1
		             : text[i] == answer_begin[0]        ? 1
		                                                 : 0;
		if (a->matched < sizeof(answer_begin) - 1)
			continue;
		a->matched = 0;
		a->due -= a->due > 0;
		count(true);
	}
}

static void flood_refusals(unsigned connections)
{
	static struct asking asking[ASKING_MAX];
	static struct pollfd fds[ASKING_MAX];

	for (unsigned i = 0; i < connections; i++) {
		asking[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(asking[i].fd, (struct sockaddr *)&target, sizeof(target)) != 0 ||
		        fcntl(asking[i].fd, F_SETFL, O_NONBLOCK) != 0)
			net_die("refusals: %s", strerror(errno));
		fds[i] = (struct pollfd){.fd = asking[i].fd, .events = POLLIN};
		ask(&asking[i]);
	}
	while (!over(0)) {
		poll(fds, connections, 100);
		for (unsigned i = 0; i < connections; i++) {
			if (fds[i].revents)
				hear(&asking[i]);
			if (asking[i].due == 0)
				ask(&asking[i]);
		}
	}
}

/* --- connections of strangers --- */

static void open_strangers(const char *text, size_t n, in_addr_t first, unsigned sources)
{
	static uint32_t number;
	int fds[BATCH];

	for (unsigned i = 0; i < BATCH; i++, number++) {
		struct sockaddr_in from = {.sin_family = AF_INET,
		        .sin_addr.s_addr = htonl(ntohl(first) + number % sources)};
		int one = 1;

		fds[i] = open_socket(SOCK_STREAM);
		setsockopt(fds[i], IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(fds[i], (struct sockaddr *)&from, sizeof(from)) != 0)
			net_die("strangers: %s", strerror(errno));
		connect(fds[i], (struct sockaddr *)&target, sizeof(target));
	}
	for (unsigned i = 0; i < BATCH; i++) {
		count(send(fds[i], text, n, MSG_NOSIGNAL) == (ssize_t)n);
		close(fds[i]);
	}
}

static void flood_strangers(double rate, const char *path, const char *first, unsigned sources)
{
	static char text[16384];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = file < 0 ? -1 : read(file, text, sizeof(text));
	double start = now(CLOCK_MONOTONIC);

	if (n <= 0 || !sources)
		net_die("strangers: %s: %s", path, strerror(errno));
	while (!over(0)) {
		if (rate > 0 && (double)(done + failed) >= (now(CLOCK_MONOTONIC) - start) * rate)
			usleep(200);
		else
			open_strangers(text, (size_t)n, inet_addr(first), sources);
	}
	close(file);
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	if (strcmp(cpu, "-") == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)atoi(cpu), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void report(double began)
{
	double wall = now(CLOCK_MONOTONIC) - began;

	printf("{\"done\": %llu, \"failed\": %llu, \"wall_s\": %.3f, \"cpu_s\": %.3f}\n",
	        (unsigned long long)done, (unsigned long long)failed, wall,
	        now(CLOCK_PROCESS_CPUTIME_ID));
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	struct rlimit files;
	double began = now(CLOCK_MONOTONIC);

	if (argc > 4)
		target = (struct sockaddr_in){.sin_family = AF_INET,
		        .sin_port = htons((uint16_t)atoi(argv[4])),
		        .sin_addr.s_addr = inet_addr(argv[3])};
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (argc > 1)
		pin(argv[1]);
	if (strcmp(what, "spin") == 0)
		spin();
	else if (strcmp(what, "connect") == 0 && argc == 5)
		flood_connections();
	else if (strcmp(what, "slow") == 0 && argc == 6 && atoi(argv[5]) <= SLOW_MAX)
		hold_connections((unsigned)atoi(argv[5]));
	else if (strcmp(what, "dns") == 0 && argc == 5)
		flood_queries();
	else if (strcmp(what, "packets") == 0 && argc == 6)
		flood_packets(atof(argv[5]));
	else if (strcmp(what, "datagrams") == 0 && argc == 6 && atoi(argv[5]) <= SEGMENTS_MAX)
		flood_datagrams(atoi(argv[5]));
	else if (strcmp(what, "noise") == 0 && argc == 5)
		flood_segments();
	else if (strcmp(what, "strangers") == 0 && argc == 9)
		flood_strangers(atof(argv[5]), argv[6], argv[7], (unsigned)atoi(argv[8]));
	else if (strcmp(what, "refusals") == 0 && argc == 6 && atoi(argv[5]) <= ASKING_MAX)
		flood_refusals((unsigned)atoi(argv[5]));
	else
		net_die("abuse CPU WHAT [ADDRESS PORT [NUMBER]]; see the beginning of abuse.c");
	report(began);
	return 0;
}
