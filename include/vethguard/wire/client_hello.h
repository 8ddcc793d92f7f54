/* SPDX-License-Identifier: Apache-2.0 */
/* client_hello: parses the first flight of TLS, reassembled across segments and records (RFC 8446, 6066, 7301).
 * Pure. */
#ifndef VETHGUARD_WIRE_CLIENT_HELLO_H
#define VETHGUARD_WIRE_CLIENT_HELLO_H

#include "vethguard/base/cursor.h"

#define CLIENT_HELLO_MAX 16384 /* bytes of the handshake message, and of the TLS records that carry it */

enum client_hello_status {
	CLIENT_HELLO_DONE,
	CLIENT_HELLO_MORE,    /* valid so far but incomplete: read on */
	CLIENT_HELLO_NOT_TLS, /* the first bytes are not a TLS handshake record */
	CLIENT_HELLO_BAD      /* TLS, but malformed, too long, or with two names; alert says how */
};

/* Alert descriptions (RFC 8446 section 6). */
enum {
	TLS_ALERT_UNEXPECTED_MESSAGE = 10,
	TLS_ALERT_RECORD_OVERFLOW = 22,
	TLS_ALERT_ILLEGAL_PARAMETER = 47,
	TLS_ALERT_ACCESS_DENIED = 49,
	TLS_ALERT_DECODE_ERROR = 50,
	TLS_ALERT_PROTOCOL_VERSION = 70,
	TLS_ALERT_INTERNAL_ERROR = 80,
	TLS_ALERT_UNRECOGNIZED_NAME = 112
};

struct client_hello {
	char sni[254]; /* host_name as sent, NUL-terminated; empty: none */
	size_t sni_n;
	bool alpn_h2, alpn_http11, alpn_other, has_alpn;
	bool ech;         /* has an encrypted_client_hello extension (RFC 9849), GREASE or not */
	uint16_t version; /* the highest of supported_versions, else legacy_version */
	uint8_t alert;    /* CLIENT_HELLO_BAD: the alert description to send; all other fields are empty then */
};

/* Parses the n bytes received so far on the connection, at most CLIENT_HELLO_MAX of them. Of record versions only the
 * first byte is checked, to tell TLS from other protocols; legacy_version is ignored if there are supported_versions
 * (RFC 8446 sections 5.1 and 4.2.1). */
enum client_hello_status client_hello_parse(const uint8_t *p, size_t n, struct client_hello *out);

/* The alert to send if these first bytes come from a client that speaks TLS but are not a ClientHello record: another
 * kind of record, or an SSLv2 ClientHello (RFC 5246 appendix E.2), which is not parsed. Returns 0 if they are
 * neither. *more: further bytes may make them one. */
uint8_t client_hello_stray_alert(const uint8_t *p, size_t n, bool *more);

#endif
