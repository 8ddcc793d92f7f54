/* SPDX-License-Identifier: Apache-2.0 */
/* front: the client's side of a connection: TCP, with or without TLS, or a stream of a connection
 * in HTTP/2 (http2.h). Reading gives plain bytes, writing takes them. Bytes that the client does
 * not take wait in the connection's own memory, so a caller checks front_is_clear() before it
 * writes. */
#ifndef VETHGUARD_SRC_GATEWAY_FRONT_H
#define VETHGUARD_SRC_GATEWAY_FRONT_H

#include "gateway/gateway.h"

enum front_status { FRONT_OK, FRONT_AGAIN, FRONT_EOF, FRONT_ERROR };

struct http2_stream;

struct front {
	struct gateway *gateway;
	struct loop_io io;
	int fd;
	struct tls *tls;                /* NULL: plain */
	struct http2_stream *stream;    /* NULL: a connection of its own */
	const struct front *connection; /* of the stream */
	struct buf unsent;
	enum front_status over; /* the status after the bytes that were read last; FRONT_OK: more
	                           may follow */
	bool broken, ended;
	bool readable; /* the socket may hold bytes; false after a read that emptied it */
	bool hung_up;  /* the client has ended its sending, or reset: reads go on to the end */
};

/* Takes fd. on_ready as in loop_io_open(). Returns 0, or -errno with fd closed. */
int front_open(struct gateway *g, struct front *f, int fd, bool tls,
        void (*on_ready)(struct loop_io *io, unsigned events));
/* Begins the side of a stream of `connection`, which outlives it. */
void front_open_stream(struct gateway *g, struct front *f, const struct front *connection,
        struct http2_stream *stream);
/* Call with the events that the loop reports for the connection, before anything is read. */
void front_note(struct front *f, unsigned events);
/* Makes the next read ask the kernel, whatever the loop has reported. */
void front_look_again(struct front *f);
/* Gets the next plain bytes, from at most `most` received bytes. They are borrowed until the next
 * call for any connection. FRONT_AGAIN: nothing at the moment. */
enum front_status front_read(struct front *f, size_t most, struct slice *out);
/* Sends n plain bytes. Returns false if the connection is broken. */
bool front_write(struct front *f, const void *p, size_t n);
/* Sends the bytes that wait. Returns false if the connection is broken. */
bool front_flush(struct front *f);
/* Fills in the SHA-256 of the client's certificate (DER). Returns false if the client has shown
 * none, or the configuration asks for none. */
bool front_certificate(const struct front *f, uint8_t hash[TLS_CERTIFICATE_HASH_BYTES]);
/* True if client and gateway have agreed on HTTP/2. */
bool front_is_http2(const struct front *f);
static inline bool front_is_clear(const struct front *f)
{
	return f->unsent.len == 0;
}
/* True if the connection can be given to another process: it is a TCP connection without a fault,
 * and nothing waits to be sent. */
bool front_may_leave(const struct front *f);
/* Ends the sending direction. */
void front_end(struct front *f);
void front_close(struct front *f);

/* http2_stream.c, http2_response.c: the same for a stream. */
enum front_status http2_stream_read(struct front *f, size_t most, struct slice *out);
bool http2_stream_write(struct front *f, const void *p, size_t n);
void http2_stream_end(struct front *f);
void http2_stream_close(struct front *f);

#endif
