/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each try has its own socket, connected to the server: the kernel chooses a random port that no
 * other query has, accepts only replies from the server's address and port, and reports at once if
 * nobody listens. A query ends with the first reply that repeats all of its random parts
 * (dns_lookup_read()). Other replies are skipped, a few times; then the next try asks from another
 * port. If the answer does not fit a datagram, the same server is queried over TCP with new random
 * parts, in the time that the try has left, and the reply is read as strictly.
 *
 * Servers are queried in order, as resolv.conf(5) says. If one is silent, fails or refuses, the
 * query goes on to the next. That does not affect other queries, because a name's owner decides how
 * servers fare with it. Only after silence over UDP is another server queried first from then on;
 * silence over TCP does not count, because the owner decides whether TCP is needed. No server is
 * ever asked for anything but what a caller wants to know.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/resolver_query.h"
#include "loop/resolver_query_stream.h"
#include "vethguard/base/hash.h"

#define TRIES_MIN 2 /* a datagram may get lost */
#define TRIES_MAX 3 /* so that each try has enough time */

struct resolver_query {
	struct questions *all;
	struct slice host;
	resolver_query_on_end on_end;
	void *context;
	struct list place;                    /* while it waits for its turn */
	struct loop_io io;                    /* fd -1: no try is under way */
	struct resolver_query_stream *stream; /* of a try over TCP, or NULL */
	struct loop_deadline patience;
	struct loop_task over;
	size_t server;
	unsigned tried, asked; /* tries so far; servers among them */
	unsigned strange;      /* replies to this try that did not fit */
	uint16_t type;
	bool counted; /* counted in all->out */
	bool plain;
	enum resolver_query_end end; /* the result so far */
	struct dns_found found;
	struct dns_lookup lookup;
};

static void on_over(struct loop_task *task);
static void on_silence(struct loop_deadline *deadline);
static void on_reply(struct loop_io *io, unsigned events);
static void on_stream(struct loop_io *io, unsigned events);

int questions_open(struct questions *all, struct loop *loop, const struct config_server *servers,
        size_t count, uint32_t timeout_ms)
{
	*all = (struct questions){.loop = loop};
	list_init(&all->waiting);
	for (size_t i = 0; i < count && i < CONFIG_SERVERS_MAX; i++)
		all->servers[all->server_count++] = servers[i];
	all->tries = count < TRIES_MIN   ? TRIES_MIN
	             : count > TRIES_MAX ? TRIES_MAX
	                                 : (unsigned)count;
	return loop_deadlines_open(loop, &all->patience, timeout_ms / all->tries, on_silence);
}

void questions_close(struct questions *all)
{
	loop_deadlines_close(&all->patience);
}

/* --- a try --- */

static void close_socket(struct resolver_query *q)
{
	int fd = q->io.fd;

	loop_io_close(&q->io);
	if (fd >= 0)
		close(fd);
	q->io.fd = -1;
	resolver_query_stream_free(q->stream);
	q->stream = NULL;
}

static void close_try(struct resolver_query *q)
{
	loop_deadline_clear(&q->patience);
	close_socket(q);
}

static bool write_lookup(struct resolver_query *q)
{
	uint8_t mix[DNS_LOOKUP_MIX];
	uint16_t id;

	random_bytes(&id, sizeof(id));
	random_bytes(mix, sizeof(mix));
	return dns_lookup_write(&q->lookup, q->host, q->type, id, q->plain ? NULL : mix);
}

static int connect_to(const struct config_server *server, int type)
{
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(
	        &server->address, server->port ? server->port : CONFIG_SERVER_PORT, &ss);
	int fd = socket(ss.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&ss, n) < 0 && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool send_try(struct resolver_query *q)
{
	struct questions *all = q->all;

	q->strange = 0;
	q->io.fd = connect_to(&all->servers[q->server], SOCK_DGRAM);
	if (q->io.fd < 0 || !write_lookup(q))
		return false;
	if (loop_io_open_level(all->loop, &q->io, q->io.fd, LOOP_READ, on_reply) < 0)
		return false;
	if (send(q->io.fd, q->lookup.bytes, q->lookup.n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return false;
	loop_deadline_set(&all->patience, &q->patience);
	return true;
}

/* Tries again with the settings in q. If no try is left or possible, the query is over. */
static void try_again(struct resolver_query *q)
{
	close_try(q);
	while (q->tried < q->all->tries) {
		q->tried++;
		if (send_try(q))
			return;
		close_try(q);
		q->end = RESOLVER_QUERY_FAILED;
		q->server = (q->server + 1) % q->all->server_count;
		q->asked++;
	}
	loop_task_queue(q->all->loop, &q->over);
}

/* Goes on to the next server, because this one does not help. */
static void try_next_server(struct resolver_query *q, enum resolver_query_end end)
{
	q->end = end;
	q->server = (q->server + 1) % q->all->server_count;
	if (++q->asked >= q->all->server_count && end != RESOLVER_QUERY_SILENT) {
		close_try(q);
		loop_task_queue(q->all->loop, &q->over);
		return;
	}
	try_again(q);
}

static void on_silence(struct loop_deadline *deadline)
{
	struct resolver_query *q = container_of(deadline, struct resolver_query, patience);
	struct questions *all = q->all;

	if (q->stream) {
		try_next_server(q, RESOLVER_QUERY_TRUNCATED);
		return;
	}
	if (all->preferred == q->server)
		all->preferred = (q->server + 1) % all->server_count;
	try_next_server(q, RESOLVER_QUERY_SILENT);
}

/* --- the answer --- */

static void finish(struct resolver_query *q, enum resolver_query_end end)
{
	q->end = end;
	close_try(q);
	loop_task_queue(q->all->loop, &q->over);
}

/* Queries the same server over TCP; the time of the try runs on. */
static bool send_over_tcp(struct resolver_query *q)
{
	struct questions *all = q->all;

	close_socket(q);
	if (!write_lookup(q))
		return false;
	q->lookup.reply_max = DNS_LOOKUP_STREAM_MAX;
	q->stream = resolver_query_stream_new(&q->lookup);
	if (!q->stream)
		return false;
	q->io.fd = connect_to(&all->servers[q->server], SOCK_STREAM);
	return q->io.fd >= 0 && loop_io_open(all->loop, &q->io, q->io.fd,
	                                LOOP_READ | LOOP_WRITE | LOOP_CLOSED, on_stream) == 0;
}

static void take_truncated(struct resolver_query *q)
{
	if (q->stream || !send_over_tcp(q)) /* it does not fit over TCP either */
		try_next_server(q, RESOLVER_QUERY_TRUNCATED);
}

static void take_answer(struct resolver_query *q)
{
	if (q->found.truncated) {
		take_truncated(q);
		return;
	}
	switch (q->found.rcode) {
	case DNS_NOERROR:
		finish(q, RESOLVER_QUERY_NO_ADDRESS);
		break;
	case DNS_NXDOMAIN:
		finish(q, RESOLVER_QUERY_NO_NAME);
		break;
	case DNS_REFUSED:
		try_next_server(q, RESOLVER_QUERY_REFUSED);
		break;
	default:
		try_next_server(q, RESOLVER_QUERY_FAILED);
	}
}

/* Sends the plain query at once to a server that needs it; this does not count as a try. */
static void ask_plainly(struct resolver_query *q)
{
	q->plain = true;
	q->tried--;
	try_again(q);
}

/* True: the reply is skipped, and the try goes on. */
static bool take_reply(struct resolver_query *q, const uint8_t *p, size_t n)
{
	switch (dns_lookup_read(&q->lookup, p, n, &q->found)) {
	case DNS_LOOKUP_STRANGE:
		if (++q->strange < RESOLVER_QUERY_STRANGE_MAX)
			return true;
		q->end = RESOLVER_QUERY_FAILED;
		try_again(q);
		break;
	case DNS_LOOKUP_ASK_PLAIN:
		ask_plainly(q);
		break;
	case DNS_LOOKUP_BROKEN:
		try_next_server(q, RESOLVER_QUERY_FAILED);
		break;
	case DNS_LOOKUP_ANSWER:
		take_answer(q);
		break;
	}
	return false;
}

/* Reads one datagram; if there are more, the loop's next turn reports them. */
static void on_reply(struct loop_io *io, unsigned events)
{
	struct resolver_query *q = container_of(io, struct resolver_query, io);
	uint8_t bytes[DNS_LOOKUP_REPLY_MAX + 1]; /* one byte more shows that a reply is too long */
	ssize_t n = recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	(void)events;
	if (n >= 0)
		take_reply(q, bytes, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR) /* nobody listens there */
		try_next_server(q, RESOLVER_QUERY_FAILED);
}

/* Reads everything available, because readiness is reported only once. */
static void on_stream(struct loop_io *io, unsigned events)
{
	struct resolver_query *q = container_of(io, struct resolver_query, io);
	struct slice reply;
	int rc;

	(void)events;
	do
		rc = resolver_query_stream_next(q->stream, io->fd, &reply);
	while (rc == 0 && take_reply(q, (const uint8_t *)reply.p, reply.n));
	if (rc < 0 && rc != -EAGAIN)
		try_next_server(q, RESOLVER_QUERY_TRUNCATED);
}

/* --- a question --- */

static void begin(struct resolver_query *q)
{
	q->counted = true;
	q->all->out++;
	q->server = q->all->preferred;
	try_again(q);
}

/* Gives its place to the next waiting query. */
void resolver_query_cancel(struct resolver_query *q)
{
	struct questions *all;

	if (!q)
		return;
	all = q->all;
	close_try(q);
	loop_task_cancel(all->loop, &q->over);
	list_remove(&q->place);
	all->out -= q->counted;
	free(q);
	if (all->out < RESOLVER_QUERIES_OUT_MAX && !list_is_empty(&all->waiting)) {
		q = container_of(all->waiting.next, struct resolver_query, place);
		list_remove(&q->place);
		begin(q);
	}
}

static void on_over(struct loop_task *task)
{
	struct resolver_query *q = container_of(task, struct resolver_query, over);
	struct dns_found found = q->found;
	resolver_query_on_end on_end = q->on_end;
	void *context = q->context;
	uint16_t type = q->type;
	enum resolver_query_end end = q->end;

	if (end != RESOLVER_QUERY_NO_ADDRESS)
		found.count = 0;
	resolver_query_cancel(q);
	on_end(context, type, end, &found);
}

struct resolver_query *resolver_query_ask(struct questions *all, struct slice host, uint16_t type,
        resolver_query_on_end on_end, void *context)
{
	struct resolver_query *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	*q = (struct resolver_query){.all = all,
	        .host = host,
	        .type = type,
	        .on_end = on_end,
	        .context = context,
	        .io.fd = -1,
	        .over.run = on_over};
	if (all->out < RESOLVER_QUERIES_OUT_MAX)
		begin(q);
	else
		list_append(&all->waiting, &q->place);
	return q;
}
