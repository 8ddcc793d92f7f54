/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decompress: streaming decoders of the content codings of HTTP (RFC 9110 section 8.4.1, RFC 7932, RFC 8878), so that
 * content can be searched. What they allocate is counted, bounded, and wiped when it is freed.
 */
#ifndef VETHGUARD_CREDENTIAL_DECOMPRESS_H
#define VETHGUARD_CREDENTIAL_DECOMPRESS_H

#include "vethguard/base/buf.h"

enum decompress_coding {
	DECOMPRESS_GZIP,    /* RFC 1952; several members in a row are one stream */
	DECOMPRESS_DEFLATE, /* in zlib's format (RFC 1950), or without it (RFC 1951), as some servers send it */
	DECOMPRESS_BROTLI,  /* RFC 7932, with windows of up to 16 MiB */
	DECOMPRESS_ZSTD,    /* RFC 8878; several frames in a row are one stream */
	DECOMPRESS_CODING_COUNT
};

/* The largest window of zstd, as a power of two: 8 MiB (RFC 9659 section 3). */
#define DECOMPRESS_ZSTD_WINDOW_LOG 23
/* Bound on what all decoders that share a struct decompress_memory have allocated, in bytes. One decoder allocates at
 * most about 45 KB (gzip, deflate), 17 MB (brotli: its window grows with the content, up to 16 MiB) or 9 MB (zstd). */
#define DECOMPRESS_MEMORY_MAX (128u << 20)

/* Counts what the decoders have allocated. The owner zeroes it first and keeps it longer than the decoders. */
struct decompress_memory {
	size_t used;
};

struct decompress;
/* Returns NULL if there is no memory. */
struct decompress *decompress_new(enum decompress_coding coding, struct decompress_memory *memory);
void decompress_free(struct decompress *u);
/* Decompresses until the input is used up or out holds out_limit bytes or more; *used tells how much was taken.
 * Returns 0; -EBADMSG if the input is not in the coding, is damaged, needs a dictionary or goes on after its end;
 * -EFBIG if the output so far has more than INFLATED_FREE bytes plus INFLATED_RATIO times the input's (inflate.h);
 * -ENOMEM; or -ENOBUFS. Each failure is final. If a call leaves out at its limit, the decoder may hold more: call
 * again, also with n 0. */
int decompress_feed(struct decompress *u, const uint8_t *p, size_t n, size_t *used, struct buf *out, size_t out_limit);
/* True if the stream so far is complete; otherwise the content is truncated. */
bool decompress_complete(const struct decompress *u);

#endif
