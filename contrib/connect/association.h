/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An association with the gateway (RFC 1928 section 7): a connection over TLS, which proves the
 * session, and a UDP socket for datagrams, each with a header that names the other end. The
 * association ends with the connection.
 *
 *   OPENING -> READY -> ENDED
 *      `-----------------^
 */
#ifndef VETHGUARD_CONTRIB_CONNECT_ASSOCIATION_H
#define VETHGUARD_CONTRIB_CONNECT_ASSOCIATION_H

#include <stddef.h>
#include <stdint.h>

#define ASSOCIATIONS_MAX 32 /* at a time; the gateway gives a session no more */
#define DATAGRAM_MAX 65535

struct association;
struct connect;
struct socks5_header;

enum association_end {
	ASSOCIATION_REFUSED, /* the policy has no udp:// rule, or the gateway serves no associations
	                      */
	ASSOCIATION_UNKNOWN, /* the gateway does not take the token */
	ASSOCIATION_FAILED,  /* it has never been ready, for any other reason */
	ASSOCIATION_OVER     /* it was ready */
};

struct association_ops {
	void (*ready)(void *context);
	/* A whole datagram; its header, which was parsed, is its first from->used bytes. May not
	 * free the association. */
	void (*received)(
	        void *context, const struct socks5_header *from, const uint8_t *p, size_t n);
	/* The last call. The owner frees the association here or later. why is static. */
	void (*ended)(void *context, enum association_end end, const char *why);
};

/* Begins to open one. Calls none of ops before it returns. Returns NULL without memory, or if there
 * are ASSOCIATIONS_MAX. */
struct association *association_open(
        struct connect *c, const struct association_ops *ops, void *context);
/* NULL is allowed. */
void association_free(struct association *a);
/* Sends a datagram, of which the header is the first part. Before the association is ready the
 * datagram waits, up to bounds beyond which it is dropped. Calls none of ops. */
void association_send(struct association *a, const void *header, size_t header_n,
        const void *payload, size_t payload_n);

#endif
