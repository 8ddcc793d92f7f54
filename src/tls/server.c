/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: all connections from the sandbox share one SSL_CTX. What differs is set on
 * the SSL while its ClientHello is processed, in this order:
 * - on_client_hello, before any session is looked up: binds sessions to the requested name;
 * - on_server_name, after that: a resumed session needs no certificate, otherwise the owner is
 *   asked for one;
 * - on_alpn: picks the protocol in the server's order.
 *
 * After a HelloRetryRequest the first two run again; the name must then be the same (RFC 8446
 * section 4.1.2). Sessions are kept in tickets only, so nothing is stored here per session.
 */
#include "tls/record/record.h"
#include "tls/ticket.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <time.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/base/hash.h"

#define SESSION_LIFE_S 3600
#define CLIENT_CHAIN_MAX 16384 /* bytes of a client's certificates */

struct tls_server {
	SSL_CTX *ctx;
	tls_identity_for identity_for;
	void *context;
	struct ticket_keys tickets;
	struct record_suites suites;
	/* For the two halves of a session context. They are secret, so nobody can aim for a
	 * collision. */
	struct hash_key name_keys[2];
};

/* Copies name in lower case to out and returns it. name.n <= TLS_SNI_MAX. */
static struct slice name_lower(struct slice name, char out[TLS_SNI_MAX])
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		out[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	return slice_of(out, name.n);
}

/* Gets the host name in a server_name extension (RFC 6066 section 3). False: malformed. */
static bool sni_parse(const uint8_t *p, size_t n, struct slice *name)
{
	struct reader r = reader_over(p, n);
	struct slice list = reader_vector(&r, 2, 0xffff);
	struct reader names = reader_over(list.p, list.n);

	uint8_t type = reader_u8(&names);
	*name = reader_vector(&names, 2, TLS_SNI_MAX);
	return reader_done(&r) && reader_done(&names) && type == TLSEXT_NAMETYPE_host_name;
}

static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
	struct tls_server *server = arg;
	struct tls *tls = tls_of_ssl(ssl);
	const unsigned char *p;
	size_t n;
	struct slice name = {"", 0};
	char lower[TLS_SNI_MAX];
	uint64_t session_context[2];

	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n) &&
	        !sni_parse(p, n, &name)) {
		*alert = SSL_AD_DECODE_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	name = name_lower(name, lower);
	for (size_t i = 0; i < 2; i++)
		session_context[i] = hash_bytes(&server->name_keys[i], name.p, name.n);
	if (tls->sni_seen && tls->sni_hash != session_context[0]) {
		*alert = SSL_AD_ILLEGAL_PARAMETER;
		return SSL_CLIENT_HELLO_ERROR;
	}
	tls->sni_seen = true;
	tls->key_kind = tls_profile_key_kind(ssl);
	tls->sni_hash = session_context[0];
	if (!SSL_set_session_id_context(
	            ssl, (unsigned char *)session_context, sizeof(session_context))) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_server_name(SSL *ssl, int *alert, void *arg)
{
	struct tls_server *server = arg;
	const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct slice name = slice_of(sni ? sni : "", sni ? strlen(sni) : 0);
	char lower[TLS_SNI_MAX];

	if (SSL_session_reused(ssl))
		return SSL_TLSEXT_ERR_OK;
	if (SSL_get_certificate(ssl)) /* a second call, after a HelloRetryRequest */
		return SSL_TLSEXT_ERR_OK;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	if (name.n > TLS_SNI_MAX)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	struct tls_identity *identity = server->identity_for(
	        server->context, name_lower(name, lower), tls_of_ssl(ssl)->key_kind);
	if (!identity)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	if (SSL_use_cert_and_key(ssl, identity->leaf, identity->key, identity->chain, 1) != 1) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return SSL_TLSEXT_ERR_OK;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
        const unsigned char *in, unsigned in_len, void *arg)
{
	struct slice own = tls_of_ssl(ssl)->alpn;
	struct slice offered = slice_of(in, in_len);

	(void)arg;
	if (own.n == 0)
		return SSL_TLSEXT_ERR_NOACK;
	while (own.n > 0) {
		size_t n = (uint8_t)own.p[0];
		if (n > own.n - 1)
			break;
		if (tls_alpn_contains(offered, slice_of(own.p + 1, n))) {
			*out = (const unsigned char *)own.p + 1;
			*out_len = (unsigned char)n;
			return SSL_TLSEXT_ERR_OK;
		}
		own.p += 1 + n;
		own.n -= 1 + n;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
        EVP_MAC_CTX *mac, int encrypt)
{
	struct tls *tls = tls_of_ssl(ssl);

	int rc = ticket_keys_use(
	        &tls->server->tickets, clock_monotonic_ms(), name, iv, cipher, mac, encrypt == 1);
	/* 2: make a new ticket. A TLS 1.3 client uses each ticket once, and would run out of
	 * them. */
	return rc == 1 && encrypt != 1 && SSL_version(ssl) >= TLS1_3_VERSION ? 2 : rc;
}

static bool context_setup(SSL_CTX *ctx, struct tls_server *server)
{
	SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ctx, SESSION_LIFE_S);
	SSL_CTX_set_client_hello_cb(ctx, on_client_hello, server);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_server_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, server);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	tls_context_setup(ctx);
	return tls_profile_server(ctx) && SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
}

struct tls_server *tls_server_new(tls_identity_for identity_for, void *context)
{
	struct tls_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	tls_library_init();
	server->identity_for = identity_for;
	server->context = context;
	server->name_keys[0] = hash_random_key();
	server->name_keys[1] = hash_random_key();
	record_suites_init(&server->suites);
	server->ctx = SSL_CTX_new_ex(tls_library(), NULL, TLS_server_method());
	if (!ticket_keys_init(&server->tickets, clock_monotonic_ms()) || !server->ctx ||
	        !context_setup(server->ctx, server)) {
		tls_server_free(server);
		server = NULL;
	}
	ERR_clear_error();
	return server;
}

void tls_server_wipe_plaintext(struct tls_server *server)
{
	SSL_CTX_set_options(server->ctx, SSL_OP_CLEANSE_PLAINTEXT);
}

/* Accepts any certificate: its hash, not its signer, says whose it is. */
static int on_client_certificate(X509_STORE_CTX *store, void *arg)
{
	(void)store, (void)arg;
	return 1;
}

void tls_server_ask_certificates(struct tls_server *server)
{
	SSL_CTX_set_verify(server->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(server->ctx, on_client_certificate, NULL);
	SSL_CTX_set_max_cert_list(server->ctx, CLIENT_CHAIN_MAX);
}

bool tls_client_certificate_hash(const struct tls *tls, uint8_t out[TLS_CERTIFICATE_HASH_BYTES])
{
	if (!tls->established || tls->certificate_until_s <= (int64_t)time(NULL))
		return false;
	memcpy(out, tls->certificate_hash, TLS_CERTIFICATE_HASH_BYTES);
	return true;
}

void tls_server_free(struct tls_server *server)
{
	if (!server)
		return;
	SSL_CTX_free(server->ctx);
	ticket_keys_fini(&server->tickets);
	record_suites_fini(&server->suites);
	free(server);
}

struct record_suites *tls_server_suites(struct tls_server *server)
{
	return &server->suites;
}

struct tls *tls_accept_new(struct tls_server *server, struct slice alpn, struct buf *out)
{
	struct tls *tls = tls_new(server->ctx, alpn, out);

	if (!tls)
		return NULL;
	tls->server = server;
	tls->suites = &server->suites;
	SSL_set_accept_state(tls->ssl);
	return tls;
}
