/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when the misdeed is done: linked with --wrap=ipc_send and --wrap=ipc_send_secret, so that
 * every message of the role passes here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "vethguard/ipc/peer.h"

#define NAMES_MAX 1024

int __real_ipc_send_blocking(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
int __wrap_ipc_send_blocking(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
int __real_ipc_send(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds,
        size_t fd_count);
int __wrap_ipc_send(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds,
        size_t fd_count);

int __real_ipc_send_secret(
        struct ipc_peer *peer, uint8_t *message, size_t size, const int *fds, size_t fd_count);
int __wrap_ipc_send_secret(
        struct ipc_peer *peer, uint8_t *message, size_t size, const int *fds, size_t fd_count);

static char names[NAMES_MAX]; /* one a line */
static int keeper_fd = -1;
static uint64_t last_id;

int hostile_keeper_fd(void)
{
	return keeper_fd;
}

uint64_t hostile_last_id(void)
{
	return last_id;
}

__attribute__((constructor)) static void read_names(void)
{
	char path[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	int fd;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return;
	strcpy(slash + 1, "misdeed");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, names, sizeof(names) - 1) < 0)
		names[0] = '\0';
	close(fd);
}

void hostile_do(const struct misdeed *misdeed)
{
	long result;

	errno = 0;
	result = misdeed->what();
	dprintf(STDERR_FILENO, "misdeed %s: %s\n", misdeed->name,
	        result < 0 ? strerrorname_np(errno) : "done");
}

static const struct misdeed *find(const struct misdeed *all, const char *name, size_t n)
{
	for (; all->name; all++)
		if (strlen(all->name) == n && memcmp(all->name, name, n) == 0)
			return all;
	return NULL;
}

static void misbehave(void)
{
	for (const char *name = names; *name && strncmp(name, "lie", 3) != 0;) {
		size_t n = strcspn(name, "\n");
		const struct misdeed *misdeed = find(misdeed_calls, name, n);

		if (!misdeed)
			misdeed = find(misdeed_words, name, n);
		if (misdeed)
			hostile_do(misdeed);
		else
			dprintf(STDERR_FILENO, "misdeed %.*s: unknown\n", (int)n, name);
		name += n + (name[n] != '\0');
	}
}

/* A fetch sends nothing else by ipc_send_blocking(). */
static bool is_of_a_fetch(enum message_type type)
{
	return type == MESSAGE_FETCHED;
}

/* The keeper has given what a worker needs, a worker serves, the recorder has an event in the log,
 * the gateway accepts. */
static void sent(enum message_type type, uint64_t id)
{
	static bool done;

	if (done || (type != MESSAGE_WORKER_READY && type != MESSAGE_CA &&
	                    type != MESSAGE_RECORDER_TAKEN && type != MESSAGE_GATEWAY_READY &&
	                    !is_of_a_fetch(type)))
		return;
	done = true;
	last_id = id;
	misbehave();
}

/* A worker's first message to its keeper, and the only message of a fetch, which then ends. */
int __wrap_ipc_send_blocking(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	struct message_head head = {0};
	struct reader body;

	if (message_open(message, size, &head, &body) == 0 && head.type == MESSAGE_CA_GET)
		keeper_fd = fd;
	if (is_of_a_fetch(head.type))
		sent(head.type, head.id);
	return __real_ipc_send_blocking(fd, message, size, fds, fd_count);
}

int __wrap_ipc_send(
        struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	int error = __real_ipc_send(peer, message, size, fds, fd_count);
	struct message_head head;
	struct reader body;

	if (message_open(message, size, &head, &body) == 0)
		sent(head.type, head.id);
	return error;
}

/* It wipes the message. */
int __wrap_ipc_send_secret(
        struct ipc_peer *peer, uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	struct message_head head;
	struct reader body;
	int opened = message_open(message, size, &head, &body);
	int error = __real_ipc_send_secret(peer, message, size, fds, fd_count);

	if (opened == 0)
		sent(head.type, head.id);
	return error;
}

/* Asked how it is confined, it claims what is not true. */
void __real_jail_describe(char *out, size_t out_size);
void __wrap_jail_describe(char *out, size_t out_size);

void __wrap_jail_describe(char *out, size_t out_size)
{
	char *uid;

	__real_jail_describe(out, out_size);
	uid = strstr(out, "uid: ");
	if (uid && strcmp(names, "lie") == 0)
		uid[5] = uid[5] == '9' ? '8' : (char)(uid[5] + 1);
	if (strcmp(names, "lie in colour") == 0)
		snprintf(out + strlen(out), out_size - strlen(out),
		        "\x1b[31mso\": \x1b]0;owned\x07\"\n");
	if (strcmp(names, "lie by silence") == 0)
		snprintf(out, out_size, "all: well\n");
}
