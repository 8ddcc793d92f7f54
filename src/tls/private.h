/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the tls module share. */
#ifndef VETHGUARD_SRC_TLS_PRIVATE_H
#define VETHGUARD_SRC_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "vethguard/tls/tls.h"

#define TLS_SNI_MAX 255         /* bytes of a host name in SNI (RFC 6066; OpenSSL's own bound) */
#define TLS_SESSION_KEY_MAX 320 /* bytes of an owner's session key */

struct session_slot;
struct record_layer;
struct record_suites;
struct elsewhere;

struct tls {
	SSL *ssl;                     /* NULL: its record layer was taken over */
	struct record_layer *layer;   /* NULL: none yet; see record.h */
	struct record_suites *suites; /* the server's or the client's */
	const uint8_t *in;            /* borrowed from the owner; see tls_feed() */
	size_t in_left;
	struct buf *out;           /* borrowed; NULL: it is being freed, and output is dropped */
	struct slice alpn;         /* borrowed; wire form */
	struct slice chosen;       /* the protocol in alpn that was agreed on */
	struct tls_server *server; /* either server or client is set */
	struct tls_client *client;
	struct session_slot *sessions; /* client side: one reference */
	struct elsewhere
	        *elsewhere;         /* client side: its certificate's key is elsewhere; else NULL */
	const char *error;          /* static text; set with TLS_ERROR */
	uint64_t sni_hash;          /* server side: hash of the name in the first ClientHello */
	enum tls_key_kind key_kind; /* server side: the kind that the ClientHello permits */
	enum tls_status final;      /* TLS_CLOSED or TLS_ERROR once reached; until then TLS_OK */
	int output_error;           /* -errno of the output buffer */
	unsigned messages;          /* post-handshake, with little content between; see tls.c */
	size_t content;             /* bytes of content since these were counted */
	bool sni_seen;
	bool established;
	/* Server side: the client's certificate. until_s 0: none. Seconds since the epoch. */
	int64_t certificate_until_s;
	uint8_t certificate_hash[TLS_CERTIFICATE_HASH_BYTES];
};

struct tls_identity {
	X509 *leaf;
	EVP_PKEY *key;
	STACK_OF(X509) * chain; /* without the leaf */
	int64_t expires_s;      /* since the epoch */
	bool elsewhere;         /* key is the public one */
	unsigned references;
};

/* library.c: the library context of all connections and certificates; call tls_library_init()
 * first. */
OSSL_LIB_CTX *tls_library(void);
/* Parses a certificate of exactly these bytes. Returns NULL on failure. */
X509 *tls_x509_parse(const uint8_t *der, size_t n);

/* memory.c: call this before OpenSSL is used for the first time in a program. */
void tls_memory_init(void);
/* For tests: how many buffers are kept (tls_buffers_release()). */
size_t tls_buffers_kept(void);

/* bio.c: the only connection between OpenSSL and the owner's bytes. */
BIO *tls_bio_new(struct tls *tls);
struct tls *tls_of_ssl(const SSL *ssl);

/* server.c */
struct record_suites *tls_server_suites(struct tls_server *server);

/* tls.c */
/* Takes over the record layer if that is possible now. Returns true if it is taken over, now or
 * earlier. */
bool tls_is_taken_over(struct tls *tls);
struct tls *tls_new(SSL_CTX *ctx, struct slice alpn, struct buf *out);
/* Sets what both sides have in common. */
void tls_context_setup(SSL_CTX *ctx);
/* True if name is one of the protocols in the wire-form list. */
bool tls_alpn_contains(struct slice list, struct slice name);

/* state.c: frees OpenSSL's connection. */
void tls_ssl_free(struct tls *tls);
/* Notes the client's certificate once the handshake is complete, before OpenSSL's connection is
 * freed. */
void tls_note_certificate(struct tls *tls);
/* Remembers that the connection has failed, and why (static text). Returns TLS_ERROR. */
enum tls_status tls_fail(struct tls *tls, const char *text);
/* Counts a post-handshake message of the peer. Returns false if these messages are a flood; the
 * connection has then failed. */
bool tls_message_passes(struct tls *tls);
/* Counts bytes of content, which excuse some of these messages. */
void tls_count_content(struct tls *tls, size_t n);

/* profile.c: versions, cipher suites and groups of each side. */
bool tls_profile_server(SSL_CTX *ctx);
bool tls_profile_client(SSL_CTX *ctx);
/* To be called while a ClientHello is processed (SSL_CTX_set_client_hello_cb(3)). */
enum tls_key_kind tls_profile_key_kind(SSL *ssl);

/* trust.c */
X509_STORE *tls_trust_store(struct tls_trust *trust); /* borrowed */
/* For tests: indexes the whole text if that was not done yet. Sets the number of usable
 * certificates, and of PEM blocks that could not be read. */
void tls_trust_count(struct tls_trust *trust, size_t *usable, size_t *unusable);

/* identity.c: takes one reference of each; if it returns NULL, the caller keeps them. */
struct tls_identity *tls_identity_new(
        X509 *leaf, EVP_PKEY *key, STACK_OF(X509) * chain, int64_t expires_s);

#endif
