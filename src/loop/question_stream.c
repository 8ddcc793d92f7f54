/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lookup goes out over a connection of its own, with its length before it. What comes back is
 * messages with their lengths, as many as the server likes and in its order: which of them is the
 * answer is the caller's to say. A message that is longer than DNS_LOOKUP_STREAM_MAX ends it, and
 * so does the server's end of the connection within one.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "loop/question_stream.h"
#include "vethguard/base/cursor.h"

#define READ_BYTES 2048

struct question_stream *question_stream_new(const struct dns_lookup *lookup)
{
	struct question_stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->out[0] = (uint8_t)(lookup->n >> 8);
	s->out[1] = (uint8_t)lookup->n;
	memcpy(s->out + QUESTION_STREAM_LENGTH, lookup->bytes, lookup->n);
	s->out_n = QUESTION_STREAM_LENGTH + lookup->n;
	buf_init(&s->in, QUESTION_STREAM_LENGTH + DNS_LOOKUP_STREAM_MAX + READ_BYTES);
	return s;
}

void question_stream_free(struct question_stream *s)
{
	if (!s)
		return;
	buf_fini(&s->in);
	free(s);
}

/* As long as the socket is being connected it has no room. */
static int send_rest(struct question_stream *s, int fd)
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

static int receive(struct question_stream *s, int fd)
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

/* True where a whole message is there. */
static bool take_message(struct question_stream *s, struct slice *message)
{
	struct reader r = reader_over(buf_bytes(&s->in), s->in.len);

	*message = reader_vector(&r, QUESTION_STREAM_LENGTH, DNS_LOOKUP_STREAM_MAX);
	if (r.failed)
		return false;
	s->taken = QUESTION_STREAM_LENGTH + message->n;
	return true;
}

static bool is_too_long(const struct question_stream *s)
{
	struct reader r = reader_over(buf_bytes(&s->in), s->in.len);

	return reader_u16(&r) > DNS_LOOKUP_STREAM_MAX;
}

int question_stream_next(struct question_stream *s, int fd, struct slice *message)
{
	int result = send_rest(s, fd);

	if (s->taken) {
		buf_consume(&s->in, s->taken);
		s->taken = 0;
	}
	while (result == 0) {
		if (take_message(s, message))
			return 0;
		if (is_too_long(s))
			return -EMSGSIZE;
		result = receive(s, fd);
	}
	return result;
}
