/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content: what fields say about a response's content: how it is coded and whether it may be
 * changed on the way; and what they have to say after it was changed.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_CONTENT_H
#define VETHGUARD_SRC_PROXY_HTTP_CONTENT_H

#include "proxy/http/http.h"
#include "vethguard/credential/decompress.h"

/* The codings that can be decompressed begin at CONTENT_GZIP, in the order of enum
 * decompress_coding. */
enum content_coding {
	CONTENT_PLAIN,
	CONTENT_GZIP,
	CONTENT_DEFLATE,
	CONTENT_BROTLI,
	CONTENT_ZSTD,
	CONTENT_OTHER
};
_Static_assert(CONTENT_OTHER == CONTENT_GZIP + DECOMPRESS_CODING_COUNT, "each can be decompressed");

static inline bool content_is_compressed(enum content_coding coding)
{
	return coding != CONTENT_PLAIN && coding != CONTENT_OTHER;
}

/* coding: one that content_is_compressed(). */
static inline enum decompress_coding content_decoder_of(enum content_coding coding)
{
	return (enum decompress_coding)(coding - CONTENT_GZIP);
}

/* Returns the media type without its parameters; empty if there is no Content-Type, or more than
 * one. */
struct slice content_type_of(const struct http_fields *fields);
/* Reads all Content-Encoding fields together. Returns CONTENT_OTHER for a coding that cannot be
 * decompressed, and for more than one coding. */
enum content_coding content_coding_of(const struct http_fields *response);
/* True if messages inside the content may be compressed. */
bool content_has_coded_messages(const struct http_fields *response);
/* Returns the codings that a request accepts (RFC 9110 section 12.5.3) and that can be
 * decompressed: a bit for each enum decompress_coding. "*" names none of them. */
unsigned content_accepted(const struct http_fields *request);
/* Returns the value of Accept-Encoding that asks for these codings; 0: for none. */
struct slice content_asking_for(unsigned accepted);
/* True if Cache-Control says no-transform (RFC 9111 section 5.2). */
bool content_forbids_transform(const struct http_fields *fields);
/* True for a field with a digest of the content or a signature over one: it no longer fits once the
 * content is decompressed. */
bool content_is_digest(struct slice name);
/* True if any such field is present. */
bool content_has_digest(const struct http_fields *fields);
/* Describes the response as decompressed: removes the coding and makes the entity tag weak (RFC
 * 9110 section 8.8.1). *kept then holds the tag; the caller frees it after the fields. Returns 0 or
 * -ENOMEM. */
int content_describe_decompressed(struct http_fields *response, char **kept);
/* For a 304: makes the entity tag weak if the request asks about the weak one, which the client got
 * with decompressed content. *kept and return value as above. */
int content_describe_unmodified(
        const struct http_fields *request, struct http_fields *response, char **kept);

#endif
