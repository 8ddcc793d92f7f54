/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All bytes of one read are decrypted at once, and no encrypted byte has to be kept: the plain
 * bytes are fewer than the encrypted ones, and OpenSSL holds at most the beginning of one record
 * from the reads before. TLS writes into a buffer that all connections share; it is empty again
 * when a function here returns.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/front.h"

#define UNSENT_MAX (512u << 10)
#define EVENTS (LOOP_READ | LOOP_WRITE | LOOP_CLOSED)

static const char alpn[] = "\x02h2\x08http/1.1\x08http/1.0";

int front_open(struct gateway *g, struct front *f, int fd, bool tls,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	int rc = 0;

	*f = (struct front){.gateway = g, .fd = fd, .readable = true};
	buf_init(&f->unsent, UNSENT_MAX);
	if (tls)
		f->tls = tls_accept_new(g->tls, SLICE(alpn), &g->tx);
	if (tls && !f->tls)
		rc = -ENOMEM;
	if (!rc)
		rc = loop_io_open(g->loop, &f->io, fd, EVENTS, on_ready);
	if (rc)
		front_close(f);
	return rc;
}

void front_open_stream(struct gateway *g, struct front *f, const struct front *connection,
        struct http2_stream *stream)
{
	*f = (struct front){.gateway = g, .fd = -1, .stream = stream, .connection = connection};
	buf_init(&f->unsent, UNSENT_MAX);
}

bool front_is_http2(const struct front *f)
{
	return f->tls && slice_equals(tls_alpn(f->tls), SLICE("h2"));
}

void front_close(struct front *f)
{
	if (f->stream) {
		http2_stream_close(f);
		return;
	}
	loop_io_close(&f->io);
	tls_free(f->tls);
	f->tls = NULL;
	buf_fini(&f->unsent);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

bool front_certificate(const struct front *f, uint8_t hash[TLS_CERTIFICATE_HASH_BYTES])
{
	if (f->stream)
		f = f->connection;
	return f->tls && f->gateway->start.client_certificates &&
	       tls_client_certificate_hash(f->tls, hash);
}

bool front_may_leave(const struct front *f)
{
	return !f->stream && f->fd >= 0 && !f->broken && !f->ended && !f->over && !f->unsent.len;
}

static bool fail(struct front *f)
{
	f->broken = true;
	return false;
}

/* Sends as many of n bytes as the socket takes; *sent tells how many. */
static bool send_some(struct front *f, const uint8_t *p, size_t n, size_t *sent)
{
	for (*sent = 0; *sent < n;) {
		ssize_t did = send(f->fd, p + *sent, n - *sent, MSG_NOSIGNAL);

		if (did < 0 && errno == EINTR)
			continue;
		if (did < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK || fail(f);
		*sent += (size_t)did;
	}
	return true;
}

bool front_flush(struct front *f)
{
	size_t sent;

	if (f->broken)
		return false;
	if (!f->unsent.len || f->stream)
		return true;
	if (!send_some(f, buf_bytes(&f->unsent), f->unsent.len, &sent))
		return false;
	buf_consume(&f->unsent, sent);
	if (f->unsent.len)
		return true;
	buf_fini(&f->unsent);
	if (f->ended)
		shutdown(f->fd, SHUT_WR);
	return true;
}

static bool put(struct front *f, const uint8_t *p, size_t n)
{
	size_t sent = 0;

	if (f->broken)
		return false;
	if (!f->unsent.len && !send_some(f, p, n, &sent))
		return false;
	return sent == n || buf_append(&f->unsent, p + sent, n - sent) == 0 || fail(f);
}

/* Sends the bytes that TLS has written. */
static bool put_tls(struct front *f)
{
	struct buf *tx = &f->gateway->tx;
	bool good = !tx->len || put(f, buf_bytes(tx), tx->len);

	buf_consume(tx, tx->len);
	return good;
}

bool front_write(struct front *f, const void *p, size_t n)
{
	enum tls_status status;

	if (f->stream)
		return http2_stream_write(f, p, n);
	if (!f->tls)
		return put(f, p, n);
	status = tls_write(f->tls, p, n);
	return put_tls(f) && (status == TLS_OK || fail(f));
}

void front_end(struct front *f)
{
	if (f->stream) {
		http2_stream_end(f);
		return;
	}
	if (f->ended || f->broken)
		return;
	f->ended = true;
	if (f->tls) {
		tls_close(f->tls);
		put_tls(f);
	}
	if (front_is_clear(f))
		shutdown(f->fd, SHUT_WR);
}

void front_note(struct front *f, unsigned events)
{
	if (events & LOOP_CLOSED)
		f->hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		f->readable = true;
}

void front_look_again(struct front *f)
{
	f->readable = true;
}

/* A read that gets less than it asked for has emptied the socket: the loop reports what comes
 * later. It reports an end only once, so after that each read asks the kernel. A reset that came
 * before the bytes were read is not reported as an end: relay.c looks for it (WAIT_DOUBT). */
static enum front_status receive(struct front *f, uint8_t *p, size_t most, size_t *n)
{
	ssize_t got;

	*n = 0;
	if (!f->readable)
		return FRONT_AGAIN;
	do
		got = recv(f->fd, p, most, 0);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		return FRONT_ERROR;
	f->readable = f->hung_up || (got > 0 && (size_t)got == most);
	if (got < 0)
		return FRONT_AGAIN;
	*n = (size_t)got;
	return got ? FRONT_OK : FRONT_EOF;
}

/* Decrypts everything that TLS was fed. */
static enum front_status decrypt(struct front *f, struct slice *out)
{
	uint8_t *plain = f->gateway->plain;
	enum tls_status status = TLS_OK;
	size_t n = 0, got;

	while (status == TLS_OK && n < GATEWAY_PLAIN_MAX) {
		status = tls_read(f->tls, plain + n, GATEWAY_PLAIN_MAX - n, &got);
		n += got;
	}
	*out = slice_of(plain, n);
	put_tls(f);
	if (status == TLS_CLOSED)
		f->over = FRONT_EOF;
	else if (status == TLS_ERROR)
		f->over = FRONT_ERROR;
	return n ? FRONT_OK : f->over ? f->over : FRONT_AGAIN;
}

enum front_status front_read(struct front *f, size_t most, struct slice *out)
{
	struct gateway *g = f->gateway;
	enum front_status status;
	size_t n;

	if (f->stream)
		return http2_stream_read(f, most, out);
	*out = SLICE("");
	if (f->broken || f->over)
		return f->broken ? FRONT_ERROR : f->over;
	do {
		status = receive(f, f->tls ? g->cipher : g->plain, most, &n);
		if (status != FRONT_OK || !f->tls) {
			*out = slice_of(g->plain, n);
			return status;
		}
		tls_feed(f->tls, g->cipher, n);
		status = decrypt(f, out);
	} while (status == FRONT_AGAIN);
	return status;
}
