/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is gathered from pieces where they are, and sent with one sendmsg(2). The socket is not
 * connected: a restarted journal has a new one under the same path. No text has a newline in it
 * (the log ensures that; a subject is cleaned here), so the plain form "NAME=value" suffices for
 * every field. The log's own limit on a message is far below that of a datagram, so no entry needs
 * a file of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/journald.h"

#define FIELD_MAX 320 /* any field but the message, with its name; an escaped sandbox name fits */
#define PIECES 8

static struct {
	int fd; /* -1: closed */
	struct sockaddr_un to;
	unsigned long lost; /* since the last entry that got through */
} journal = {.fd = -1};

/* syslog(3)'s priorities. */
static const char priorities[] = {
        [LOG_LEVEL_ERROR] = '3',
        [LOG_LEVEL_WARN] = '4',
        [LOG_LEVEL_INFO] = '6',
        [LOG_LEVEL_DEBUG] = '7',
};
_Static_assert(sizeof(priorities) == LOG_LEVEL_DEBUG + 1, "a priority per level");

/* Writes "NAME=value\n" to out and returns a piece that points to it; an empty piece if value is
 * NULL. */
static struct iovec field(char out[FIELD_MAX], const char *name, const char *value)
{
	int n = value ? snprintf(out, FIELD_MAX - 1, "%s=%s", name, value) : 0;

	if (n <= 0)
		return (struct iovec){out, 0};
	if (n > FIELD_MAX - 2)
		n = FIELD_MAX - 2;
	for (int i = 0; i < n; i++)
		if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
			out[i] = '?';
	out[n++] = '\n';
	return (struct iovec){out, (size_t)n};
}

static struct iovec piece(const char *text, size_t n)
{
	union {
		const char *in;
		char *out;
	} p = {text}; /* sendmsg(2) only reads */

	return (struct iovec){p.out, n};
}

static bool send_entry(const struct log_record *r)
{
	char fixed[FIELD_MAX], identifier[FIELD_MAX], sandbox[FIELD_MAX], role[FIELD_MAX];
	char priority[2] = {priorities[r->level], 0};
	struct iovec pieces[PIECES] = {
	        field(fixed, "PRIORITY", priority),
	        field(identifier, "SYSLOG_IDENTIFIER", r->program),
	        field(sandbox, "SANDBOX", r->subject.sandbox),
	        field(role, "ROLE", r->subject.role),
	        piece("MESSAGE=", 8),
	        piece(r->text, r->n),
	        piece("\n", 1),
	};
	struct msghdr m = {.msg_name = &journal.to,
	        .msg_namelen = sizeof(journal.to),
	        .msg_iov = pieces,
	        .msg_iovlen = PIECES - 1};

	return sendmsg(journal.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Writes to the journal's stream, with the priority as in sd-daemon(3). */
static bool send_stream(const struct log_record *r)
{
	char begin[FIELD_MAX];
	int n = snprintf(begin, sizeof(begin), "<%c>%s%s", priorities[r->level],
	        r->subject.sandbox ? r->subject.sandbox : "", r->subject.sandbox ? ": " : "");
	struct iovec pieces[] = {
	        piece(begin, n < (int)sizeof(begin) ? (size_t)n : sizeof(begin) - 1),
	        piece(r->text, r->n),
	        piece("\n", 1),
	};
	struct msghdr m = {.msg_iov = pieces, .msg_iovlen = 3};

	return sendmsg(STDERR_FILENO, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void tell_lost(void)
{
	char text[96];
	int n = snprintf(text, sizeof(text), "%lu messages are missing here: the journal took none",
	        journal.lost);
	struct log_record r = {
	        LOG_LEVEL_WARN, "vethguardd", {.role = "vethguardd"}, text, (size_t)n};

	if (send_entry(&r))
		journal.lost = 0;
}

static void on_record(const struct log_record *r)
{
	if (send_entry(r)) {
		if (journal.lost > 0)
			tell_lost();
	} else if (!send_stream(r)) {
		journal.lost++;
	}
}

static bool stderr_is_the_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == device &&
	       st.st_ino == inode;
}

bool journald_open(const char *socket_path)
{
	if (!stderr_is_the_journal() || strlen(socket_path) >= sizeof(journal.to.sun_path))
		return false;
	journald_close();
	journal.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (journal.fd < 0)
		return false;
	journal.to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(journal.to.sun_path, socket_path, strlen(socket_path));
	log_to(on_record);
	return true;
}

void journald_close(void)
{
	if (journal.fd < 0)
		return;
	log_to(NULL);
	close(journal.fd);
	journal.fd = -1;
	journal.lost = 0;
}
