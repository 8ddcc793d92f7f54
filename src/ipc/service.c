/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol is a promise of systemd (sd_notify(3), "Notes"), so a hundred lines replace its
 * library. The socket stays unconnected: the manager may be executed again, with a new socket of
 * the same name. The socket's send timeout bounds the cost of a full queue.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "vethguard/ipc/service.h"

#define MESSAGE_MAX (SERVICE_STATUS_MAX + 128)
#define US_PER_MS 1000

static struct {
	int fd; /* -1: no manager */
	struct sockaddr_un to;
	socklen_t to_size;
	int64_t watchdog_ms;
} service = {.fd = -1};

static int read_address(const char *name)
{
	size_t n = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || n < 2 || n >= sizeof(service.to.sun_path))
		return -EINVAL;
	service.to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(service.to.sun_path, name, n);
	service.to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (name[0] == '@')
		service.to.sun_path[0] = 0; /* an abstract name has no zero byte at its end */
	else
		service.to_size++;
	return 0;
}

/* Returns a whole positive number, else 0. */
static unsigned long long number(const char *text)
{
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	return errno == 0 && *end == 0 ? value : 0;
}

static void read_watchdog(void)
{
	unsigned long long us = number(getenv("WATCHDOG_USEC"));
	const char *pid = getenv("WATCHDOG_PID");

	service.watchdog_ms = 0;
	if (us == 0 || us / US_PER_MS > INT_MAX ||
	        (pid && number(pid) != (unsigned long long)getpid()))
		return;
	service.watchdog_ms = (int64_t)(us / US_PER_MS / 2);
	if (service.watchdog_ms == 0)
		service.watchdog_ms = 1;
}

static int open_socket(void)
{
	const struct timeval patience = {0, SERVICE_PATIENCE_MS * US_PER_MS};

	service.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (service.fd < 0 ||
	        setsockopt(service.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0) {
		int rc = -errno;

		service_close();
		return rc;
	}
	return 0;
}

int service_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	int rc = name ? read_address(name) : -ENOTCONN;

	service_close();
	if (!rc)
		rc = open_socket();
	if (!rc)
		read_watchdog();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return rc;
}

void service_describe(char out[SERVICE_DESCRIPTION_MAX])
{
	const char *name = service.to.sun_path;

	out[0] = 0;
	if (service.fd >= 0)
		snprintf(out, SERVICE_DESCRIPTION_MAX, "%" PRId64 " %s%s", service.watchdog_ms,
		        name[0] ? "" : "@", name[0] ? name : name + 1);
}

int service_adopt(const char *line)
{
	char *name;
	long long watchdog_ms = strtoll(line, &name, 10);
	int rc;

	service_close();
	if (!line[0])
		return -ENOTCONN;
	if (watchdog_ms < 0 || watchdog_ms > INT_MAX || *name != ' ')
		return -EINVAL;
	rc = read_address(name + 1);
	if (!rc)
		rc = open_socket();
	if (!rc)
		service.watchdog_ms = watchdog_ms;
	return rc;
}

void service_close(void)
{
	if (service.fd >= 0)
		close(service.fd);
	service.fd = -1;
	service.watchdog_ms = 0;
}

static int tell(const char *message)
{
	ssize_t n;

	if (service.fd < 0)
		return -ENOTCONN;
	do
		n = sendto(service.fd, message, strlen(message), MSG_NOSIGNAL,
		        (const struct sockaddr *)&service.to, service.to_size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int service_ready(const char *format, ...)
{
	char message[MESSAGE_MAX], status[SERVICE_STATUS_MAX];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(status, sizeof(status), format, args);
	va_end(args);
	if (n < 0)
		return -EINVAL;
	for (char *p = status; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	snprintf(message, sizeof(message), "READY=1\nSTATUS=%s\n", status);
	return tell(message);
}

int service_reloading(void)
{
	char message[MESSAGE_MAX];
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return -errno;
	snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%lld\n",
	        (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	return tell(message);
}

int service_stopping(void)
{
	return tell("STOPPING=1\n");
}

int service_main_pid(pid_t pid)
{
	char message[MESSAGE_MAX];

	snprintf(message, sizeof(message), "MAINPID=%ld\n", (long)pid);
	return tell(message);
}

int64_t service_watchdog_ms(void)
{
	return service.watchdog_ms;
}

int service_watchdog(void)
{
	return tell("WATCHDOG=1\n");
}
