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
	CLIENT_HELLO_BAD      /* TLS, but malformed, too long, or with two names: alert says which */
};

/* Descriptions of alerts (RFC 8446 section 6). */
enum {
	TLS_ALERT_UNEXPECTED_MESSAGE = 10,
	TLS_ALERT_RECORD_OVERFLOW = 22,
	TLS_ALERT_ILLEGAL_PARAMETER = 47,
	TLS_ALERT_DECODE_ERROR = 50,
	TLS_ALERT_PROTOCOL_VERSION = 70,
	TLS_ALERT_UNRECOGNIZED_NAME = 112
};

struct client_hello {
	char sni[254];        /* host_name as sent, NUL-terminated; empty: none */
	size_t sni_n;
	bool alpn_h2, alpn_http11, alpn_other, has_alpn;
	bool ech;             /* an encrypted_client_hello extension is there (RFC 9849), GREASE or not */
	uint16_t version;     /* highest of supported_versions, else legacy_version */
	uint8_t alert;        /* CLIENT_HELLO_BAD: the description that is due; all else is empty then */
};

/* p, n: everything received so far on the connection. Reads no more than CLIENT_HELLO_MAX. Versions of records are
 * ignored but for their first byte, by which TLS is told from other things, and legacy_version where there are
 * supported_versions (RFC 8446 sections 5.1 and 4.2.1). */
enum client_hello_status client_hello_parse(const uint8_t *p, size_t n, struct client_hello *out);

/* The alert that is due where these first bytes are of a client that speaks TLS, but not its ClientHello: a record of
 * another kind, or an SSLv2 ClientHello (RFC 5246 appendix E.2), which is not read. 0: none of that. *more: it may become
 * such. */
uint8_t client_hello_stray_alert(const uint8_t *p, size_t n, bool *more);

#endif
