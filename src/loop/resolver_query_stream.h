/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_query_stream: a lookup over TCP (RFC 7766), where a datagram had no room for the answer.
 */
#ifndef VETHGUARD_SRC_LOOP_RESOLVER_QUERY_STREAM_H
#define VETHGUARD_SRC_LOOP_RESOLVER_QUERY_STREAM_H

#include "vethguard/base/buf.h"
#include "vethguard/wire/dns_lookup.h"

#define RESOLVER_QUERY_STREAM_LENGTH 2 /* bytes before each message */

struct resolver_query_stream {
	uint8_t out[RESOLVER_QUERY_STREAM_LENGTH + DNS_LOOKUP_BYTES];
	size_t out_n, sent;
	struct buf in;
	size_t taken; /* of in: the message that was given out last, with its length */
};

/* NULL: no memory. The lookup is copied. */
struct resolver_query_stream *resolver_query_stream_new(const struct dns_lookup *lookup);
void resolver_query_stream_free(struct resolver_query_stream *s); /* NULL is harmless */
/* With a socket that is connected or is being so: sends what is left and reads. 0 and the next
 * message, borrowed until the next call; -EAGAIN: the socket tells when there is more to do; other:
 * there will be none. */
int resolver_query_stream_next(struct resolver_query_stream *s, int fd, struct slice *message);

#endif
