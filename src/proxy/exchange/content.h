/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content: what fields say about a response's content: how it is coded, whether it may be changed
 * on the way, and what is said of it when it has been.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_CONTENT_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_CONTENT_H

#include "proxy/http/http.h"

enum content_coding { CONTENT_PLAIN, CONTENT_GZIP, CONTENT_OTHER };

/* All Content-Encoding fields together: only nothing, or gzip once, can be read. */
enum content_coding content_coding_of(const struct http_fields *response);
/* True where messages inside of the content may be compressed. */
bool content_has_coded_messages(const struct http_fields *response);
/* True where a request takes gzip (RFC 9110 section 12.5.3). */
bool content_accepts_gzip(const struct http_fields *request);
/* True where Cache-Control says no-transform (RFC 9111 section 5.2). */
bool content_forbids_transform(const struct http_fields *fields);
/* A field that tells a digest of the content, or a signature over one: content that is decompressed
 * does not fit it any more. */
bool content_is_digest(struct slice name);
/* True where one is there. */
bool content_has_digest(const struct http_fields *fields);
/* The response goes on decompressed: its coding is no longer said, its entity tag is a weak one
 * (RFC 9110 section 8.8.1). *kept is what the tag lies in from then on, to be freed after the
 * fields. 0 or -ENOMEM. */
int content_describe_decompressed(struct http_fields *response, char **kept);
/* For a 304: its entity tag is made weak where the request asks about the weak one, which whoever
 * asks got with decompressed content. As above. */
int content_describe_unmodified(
        const struct http_fields *request, struct http_fields *response, char **kept);

#endif
