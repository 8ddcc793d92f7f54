/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP/1 that are malformed or mean two things, read by the control API's own reader and
 * by libmicrohttpd, each as strict as it can be; then a request that comes one byte a second, with
 * libmicrohttpd's timeout. For docs/decisions.md. `make bench-control-http` builds and runs it.
 * 100: the own reader waits for the end of the head, until the server's time is over.
 */
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vethguard/wire/control_http.h"

#define ANSWER_MS 2000 /* for an answer that will come: it comes at once */
#define TIMEOUT_S 10
#define SLOW_S 20
#define HOST "Host: a\r\n"

static const struct {
	const char *what, *text;
} heads[] = {
        {"well-formed", "GET / HTTP/1.1\r\n" HOST "\r\n"},
        {"no host", "GET / HTTP/1.1\r\n\r\n"},
        {"two hosts", "GET / HTTP/1.1\r\n" HOST "Host: b\r\n\r\n"},
        {"lines that end in LF", "GET / HTTP/1.1\nHost: a\n\n"},
        {"two lengths",
                "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 3\r\n\r\nabc"},
        {"a length beside chunks",
                "POST / HTTP/1.1\r\n" HOST
                "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
        {"folding", "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},
        {"a control character", "GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n"},
        {"G@T", "G@T / HTTP/1.1\r\n" HOST "\r\n"},
        {"a space before the colon", "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"},
        {"a length with a sign", "POST / HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\nabc"},
        {"a line without a colon", "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"},
        {"HTTP/1.9", "GET / HTTP/1.9\r\n" HOST "\r\n"},
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
        const char *method, const char *version, const char *body, size_t *body_n, void **state)
{
	static int seen;
	struct MHD_Response *response;
	enum MHD_Result rc;

	(void)context, (void)url, (void)method, (void)version, (void)body;
	if (!*state || *body_n) {
		*state = &seen;
		*body_n = 0;
		return MHD_YES;
	}
	response = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	rc = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return rc;
}

static int connect_to(struct MHD_Daemon *daemon)
{
	const struct sockaddr address = {.sa_family = AF_UNIX};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	        MHD_add_connection(daemon, pair[1], &address, sizeof(address)) != MHD_YES)
		abort();
	return pair[0];
}

/* Returns the status, or 0: the connection was closed, or nothing came. */
static unsigned status_by_library(struct MHD_Daemon *daemon, const char *text)
{
	struct pollfd p = {.fd = connect_to(daemon), .events = POLLIN};
	char got[64] = "";
	unsigned status = 0;

	if (write(p.fd, text, strlen(text)) < 0 ||
	        (poll(&p, 1, ANSWER_MS) == 1 && read(p.fd, got, sizeof(got) - 1) > 0 &&
	                sscanf(got, "HTTP/1.1 %u", &status) != 1))
		status = 0;
	close(p.fd);
	return status;
}

/* Returns after how many seconds a request of one byte a second is closed; 0: it is not. */
static unsigned slow_by_library(struct MHD_Daemon *daemon)
{
	struct pollfd p = {.fd = connect_to(daemon), .events = POLLIN};
	unsigned closed = 0;

	(void)!write(p.fd, "GET / HTTP/1.1\r\nX: ", 19);
	for (unsigned s = 1; s <= SLOW_S && !closed; s++) {
		if (poll(&p, 1, 1000) == 1 || send(p.fd, "x", 1, MSG_NOSIGNAL) != 1)
			closed = s;
	}
	close(p.fd);
	return closed;
}

int main(void)
{
	struct MHD_Daemon *daemon = MHD_start_daemon(
	        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET, 0, NULL,
	        NULL, answer, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_TIMEOUT,
	        (unsigned)TIMEOUT_S, MHD_OPTION_END);
	unsigned accepted = 0, slow;

	if (!daemon)
		abort();
	printf("%-26s %4s  libmicrohttpd %s\n", "head", "own", MHD_get_version());
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct control_head head;
		int own = control_head_request(slice_from_string(heads[i].text), &head);
		unsigned theirs = status_by_library(daemon, heads[i].text);

		accepted += own != CONTROL_HEAD_WHOLE && theirs == MHD_HTTP_OK;
		printf("%-26s %4d  %u\n", heads[i].what, own, theirs);
	}
	slow = slow_by_library(daemon);
	printf("%u heads are accepted by libmicrohttpd and not by the own reader\n", accepted);
	if (slow)
		printf("one byte a second, timeout %d s: closed after %u s\n", TIMEOUT_S, slow);
	else
		printf("one byte a second, timeout %d s: open after %d s\n", TIMEOUT_S, SLOW_S);
	MHD_stop_daemon(daemon);
	return 0;
}
