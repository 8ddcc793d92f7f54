/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one timer is the time limit of the step that runs, and the pause when there
 * is no connection. What arrives goes through TLS, if there is any, into the reader; a whole answer
 * moves the state on. Every way out leads through away().
 */
#include "quota/server.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "quota/server_fault.h"
#include "vethguard/base/log.h"

#define CHUNK 4096

static const char *const state_names[] = {
        [SERVER_PAUSED] = "PAUSED",
        [SERVER_RESOLVING] = "RESOLVING",
        [SERVER_CONNECTING] = "CONNECTING",
        [SERVER_HANDSHAKE] = "HANDSHAKE",
        [SERVER_PASSWORD] = "PASSWORD",
        [SERVER_DATABASE] = "DATABASE",
        [SERVER_READY] = "READY",
        [SERVER_ASKED] = "ASKED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SERVER_STATE_COUNT, "a name per state");

static void enter(struct server *s, enum server_state state)
{
	if (state != SERVER_READY && state != SERVER_ASKED)
		log_debug("server: %s -> %s", state_names[s->state], state_names[state]);
	s->state = state;
}

/* --- the end of a connection --- */

static void hang_up(struct server *s)
{
	resolver_wait_cancel(&s->wait);
	loop_io_close(&s->io);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	tls_free(s->tls);
	s->tls = NULL;
	buf_fini(&s->out);
	reply_close(&s->reader);
}

static void away(struct server *s, const char *why)
{
	hang_up(s);
	enter(s, SERVER_PAUSED);
	loop_timer_set(&s->timer, s->pause_ms);
	s->pause_ms =
	        s->pause_ms * 2 < SERVER_PAUSE_MOST_MS ? s->pause_ms * 2 : SERVER_PAUSE_MOST_MS;
	if (s->told_away && strcmp(s->told, why) == 0)
		return;
	s->told_away = true;
	snprintf(s->told, sizeof(s->told), "%s", why);
	s->on_away(s, why);
}

void server_refuse(struct server *s, const char *why)
{
	away(s, why);
}

/* --- sending --- */

static void flush(struct server *s)
{
	while (s->out.len) {
		ssize_t n = send(s->fd, buf_bytes(&s->out), s->out.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return; /* goes on when the socket has room */
		if (n < 0) {
			away(s, "it has closed the connection");
			return;
		}
		buf_consume(&s->out, (size_t)n);
	}
}

static void send_command(struct server *s, enum server_state next, const char *command, size_t n)
{
	int rc;

	if (s->tls)
		rc = tls_write(s->tls, (const uint8_t *)command, n) == TLS_OK ? 0 : -ENOBUFS;
	else
		rc = buf_append(&s->out, command, n);
	if (!n || rc) {
		away(s, "there is no memory for the question");
		return;
	}
	enter(s, next);
	flush(s);
}

/* Formats and sends a command that may hold the password. */
static void send_arguments(
        struct server *s, enum server_state next, size_t count, const struct slice *arguments)
{
	const char *texts[3];
	size_t lengths[3];
	char *command = NULL;
	int n;

	for (size_t i = 0; i < count; i++) {
		texts[i] = (const char *)arguments[i].p;
		lengths[i] = arguments[i].n;
	}
	n = redisFormatCommandArgv(&command, (int)count, texts, lengths);
	send_command(s, next, command, n > 0 ? (size_t)n : 0);
	if (n <= 0)
		return;
	secret_wipe(command, (size_t)n);
	redisFreeCommand(command);
}

/* --- login --- */

static void be_ready(struct server *s)
{
	enter(s, SERVER_READY);
	loop_timer_cancel(&s->timer);
	s->ready_ms = loop_now_ms(s->loop);
	s->told_away = false;
	s->on_ready(s, true);
}

static void select_database(struct server *s)
{
	char number[16];
	int n = snprintf(number, sizeof(number), "%u", s->start->database);
	const struct slice arguments[] = {SLICE("SELECT"), slice_of(number, (size_t)n)};

	if (s->start->database)
		send_arguments(s, SERVER_DATABASE, 2, arguments);
	else
		be_ready(s);
}

static void log_in(struct server *s)
{
	const struct slice arguments[] = {SLICE("AUTH"), s->start->user, s->password};
	const struct slice without_user[] = {SLICE("AUTH"), s->password};

	if (!s->password.n)
		select_database(s);
	else if (s->start->user.n)
		send_arguments(s, SERVER_PASSWORD, 3, arguments);
	else
		send_arguments(s, SERVER_PASSWORD, 2, without_user);
}

/* --- what arrives --- */

static bool is_ok(const struct reply *reply)
{
	return reply->kind == REPLY_STATUS && strcmp(reply->text, "OK") == 0;
}

static void take_answer(struct server *s)
{
	const struct reply *reply = &s->reader.reply;
	char why[SERVER_WHY_MAX];

	if (reply->kind == REPLY_ERROR) {
		away(s, server_fault_text(reply->text, why));
	} else if (s->state == SERVER_ASKED) {
		enter(s, SERVER_READY);
		loop_timer_cancel(&s->timer);
		if (loop_now_ms(s->loop) - s->ready_ms > SERVER_LASTS_MS)
			s->pause_ms = SERVER_PAUSE_FIRST_MS;
		s->on_answer(s, reply);
		if (s->state == SERVER_READY)
			s->on_ready(s, false);
	} else if (!is_ok(reply)) {
		away(s, "its answer to the login is none of a Valkey or Redis server");
	} else if (s->state == SERVER_PASSWORD) {
		select_database(s);
	} else {
		be_ready(s);
	}
}

static void take_bytes(struct server *s, const uint8_t *p, size_t n)
{
	if (s->state < SERVER_PASSWORD || s->state == SERVER_READY) {
		away(s, "it speaks without having been asked");
		return;
	}
	switch (reply_feed(&s->reader, p, n)) {
	case REPLY_MORE:
		return;
	case REPLY_WHOLE:
		take_answer(s);
		return;
	default:
		away(s, "its answer is none of a Valkey or Redis server, or too long");
	}
}

/* Returns false if the connection has ended. */
static bool take_records(struct server *s)
{
	uint8_t plain[CHUNK];
	size_t n;

	while (s->tls) {
		enum tls_status status = s->state == SERVER_HANDSHAKE
		                                 ? tls_handshake(s->tls)
		                                 : tls_read(s->tls, plain, sizeof(plain), &n);

		if (status == TLS_WANT_READ) {
			flush(s);
			return s->fd >= 0;
		}
		if (status != TLS_OK) {
			char why[SERVER_WHY_MAX];

			snprintf(why, sizeof(why), "TLS: %s",
			        status == TLS_CLOSED ? "it has closed the connection"
			                             : tls_error_text(s->tls));
			flush(s);
			if (s->fd >= 0)
				away(s, why);
			return false;
		}
		if (s->state == SERVER_HANDSHAKE)
			log_in(s);
		else
			take_bytes(s, plain, n);
	}
	return s->fd >= 0;
}

static void receive(struct server *s)
{
	uint8_t chunk[CHUNK];

	while (s->fd >= 0) {
		ssize_t n = recv(s->fd, chunk, sizeof(chunk), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			away(s, n ? "the connection to it has broken"
			          : "it has closed the connection");
			return;
		}
		if (!s->tls) {
			take_bytes(s, chunk, (size_t)n);
			continue;
		}
		tls_feed(s->tls, chunk, (size_t)n);
		if (!take_records(s))
			return;
	}
}

/* --- connecting --- */

static void connect_next(struct server *s);

static bool begin_tls(struct server *s)
{
	struct ip address;
	const bool is_address = ip_parse(s->start->host, &address);

	s->tls = tls_connect_new(s->tls_client, is_address ? SLICE("") : s->start->host,
	        is_address ? &address : NULL, SLICE(""), s->start->host, &s->out);
	return s->tls;
}

static void on_connected(struct server *s)
{
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error) {
		connect_next(s);
		return;
	}
	if (!s->tls_client) {
		log_in(s);
		return;
	}
	if (!begin_tls(s)) {
		away(s, "there is no memory for TLS");
		return;
	}
	enter(s, SERVER_HANDSHAKE);
	take_records(s);
}

static void on_socket(struct loop_io *io, unsigned events)
{
	struct server *s = container_of(io, struct server, io);

	(void)events;
	if (s->state == SERVER_CONNECTING)
		on_connected(s);
	if (s->fd >= 0 && s->state != SERVER_CONNECTING) {
		flush(s);
		receive(s);
	}
}

static int open_socket(struct server *s, const struct ip *address)
{
	const int one = 1;
	struct sockaddr_storage to;
	socklen_t n = ip_to_sockaddr(address, s->start->port, &to);
	int rc;

	s->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	rc = connect(s->fd, (const struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS ? -errno
	                                                                                 : 0;
	if (!rc)
		rc = loop_io_open(s->loop, &s->io, s->fd, LOOP_READ | LOOP_WRITE, on_socket);
	if (!rc)
		return 0;
	close(s->fd);
	s->fd = -1;
	return rc;
}

static void connect_next(struct server *s)
{
	loop_io_close(&s->io);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	enter(s, SERVER_CONNECTING);
	while (s->address_next < s->address_count)
		if (open_socket(s, &s->addresses[s->address_next++]) == 0)
			return;
	away(s, "no connection to it can be made");
}

static void take_addresses(struct server *s, const struct resolver_answer *answer)
{
	char why[SERVER_WHY_MAX];

	if (!answer->count) {
		snprintf(why, sizeof(why), "its name leads nowhere: %s", answer->error);
		away(s, why);
		return;
	}
	s->address_count = answer->count;
	memcpy(s->addresses, answer->addresses, answer->count * sizeof(*answer->addresses));
	connect_next(s);
}

static void on_resolved(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	take_addresses(container_of(wait, struct server, wait), answer);
}

static void begin(struct server *s)
{
	const struct resolver_answer *answer;

	buf_init_secret(&s->out, SERVER_OUT_MAX);
	s->address_next = 0;
	loop_timer_set(&s->timer, SERVER_LOGIN_MS);
	if (!reply_open(&s->reader)) {
		away(s, "there is no memory for its answers");
		return;
	}
	if (s->start->address_count) {
		s->address_count = s->start->address_count;
		memcpy(s->addresses, s->start->addresses, s->address_count * sizeof(*s->addresses));
		connect_next(s);
		return;
	}
	enter(s, SERVER_RESOLVING);
	s->wait.on_answer = on_resolved;
	answer = resolver_get(s->resolver, s->start->host, &s->wait);
	if (answer)
		take_addresses(s, answer);
}

static void on_time(struct loop_timer *timer)
{
	struct server *s = container_of(timer, struct server, timer);
	char why[SERVER_WHY_MAX];

	if (s->state == SERVER_PAUSED) {
		begin(s);
		return;
	}
	snprintf(why, sizeof(why), "it has not answered in %d ms",
	        s->state == SERVER_ASKED ? SERVER_ANSWER_MS : SERVER_LOGIN_MS);
	away(s, why);
}

/* --- the owner's side --- */

int server_open(struct server *s)
{
	s->fd = -1;
	s->pause_ms = SERVER_PAUSE_FIRST_MS;
	if (loop_timer_open(s->loop, &s->timer, on_time) != 0)
		return -ENOMEM;
	loop_timer_set(&s->timer, 0);
	return 0;
}

void server_close(struct server *s)
{
	hang_up(s);
	loop_timer_close(&s->timer);
}

void server_ask(struct server *s, const char *command, size_t n)
{
	loop_timer_set(&s->timer, SERVER_ANSWER_MS);
	send_command(s, SERVER_ASKED, command, n);
}
