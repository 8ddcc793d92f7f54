/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls: TLS connections (OpenSSL) over memory. This module does no socket I/O: the owner passes in received bytes and
 * sends the output, so that one recv() and one send() per event suffice and nothing is copied twice.
 *
 * A connection reads ciphertext from a borrowed buffer (tls_feed) and appends ciphertext to a struct buf of the
 * owner's, usually one that all connections of the thread share and that is flushed at once. Only this module calls
 * OpenSSL.
 */
#ifndef VETHGUARD_TLS_TLS_H
#define VETHGUARD_TLS_TLS_H

#include "vethguard/base/buf.h"
#include "vethguard/base/ip.h"

struct tls;          /* one connection */
struct tls_server;   /* shared by all connections from the sandbox */
struct tls_client;   /* shared by all connections to upstreams */
struct tls_identity; /* certificate chain and private key, reference-counted */
struct tls_trust;    /* root certificates for verifying upstreams */

enum tls_status {
	TLS_OK,
	TLS_WANT_READ,      /* all input is consumed; feed more */
	TLS_WANT_SIGNATURE, /* only tls_handshake(): see tls_wants_signature() */
	TLS_CLOSED,         /* close_notify was received: a clean end */
	TLS_ERROR           /* fatal; tls_error_text() says why; the output may hold an alert worth sending */
};

/* Initializes the library without any configuration file. A process calls it before its jail takes the file system
 * away. Every constructor here calls it too. */
void tls_library_init(void);
/* Frees the record buffers that are kept for this thread's next records (never more than 8, of 16.5 KiB each), to
 * give memory back to the system. */
void tls_buffers_release(void);

/* --- towards the sandbox --- */

/* The kind of a leaf's key. */
enum tls_key_kind {
	TLS_KEY_ECDSA, /* P-256: nearly every client accepts it */
	TLS_KEY_RSA,   /* for clients whose ClientHello does not permit an ECDSA key */
	TLS_KEY_KINDS
};

/* Called during the handshake with the client's SNI (canonical lower case, or empty) and a kind of key that its
 * ClientHello permits. Returns the identity to use (the callee keeps its own reference), or NULL to refuse the
 * handshake with unrecognized_name. Not called if a session made for the same name is resumed, because no certificate
 * is shown then. It must not call into any connection. */
typedef struct tls_identity *(*tls_identity_for)(void *context, struct slice sni, enum tls_key_kind kind);

/* TLS 1.2 and 1.3 as src/tls/profile.c defines them. Session tickets are protected by a key of this struct, which is
 * rotated hourly; sessions are bound to the name for which they were made. Returns NULL if there is no memory. */
struct tls_server *tls_server_new(tls_identity_for identity_for, void *context);
/* From now on, connections wipe what they have decrypted once it is read. */
void tls_server_wipe_plaintext(struct tls_server *server);
/* From now on, clients are asked for a certificate. The handshake takes any certificate, or none: the owner decides
 * by the certificate's hash. A client that shows one has proved that it has the key. */
void tls_server_ask_certificates(struct tls_server *server);
#define TLS_CERTIFICATE_HASH_BYTES 32
/* Writes the SHA-256 of the client's certificate (DER), once the handshake is complete. Returns false if there is no
 * certificate, or if it has expired (notAfter). */
bool tls_client_certificate_hash(const struct tls *tls, uint8_t out[TLS_CERTIFICATE_HASH_BYTES]);
void tls_server_free(struct tls_server *server);
/* alpn: protocols in order of preference in wire form (RFC 7301), borrowed for the connection's life. A client that
 * offers ALPN without any of them is refused with no_application_protocol. out: where ciphertext is appended,
 * borrowed for the same time. Returns NULL if there is no memory. */
struct tls *tls_accept_new(struct tls_server *server, struct slice alpn, struct buf *out);

/* --- towards an upstream --- */

/* Always verifies against trust and host name (or address). Keeps TLS 1.3 tickets per key, each used once (up to 8,
 * newest first), and TLS 1.2 sessions. trust must outlive the client. Returns NULL if there is no memory. */
struct tls_client *tls_client_new(struct tls_trust *trust);
void tls_client_free(struct tls_client *client);
/* host: canonical name to send as SNI and to verify; if it is empty, address must be set. session_key: sessions are
 * shared only among connections with equal keys (at most 320 bytes). alpn, out and return value as above. */
struct tls *tls_connect_new(struct tls_client *client, struct slice host, const struct ip *address, struct slice alpn,
        struct slice session_key, struct buf *out);

/* Shows the certificate to an upstream that asks for one; call it before the first tls_handshake(). It keeps its own
 * reference. Returns false if its key is too weak for a connection. */
bool tls_present(struct tls *tls, struct tls_identity *identity);

/* The key of an identity may be elsewhere (tls_identity_read_elsewhere()). Then tls_handshake() stops where the key has
 * to sign, with TLS_WANT_SIGNATURE, and goes on after tls_take_signature(). A connection may be freed meanwhile. */
#define TLS_SIGNATURE_MAX 1024
struct tls_to_sign {
	uint16_t scheme;     /* RFC 8446 section 4.2.3, also in TLS 1.2 */
	struct slice digest; /* by the scheme's hash function; borrowed */
};
/* True if the handshake waits for a signature. */
bool tls_wants_signature(const struct tls *tls, struct tls_to_sign *out);
/* Takes the signature. ECDSA: r and s, of equal length. Call tls_handshake() afterwards: it fails if the signature is
 * not by the certificate's key. */
void tls_take_signature(struct tls *tls, struct slice signature);

/* Writes the hash of the server's certificate that channel bindings name ("tls-server-end-point", RFC 5929 section
 * 4.1): by the hash function of the certificate's signature, or SHA-256 instead of MD5 and SHA-1. Call it right after
 * the handshake. Returns its length in bytes; 0: there is none (the signature has no hash function, like Ed25519). */
#define TLS_END_POINT_MAX 64
size_t tls_server_end_point(const struct tls *tls, uint8_t out[TLS_END_POINT_MAX]);

/* --- both sides --- */

void tls_free(struct tls *tls);
/* Passes in received ciphertext, borrowed until tls_input_left() is 0 or the next tls_feed(). */
void tls_feed(struct tls *tls, const uint8_t *p, size_t n);
size_t tls_input_left(const struct tls *tls); /* bytes of it not used yet */
/* Sets the buffer to which ciphertext is appended from now on (borrowed). */
void tls_set_output(struct tls *tls, struct buf *out);
/* Continues the handshake. TLS_OK: done. A client's first call writes its ClientHello. */
enum tls_status tls_handshake(struct tls *tls);
/* Decrypts up to cap bytes; *n is 0 unless TLS_OK. Handles post-handshake messages. */
enum tls_status tls_read(struct tls *tls, uint8_t *out, size_t cap, size_t *n);
/* Encrypts all of p into the output. Returns TLS_OK, or TLS_ERROR (also if the output buffer's bound is reached). */
enum tls_status tls_write(struct tls *tls, const uint8_t *p, size_t n);
/* Appends close_notify. */
void tls_close(struct tls *tls);
/* The protocol agreed on by ALPN, or empty. */
struct slice tls_alpn(const struct tls *tls);
uint16_t tls_version(const struct tls *tls); /* 0x0303 or 0x0304 */
/* One sentence about the last TLS_ERROR: "certificate has expired", "hostname mismatch", ... Static text. */
const char *tls_error_text(const struct tls *tls);

/* --- a server's connection with which another process goes on (record/handover.c) --- */

/* The state of a connection of TLS 1.3 after its handshake. Secret: whoever has it reads and writes the connection, but
 * knows nothing of the server's key or of other connections. */
#define TLS_STATE_SECRET_MAX 48
#define TLS_STATE_SUITES 3
struct tls_state {
	uint8_t suite;    /* 0 to 2: TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256 */
	uint8_t secret_n; /* bytes of each secret */
	uint64_t reading_next, writing_next;                                  /* numbers of the next records */
	uint8_t reading[TLS_STATE_SECRET_MAX], writing[TLS_STATE_SECRET_MAX]; /* traffic secrets */
};
/* Copies the state. Returns false if no other process can go on with the connection now: it speaks TLS 1.2, OpenSSL
 * still has it, it has ended, or holds received bytes that were not read. After another process has begun, this
 * connection may only be freed. */
bool tls_state_read(struct tls *tls, struct tls_state *out);
/* Goes on with a connection. out: as in tls_accept_new(). Returns NULL if the state cannot be used, or if there is no
 * memory. */
struct tls *tls_state_go_on(struct tls_server *server, const struct tls_state *state, struct buf *out);

/* Certificates to trust: PEM text with any number of certificates; other text is skipped. Certificates are parsed
 * when first looked up, so that a large system store costs an idle worker nothing. pem (for example a mapped file)
 * must outlive the trust. Returns NULL if there is no memory. */
struct tls_trust *tls_trust_new(const uint8_t *pem, size_t n);
void tls_trust_free(struct tls_trust *trust);

/* Makes an identity from an operator's PEM files: chain has the leaf's certificate and then those above it, key the
 * leaf's private key. A key with a passphrase is refused. Returns NULL with one sentence in why. */
#define TLS_IDENTITY_WHY_MAX 128
#define TLS_IDENTITY_CHAIN_MAX 16 /* certificates */
struct tls_identity *tls_identity_read(struct slice chain, struct slice key, char why[TLS_IDENTITY_WHY_MAX]);
/* Makes the identity of a client from its certificates; its key, RSA (2048 bits and more) or EC, is elsewhere. pem may
 * hold no private key. */
struct tls_identity *tls_identity_read_elsewhere(struct slice pem, char why[TLS_IDENTITY_WHY_MAX]);
/* Drops one reference and frees the identity with the last one (NULL is allowed); adds one reference. */
void tls_identity_release(struct tls_identity *identity);
void tls_identity_retain(struct tls_identity *identity);
/* True if the signature of a SHA-256 digest is by the key of the certificate: ECDSA (r and s, of equal length) or RSA
 * (PKCS #1 1.5). */
bool tls_identity_verifies(const struct tls_identity *identity, struct slice digest, struct slice signature);
bool tls_identity_is_elsewhere(const struct tls_identity *identity);
/* When the leaf expires, in seconds since the epoch. */
int64_t tls_identity_expires_s(const struct tls_identity *identity);

#endif
