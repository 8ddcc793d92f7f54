/* SPDX-License-Identifier: Apache-2.0 */
/* client_hello: the first flight of TLS, reassembled across segments and records (RFC 8446, 6066, 7301). Pure. */
#ifndef VETHGUARD_WIRE_CLIENT_HELLO_H
#define VETHGUARD_WIRE_CLIENT_HELLO_H

#include "vethguard/base/cursor.h"

#define CLIENT_HELLO_MAX 16384 /* bytes of handshake message, and of TLS records that carry it */

enum client_hello_status {
	CLIENT_HELLO_DONE,
	CLIENT_HELLO_MORE,    /* a true prefix of a ClientHello: read on */
	CLIENT_HELLO_NOT_TLS, /* the first bytes are no TLS handshake record */
	CLIENT_HELLO_BAD      /* TLS, but malformed, too long, or with two names */
};

struct client_hello {
	char sni[254];        /* host_name as sent, NUL-terminated; empty: none */
	size_t sni_n;
	bool alpn_h2, alpn_http11, alpn_other, has_alpn;
	bool ech;             /* an encrypted_client_hello extension is there (RFC 9849), GREASE or not */
	uint16_t version;     /* highest of supported_versions, else legacy_version */
};

/* p, n: everything received so far on the connection. Reads no more than CLIENT_HELLO_MAX. */
enum client_hello_status client_hello_parse(const uint8_t *p, size_t n, struct client_hello *out);

#endif
