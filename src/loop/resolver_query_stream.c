/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends one lookup, after its length, over a connection of its own. The server may send any number
 * of messages with their lengths, in any order; the caller decides which one is the reply. A
 * message longer than DNS_LOOKUP_STREAM_MAX ends the lookup, and so does the end of the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "loop/resolver_query_stream.h"
#include "vethguard/base/cursor.h"

#define READ_BYTES 2048

struct resolver_query_stream *resolver_query_stream_new(const struct dns_lookup *lookup)
{
	struct resolver_query_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->out[0] = (uint8_t)(lookup->n >> 8);
	s->out[1] = (uint8_t)lookup->n;
	memcpy(s->out + RESOLVER_QUERY_STREAM_LENGTH, lookup->bytes, lookup->n);
	s->out_n = RESOLVER_QUERY_STREAM_LENGTH + lookup->n;
	buf_init(&s->in, RESOLVER_QUERY_STREAM_LENGTH + DNS_LOOKUP_STREAM_MAX + READ_BYTES);
	return s;
}

void resolver_query_stream_free(struct resolver_query_stream *s)
{
	if (!s)
		return;
	buf_fini(&s->in);
	free(s);
}

/* While the socket is connecting, send() fails with EAGAIN. */
static int send_rest(struct resolver_query_stream *s, int fd)
{
	while (s->sent < s->out_n) {
		ssize_t n =
		        send(fd, s->out + s->sent, s->out_n - s->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		s->sent += (size_t)n;
	}
	return 0;
}

static int receive(struct resolver_query_stream *s, int fd)
{
	uint8_t *room = buf_reserve(&s->in, READ_BYTES);
	ssize_t n;

	if (!room)
		return -ENOMEM;
	do
		n = recv(fd, room, READ_BYTES, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ECONNRESET;
	buf_commit(&s->in, (size_t)n);
	return 0;
}

/* True if a whole message has arrived. */
static bool take_message(struct resolver_query_stream *s, struct slice *message)
{
	struct reader r = reader_over(buf_bytes(&s->in), s->in.len);

	*message = reader_vector(&r, RESOLVER_QUERY_STREAM_LENGTH, DNS_LOOKUP_STREAM_MAX);
	if (r.failed)
		return false;
	s->taken = RESOLVER_QUERY_STREAM_LENGTH + message->n;
	return true;
}

static bool is_too_long(const struct resolver_query_stream *s)
{
	struct reader r = reader_over(buf_bytes(&s->in), s->in.len);

	return reader_u16(&r) > DNS_LOOKUP_STREAM_MAX;
}

int resolver_query_stream_next(struct resolver_query_stream *s, int fd, struct slice *message)
{
	int rc = send_rest(s, fd);

	if (s->taken) {
		buf_consume(&s->in, s->taken);
		s->taken = 0;
	}
	while (rc == 0) {
		if (take_message(s, message))
			return 0;
		if (is_too_long(s))
			return -EMSGSIZE;
		rc = receive(s, fd);
	}
	return rc;
}
