/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hostile program in a sandbox does to the machine, one way at a time, until its standard
 * input ends; then one line of JSON: how much it did and what that cost it.
 *
 *   abuse CPU spin                       nothing but computing
 *   abuse CPU connect ADDRESS PORT       opens connections and drops them
 *   abuse CPU slow ADDRESS PORT COUNT    holds COUNT connections, a byte of a request a second each
 *   abuse CPU dns ADDRESS PORT           name queries, each for a new name, answers not read
 *   abuse CPU packets ADDRESS PORT RATE  datagrams of 1,400 bytes, RATE Mbit/s (0: all that goes)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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
#define BATCH 64 /* actions between two looks at the clock and at standard input */
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
	else
		net_die("abuse CPU spin|connect|slow|dns|packets [ADDRESS PORT [NUMBER]]");
	report(began);
	return 0;
}
