/* SPDX-License-Identifier: Apache-2.0 */
/* The control API's server from outside, over real sockets: requests in pieces, bytes that are
 * not requests, too many requests, and clients that go away. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/http_connection.h"
#include "vethguard/loop/unix_listener.h"
#include "vethguard/wire/control_http.h"

#define TURN_MS 20
#define PATIENCE_MS 20000

static struct {
	struct loop *loop;
	struct unix_listener listener;
	struct http_server *server;
	struct http_handler handler;
	struct loop_timer timer;
	struct http_exchange *held; /* a request that waits for its answer */
	const char *refusal;
	bool hold;
	unsigned requests;
	char seen[256];
	char directory[64], path[96];
} f;

static const char *admit(struct http_handler *handler, const struct http_peer *peer)
{
	(void)handler;
	assert_int_equal(peer->pid, getpid());
	assert_int_equal(peer->uid, getuid());
	assert_true(http_peer_in_group(peer, getgid()));
	assert_false(http_peer_in_group(peer, 4294967000u));
	return f.refusal;
}

static void on_request(struct http_handler *handler, struct http_exchange *exchange,
        const struct http_request *request)
{
	(void)handler;
	f.requests++;
	snprintf(f.seen, sizeof(f.seen), "%.*s %.*s %.*s", SLICE_ARG(request->method),
	        SLICE_ARG(request->target), (int)(request->body.n < 64 ? request->body.n : 64),
	        request->body.p);
	if (f.hold)
		f.held = exchange;
	else
		http_respond(exchange, 200, "text/plain", "", slice_from_string(f.seen));
}

static void on_time(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void turn(void)
{
	loop_timer_set(&f.timer, TURN_MS);
	loop_run(f.loop);
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	snprintf(f.directory, sizeof(f.directory), "/tmp/vethguard-http-XXXXXX");
	if (!mkdtemp(f.directory))
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/control.sock", f.directory);
	f.loop = loop_new();
	f.handler = (struct http_handler){admit, on_request};
	if (loop_timer_open(f.loop, &f.timer, on_time) != 0 ||
	        unix_listener_open(&f.listener, f.path, (gid_t)-1) != 0)
		return -1;
	f.server = http_server_new(f.loop, f.listener.fd, &f.handler);
	return f.server ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	http_server_free(f.server);
	unix_listener_close(&f.listener);
	loop_timer_close(&f.timer);
	loop_free(f.loop);
	unlink(f.path);
	return rmdir(f.directory);
}

static int client(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(name.sun_path, f.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

/* Reads from fd until the text has come; NULL: until the end. Returns all that was read. */
static const char *wait_for(int fd, const char *text)
{
	static char got[256 * 1024];
	size_t n = 0;

	for (int waited = 0; waited < PATIENCE_MS; waited += TURN_MS) {
		ssize_t more = recv(fd, got + n, sizeof(got) - n - 1, 0);

		if (more > 0)
			n += (size_t)more;
		got[n] = '\0';
		if (text ? strstr(got, text) != NULL : more == 0)
			return got;
		turn();
	}
	fail_msg("%s did not come: %s", text ? text : "the end", got);
	return NULL;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void test_one_after_another(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "GET /first HTTP/1.1\r\nHost:\r\n\r\nPOST /second "
	        "HTTP/1.1\r\nHost:\r\nContent-Length: "
	        "3\r\n\r\nabcGET /third HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n");
	assert_non_null(strstr(wait_for(fd, NULL), "GET /first "));
	assert_string_equal(f.seen, "GET /third ");
	assert_int_equal(f.requests, 3);
	close(fd);
}

static void test_byte_by_byte(void **state)
{
	static const char text[] = "POST /x HTTP/1.1\r\nHost:\r\nContent-Length: 4\r\n\r\nbody";
	int fd = client();

	(void)state;
	for (size_t i = 0; text[i]; i++) {
		assert_int_equal(send(fd, text + i, 1, 0), 1);
		turn();
		assert_int_equal(f.requests, i + 2 == sizeof(text));
	}
	wait_for(fd, "POST /x body");
	close(fd);
}

static void test_continue(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "POST /x HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
	wait_for(fd, "HTTP/1.1 100 Continue\r\n\r\n");
	say(fd, "ok");
	wait_for(fd, "POST /x ok");
	close(fd);
}

static void refused(const char *text, const char *status)
{
	int fd = client();
	const char *got;

	say(fd, text);
	got = wait_for(fd, NULL);
	if (!strstr(got, status) || !strstr(got, "application/problem+json") ||
	        !strstr(got, "Connection: close"))
		fail_msg("%.40s: %s", text, got);
	close(fd);
}

static void test_refused(void **state)
{
	char length[128];

	(void)state;
	refused("nonsense\r\n\r\n", "HTTP/1.1 400 ");
	refused("\x16\x03\x01\x02\r\n\r\n", "HTTP/1.1 400 ");
	refused("GET / HTTP/2.0\r\n\r\n", "HTTP/1.1 505 ");
	refused("POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	        "HTTP/1.1 411 ");
	snprintf(length, sizeof(length), "POST / HTTP/1.1\r\nHost:\r\nContent-Length: %d\r\n\r\n",
	        CONTROL_BODY_MAX + 1);
	refused(length, "HTTP/1.1 413 ");
	assert_int_equal(f.requests, 0);
}

static void test_largest_body(void **state)
{
	static char body[CONTROL_BODY_MAX + 1];
	int fd = client();
	char head[128];
	size_t sent = 0;

	(void)state;
	memset(body, 'b', sizeof(body));
	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost:\r\nContent-Length: %d\r\n\r\n",
	        CONTROL_BODY_MAX);
	say(fd, head);
	while (sent < CONTROL_BODY_MAX) {
		ssize_t n = send(fd, body, CONTROL_BODY_MAX - sent, 0);

		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	wait_for(fd, "POST / bbbb");
	close(fd);
}

static void test_endless_head(void **state)
{
	static char head[CONTROL_HEAD_MAX + 1];

	(void)state;
	memset(head, 'a', sizeof(head) - 1);
	refused(head, "HTTP/1.1 431 ");
}

static void test_head_has_no_body(void **state)
{
	int fd = client();
	const char *got;

	(void)state;
	say(fd, "HEAD /x HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n");
	got = wait_for(fd, NULL);
	assert_non_null(strstr(got, "Content-Length: 8"));
	assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\n");
	close(fd);
}

static void test_not_admitted(void **state)
{
	(void)state;
	f.refusal = "not you";
	int fd = client();
	assert_non_null(strstr(wait_for(fd, NULL), "HTTP/1.1 403 "));
	say(fd, "GET / HTTP/1.1\r\nHost:\r\n\r\n");
	turn();
	assert_int_equal(f.requests, 0);
	close(fd);
}

static void test_gone_before_the_answer(void **state)
{
	int fd = client();

	(void)state;
	f.hold = true;
	say(fd, "GET /slow HTTP/1.1\r\nHost:\r\n\r\n");
	while (!f.held)
		turn();
	close(fd);
	turn();
	assert_int_equal(f.server->count, 1);
	http_respond_problem(f.held, 500, "too late");
	while (f.server->count > 0)
		turn();
}

static void test_gone_in_the_middle(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "POST / HTTP/1.1\r\nHost:\r\nContent-Length: 10\r\n\r\nhalf");
	turn();
	assert_int_equal(f.server->count, 1);
	close(fd);
	while (f.server->count > 0)
		turn();
	assert_int_equal(f.requests, 0);
}

static void test_freed_with_one_waiting(void **state)
{
	int fd = client();

	(void)state;
	f.hold = true;
	say(fd, "GET /slow HTTP/1.1\r\nHost:\r\n\r\n");
	while (!f.held)
		turn();
	http_server_free(f.server);
	f.server = NULL;
	assert_string_equal(wait_for(fd, NULL), "");
	close(fd);
}

static struct {
	struct loop_task task;
	int fd, before;
	bool in_parts;
} turns;

/* How many bytes the server has not read yet (SIOCOUTQ counts them). */
static int unread(void)
{
	int bytes = 0;

	assert_int_equal(ioctl(turns.fd, SIOCOUTQ, &bytes), 0);
	return bytes;
}

static void on_turn(struct loop_task *task)
{
	int now = unread();

	turns.in_parts = turns.in_parts || (now > 0 && now < turns.before);
	if (now > 0)
		loop_task_queue(f.loop, task);
}

/* A client that writes without end does not keep other clients from being served. */
static void test_flood(void **state)
{
	static char junk[32768];
	int fd = client();
	ssize_t n;

	(void)state;
	say(fd, "nothing\r\n\r\n");
	wait_for(fd, "400 Bad Request");
	while ((n = send(fd, junk, sizeof(junk), MSG_NOSIGNAL)) > 0)
		;
	turns.fd = fd;
	turns.before = unread();
	turns.task.run = on_turn;
	assert_true(turns.before > 2 * HTTP_SERVER_READS_MAX * 4096);
	loop_task_queue(f.loop, &turns.task);
	while (unread() > 0)
		turn();
	assert_true(turns.in_parts);
	close(fd);
}

/* With all connections in use the next client gets an error; when one ends, the next is served. */
static void test_many(void **state)
{
	size_t most = getuid() == 0 ? HTTP_SERVER_CONNECTIONS_MAX : HTTP_SERVER_CONNECTIONS_MAX / 2;
	int fds[HTTP_SERVER_CONNECTIONS_MAX], one;

	(void)state;
	for (size_t i = 0; i < most; i++)
		fds[i] = client();
	while (f.server->count < most)
		turn();
	one = client();
	assert_non_null(strstr(wait_for(one, NULL), "too many connections\"}"));
	close(one);
	close(fds[0]);
	while (f.server->count == most)
		turn();
	fds[0] = client();
	say(fds[0], "GET /again HTTP/1.1\r\nHost:\r\n\r\n");
	wait_for(fds[0], "GET /again");
	for (size_t i = 0; i < most; i++)
		close(fds[i]);
}

/* Callers that are refused use up no connection of callers that are admitted, and are bounded. */
static void test_many_that_are_not_admitted(void **state)
{
	int fds[HTTP_SERVER_STRANGERS_MAX], one;

	(void)state;
	f.refusal = "not you";
	for (size_t i = 0; i < HTTP_SERVER_STRANGERS_MAX; i++) {
		fds[i] = client();
		assert_non_null(strstr(wait_for(fds[i], NULL), "HTTP/1.1 403 "));
	}
	for (size_t i = 0; i < HTTP_SERVER_STRANGERS_MAX; i++) {
		one = client();
		assert_non_null(
		        strstr(wait_for(one, NULL), "\"status\":403,\"detail\":\"not you\"}"));
		assert_int_equal(send(one, "x", 1, MSG_NOSIGNAL), -1); /* nobody reads it */
		close(one);
	}
	assert_int_equal(f.server->count, 0);
	f.refusal = NULL;
	one = client();
	say(one, "GET /admitted HTTP/1.1\r\nHost:\r\n\r\n");
	wait_for(one, "GET /admitted");
	assert_int_equal(f.server->count, 1);
	close(one);
	for (size_t i = 0; i < HTTP_SERVER_STRANGERS_MAX; i++)
		close(fds[i]);
	f.refusal = "not you";
	turn();
	one = client();
	wait_for(one, "HTTP/1.1 403 ");
	assert_int_equal(send(one, "x", 1, MSG_NOSIGNAL), 1); /* there is a place again */
	close(one);
}

/* The socket. */

static void test_socket_file(void **state)
{
	struct unix_listener other;
	struct stat st;
	char text[UNIX_LISTENER_PATH_MAX + 2];

	(void)state;
	assert_int_equal(stat(f.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(unix_listener_open(&other, f.path, (gid_t)-1), -EADDRINUSE);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(unix_listener_open(&other, text, (gid_t)-1), -ENAMETOOLONG);
	assert_int_equal(unix_listener_open(&other, "", (gid_t)-1), -EINVAL);
	unix_listener_close(&other);
}

static void test_stale_socket(void **state)
{
	struct unix_listener other;

	(void)state;
	close(f.listener.fd); /* as if it had been killed: the file stays */
	f.listener.fd = -1;
	http_server_free(f.server);
	f.server = NULL;
	assert_int_equal(unix_listener_open(&other, f.path, (gid_t)-1), 0);
	unix_listener_close(&f.listener); /* another one's file is left alone */
	assert_int_equal(access(f.path, F_OK), 0);
	unix_listener_close(&other);
	assert_int_equal(access(f.path, F_OK), -1);
}

static void test_no_socket_in_the_way(void **state)
{
	struct unix_listener other;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/file", f.directory);
	fclose(fopen(path, "w"));
	assert_int_equal(unix_listener_open(&other, path, (gid_t)-1), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        CASE(test_one_after_another),
	        CASE(test_byte_by_byte),
	        CASE(test_continue),
	        CASE(test_refused),
	        CASE(test_largest_body),
	        CASE(test_endless_head),
	        CASE(test_head_has_no_body),
	        CASE(test_not_admitted),
	        CASE(test_gone_before_the_answer),
	        CASE(test_gone_in_the_middle),
	        CASE(test_freed_with_one_waiting),
	        CASE(test_flood),
	        CASE(test_many),
	        CASE(test_many_that_are_not_admitted),
	        CASE(test_socket_file),
	        CASE(test_stale_socket),
	        CASE(test_no_socket_in_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
