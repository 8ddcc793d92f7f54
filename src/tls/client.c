/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: all connections to upstreams share one SSL_CTX, which verifies against the
 * trust's store. Each connection states the peer it expects (a DNS name or an address; RFC 9525:
 * subject alternative names only) and offers a session from the slot of its key. A resumed session
 * carries the verification of the handshake that made it, so the slot's key includes the expected
 * peer besides the owner's key: a session never vouches for another name.
 */
#include "tls/record/record.h"
#include "tls/session.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"

struct tls_client {
	SSL_CTX *ctx;
	struct session_cache *sessions;
	struct record_suites suites;
};

/* Called once per TLS 1.2 session and per TLS 1.3 ticket. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	session_slot_put(tls_of_ssl(ssl)->sessions, session);
	return 0;
}

static bool context_setup(SSL_CTX *ctx, struct tls_trust *trust)
{
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);

	SSL_CTX_set1_cert_store(ctx, tls_trust_store(trust));
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	tls_context_setup(ctx);
	/* Everything the operator listed is an anchor, including intermediates. */
	return X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN) &&
	       tls_profile_client(ctx);
}

struct tls_client *tls_client_new(struct tls_trust *trust)
{
	struct tls_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	tls_library_init();
	client->sessions = session_cache_new(SESSION_KEYS);
	record_suites_init(&client->suites);
	client->ctx = SSL_CTX_new_ex(tls_library(), NULL, TLS_client_method());
	if (!client->sessions || !client->ctx || !context_setup(client->ctx, trust)) {
		tls_client_free(client);
		client = NULL;
	}
	ERR_clear_error();
	return client;
}

void tls_client_free(struct tls_client *client)
{
	if (!client)
		return;
	SSL_CTX_free(client->ctx);
	session_cache_free(client->sessions);
	record_suites_fini(&client->suites);
	free(client);
}

static bool expect_host(SSL *ssl, struct slice host)
{
	char name[TLS_SNI_MAX + 1];

	if (host.n > TLS_SNI_MAX || memchr(host.p, 0, host.n))
		return false;
	memcpy(name, host.p, host.n);
	name[host.n] = 0;
	SSL_set_hostflags(
	        ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

static bool expect_address(SSL *ssl, const struct ip *address)
{
	size_t n = address->family == 4 ? 4 : address->family == 6 ? 16 : 0;

	return n > 0 && X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), address->bytes, n);
}

/* The slot for the owner's key and the expected peer, each with its length, so that no two pairs
 * look the same. */
static struct session_slot *slot_for(struct tls_client *client, struct slice host,
        const struct ip *address, struct slice session_key)
{
	uint8_t key[2 + TLS_SESSION_KEY_MAX + 2 + TLS_SNI_MAX + 17];
	struct writer w = writer_over(key, sizeof(key));

	if (session_key.n > TLS_SESSION_KEY_MAX)
		return NULL;
	writer_vector(&w, 2, session_key);
	writer_vector(&w, 2, host);
	if (host.n == 0) {
		writer_u8(&w, address->family);
		writer_bytes(&w, address->bytes, sizeof(address->bytes));
	}
	return w.failed ? NULL : session_slot_get(client->sessions, slice_of(key, w.len));
}

static bool connection_setup(
        struct tls *tls, struct slice host, const struct ip *address, struct slice session_key)
{
	if (host.n == 0 && !address)
		return false;
	if (!(host.n > 0 ? expect_host(tls->ssl, host) : expect_address(tls->ssl, address)))
		return false;
	if (tls->alpn.n > 0 && SSL_set_alpn_protos(tls->ssl, (const unsigned char *)tls->alpn.p,
	                               (unsigned)tls->alpn.n) != 0)
		return false;
	tls->sessions = slot_for(tls->client, host, address, session_key);
	if (!tls->sessions)
		return false;
	SSL_SESSION *session = session_slot_take(tls->sessions, clock_real_ms() / 1000);
	if (session) {
		SSL_set_session(tls->ssl, session); /* if this fails, the handshake is a full one */
		SSL_SESSION_free(session);
	}
	SSL_set_connect_state(tls->ssl);
	return true;
}

struct tls *tls_connect_new(struct tls_client *client, struct slice host, const struct ip *address,
        struct slice alpn, struct slice session_key, struct buf *out)
{
	struct tls *tls = tls_new(client->ctx, alpn, out);

	if (!tls)
		return NULL;
	tls->client = client;
	tls->suites = &client->suites;
	if (!connection_setup(tls, host, address, session_key)) {
		tls_free(tls);
		tls = NULL;
	}
	ERR_clear_error();
	return tls;
}

bool tls_present(struct tls *tls, struct tls_identity *identity)
{
	const bool taken = SSL_use_cert_and_key(tls->ssl, identity->leaf, identity->key,
	                           identity->chain, 1) == 1;

	ERR_clear_error();
	return taken;
}

size_t tls_server_end_point(const struct tls *tls, uint8_t out[TLS_END_POINT_MAX])
{
	X509 *leaf = tls->ssl ? SSL_get0_peer_certificate(tls->ssl) : NULL;
	int nid = NID_undef;
	unsigned n = TLS_END_POINT_MAX;
	bool made = false;

	if (leaf && OBJ_find_sigid_algs(X509_get_signature_nid(leaf), &nid, NULL) &&
	        nid != NID_undef) {
		bool weak = nid == NID_md5 || nid == NID_sha1;
		const EVP_MD *method = weak ? EVP_sha256() : EVP_get_digestbynid(nid);

		made = method && EVP_MD_get_size(method) <= TLS_END_POINT_MAX &&
		       X509_digest(leaf, method, out, &n) == 1;
	}
	ERR_clear_error();
	return made ? n : 0;
}
