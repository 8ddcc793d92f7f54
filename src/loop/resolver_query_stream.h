/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_query_stream: a lookup over TCP (RFC 7766), after an answer did not fit a datagram. */
#ifndef VETHGUARD_SRC_LOOP_RESOLVER_QUERY_STREAM_H
#define VETHGUARD_SRC_LOOP_RESOLVER_QUERY_STREAM_H

#include "vethguard/base/buf.h"
#include "vethguard/wire/dns_lookup.h"

#define RESOLVER_QUERY_STREAM_LENGTH 2 /* bytes before each message */

struct resolver_query_stream {
	uint8_t out[RESOLVER_QUERY_STREAM_LENGTH + DNS_LOOKUP_BYTES];
	size_t out_n, sent;
	struct buf in;
	size_t taken; /* of in: the last message returned, with its length */
};

/* Copies the lookup. Returns NULL if out of memory. */
struct resolver_query_stream *resolver_query_stream_new(const struct dns_lookup *lookup);
void resolver_query_stream_free(struct resolver_query_stream *s); /* does nothing for NULL */
/* Sends what is left and reads. fd: a connected or connecting socket. Returns 0 and the next
 * message, borrowed until the next call; -EAGAIN: call again when the socket is ready; another
 * error: no message will come. */
int resolver_query_stream_next(struct resolver_query_stream *s, int fd, struct slice *message);

#endif
