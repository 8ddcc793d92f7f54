/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_chunked: signs anew a body that the client has signed chunk by chunk (STREAMING-AWS4-HMAC-SHA256-PAYLOAD, also
 * with a trailer). A chunk's signature precedes its data and covers it, so one whole chunk is kept at a time. The
 * output is as long as the input: only the digits of the signatures change.
 *
 *   SIZE;chunk-signature=HEX CRLF  DATA CRLF  ...  0;chunk-signature=HEX CRLF  [TRAILERS]  CRLF
 */
#ifndef VETHGUARD_SIGN_AWS_CHUNKED_H
#define VETHGUARD_SIGN_AWS_CHUNKED_H

#include "vethguard/sign/sigv4.h"

#define AWS_CHUNK_MAX (1u << 20)         /* bytes of data in one chunk */
#define AWS_CHUNK_LINE_MAX 1024u         /* bytes of a chunk's first line, and of a line of the trailer */
#define AWS_CHUNK_TRAILER_MAX 4096u      /* bytes of the trailer */
#define AWS_CHUNK_INPUT_MAX (256u << 10) /* bytes of input per call */

enum aws_chunked_part {
	AWS_CHUNKED_SIZE,
	AWS_CHUNKED_DATA,
	AWS_CHUNKED_DATA_END,
	AWS_CHUNKED_TRAILER,
	AWS_CHUNKED_LAST, /* the empty line after a trailer's signature */
	AWS_CHUNKED_DONE
};

struct aws_chunked {
	struct hmac *hmac;
	struct secret key; /* the key of the day */
	struct sigv4_scope scope;
	char names[SIGV4_REGION_MAX + SIGV4_SERVICE_MAX]; /* room for the names that scope points to */
	char signature[SIGV4_HEX + 1];                    /* the last signature that was made */
	bool with_trailer;
	enum aws_chunked_part expects;
	char line[AWS_CHUNK_LINE_MAX];
	size_t line_n;
	size_t left;         /* bytes of data still to come */
	size_t signature_at; /* where the chunk's signature stands, counted from ready */
	size_t data_at;      /* ... and its data */
	struct buf trailer;  /* the trailer's lines as they are signed */
	struct buf out;      /* the output; its first `ready` bytes may be sent: aws_chunked_sent() */
	size_t ready;
	const char *why; /* static: what is wrong */
};

/* Begins a body whose request has the signature `seed`. scope and key are copied. Returns 0 or -errno.
 * aws_chunked_fini() may be called in both cases. */
int aws_chunked_init(struct aws_chunked *c, struct hmac *hmac, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char seed[SIGV4_HEX + 1], bool with_trailer);
void aws_chunked_fini(struct aws_chunked *c);
/* Takes n <= AWS_CHUNK_INPUT_MAX bytes of the body. Returns 0; -EBADMSG: the body is not chunked in this way; -EFBIG: a
 * chunk is larger than AWS_CHUNK_MAX; or -errno. After a failure c->why says what is wrong, and c can only be freed. */
int aws_chunked_take(struct aws_chunked *c, const uint8_t *p, size_t n);
/* Tells that the first n of the ready bytes were sent. */
void aws_chunked_sent(struct aws_chunked *c, size_t n);
/* True if the body may end here. */
bool aws_chunked_is_whole(const struct aws_chunked *c);

#endif
