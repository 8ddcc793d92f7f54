/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_world: a host of our own (the namespace of the test program), sandboxes, and gates between,
 * for test_gate.c and gate/test_divert.c.
 */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_GATE_GATE_WORLD_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_GATE_GATE_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/gate/gate.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"

#define PORT 8080
#define WAIT_MS 60000

static struct loop *loop;
static struct gate_host *host;
static char directory[] = "/tmp/vethguard-gate-XXXXXX";

static struct ip ip_of(const char *text)
{
	struct ip ip = {0};

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

static struct ip_prefix prefix_of(const char *text)
{
	struct ip_prefix p = {0};

	assert_true(ip_prefix_parse(slice_from_string(text), &p));
	return p;
}

static void assign(struct gate *gate)
{
	struct ip_prefix pool4 = prefix_of("100.64.0.0/16"), pool6 = prefix_of("fd00:7667::/64");

	gate_init(gate);
	gate_assign(gate, &pool4, &pool6);
	gate->tcp_port = PORT;
}

/* A command line in a namespace, or here (-1). */
static int in_shell(void *line)
{
	return system(line);
}

__attribute__((format(printf, 2, 3))) static int shell(int netns, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	return netns < 0 ? in_shell(line) : netns_run(netns, in_shell, line);
}

/* The host is a namespace of our own, with mounts of our own. False: not even a user namespace is
 * permitted. */
static bool enter_host(void)
{
	char map[64];
	uid_t uid = geteuid();
	int flags = CLONE_NEWNET | CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0), fd;

	if (unshare(flags) < 0)
		return false;
	if (uid) {
		snprintf(map, sizeof(map), "0 %u 1", uid);
		fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, map, strlen(map)) < 0)
			return false;
		close(fd);
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdtemp(directory);
}

static int open_host(void **state)
{
	(void)state;
	loop = loop_new();
	assert_non_null(loop);
	assert_int_equal(gate_host_open(&host, loop), 0);
	return 0;
}

static int close_host(void **state)
{
	(void)state;
	gate_host_close(host);
	loop_free(loop);
	return 0;
}

static const char *pin_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

/* In a namespace: a TCP connection to address and port; 0, or the errno that came of it. */
struct dial {
	const char *address;
	uint16_t port;
	int wait_ms;
};

static int in_dial(void *context)
{
	const struct dial *d = context;
	struct sockaddr_storage ss;
	struct ip ip = ip_of(d->address);
	socklen_t n = ip_to_sockaddr(&ip, d->port, &ss), size = sizeof(int);
	int fd = socket(ip.family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0;

	if (connect(fd, (struct sockaddr *)&ss, n) < 0 && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, d->wait_ms) != 1)
		error = ETIMEDOUT;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	close(fd);
	return error;
}

static inline int dial(int netns, const char *address, uint16_t port)
{
	struct dial d = {address, port, WAIT_MS};

	return netns_run(netns, in_dial, &d);
}

/* Runs the loop until *done or the time is over. */
static struct loop_timer patience;

static void on_patience(struct loop_timer *timer)
{
	(void)timer;
	loop_stop(loop);
}

static inline void run_loop(int64_t ms)
{
	assert_int_equal(loop_timer_open(loop, &patience, on_patience), 0);
	loop_timer_set(&patience, ms);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_close(&patience);
}

#endif
