/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls: TLS connections (OpenSSL) over memory. This module does no socket I/O: the owner hands it received bytes and
 * sends what it produces, so that one recv() and one send() per event suffice and nothing is copied twice.
 *
 * A connection reads ciphertext from a borrowed run of bytes (tls_feed) and appends ciphertext to a struct buf that
 * the owner names (usually one shared by all connections of the thread and flushed at once). OpenSSL is called
 * nowhere else.
 */
#ifndef VETHGUARD_TLS_TLS_H
#define VETHGUARD_TLS_TLS_H

#include "vethguard/base/buf.h"
#include "vethguard/base/ip.h"

struct tls;             /* one connection */
struct tls_server;      /* what all connections from the sandbox share */
struct tls_client;      /* what all connections to upstreams share */
struct tls_identity;    /* certificate chain and private key, reference-counted */
struct tls_trust;       /* root certificates for verifying upstreams */

enum tls_status {
	TLS_OK,
	TLS_WANT_READ,      /* all input is consumed; feed more */
	TLS_CLOSED,         /* close_notify came: a clean end */
	TLS_ERROR           /* fatal; tls_error_text() says why; output may hold an alert worth sending */
};

/* Readies the library, without any configuration file: for a process to call before its jail takes the file system.
 * Every constructor here does it too. */
void tls_library_init(void);
/* Ends the waiting of buffers of records for this thread's next one (never more than 8, of 16.5 KiB each), for who
 * wants to give memory back to the system. */
void tls_buffers_release(void);

/* --- towards the sandbox --- */

/* What the key of a leaf is made for. */
enum tls_key_kind {
	TLS_KEY_ECDSA,      /* P-256: what nearly every client takes */
	TLS_KEY_RSA,        /* for clients whose ClientHello leaves no room for that */
	TLS_KEY_KINDS
};

/* Asked during the handshake with the client's SNI (canonical lower case, or empty) and the kind of key that its
 * ClientHello has room for. Returns the identity to use (the callee keeps its own reference) or NULL to refuse the
 * handshake with unrecognized_name. Not asked where a session made for the same name is resumed: no certificate is
 * shown then. It must not call into any connection. */
typedef struct tls_identity *(*tls_identity_for)(void *context, struct slice sni, enum tls_key_kind kind);

/* TLS 1.2 and 1.3 as src/tls/profile.c says, session tickets under a key that lives and dies with this struct (rotated hourly), sessions bound
 * to the name they were made for. NULL: no memory. */
struct tls_server *tls_server_new(tls_identity_for identity_for, void *context);
void tls_server_free(struct tls_server *server);
/* alpn: protocols in order of preference in wire form (RFC 7301), borrowed for the connection's life. A client that
 * offers ALPN without any of them is refused with no_application_protocol. out: where ciphertext is appended, borrowed
 * as long. NULL: no memory. */
struct tls *tls_accept_new(struct tls_server *server, struct slice alpn, struct buf *out);

/* --- towards an upstream --- */

/* Verifies against trust with host name (or address), always. Keeps TLS 1.3 tickets per key, each used once (up to 8,
 * the newest first), and TLS 1.2 sessions. trust must outlive the client. NULL: no memory. */
struct tls_client *tls_client_new(struct tls_trust *trust);
void tls_client_free(struct tls_client *client);
/* host: canonical name to send as SNI and to verify, or empty and address set. session_key: sessions are shared only
 * among connections with equal keys (at most 320 bytes). alpn, out, NULL: as above. */
struct tls *tls_connect_new(struct tls_client *client, struct slice host, const struct ip *address,
	struct slice alpn, struct slice session_key, struct buf *out);

/* --- both --- */

void tls_free(struct tls *tls);
/* Hands over received ciphertext, borrowed until tls_input_left() is 0 or the next tls_feed. */
void tls_feed(struct tls *tls, const uint8_t *p, size_t n);
size_t tls_input_left(const struct tls *tls); /* bytes of it */
/* Goes on with the handshake. TLS_OK: done. A client's first call writes its ClientHello. */
enum tls_status tls_handshake(struct tls *tls);
/* Decrypts up to cap bytes; *n is 0 unless TLS_OK. Post-handshake messages are handled within. */
enum tls_status tls_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n);
/* Encrypts all of p into the output. TLS_OK or TLS_ERROR (also where the output buffer's bound is reached). */
enum tls_status tls_write(struct tls *tls, const uint8_t *p, size_t n);
/* Appends close_notify. */
void tls_close(struct tls *tls);
/* The protocol agreed by ALPN, or empty. */
struct slice tls_alpn(const struct tls *tls);
uint16_t tls_version(const struct tls *tls);   /* 0x0303, 0x0304 */
/* One sentence about the last TLS_ERROR: "certificate has expired", "hostname mismatch", ... In the connection. */
const char *tls_error_text(const struct tls *tls);

/* Certificates to trust: PEM text (many certificates, other text between them skipped). Certificates are parsed when
 * first looked up, so that an idle worker pays nothing for a large system store. pem (a mapped file, say) must outlive
 * the trust. NULL: no memory. */
struct tls_trust *tls_trust_new(const uint8_t *pem, size_t n);
void tls_trust_free(struct tls_trust *trust);

/* One reference less, and freed with the last (NULL is harmless); one more. */
void tls_identity_release(struct tls_identity *identity);
void tls_identity_retain(struct tls_identity *identity);
/* When the leaf ends to be valid, in seconds since the epoch. */
int64_t tls_identity_expires_s(const struct tls_identity *identity);

#endif
